//! Volumes, as far as the core has to do with them.

use serde_json::{Value, json};
use steersman_testing::{PodBuilder, node, pod};

use crate::world::World;

fn class() -> Value {
    json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "local"},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer"})
}

fn claim(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"namespace": "default", "name": name, "uid": name},
        "spec": {"storageClassName": "local", "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}}}})
}

fn volume(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
        "spec": {"storageClassName": "local", "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"}, "local": {"path": "/mnt"}}})
}

fn user_of(pod_name: &str, claim: &str, more: &Value) -> PodBuilder {
    let mut spec =
        json!({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]});
    for (field, value) in more.as_object().into_iter().flatten() {
        spec[field] = value.clone();
    }
    pod(pod_name).spec(spec)
}

#[test]
fn volume_that_one_profile_has_set_aside_is_not_promised_by_another() {
    let mut world = World::configured(
        "profiles: [{schedulerName: default-scheduler}, {schedulerName: second}]",
    );
    world.see(class());
    for object in [claim("c"), claim("d"), volume("v")] {
        world.see(object);
    }
    world.see(node("n1"));
    world.see(user_of("a", "c", &json!({})));
    world.see(user_of("b", "d", &json!({"schedulerName": "second"})));
    assert_eq!(world.next(), "a: n1");
    assert_eq!(world.next(), "b: no");
}

#[test]
fn pod_that_could_preempt_once_it_has_a_volume_is_woken_by_the_volume() {
    let mut world = World::new();
    world.see(class());
    world.see(claim("c"));
    world.see(node("n1"));
    world.see(pod("low").cpu("4").on("n1"));
    world.see(user_of("p", "c", &json!({})).cpu("4").priority(10));
    // The node is full, which is what the pod is told; that no volume is there
    // comes out when evictions are thought of.
    assert_eq!(world.next(), "p: no");
    assert_eq!(world.victims("p"), None);
    world.see(volume("v"));
    world.pass(crate::world::seconds(20));
    assert_eq!(world.next(), "p: no");
    assert_eq!(world.victims("p"), Some(vec!["low".to_owned()]));
}

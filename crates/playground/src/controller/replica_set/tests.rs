use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::victims::choose;
use super::*;
use crate::cluster::Kind;
use crate::controller::bench::Bench;

const SET: &str = "
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: s}
spec:
  replicas: 3
  selector: {matchLabels: {app: s}}
  template:
    metadata: {labels: {app: s}}
    spec: {containers: [{name: c, image: i}]}
";

fn status(bench: &Bench) -> (i32, i32, i32) {
    let status = bench.get::<ReplicaSet>("s").status.unwrap();
    let or_zero = Option::unwrap_or_default;
    (status.replicas, or_zero(status.ready_replicas), or_zero(status.available_replicas))
}

#[test]
fn set_keeps_its_number_of_pods() {
    let mut bench = Bench::new(2);
    bench.apply(SET);
    assert_eq!(status(&bench), (3, 3, 3));
    let name = bench.list::<Pod>(|pod| pod.metadata.name.clone().unwrap()).remove(0);
    bench.delete(Kind::Pod, &name);
    bench.pass(60);
    assert_eq!(bench.world.pods.len(), 3);
    bench.patch(Kind::ReplicaSet, "s", json!({"spec": {"replicas": 1}}));
    bench.pass(60);
    assert_eq!((bench.world.pods.len(), status(&bench)), (1, (1, 1, 1)));
    let made = bench.events.iter().filter(|event| event.starts_with("SuccessfulCreate")).count();
    assert_eq!(made, 4);
}

#[test]
fn pod_is_available_after_its_minimum_time() {
    let mut bench = Bench::new(2);
    bench.apply(&SET.replace("replicas: 3", "replicas: 2\n  minReadySeconds: 10"));
    bench.pass(9);
    assert_eq!(status(&bench), (2, 2, 0));
    bench.pass(2);
    assert_eq!(status(&bench), (2, 2, 2));
}

#[test]
fn matching_orphan_is_adopted_and_pod_that_does_not_match_is_let_go() {
    let mut bench = Bench::new(2);
    bench.apply(
        "{apiVersion: v1, kind: Pod, metadata: {name: mine, labels: {app: s}},
        spec: {containers: [{name: c, image: i}]}}",
    );
    bench.apply(SET);
    assert_eq!(bench.world.pods.len(), 3, "one was there");
    let owner = controller_of(&bench.get::<Pod>("mine").metadata).cloned().unwrap();
    assert_eq!((owner.kind.as_str(), owner.name.as_str()), ("ReplicaSet", "s"));
    bench.patch(Kind::Pod, "mine", json!({"metadata": {"labels": {"app": "other"}}}));
    assert!(controller_of(&bench.get::<Pod>("mine").metadata).is_none());
    assert_eq!(bench.world.pods.len(), 4, "another takes its place");
}

fn pod(name: &str, node: &str, phase: &str, ready: bool, cost: &str, born: &str) -> Arc<Pod> {
    let created = format!("2027-01-01T{born}Z");
    let status = if ready { "True" } else { "False" };
    let node = if node.is_empty() { Value::Null } else { json!(node) };
    let pod = json!({
        "metadata": {
            "name": name, "uid": name, "creationTimestamp": created,
            "annotations": {"controller.kubernetes.io/pod-deletion-cost": cost},
        },
        "spec": {"nodeName": node, "containers": []},
        "status": {"phase": phase, "conditions": [
            {"type": "Ready", "status": status, "lastTransitionTime": created},
        ]},
    });
    Arc::new(serde_json::from_value(pod).unwrap())
}

#[test]
fn pods_that_are_missed_least_go_first() {
    let base = || pod("b", "n1", "Running", true, "0", "00:00:00");
    let cases = [
        ("without a node", pod("a", "", "Pending", false, "0", "00:00:00")),
        ("pending", pod("a", "n2", "Pending", false, "0", "00:00:00")),
        ("not ready", pod("a", "n2", "Running", false, "0", "00:00:00")),
        ("cheaper", pod("a", "n2", "Running", true, "-5", "00:00:00")),
        ("much younger", pod("a", "n2", "Running", true, "0", "11:00:00")),
    ];
    let now = "2027-01-01T12:00:00Z".parse().unwrap();
    for (name, expected) in cases {
        for pods in [[base(), expected.clone()], [expected.clone(), base()]] {
            let victims = choose(&pods, &pods, 1, now);
            assert_eq!(victims[0].metadata.name.as_deref(), Some("a"), "{name}");
        }
    }
    let crowd = pod("a", "n2", "Running", true, "0", "00:00:00");
    let other = pod("c", "n2", "Running", true, "0", "00:00:00");
    let victims = choose(&[base(), crowd.clone()], &[base(), crowd, other], 1, now);
    assert_eq!(victims[0].metadata.name.as_deref(), Some("a"), "one of many on its node");
}

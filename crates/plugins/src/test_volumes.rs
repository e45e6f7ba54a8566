//! Objects for tests of the volume plugins.

use serde_json::{Value, json};
use steersman_api::object::{AnyObject, ClusterObject};
use steersman_framework::events::Change;
use steersman_testing::{PodBuilder, decoded, pod};

/// A claim in the namespace `default` that asks for 5Gi.
pub(crate) fn claim(name: &str, spec: Value) -> Value {
    let mut object = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"namespace": "default", "name": name, "uid": format!("uid-{name}")},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "5Gi"}}},
    });
    merge(&mut object["spec"], spec);
    object
}

/// A claim that is bound to a volume.
pub(crate) fn bound_claim(name: &str, volume: &str) -> Value {
    let object = claim(name, json!({"volumeName": volume}));
    annotated(object, "pv.kubernetes.io/bind-completed", "yes")
}

/// The same object with one annotation more.
pub(crate) fn annotated(mut object: Value, key: &str, value: &str) -> Value {
    object["metadata"]["annotations"][key] = value.into();
    object
}

/// An available volume of 10Gi of the driver `csi.example.com`.
pub(crate) fn volume(name: &str, spec: Value) -> Value {
    let mut object = json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "10Gi"}},
        "status": {"phase": "Available"},
    });
    merge(&mut object["spec"], spec);
    if object["spec"].as_object().is_some_and(|spec| !spec.keys().any(|key| is_source(key))) {
        object["spec"]["csi"] = json!({"driver": "csi.example.com", "volumeHandle": name});
    }
    object
}

fn is_source(field: &str) -> bool {
    matches!(field, "csi" | "awsElasticBlockStore" | "gcePersistentDisk" | "hostPath")
}

/// Node affinity of a volume: nodes whose label has that value.
pub(crate) fn only_where(label: &str, value: &str) -> Value {
    json!({"required": {"nodeSelectorTerms": [{"matchExpressions": [
        {"key": label, "operator": "In", "values": [value]}]}]}})
}

/// A class whose claims wait for a pod, provisioned by `csi.example.com`.
pub(crate) fn waiting_class(name: &str) -> Value {
    json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
        "provisioner": "csi.example.com", "volumeBindingMode": "WaitForFirstConsumer"})
}

/// As [`waiting_class`], with volumes that are made by hand.
pub(crate) fn local_class(name: &str) -> Value {
    let mut class = waiting_class(name);
    class["provisioner"] = "kubernetes.io/no-provisioner".into();
    class
}

/// What drivers say about a node: how many volumes can be attached.
pub(crate) fn csi_node(node: &str, limits: &[(&str, i32)]) -> Value {
    let drivers: Vec<Value> = limits
        .iter()
        .map(|(name, n)| json!({"name": name, "nodeID": node, "allocatable": {"count": n}}))
        .collect();
    json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": node},
        "spec": {"drivers": drivers}})
}

/// A pod that uses claims.
pub(crate) fn pod_with(name: &str, claims: &[&str]) -> PodBuilder {
    let volumes: Vec<Value> = claims
        .iter()
        .map(|claim| json!({"name": claim, "persistentVolumeClaim": {"claimName": claim}}))
        .collect();
    pod(name).spec(json!({"volumes": volumes}))
}

/// A pod with one volume of another sort.
pub(crate) fn pod_with_volume(name: &str, mut volume: Value) -> PodBuilder {
    volume["name"] = "v".into();
    pod(name).spec(json!({"volumes": [volume]}))
}

/// A stored object, as tests write it.
#[track_caller]
pub(crate) fn stored(json: Value) -> AnyObject {
    match decoded(json) {
        ClusterObject::Other(object) => object,
        other => panic!("not a stored object: {other:?}"),
    }
}

/// An object came.
#[track_caller]
pub(crate) fn came(new: Value) -> Change {
    Change::Object { old: None, new: Some(stored(new)) }
}

/// An object changed.
#[track_caller]
pub(crate) fn changed(old: Value, new: Value) -> Change {
    Change::Object { old: Some(stored(old)), new: Some(stored(new)) }
}

/// An object went.
#[track_caller]
pub(crate) fn went(old: Value) -> Change {
    Change::Object { old: Some(stored(old)), new: None }
}

/// A pod left its node.
#[track_caller]
pub(crate) fn left(pod: PodBuilder) -> Change {
    Change::AssignedPod { old: Some(pod.build()), new: None }
}

fn merge(into: &mut Value, more: Value) {
    let (Value::Object(into), Value::Object(more)) = (into, more) else { return };
    into.extend(more);
}

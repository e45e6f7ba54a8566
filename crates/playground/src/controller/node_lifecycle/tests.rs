use k8s_openapi::api::core::v1::{Node, Pod};
use serde_json::{Value, json};

use super::*;
use crate::cluster::Kind;
use crate::controller::bench::Bench;
use crate::workload::is_ready;

fn taints_of(bench: &Bench) -> Vec<String> {
    let node: Node = bench.get("node-1");
    let taints = node.spec.and_then(|spec| spec.taints).unwrap_or_default();
    taints.iter().map(|taint| format!("{}:{}", taint.key, taint.effect)).collect()
}

fn annotated(key: &str, value: Value) -> Value {
    json!({"metadata": {"annotations": {format!("playground.steersman.dev/{key}"): value}}})
}

const POD: &str = "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {
  tolerations: [{operator: Exists}], containers: [{name: c, image: i}]}}";

#[test]
fn node_that_renews_its_lease_stays_ready() {
    let mut bench = Bench::new(1);
    bench.pass(1000);
    assert_eq!(condition_status(&bench.get("node-1"), "Ready"), "True");
    assert_eq!(taints_of(&bench), Vec::<String>::new());
}

#[test]
fn silent_node_is_unknown_after_its_grace_and_tainted_unreachable() {
    let mut bench = Bench::new(1);
    bench.apply(POD);
    bench.pass(100);
    bench.patch(Kind::Node, "node-1", annotated("heartbeat", json!("stopped")));
    // The last lease was renewed up to ten seconds ago.
    bench.pass(29);
    assert_eq!(condition_status(&bench.get("node-1"), "Ready"), "True");
    bench.pass(12);
    assert_eq!(condition_status(&bench.get("node-1"), "Ready"), "Unknown");
    assert_eq!(
        taints_of(&bench),
        ["node.kubernetes.io/unreachable:NoSchedule", "node.kubernetes.io/unreachable:NoExecute"]
    );
    assert!(!is_ready(&bench.get::<Pod>("p")), "its pods are not ready");
    bench.patch(Kind::Node, "node-1", annotated("heartbeat", Value::Null));
    assert_eq!(condition_status(&bench.get("node-1"), "Ready"), "True");
    assert_eq!(taints_of(&bench), Vec::<String>::new());
    assert!(is_ready(&bench.get::<Pod>("p")));
}

#[test]
fn node_that_says_so_is_not_ready_at_once() {
    let mut bench = Bench::new(1);
    bench.apply(POD);
    bench.patch(Kind::Node, "node-1", annotated("ready", json!("false")));
    assert_eq!(
        taints_of(&bench),
        ["node.kubernetes.io/not-ready:NoSchedule", "node.kubernetes.io/not-ready:NoExecute"]
    );
    assert!(!is_ready(&bench.get::<Pod>("p")));
    bench.patch(Kind::Node, "node-1", annotated("ready", json!("true")));
    assert_eq!(taints_of(&bench), Vec::<String>::new());
}

#[test]
fn cordoned_node_is_tainted_and_own_taints_stay() {
    let mut bench = Bench::new(1);
    let own = json!([{"key": "mine", "effect": "NoSchedule"}]);
    bench.patch(Kind::Node, "node-1", json!({"spec": {"unschedulable": true, "taints": own}}));
    assert_eq!(
        taints_of(&bench),
        ["mine:NoSchedule", "node.kubernetes.io/unschedulable:NoSchedule"]
    );
    bench.patch(Kind::Node, "node-1", json!({"spec": {"unschedulable": null}}));
    assert_eq!(taints_of(&bench), ["mine:NoSchedule"]);
}

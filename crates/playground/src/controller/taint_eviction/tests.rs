use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::*;
use crate::cluster::Kind;
use crate::controller::Controller;
use crate::controller::bench::Bench;

fn toleration(key: &str, seconds: Option<i64>) -> Value {
    let mut toleration = json!({"key": key, "operator": "Exists", "effect": "NoExecute"});
    if let Some(seconds) = seconds {
        toleration["tolerationSeconds"] = json!(seconds);
    }
    toleration
}

#[test]
fn pod_goes_when_the_shortest_of_its_tolerations_ends() {
    let cases = [
        ("tolerates none", vec![], Some(0)),
        ("tolerates one of two", vec![toleration("a", None)], Some(0)),
        ("for ever", vec![toleration("a", None), toleration("b", None)], None),
        ("for a time", vec![toleration("a", Some(60)), toleration("b", Some(30))], Some(30)),
        ("one for ever", vec![toleration("a", Some(60)), toleration("b", None)], Some(60)),
        ("longer than time", vec![toleration("a", Some(i64::MAX)), toleration("b", None)], None),
        ("no time", vec![toleration("a", Some(0)), toleration("b", None)], Some(0)),
        ("everything", vec![json!({"operator": "Exists"})], None),
        ("other effect", vec![json!({"operator": "Exists", "effect": "NoSchedule"})], Some(0)),
        (
            "a used one decides",
            vec![toleration("a", Some(50)), toleration("a", Some(5)), toleration("b", None)],
            Some(50),
        ),
    ];
    for (name, tolerations, gone_after) in cases {
        let mut bench = Bench::new(1).without(Controller::Kubelet);
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
            "spec": {"tolerations": tolerations, "containers": [{"name": "c", "image": "i"}]},
        });
        bench.apply(&pod.to_string());
        bench.pass(100);
        let taints = json!([
            {"key": "a", "effect": "NoExecute"}, {"key": "b", "value": "x", "effect": "NoExecute"},
        ]);
        bench.patch(Kind::Node, "node-1", json!({"spec": {"taints": taints}}));
        let evicted = |bench: &Bench| is_terminating(&bench.get::<Pod>("p"));
        match gone_after {
            None => {
                bench.pass(10_000);
                assert!(!evicted(&bench), "{name}: stays");
            }
            Some(0) => assert!(evicted(&bench), "{name}: goes at once"),
            Some(seconds) => {
                bench.pass(seconds - 1);
                assert!(!evicted(&bench), "{name}: not before {seconds} s");
                bench.pass(1);
                assert!(evicted(&bench), "{name}: after {seconds} s");
            }
        }
    }
}

#[test]
fn eviction_is_told_in_the_pods_condition() {
    let mut bench = Bench::new(1).without(Controller::Kubelet);
    bench
        .apply("{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c}]}}");
    let taints = json!([{"key": "a", "effect": "NoExecute"}]);
    bench.patch(Kind::Node, "node-1", json!({"spec": {"taints": taints}}));
    let pod: Pod = bench.get("p");
    let condition = crate::workload::condition(&pod, "DisruptionTarget").unwrap();
    assert_eq!(condition.reason.as_deref(), Some("DeletionByTaintManager"));
    let event = "TaintManagerEviction Marking for deletion Pod default/p".to_owned();
    assert!(bench.events.contains(&event), "{:?}", bench.events);
}

#[test]
fn taint_that_goes_in_time_evicts_nobody() {
    let mut bench = Bench::new(1);
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"tolerations": [toleration("a", Some(10))], "containers": [{"name": "c"}]},
    });
    bench.apply(&pod.to_string());
    let taints = json!([{"key": "a", "effect": "NoExecute"}]);
    bench.patch(Kind::Node, "node-1", json!({"spec": {"taints": taints}}));
    bench.pass(9);
    bench.patch(Kind::Node, "node-1", json!({"spec": {"taints": null}}));
    bench.pass(100);
    assert!(!is_terminating(&bench.get::<Pod>("p")));
}

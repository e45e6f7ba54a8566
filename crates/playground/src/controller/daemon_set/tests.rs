use k8s_openapi::api::apps::v1::{ControllerRevision, DaemonSet};
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::*;
use crate::cluster::Kind;
use crate::controller::bench::Bench;
use crate::workload::is_active;

const SET: &str = "
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: d}
spec:
  selector: {matchLabels: {app: d}}
  template:
    metadata: {labels: {app: d}}
    spec: {containers: [{name: c, image: '1'}]}
";

fn image(version: &str) -> Value {
    json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": version}]}}}})
}

/// The nodes with a pod of the set and its image.
fn placed(bench: &Bench) -> Vec<String> {
    let mut placed: Vec<String> = bench
        .world
        .pods
        .iter()
        .filter(|pod| is_active(pod))
        .map(|pod| {
            let image = pod.spec.as_ref().unwrap().containers[0].image.clone().unwrap_or_default();
            format!("{} {image}", pod.node().unwrap_or("none"))
        })
        .collect();
    placed.sort();
    placed
}

#[test]
fn every_node_that_accepts_the_pod_has_one() {
    let label = json!({"metadata": {"labels": {"disk": "ssd"}}});
    let taint = |effect: &str| json!({"spec": {"taints": [{"key": "k", "effect": effect}]}});
    let selector = SET.replace("spec: {containers", "spec: {nodeSelector: {disk: ssd}, containers");
    let cases: [(&str, &str, Value, &[&str]); 5] = [
        ("all", SET, json!({}), &["node-1 1", "node-2 1", "node-3 1"]),
        ("selected", &selector, label, &["node-2 1"]),
        ("tainted", SET, taint("NoSchedule"), &["node-1 1", "node-3 1"]),
        ("evicting", SET, taint("NoExecute"), &["node-1 1", "node-3 1"]),
        (
            "cordoned",
            SET,
            json!({"spec": {"unschedulable": true}}),
            &["node-1 1", "node-2 1", "node-3 1"],
        ),
    ];
    for (name, set, change, expected) in cases {
        let mut bench = Bench::new(3);
        bench.patch(Kind::Node, "node-2", change);
        bench.apply(set);
        assert_eq!(placed(&bench), expected, "{name}");
        let status = bench.get::<DaemonSet>("d").status.unwrap();
        let n = i32::try_from(expected.len()).unwrap();
        assert_eq!((status.desired_number_scheduled, status.number_ready), (n, n), "{name}");
    }
}

#[test]
fn pod_that_is_there_stays_when_new_ones_would_not_come_but_not_when_it_is_driven_out() {
    let mut bench = Bench::new(2);
    bench.apply(SET);
    let taint = |effect: &str| json!({"spec": {"taints": [{"key": "k", "effect": effect}]}});
    bench.patch(Kind::Node, "node-2", taint("NoSchedule"));
    bench.pass(5);
    assert_eq!(placed(&bench), ["node-1 1", "node-2 1"]);
    assert_eq!(bench.get::<DaemonSet>("d").status.unwrap().number_misscheduled, 1);
    bench.patch(Kind::Node, "node-2", taint("NoExecute"));
    bench.pass(5);
    assert_eq!(placed(&bench), ["node-1 1"]);
}

#[test]
fn new_node_gets_a_pod_and_a_failed_pod_is_replaced() {
    let mut bench = Bench::new(1);
    bench.apply(SET);
    bench.apply("{apiVersion: v1, kind: Node, metadata: {name: other}}");
    bench.pass(1);
    assert_eq!(placed(&bench), ["node-1 1", "other 1"]);
    let name = bench.list::<Pod>(|pod| pod.metadata.name.clone().unwrap()).remove(0);
    bench.patch(Kind::Pod, &name, json!({"status": {"phase": "Failed"}}));
    bench.pass(5);
    assert_eq!(placed(&bench), ["node-1 1", "other 1"]);
    assert!(bench.list::<Pod>(|pod| pod.metadata.name.clone().unwrap()).iter().all(|n| *n != name));
}

#[test]
fn rollout_replaces_one_pod_after_the_other_and_keeps_the_history() {
    let mut bench = Bench::new(4);
    bench.apply(SET);
    bench.pass(1);
    bench.check = |world| {
        let ready = world.pods.iter().filter(|pod| is_active(pod) && is_ready(pod)).count();
        assert!(ready >= 3, "only {ready} of 4 are ready");
    };
    bench.patch(Kind::DaemonSet, "d", image("2"));
    bench.pass(60);
    assert_eq!(placed(&bench), ["node-1 2", "node-2 2", "node-3 2", "node-4 2"]);
    assert_eq!(bench.get::<DaemonSet>("d").status.unwrap().updated_number_scheduled, Some(4));
    let mut revisions = bench.list::<ControllerRevision>(|r| r.revision.to_string());
    revisions.sort();
    assert_eq!(revisions, ["1", "2"]);
    bench.patch(Kind::DaemonSet, "d", image("1"));
    bench.pass(60);
    let mut revisions = bench.list::<ControllerRevision>(|r| r.revision.to_string());
    revisions.sort();
    assert_eq!(revisions, ["2", "3"], "the first has become the third");
}

#[test]
fn on_delete_replaces_a_pod_when_somebody_deletes_it() {
    let mut bench = Bench::new(2);
    bench.apply(&SET.replace("  selector", "  updateStrategy: {type: OnDelete}\n  selector"));
    bench.patch(Kind::DaemonSet, "d", image("2"));
    bench.pass(60);
    assert_eq!(placed(&bench), ["node-1 1", "node-2 1"]);
    let on_first = bench.world.pods.on_node("node-1").next().unwrap();
    let name = on_first.metadata.name.clone().unwrap();
    bench.delete(Kind::Pod, &name);
    bench.pass(60);
    assert_eq!(placed(&bench), ["node-1 2", "node-2 1"]);
}

#[test]
fn with_a_surge_the_new_pod_comes_before_the_old_one_goes() {
    let surge = "  updateStrategy: {rollingUpdate: {maxSurge: 50%, maxUnavailable: 0}}\n  selector";
    let mut bench = Bench::new(4);
    bench.settings.start_delay = jiff::SignedDuration::from_secs(3);
    bench.apply(&SET.replace("  selector", surge));
    bench.pass(5);
    bench.check = |world| {
        let ready = world.pods.iter().filter(|pod| is_active(pod) && is_ready(pod)).count();
        assert!(ready >= 4, "only {ready} are ready");
        let active = world.pods.iter().filter(|pod| is_active(pod)).count();
        assert!(active <= 6, "{active} pods at once");
    };
    bench.patch(Kind::DaemonSet, "d", image("2"));
    bench.pass(1);
    assert_eq!(placed(&bench).len(), 6, "half of the nodes have two");
    bench.pass(60);
    assert_eq!(placed(&bench), ["node-1 2", "node-2 2", "node-3 2", "node-4 2"]);
    let status = bench.get::<DaemonSet>("d").status.unwrap();
    assert_eq!((status.updated_number_scheduled, status.number_available), (Some(4), Some(4)));
}

#[test]
fn surge_takes_pods_that_serve_nobody_first_and_all_at_once() {
    let surge = "  updateStrategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}\n  selector";
    let mut bench = Bench::new(3);
    bench.settings.start_delay = jiff::SignedDuration::from_secs(1000);
    bench.apply(&SET.replace("  selector", surge));
    bench.settings.start_delay = jiff::SignedDuration::ZERO;
    bench.patch(Kind::DaemonSet, "d", image("2"));
    bench.pass(5);
    assert_eq!(placed(&bench), ["node-1 2", "node-2 2", "node-3 2"]);
}

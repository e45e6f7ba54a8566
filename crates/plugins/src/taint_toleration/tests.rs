use expect_test::expect;
use serde_json::{Value, json};
use steersman_framework::events::{Change, Hint};
use steersman_testing::bench::Bench;
use steersman_testing::{NodeBuilder, node, pod};

use super::*;

fn tolerating(tolerations: Value) -> Arc<PodInfo> {
    pod("a").spec(json!({"tolerations": tolerations})).build()
}

fn tainted(name: &str, effect: &str) -> NodeBuilder {
    node(name).taint("k", "v", effect)
}

fn bench() -> Bench {
    Bench::new(&descriptor()).nodes([
        node("plain"),
        tainted("no-schedule", "NoSchedule"),
        tainted("no-execute", "NoExecute"),
        tainted("prefer", "PreferNoSchedule"),
        tainted("two", "NoSchedule").taint("other", "", "NoSchedule"),
    ])
}

#[test]
fn rejects_pod_when_taint_is_not_tolerated() {
    expect![[r"
        plain: fit
        no-schedule: UnschedulableAndUnresolvable: node(s) had untolerated taint(s)
        no-execute: UnschedulableAndUnresolvable: node(s) had untolerated taint(s)
        prefer: fit
        two: UnschedulableAndUnresolvable: node(s) had untolerated taint(s)
    "]]
    .assert_eq(&bench().filter(&pod("a").build()));
}

#[test]
fn every_taint_needs_a_toleration() {
    expect![[r"
        plain: fit
        no-schedule: fit
        no-execute: fit
        prefer: fit
        two: UnschedulableAndUnresolvable: node(s) had untolerated taint(s)
    "]]
    .assert_eq(&bench().filter(&tolerating(json!([{"key": "k", "value": "v"}]))));
    expect![[r"
        plain: fit
        no-schedule: fit
        no-execute: fit
        prefer: fit
        two: fit
    "]]
    .assert_eq(&bench().filter(&tolerating(json!([{"operator": "Exists"}]))));
}

#[track_caller]
fn check_score(tolerations: Value, expected: &str) {
    let bench = Bench::new(&descriptor()).nodes([
        tainted("none", "NoSchedule"),
        tainted("one", "PreferNoSchedule"),
        tainted("three", "PreferNoSchedule").taint("k2", "", "PreferNoSchedule").taint(
            "k3",
            "",
            "PreferNoSchedule",
        ),
    ]);
    assert_eq!(bench.score(&tolerating(tolerations)), expected);
}

#[test]
fn prefers_nodes_with_fewer_untolerated_taints() {
    check_score(json!([]), "none=100 one=67 three=0");
    check_score(json!([{"key": "k", "value": "v"}]), "none=100 one=100 three=0");
    let no_execute = json!([{"operator": "Exists", "effect": "NoExecute"}]);
    check_score(no_execute, "none=100 one=67 three=0");
}

#[test]
fn nodes_without_penalty_get_all_points() {
    check_score(json!([{"operator": "Exists"}]), "none=100 one=100 three=100");
}

#[track_caller]
fn check_node(old: Option<NodeBuilder>, new: NodeBuilder, expected: Option<Hint>) {
    let change = Change::Node { old: old.map(NodeBuilder::build), new: Some(new.build()) };
    let pod = tolerating(json!([{"key": "ok", "operator": "Exists"}]));
    assert_eq!(Bench::new(&descriptor()).hint(&pod, &change), expected);
}

#[test]
fn node_whose_taints_are_tolerated_now_brings_pods_back() {
    check_node(None, node("n").taint("ok", "", "NoSchedule"), Some(Hint::Queue));
    check_node(None, tainted("n", "NoSchedule"), Some(Hint::Skip));
    check_node(Some(tainted("n", "NoSchedule")), node("n"), Some(Hint::Queue));
    check_node(
        Some(tainted("n", "NoSchedule")),
        tainted("n", "PreferNoSchedule"),
        Some(Hint::Queue),
    );
    check_node(Some(tainted("n", "NoSchedule")), tainted("n", "NoExecute"), Some(Hint::Skip));
    check_node(Some(node("n").taint("ok", "", "NoSchedule")), node("n"), Some(Hint::Skip));
    check_node(Some(node("n")), node("n").label("k", "v"), None);
}

#[test]
fn pod_comes_back_when_its_tolerations_change() {
    let (old, new) = (pod("a").build(), tolerating(json!([{"key": "k"}])));
    let bench = Bench::new(&descriptor());
    let change = Change::TargetPod { old: old.clone(), new: new.clone() };
    assert_eq!(bench.hint(&new, &change), Some(Hint::Queue));
    let other = pod("a").label("k", "v").build();
    assert_eq!(bench.hint(&new, &Change::TargetPod { old, new: other }), None);
}

#[test]
fn signature_holds_the_tolerations() {
    let bench = Bench::new(&descriptor());
    assert_eq!(bench.signature(&pod("a").build()), bench.signature(&pod("b").build()));
    let tolerant = tolerating(json!([{"key": "k"}]));
    assert_ne!(bench.signature(&pod("a").build()), bench.signature(&tolerant));
}

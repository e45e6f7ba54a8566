use std::sync::Arc;

use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::{Value, json};
use steersman_api::object::ClusterObject;
use steersman_api::pod::PodInfo;
use steersman_framework::events::{Change, Hint};
use steersman_testing::bench::{Bench, WhatIf};
use steersman_testing::{NodeBuilder, PodBuilder, decoded, node, pod};

use super::descriptor;

const ZONE: &str = "topology.kubernetes.io/zone";
const HOST: &str = "kubernetes.io/hostname";

fn bench() -> Bench {
    Bench::new(&descriptor())
}

/// A constraint on pods of `app=web`.
fn constraint(key: &str, max_skew: i32, kind: &str) -> Value {
    json!({"topologyKey": key, "maxSkew": max_skew, "whenUnsatisfiable": kind,
           "labelSelector": {"matchLabels": {"app": "web"}}})
}

fn hard(key: &str, max_skew: i32) -> Value {
    constraint(key, max_skew, "DoNotSchedule")
}

fn soft(key: &str, max_skew: i32) -> Value {
    constraint(key, max_skew, "ScheduleAnyway")
}

fn with(mut constraint: Value, field: &str, value: Value) -> Value {
    constraint[field] = value;
    constraint
}

fn web(name: &str) -> PodBuilder {
    pod(name).label("app", "web")
}

fn spreading(constraints: impl IntoIterator<Item = Value>) -> PodBuilder {
    let constraints: Vec<Value> = constraints.into_iter().collect();
    web("p").spec(json!({"topologySpreadConstraints": constraints}))
}

fn controlled(by: PodBuilder, api_version: &str, kind: &str, name: &str) -> PodBuilder {
    by.metadata(json!({"ownerReferences": [
        {"apiVersion": api_version, "kind": kind, "name": name, "uid": "u", "controller": true}]}))
}

/// n1 and n2 in zone a, n3 in zone b; two web pods on n1.
fn three_nodes() -> Bench {
    bench()
        .nodes([node("n1").zone("a"), node("n2").zone("a"), node("n3").zone("b")])
        .pods([web("w1").on("n1"), web("w2").on("n1")])
}

#[track_caller]
fn check_filter(bench: &Bench, pod: PodBuilder, expected: Expect) {
    expected.assert_eq(&bench.filter(&pod.build()));
}

#[test]
fn rejects_nodes_whose_domain_would_exceed_the_skew() {
    check_filter(
        &three_nodes(),
        spreading([hard(ZONE, 1)]),
        expect![[r#"
            n1: Unschedulable: node(s) didn't match pod topology spread constraints
            n2: Unschedulable: node(s) didn't match pod topology spread constraints
            n3: fit
        "#]],
    );
    check_filter(
        &three_nodes(),
        spreading([hard(HOST, 1)]),
        expect![[r#"
            n1: Unschedulable: node(s) didn't match pod topology spread constraints
            n2: fit
            n3: fit
        "#]],
    );
}

#[test]
fn pod_that_its_selector_does_not_mean_adds_nothing_to_the_skew() {
    let other = |skew| spreading([hard(ZONE, skew)]).label("app", "other");
    assert!(three_nodes().filter(&other(2).build()).starts_with("n1: fit"));
    assert!(three_nodes().filter(&other(1).build()).starts_with("n1: Unschedulable"));
}

#[test]
fn rejects_nodes_without_the_label_for_good_and_does_not_count_them() {
    let bench = bench()
        .nodes([node("n1").zone("a"), node("n2")])
        .pods([web("w1").on("n1"), web("w2").on("n2")]);
    check_filter(
        &bench,
        spreading([hard(ZONE, 1)]),
        expect![[r#"
            n1: fit
            n2: UnschedulableAndUnresolvable: node(s) didn't match pod topology spread constraints (missing required label)
        "#]],
    );
    // The first constraint speaks before the second finds its label missing,
    // and n2, which lacks it, counts for neither.
    check_filter(
        &bench,
        spreading([hard(HOST, 1), hard(ZONE, 1)]),
        expect![[r#"
            n1: fit
            n2: UnschedulableAndUnresolvable: node(s) didn't match pod topology spread constraints (missing required label)
        "#]],
    );
}

#[test]
fn fewest_counts_as_zero_below_min_domains() {
    let bench = bench()
        .nodes([node("n1").zone("a"), node("n2").zone("b")])
        .pods([web("w1").on("n1"), web("w2").on("n2")]);
    let at_least = |n: i32| spreading([with(hard(ZONE, 1), "minDomains", n.into())]);
    check_filter(
        &bench,
        at_least(2),
        expect![[r#"
            n1: fit
            n2: fit
        "#]],
    );
    check_filter(
        &bench,
        at_least(3),
        expect![[r#"
            n1: Unschedulable: node(s) didn't match pod topology spread constraints
            n2: Unschedulable: node(s) didn't match pod topology spread constraints
        "#]],
    );
}

#[test]
fn inclusion_policies_decide_which_domains_count() {
    // Zone b is empty, and off limits by selector and by taint.
    let bench = bench()
        .nodes([
            node("n1").zone("a").label("disk", "ssd"),
            node("n2").zone("b").taint("k", "v", "NoSchedule"),
        ])
        .pods([web("w1").on("n1")]);
    let verdict = |constraint: Value, more: Value| {
        let verdicts = bench.filter(&spreading([constraint]).spec(more).build());
        verdicts.lines().next().map(|line| line == "n1: fit")
    };
    let ssd = || json!({"nodeSelector": {"disk": "ssd"}});
    let tolerant = || json!({"tolerations": [{"operator": "Exists"}]});
    let policy = |field, value: &str| with(hard(ZONE, 1), field, value.into());
    assert_eq!(verdict(hard(ZONE, 1), ssd()), Some(true));
    assert_eq!(verdict(policy("nodeAffinityPolicy", "Honor"), ssd()), Some(true));
    assert_eq!(verdict(policy("nodeAffinityPolicy", "Ignore"), ssd()), Some(false));
    assert_eq!(verdict(hard(ZONE, 1), json!({})), Some(false));
    assert_eq!(verdict(policy("nodeTaintsPolicy", "Honor"), json!({})), Some(true));
    assert_eq!(verdict(policy("nodeTaintsPolicy", "Honor"), tolerant()), Some(false));
    assert_eq!(verdict(policy("nodeTaintsPolicy", "Ignore"), json!({})), Some(false));
}

#[test]
fn counts_only_living_pods_of_the_namespace() {
    let dying = web("w1").metadata(json!({"deletionTimestamp": "2026-01-01T00:00:00Z"}));
    let bench = bench()
        .nodes([node("n1").zone("a"), node("n2").zone("b")])
        .pods([dying.on("n1"), pod("elsewhere/w2").label("app", "web").on("n1")]);
    let fit = "n1: fit\nn2: fit\n";
    assert_eq!(bench.filter(&spreading([hard(ZONE, 1)]).build()), fit);
    let bench = bench.pods([web("w3").on("n1")]);
    assert_ne!(bench.filter(&spreading([hard(ZONE, 1)]).build()), fit);
}

#[test]
fn empty_selector_counts_no_pod_but_the_pending_one() {
    let everything = |skew| with(hard(ZONE, skew), "labelSelector", json!({}));
    assert_eq!(
        three_nodes().filter(&spreading([everything(1)]).build()),
        "n1: fit\nn2: fit\nn3: fit\n"
    );
    let bench = three_nodes();
    let pending = spreading([everything(1)]).build();
    let nominated = web("q").on("n1").build();
    assert!(bench.filter_after(&pending, &[WhatIf::Add(nominated)]).starts_with("n1: Unsched"));
}

#[test]
fn match_label_keys_narrow_the_selector() {
    let bench = bench()
        .nodes([node("n1").zone("a"), node("n2").zone("b")])
        .pods([web("w1").label("v", "1").on("n1")]);
    let pending = |version: &str| {
        spreading([with(hard(ZONE, 1), "matchLabelKeys", json!(["v", "absent"]))])
            .label("v", version)
            .build()
    };
    assert!(bench.filter(&pending("1")).starts_with("n1: Unschedulable"));
    assert!(bench.filter(&pending("2")).starts_with("n1: fit"));
}

#[test]
fn skips_pods_without_constraints_of_the_kind() {
    assert_eq!(three_nodes().filter(&web("p").build()), "skip\n");
    assert_eq!(three_nodes().filter(&spreading([soft(ZONE, 1)]).build()), "skip\n");
    assert_eq!(three_nodes().score(&web("p").build()), "skip");
    assert_eq!(three_nodes().score(&spreading([hard(ZONE, 1)]).build()), "skip");
}

#[test]
fn scores_the_emptier_domain_higher() {
    let score = |constraints: Vec<Value>| three_nodes().score(&spreading(constraints).build());
    // Two zones: a pod weighs ln 4; zone a holds 2 pods (3), zone b none (0).
    assert_eq!(score(vec![soft(ZONE, 1)]), "n1=0 n2=0 n3=100");
    // Three hosts: ln 5; n1 holds 2 pods (3).
    assert_eq!(score(vec![soft(HOST, 1)]), "n1=0 n2=100 n3=100");
    // 2 ln 4 + 2 ln 5 = 6, 2 ln 4 = 3, 0.
    assert_eq!(score(vec![soft(ZONE, 1), soft(HOST, 1)]), "n1=0 n2=50 n3=100");
    // A skew of 5 adds 4: 7 against 4.
    assert_eq!(score(vec![soft(ZONE, 5)]), "n1=57 n2=57 n3=100");
}

#[test]
fn scores_nodes_without_the_label_zero() {
    let bench = bench()
        .nodes([node("n1").zone("a"), node("n2").zone("b"), node("n3")])
        .pods([web("w1").on("n1"), web("w2").on("n3")]);
    assert_eq!(bench.score(&spreading([soft(ZONE, 1)]).build()), "n1=0 n2=100 n3=0");
    assert_eq!(
        bench.score(&spreading([soft("rack", 1)]).build()),
        "n1=0 n2=0 n3=0",
        "when no node has it"
    );
}

#[test]
fn scores_equally_empty_nodes_at_most() {
    let bench = bench().nodes([node("n1").zone("a"), node("n2").zone("b")]);
    assert_eq!(bench.score(&spreading([soft(ZONE, 1)]).build()), "n1=100 n2=100");
}

fn service(name: &str, selector: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Service",
           "metadata": {"namespace": "default", "name": name}, "spec": {"selector": selector}})
}

fn replica_set(name: &str, app: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "ReplicaSet",
           "metadata": {"namespace": "default", "name": name},
           "spec": {"selector": {"matchLabels": {"app": app}}}})
}

fn stateful_set(name: &str, app: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "StatefulSet",
           "metadata": {"namespace": "default", "name": name},
           "spec": {"serviceName": "s", "selector": {"matchLabels": {"app": app}}}})
}

fn replication_controller(name: &str, app: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ReplicationController",
           "metadata": {"namespace": "default", "name": name},
           "spec": {"selector": {"app": app}}})
}

#[test]
fn built_in_defaults_spread_pods_of_a_service_or_owner() {
    // Hosts: 2 ln 5 + 2 = 5.2, 2, 2; zones: 2 ln 4 + 4 = 6.8, 6.8, 4. Sums 12, 9, 6.
    let spread = "n1=50 n2=75 n3=100";
    let with = |objects: Vec<Value>| three_nodes().objects(objects);
    let service_of = |app| service("s", json!({"app": app}));
    assert_eq!(with(vec![service_of("web")]).score(&web("p").build()), spread);
    assert_eq!(with(vec![service_of("db")]).score(&web("p").build()), "skip");
    let headless = json!({"apiVersion": "v1", "kind": "Service",
                          "metadata": {"namespace": "default", "name": "s"}, "spec": {}});
    assert_eq!(with(vec![headless]).score(&web("p").build()), "skip");

    let owner = [
        ("v1", "ReplicationController", replication_controller("o", "web")),
        ("apps/v1", "ReplicaSet", replica_set("o", "web")),
        ("apps/v1", "StatefulSet", stateful_set("o", "web")),
    ];
    for (api_version, kind, object) in owner {
        let bench = with(vec![object]);
        let owned = |name| controlled(web("p"), api_version, kind, name).build();
        assert_eq!(bench.score(&owned("o")), spread, "{kind}");
        assert_eq!(bench.score(&owned("gone")), "skip", "{kind}");
        assert_eq!(bench.score(&controlled(web("p"), "batch/v1", kind, "o").build()), "skip");
    }
}

#[test]
fn selectors_of_service_and_owner_both_count() {
    let bench = bench()
        .nodes([node("n1"), node("n2"), node("n3")])
        .pods([web("w").on("n1"), web("x").label("tier", "front").on("n2")])
        .objects([service("s", json!({"app": "web"})), replica_set("o", "web")]);
    let owned = |b: PodBuilder| controlled(b, "apps/v1", "ReplicaSet", "o").build();
    assert_eq!(bench.score(&owned(web("p"))), "n1=50 n2=50 n3=100");
    let narrow = bench.objects([service("t", json!({"tier": "front"}))]);
    assert_eq!(narrow.score(&owned(web("p").label("tier", "front"))), "n1=100 n2=50 n3=100");
}

#[test]
fn built_in_defaults_score_nodes_without_zone_by_host() {
    let bench = bench()
        .nodes([node("n1").zone("a"), node("n2"), node("n3")])
        .pods([web("w1").on("n1"), web("w2").on("n2"), web("w3").on("n2")])
        .objects([service("s", json!({"app": "web"}))]);
    // Two zones, the one without a name included: a pod weighs ln 4. n1 has
    // ln 5 + 2 + ln 4 + 4 = 9, n2 2 ln 5 + 2 = 5, n3 2.
    assert_eq!(bench.score(&web("p").build()), "n1=22 n2=66 n3=100");
}

fn listed(constraint: Value) -> Bench {
    let mut constraint = constraint;
    constraint.as_object_mut().expect("a constraint").remove("labelSelector");
    let args = json!({"defaultingType": "List", "defaultConstraints": [constraint]});
    Bench::with_args(&descriptor(), args)
        .nodes([node("n1").zone("a"), node("n2").zone("b"), node("n3")])
        .pods([web("w1").on("n1")])
        .objects([service("s", json!({"app": "web"}))])
}

#[test]
fn listed_defaults_hold_for_pods_without_constraints() {
    let bench = listed(hard(ZONE, 1));
    check_filter(
        &bench,
        web("p"),
        expect![[r#"
            n1: Unschedulable: node(s) didn't match pod topology spread constraints
            n2: fit
            n3: UnschedulableAndUnresolvable: node(s) didn't match pod topology spread constraints (missing required label)
        "#]],
    );
    assert_eq!(bench.filter(&spreading([soft(ZONE, 1)]).build()), "skip\n");
    assert_eq!(bench.filter(&pod("lone").build()), "skip\n");
    assert_eq!(listed(soft(ZONE, 1)).score(&web("p").build()), "n1=0 n2=100 n3=0");
}

#[test]
fn signature_names_what_the_constraints_read() {
    let signature = |pod: PodBuilder| bench().signature(&pod.build()).expect("signable");
    let same = |a: PodBuilder, b: PodBuilder| signature(a) == signature(b);
    assert!(same(spreading([hard(ZONE, 1)]), spreading([hard(ZONE, 1)])));
    assert!(!same(spreading([hard(ZONE, 1)]), spreading([hard(ZONE, 2)])));
    assert!(!same(spreading([hard(ZONE, 1)]), spreading([hard(ZONE, 1)]).label("x", "y")));
    let ssd = || json!({"nodeSelector": {"disk": "ssd"}});
    assert!(!same(spreading([hard(ZONE, 1)]), spreading([hard(ZONE, 1)]).spec(ssd())));
    let tolerant = || json!({"tolerations": [{"operator": "Exists"}]});
    assert!(same(spreading([hard(ZONE, 1)]), spreading([hard(ZONE, 1)]).spec(tolerant())));
    let honoring = || spreading([with(hard(ZONE, 1), "nodeTaintsPolicy", "Honor".into())]);
    assert!(!same(honoring(), honoring().spec(tolerant())));

    let of_set = |name| controlled(web("p"), "apps/v1", "ReplicaSet", name);
    let of_job = |name| controlled(web("p"), "batch/v1", "Job", name);
    assert!(!same(of_set("a"), of_set("b")));
    assert!(same(of_job("a"), of_job("b")), "jobs give no selector");
    let no_defaults = Bench::with_args(&descriptor(), json!({"defaultingType": "List"}));
    assert_eq!(no_defaults.signature(&web("p").build()).as_deref(), Some(""));
}

#[track_caller]
fn check_pod_hint(
    bench: &Bench,
    old: Option<PodBuilder>,
    new: Option<PodBuilder>,
    expected: Option<Hint>,
) {
    let pending = spreading([hard(ZONE, 1)]).build();
    let change =
        Change::AssignedPod { old: old.map(PodBuilder::build), new: new.map(PodBuilder::build) };
    assert_eq!(bench.hint(&pending, &change), expected);
}

#[test]
fn wakes_for_pods_that_change_a_count() {
    let bench = three_nodes().nodes([node("n4")]);
    let (queue, skip) = (Some(Hint::Queue), Some(Hint::Skip));
    let w = || web("w").on("n1");
    let dying = || w().metadata(json!({"deletionTimestamp": "2026-01-01T00:00:00Z"}));
    check_pod_hint(&bench, None, Some(w()), queue);
    check_pod_hint(&bench, Some(w()), None, queue);
    check_pod_hint(&bench, Some(w()), Some(w().label("app", "db")), queue);
    check_pod_hint(&bench, Some(w()), Some(dying()), queue);
    check_pod_hint(&bench, Some(dying().cpu("2")), Some(dying().cpu("1")), skip);
    check_pod_hint(&bench, Some(dying()), None, skip);
    check_pod_hint(&bench, Some(w()), Some(w().label("x", "y")), skip);
    check_pod_hint(&bench, None, Some(pod("w").on("n1")), skip);
    check_pod_hint(&bench, None, Some(pod("other/w").label("app", "web").on("n1")), skip);
    check_pod_hint(&bench, Some(web("w").on("n4")), None, skip);
    check_pod_hint(&bench, Some(web("w").on("unknown")), None, skip);
    check_pod_hint(&bench, Some(web("w")), None, queue);
}

#[test]
fn skips_pods_on_nodes_that_do_not_count() {
    let bench = three_nodes();
    let pending = spreading([hard(ZONE, 1)]).spec(json!({"nodeSelector": {"disk": "ssd"}})).build();
    let gone = Change::AssignedPod { old: Some(web("w").on("n1").build()), new: None };
    assert_eq!(bench.hint(&pending, &gone), Some(Hint::Skip));
}

#[track_caller]
fn check_node_hint(old: Option<NodeBuilder>, new: Option<NodeBuilder>, expected: Option<Hint>) {
    let constraint = with(hard(ZONE, 1), "nodeTaintsPolicy", "Honor".into());
    let pending = spreading([constraint]).spec(json!({"nodeSelector": {"os": "linux"}})).build();
    let change =
        Change::Node { old: old.map(NodeBuilder::build), new: new.map(NodeBuilder::build) };
    assert_eq!(three_nodes().hint(&pending, &change), expected);
}

#[test]
fn wakes_for_nodes_that_change_the_domains() {
    let (queue, skip) = (Some(Hint::Queue), Some(Hint::Skip));
    let n = || node("n").label("os", "linux");
    let tainted = || n().zone("a").taint("k", "v", "NoSchedule");
    check_node_hint(None, Some(n().zone("a")), queue);
    check_node_hint(None, Some(n()), skip);
    check_node_hint(None, Some(node("n").zone("a")), skip);
    check_node_hint(Some(n().zone("a")), None, queue);
    check_node_hint(Some(n()), None, skip);
    check_node_hint(Some(tainted()), None, skip);
    check_node_hint(Some(n()), Some(n().zone("a")), queue);
    check_node_hint(Some(n().zone("a")), Some(n()), queue);
    check_node_hint(Some(n().zone("a")), Some(n().zone("b")), queue);
    check_node_hint(Some(n().zone("a")), Some(n().zone("a").label("x", "y")), skip);
    check_node_hint(Some(node("n").zone("a")), Some(n().zone("a")), queue);
    check_node_hint(Some(tainted()), Some(n().zone("a")), queue);
    let cordoned = || n().zone("a").spec(json!({"unschedulable": true}));
    check_node_hint(Some(cordoned()), Some(n().zone("a")), skip);
    check_node_hint(Some(n()), Some(n().allocatable("cpu", "9")), None);
}

#[test]
fn wakes_when_the_pod_itself_changes() {
    let old = spreading([hard(ZONE, 1)]).build();
    let hint = |new: PodBuilder| {
        let new = new.build();
        three_nodes().hint(&new, &Change::TargetPod { old: old.clone(), new: new.clone() })
    };
    assert_eq!(hint(spreading([hard(ZONE, 1)]).label("app", "db")), Some(Hint::Queue));
    assert_eq!(hint(spreading([hard(ZONE, 2)])), Some(Hint::Queue));
    assert_eq!(hint(spreading([])), Some(Hint::Queue));
    assert_eq!(hint(spreading([hard(ZONE, 1)]).cpu("1")), Some(Hint::Skip));
    assert_eq!(hint(spreading([hard(ZONE, 1)])), None);
}

#[track_caller]
fn check_kin_hint(old: Option<Value>, new: Option<Value>, expected: Option<Hint>) {
    let object = |json| match decoded(json) {
        ClusterObject::Other(object) => object,
        other => panic!("{other:?}"),
    };
    let change = Change::Object { old: old.map(object), new: new.map(object) };
    let pending = controlled(web("p"), "apps/v1", "ReplicaSet", "o").build();
    assert_eq!(listed(hard(ZONE, 1)).hint(&pending, &change), expected, "{change:?}");
    let own = spreading([hard(ZONE, 1)]).build();
    assert_eq!(listed(hard(ZONE, 1)).hint(&own, &change), Some(Hint::Skip));
    assert_eq!(listed(soft(ZONE, 1)).hint(&pending, &change), None);
}

#[test]
fn wakes_when_default_constraints_get_another_selector() {
    let (queue, skip) = (Some(Hint::Queue), Some(Hint::Skip));
    let of_web = || service("s", json!({"app": "web"}));
    let of_db = || service("s", json!({"app": "db"}));
    check_kin_hint(Some(of_web()), None, queue);
    check_kin_hint(None, Some(of_web()), queue);
    check_kin_hint(Some(of_web()), Some(of_db()), queue);
    check_kin_hint(Some(of_web()), Some(of_web()), skip);
    check_kin_hint(Some(of_db()), None, skip);
    check_kin_hint(None, Some(replica_set("o", "web")), queue);
    check_kin_hint(Some(replica_set("o", "web")), Some(replica_set("o", "db")), queue);
    check_kin_hint(Some(replica_set("o", "web")), Some(replica_set("o", "web")), skip);
    check_kin_hint(None, Some(replica_set("other", "web")), skip);
    check_kin_hint(None, Some(stateful_set("o", "web")), skip);
    check_kin_hint(None, Some(replication_controller("o", "web")), skip);
    let mut elsewhere = of_web();
    elsewhere["metadata"]["namespace"] = "elsewhere".into();
    check_kin_hint(None, Some(elsewhere), skip);
}

/// A small random cluster: for each node its zone (0: none) and whether it is
/// tainted, and for each pod its node, application and namespace.
#[derive(Clone, Debug)]
struct Case {
    nodes: Vec<(u8, bool)>,
    pods: Vec<(usize, bool, bool)>,
    constraints: Vec<(bool, i32, i32, bool)>,
}

fn cases() -> impl Strategy<Value = Case> {
    let nodes = prop::collection::vec((0u8..4, prop::bool::weighted(0.2)), 1..6);
    let pods = prop::collection::vec(
        (0usize..6, prop::bool::weighted(0.8), prop::bool::weighted(0.1)),
        1..8,
    );
    let constraints = prop::collection::vec((any::<bool>(), 1i32..3, 1i32..4, any::<bool>()), 1..3);
    (nodes, pods, constraints).prop_map(|(nodes, pods, constraints)| Case {
        nodes,
        pods,
        constraints,
    })
}

impl Case {
    fn pending(&self) -> Arc<PodInfo> {
        let constraints = self.constraints.iter().map(|(zone, skew, min_domains, taints)| {
            let constraint = hard(if *zone { ZONE } else { HOST }, *skew);
            let constraint = with(constraint, "minDomains", (*min_domains).into());
            let policy = if *taints { "Honor" } else { "Ignore" };
            with(constraint, "nodeTaintsPolicy", policy.into())
        });
        spreading(constraints).build()
    }

    fn pod(&self, n: usize) -> PodBuilder {
        let (node, is_web, elsewhere) = self.pods[n];
        let namespace = if elsewhere { "elsewhere" } else { "default" };
        pod(&format!("{namespace}/w{n}"))
            .label("app", if is_web { "web" } else { "db" })
            .on(&format!("n{}", node % self.nodes.len()))
    }

    fn node(&self, n: usize) -> NodeBuilder {
        let (zone, tainted) = self.nodes[n];
        let node = node(&format!("n{n}"));
        let node = if zone > 0 { node.zone(&format!("z{zone}")) } else { node };
        if tainted { node.taint("k", "v", "NoSchedule") } else { node }
    }

    fn bench(&self, n_pods: usize) -> Bench {
        let nodes = (0..self.nodes.len()).map(|n| self.node(n));
        bench().nodes(nodes).pods((0..n_pods).map(|n| self.pod(n)))
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn what_if_changes_equal_a_fresh_count(case in cases(), split in 0usize..8) {
        let pending = case.pending();
        let n_pods = case.pods.len();
        let before = split.min(n_pods);
        let changed = || (before..n_pods).map(|n| case.pod(n).build());
        let (few, many) = (case.bench(before), case.bench(n_pods));

        let added: Vec<WhatIf> = changed().map(WhatIf::Add).collect();
        prop_assert_eq!(few.filter_after(&pending, &added), many.filter(&pending));
        let removed: Vec<WhatIf> = changed().map(WhatIf::Remove).collect();
        prop_assert_eq!(many.filter_after(&pending, &removed), few.filter(&pending));
    }

    #[test]
    fn no_change_that_lifts_a_rejection_is_skipped(case in cases(), other in cases()) {
        let pending = case.pending();
        let (fewer, all) = (case.pods.len() - 1, case.pods.len());
        let (few, many) = (case.bench(fewer), case.bench(all));
        let last = case.pod(fewer).build();
        let came = Change::AssignedPod { old: None, new: Some(last.clone()) };
        few.check_hint_is_complete(&many, &pending, &came);
        let went = Change::AssignedPod { old: Some(last.clone()), new: None };
        many.check_hint_is_complete(&few, &pending, &went);

        let mut changed = case.clone();
        changed.pods[fewer].1 = other.pods[0].1;
        let relabelled =
            Change::AssignedPod { old: Some(last), new: Some(changed.pod(fewer).build()) };
        many.check_hint_is_complete(&changed.bench(all), &pending, &relabelled);

        let mut moved = case.clone();
        moved.nodes[0] = other.nodes[0];
        let (old, new) = (Some(case.node(0).build()), Some(moved.node(0).build()));
        let there = moved.bench(all);
        many.check_hint_is_complete(&there, &pending, &Change::Node { old: old.clone(), new });

        // Its pods stay behind, uncounted.
        let mut gone = case.bench(all);
        let removed = gone.cluster.remove_node(&"n0".into());
        many.check_hint_is_complete(&gone, &pending, &Change::Node { old: removed, new: None });
        gone.check_hint_is_complete(&many, &pending, &Change::Node { old: None, new: old });
    }
}

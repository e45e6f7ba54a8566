use std::sync::Arc;

use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::{Value, json};
use steersman_api::object::{AnyObject, ClusterObject};
use steersman_api::pod::PodInfo;
use steersman_framework::events::{Change, Hint};
use steersman_testing::bench::{Bench, WhatIf};
use steersman_testing::{NodeBuilder, PodBuilder, decoded, node, pod};

use super::descriptor;

const ZONE: &str = "topology.kubernetes.io/zone";
const HOST: &str = "kubernetes.io/hostname";
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

fn bench() -> Bench {
    Bench::new(&descriptor())
}

/// A term for pods of that `app`.
fn term(key: &str, app: &str) -> Value {
    json!({"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}})
}

fn with(mut term: Value, field: &str, value: Value) -> Value {
    term[field] = value;
    term
}

fn near(pod: PodBuilder, terms: &[Value]) -> PodBuilder {
    pod.spec(json!({"affinity": {"podAffinity": {REQUIRED: terms}}}))
}

fn away(pod: PodBuilder, terms: &[Value]) -> PodBuilder {
    pod.spec(json!({"affinity": {"podAntiAffinity": {REQUIRED: terms}}}))
}

fn likes(pod: PodBuilder, weight: i32, term: Value) -> PodBuilder {
    let terms = json!([{"weight": weight, "podAffinityTerm": term}]);
    pod.spec(json!({"affinity": {"podAffinity": {PREFERRED: terms}}}))
}

fn dislikes(pod: PodBuilder, weight: i32, term: Value) -> PodBuilder {
    let terms = json!([{"weight": weight, "podAffinityTerm": term}]);
    pod.spec(json!({"affinity": {"podAntiAffinity": {PREFERRED: terms}}}))
}

fn app(name: &str, app: &str) -> PodBuilder {
    pod(name).label("app", app)
}

fn namespace(name: &str, env: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace",
           "metadata": {"name": name, "labels": {"env": env}}})
}

/// n1 and n2 in zone a, n3 in zone b, n4 in none; a database on n1.
fn four_nodes() -> Bench {
    bench()
        .nodes([node("n1").zone("a"), node("n2").zone("a"), node("n3").zone("b"), node("n4")])
        .pods([app("db", "db").on("n1")])
}

#[track_caller]
fn check_filter(bench: &Bench, pod: PodBuilder, expected: Expect) {
    expected.assert_eq(&bench.filter(&pod.build()));
}

#[test]
fn rejects_nodes_that_are_not_near_the_wanted_pod() {
    check_filter(
        &four_nodes(),
        near(app("p", "web"), &[term(ZONE, "db")]),
        expect![[r#"
            n1: fit
            n2: fit
            n3: UnschedulableAndUnresolvable: node(s) didn't match pod affinity rules
            n4: UnschedulableAndUnresolvable: node(s) didn't match pod affinity rules
        "#]],
    );
}

#[test]
fn one_pod_must_meet_all_affinity_terms() {
    let bench = four_nodes().pods([app("db2", "db").label("tier", "back").on("n3")]);
    let back = json!({"topologyKey": HOST, "labelSelector": {"matchLabels": {"tier": "back"}}});
    check_filter(
        &bench,
        near(app("p", "web"), &[term(ZONE, "db"), back]),
        expect![[r#"
            n1: UnschedulableAndUnresolvable: node(s) didn't match pod affinity rules
            n2: UnschedulableAndUnresolvable: node(s) didn't match pod affinity rules
            n3: fit
            n4: UnschedulableAndUnresolvable: node(s) didn't match pod affinity rules
        "#]],
    );
}

#[test]
fn first_pod_of_a_group_goes_to_any_node_with_the_labels() {
    let first = || near(app("p", "web"), &[term(ZONE, "web")]);
    check_filter(
        &four_nodes(),
        first(),
        expect![[r#"
            n1: fit
            n2: fit
            n3: fit
            n4: UnschedulableAndUnresolvable: node(s) didn't match pod affinity rules
        "#]],
    );
    // One on a node without the label is in no domain, and so not there.
    let bench = four_nodes().pods([app("w", "web").on("n4")]);
    assert!(bench.filter(&first().build()).starts_with("n1: fit"));
    let bench = bench.pods([app("w2", "web").on("n3")]);
    assert!(bench.filter(&first().build()).starts_with("n1: Unschedulable"));
    // Its terms must mean itself.
    let lonely = near(app("p", "other"), &[term(ZONE, "web")]).build();
    assert!(four_nodes().filter(&lonely).starts_with("n1: Unschedulable"));
}

#[test]
fn rejects_nodes_near_an_unwanted_pod() {
    check_filter(
        &four_nodes(),
        away(app("p", "web"), &[term(ZONE, "db")]),
        expect![[r#"
            n1: Unschedulable: node(s) didn't match pod anti-affinity rules
            n2: Unschedulable: node(s) didn't match pod anti-affinity rules
            n3: fit
            n4: fit
        "#]],
    );
    // Any term will do.
    check_filter(
        &four_nodes(),
        away(app("p", "web"), &[term(HOST, "db"), term(ZONE, "none")]),
        expect![[r#"
            n1: Unschedulable: node(s) didn't match pod anti-affinity rules
            n2: fit
            n3: fit
            n4: fit
        "#]],
    );
}

#[test]
fn rejects_nodes_near_a_pod_that_wants_to_be_away() {
    let bench = four_nodes().pods([away(app("hermit", "hermit"), &[term(ZONE, "web")]).on("n3")]);
    check_filter(
        &bench,
        app("p", "web"),
        expect![[r#"
            n1: fit
            n2: fit
            n3: Unschedulable: node(s) didn't satisfy existing pods anti-affinity rules
            n4: fit
        "#]],
    );
    assert_eq!(bench.filter(&app("p", "other").build()), "skip\n");
    let elsewhere = app("elsewhere/p", "web").build();
    assert_eq!(bench.filter(&elsewhere), "skip\n", "terms mean their pod's namespace");
}

#[test]
fn skips_pods_that_nothing_concerns() {
    assert_eq!(four_nodes().filter(&app("p", "web").build()), "skip\n");
    let likes_db = likes(app("p", "web"), 1, term(ZONE, "db")).build();
    assert_eq!(four_nodes().filter(&likes_db), "skip\n");
    let homeless = four_nodes().pods([away(app("x", "x"), &[term(ZONE, "web")]).on("n4")]);
    assert_eq!(homeless.filter(&app("p", "web").build()), "skip\n");
}

#[test]
fn terms_mean_the_namespaces_they_name_or_select() {
    let bench = four_nodes()
        .objects([namespace("prod", "prod"), namespace("dev", "dev")])
        .pods([app("prod/w", "web").on("n3")]);
    let fits_n3 = |term: Value| {
        let pending = near(pod("p"), &[term]).build();
        bench.filter(&pending).contains("n3: fit")
    };
    let select = |env: &str| json!({"matchLabels": {"env": env}});
    assert!(!fits_n3(term(ZONE, "web")));
    assert!(fits_n3(with(term(ZONE, "web"), "namespaces", json!(["dev", "prod"]))));
    assert!(!fits_n3(with(term(ZONE, "web"), "namespaces", json!(["dev"]))));
    assert!(fits_n3(with(term(ZONE, "web"), "namespaceSelector", select("prod"))));
    assert!(!fits_n3(with(term(ZONE, "web"), "namespaceSelector", select("dev"))));
    assert!(fits_n3(with(term(ZONE, "web"), "namespaceSelector", json!({}))));
    let both = with(term(ZONE, "web"), "namespaces", json!(["prod"]));
    assert!(fits_n3(with(both, "namespaceSelector", select("dev"))));
    // A selector finds only namespaces that exist.
    let missing = json!({"matchExpressions": [{"key": "env", "operator": "DoesNotExist"}]});
    let bench = bench.pods([app("ghost/w", "ghost").on("n3")]);
    let pending = near(pod("p"), &[with(term(ZONE, "ghost"), "namespaceSelector", missing)]);
    assert!(!bench.filter(&pending.build()).contains("n3: fit"));
}

#[test]
fn terms_of_pods_on_nodes_select_the_pending_pods_namespace() {
    let prod =
        with(term(ZONE, "web"), "namespaceSelector", json!({"matchLabels": {"env": "prod"}}));
    let bench = four_nodes()
        .objects([namespace("default", "dev"), namespace("prod", "prod")])
        .pods([away(app("hermit", "hermit"), &[prod]).on("n3")]);
    assert_eq!(bench.filter(&app("p", "web").build()), "skip\n");
    assert!(bench.filter(&app("prod/p", "web").build()).contains("n3: Unschedulable"));
}

#[track_caller]
fn check_score(bench: &Bench, pod: PodBuilder, expected: &str) {
    assert_eq!(bench.score(&pod.build()), expected);
}

#[test]
fn scores_by_the_pods_own_preferences() {
    let bench = || four_nodes().pods([app("db2", "db").on("n3"), app("db3", "db").on("n3")]);
    check_score(&bench(), likes(pod("p"), 10, term(ZONE, "db")), "n1=50 n2=50 n3=100 n4=0");
    check_score(&bench(), dislikes(pod("p"), 10, term(ZONE, "db")), "n1=50 n2=50 n3=0 n4=100");
    check_score(&bench(), likes(pod("p"), 10, term(ZONE, "none")), "skip");
    check_score(&bench(), pod("p"), "skip");
    let torn = dislikes(likes(pod("p"), 5, term(ZONE, "db")), 5, term(ZONE, "db"));
    check_score(&bench(), torn, "n1=0 n2=0 n3=0 n4=0");
}

#[test]
fn scores_by_the_preferences_of_pods_that_are_there() {
    let fan = |b| four_nodes().pods([likes(app("fan", "fan"), 7, term(ZONE, "web")).on(b)]);
    check_score(&fan("n3"), app("p", "web"), "n1=0 n2=0 n3=100 n4=0");
    check_score(&fan("n3"), app("p", "other"), "skip");
    check_score(&fan("n4"), app("p", "web"), "skip");
    let hermit = dislikes(app("hermit", "hermit"), 7, term(ZONE, "web"));
    check_score(
        &four_nodes().pods([hermit.on("n3")]),
        app("p", "web"),
        "n1=100 n2=100 n3=0 n4=100",
    );
}

#[test]
fn required_affinity_of_pods_that_are_there_scores_with_the_hard_weight() {
    let pods = || {
        [
            near(app("friend", "friend"), &[term(ZONE, "web")]).on("n1"),
            likes(app("fan", "fan"), 20, term(ZONE, "web")).on("n3"),
        ]
    };
    let score = |args: Value| {
        Bench::with_args(&descriptor(), args)
            .nodes([node("n1").zone("a"), node("n2").zone("b"), node("n3").zone("c")])
            .pods(pods())
            .score(&app("p", "web").build())
    };
    assert_eq!(score(json!({})), "n1=5 n2=0 n3=100");
    assert_eq!(score(json!({"hardPodAffinityWeight": 10})), "n1=50 n2=0 n3=100");
    assert_eq!(score(json!({"hardPodAffinityWeight": 0})), "n1=0 n2=0 n3=100");
    let ignoring = || json!({"ignorePreferredTermsOfExistingPods": true});
    assert_eq!(score(ignoring()), "skip");
    let bench = Bench::with_args(&descriptor(), ignoring())
        .nodes([node("n1").zone("a"), node("n2").zone("b"), node("n3").zone("c")])
        .pods(pods());
    let picky = likes(app("p", "web"), 30, term(ZONE, "friend")).build();
    assert_eq!(bench.score(&picky), "n1=100 n2=0 n3=64");
}

#[test]
fn signature_names_what_terms_read() {
    let signature = |pod: PodBuilder| bench().signature(&pod.build()).expect("signable");
    let plain = signature(app("p", "web"));
    assert_eq!(plain, signature(app("q", "web").cpu("1")));
    assert_ne!(plain, signature(app("p", "db")));
    assert_ne!(plain, signature(app("elsewhere/p", "web")));
    assert_ne!(plain, signature(near(app("p", "web"), &[term(ZONE, "db")])));
}

#[track_caller]
fn check_pod_hint(
    pending: PodBuilder,
    old: Option<PodBuilder>,
    new: Option<PodBuilder>,
    expected: Option<Hint>,
) {
    let change =
        Change::AssignedPod { old: old.map(PodBuilder::build), new: new.map(PodBuilder::build) };
    assert_eq!(four_nodes().hint(&pending.build(), &change), expected, "{change:?}");
}

const QUEUE: Option<Hint> = Some(Hint::Queue);
const SKIP: Option<Hint> = Some(Hint::Skip);

#[test]
fn wakes_for_pods_that_the_affinity_means() {
    let pending = || near(app("p", "web"), &[term(ZONE, "db")]);
    let db = || app("x", "db").on("n3");
    check_pod_hint(pending(), None, Some(db()), QUEUE);
    check_pod_hint(pending(), None, Some(app("x", "other").on("n3")), SKIP);
    check_pod_hint(pending(), None, Some(app("x", "db").on("n4")), SKIP);
    check_pod_hint(pending(), None, Some(app("x", "db").on("unknown")), SKIP);
    check_pod_hint(pending(), Some(app("x", "other").on("n3")), Some(db()), QUEUE);
    check_pod_hint(pending(), Some(db()), Some(db().label("a", "b")), SKIP);
    check_pod_hint(pending(), Some(db()), None, SKIP);
    let both = || near(app("p", "web"), &[term(ZONE, "db"), term(ZONE, "other")]);
    check_pod_hint(both(), None, Some(db()), SKIP);
}

#[test]
fn wakes_when_the_pod_may_become_the_first_of_its_group() {
    let pending = || near(app("p", "web"), &[term(ZONE, "web")]);
    check_pod_hint(pending(), Some(app("x", "web").on("n3")), None, QUEUE);
    let relabelled = app("x", "other").on("n3");
    check_pod_hint(pending(), Some(app("x", "web").on("n3")), Some(relabelled), QUEUE);
    check_pod_hint(pending(), Some(app("x", "web").on("n4")), None, SKIP);
    check_pod_hint(pending(), Some(app("x", "other").on("n3")), None, SKIP);
}

#[test]
fn wakes_for_unwanted_pods_that_go() {
    let pending = || away(app("p", "web"), &[term(ZONE, "db"), term(HOST, "cache")]);
    check_pod_hint(pending(), Some(app("x", "db").on("n3")), None, QUEUE);
    check_pod_hint(pending(), Some(app("x", "db").on("n4")), None, SKIP);
    check_pod_hint(pending(), Some(app("x", "cache").on("n4")), None, QUEUE);
    check_pod_hint(pending(), Some(app("x", "db").on("n3")), Some(app("x", "o").on("n3")), QUEUE);
    check_pod_hint(pending(), None, Some(app("x", "db").on("n3")), SKIP);
    check_pod_hint(pending(), Some(app("x", "other").on("n3")), None, SKIP);
    let (small, big) = (app("x", "db").on("n3"), app("x", "db").cpu("1").on("n3"));
    check_pod_hint(pending(), Some(big), Some(small), None);
}

#[test]
fn wakes_for_pods_that_refused_the_pod_and_go() {
    let hermit = |app_| away(app("x", "x"), &[term(ZONE, app_)]).on("n3");
    check_pod_hint(app("p", "web"), Some(hermit("web")), None, QUEUE);
    check_pod_hint(app("p", "web"), Some(hermit("db")), None, SKIP);
    check_pod_hint(app("p", "web"), None, Some(hermit("web")), SKIP);
    check_pod_hint(app("p", "web"), Some(hermit("web")), Some(hermit("web").label("a", "b")), SKIP);
    check_pod_hint(app("p", "web"), Some(hermit("web")), Some(hermit("db").label("a", "b")), QUEUE);
}

#[track_caller]
fn check_node_hint(
    pending: PodBuilder,
    old: Option<NodeBuilder>,
    new: Option<NodeBuilder>,
    expected: Option<Hint>,
) {
    let bench = four_nodes()
        .pods([away(app("hermit", "hermit"), &[term("rack", "refused")]).on("n2")])
        .pods([app("orphan", "db").on("late")])
        .nodes([node("late").zone("late")]);
    let change =
        Change::Node { old: old.map(NodeBuilder::build), new: new.map(NodeBuilder::build) };
    assert_eq!(bench.hint(&pending.build(), &change), expected, "{change:?}");
}

#[test]
fn wakes_for_nodes_that_have_the_labels_or_bring_pods() {
    let plain = || app("p", "web");
    check_node_hint(plain(), None, Some(node("n")), QUEUE);
    check_node_hint(plain(), Some(node("n")), None, QUEUE);
    let wants = |key| near(plain(), &[term(key, "db")]);
    check_node_hint(wants(ZONE), None, Some(node("n").zone("z")), QUEUE);
    check_node_hint(wants(ZONE), None, Some(node("n")), SKIP);
    // Its pod is near others in the zone, though the rack is missing.
    let both = || near(plain(), &[term(ZONE, "db"), term("rack", "db")]);
    check_node_hint(both(), None, Some(node("late").zone("late")), QUEUE);
    check_node_hint(both(), None, Some(node("n1").zone("a")), QUEUE);
    check_node_hint(both(), None, Some(node("n3").zone("b")), SKIP);
}

#[test]
fn wakes_for_nodes_that_move_between_domains() {
    let wants = || near(app("p", "web"), &[term(ZONE, "db")]);
    let avoids = || away(app("p", "web"), &[term(ZONE, "db")]);
    let n = || node("n");
    check_node_hint(wants(), Some(n()), Some(n().zone("a")), QUEUE);
    check_node_hint(wants(), Some(n().zone("b")), Some(n().zone("a")), QUEUE);
    check_node_hint(wants(), Some(n().zone("a")), Some(n()), SKIP);
    check_node_hint(wants(), Some(n()), Some(n().label("x", "y")), SKIP);
    let first = near(app("p", "web"), &[term(ZONE, "web")]);
    check_node_hint(first, Some(n().zone("a")), Some(n()), QUEUE);
    check_node_hint(avoids(), Some(n().zone("a")), Some(n()), QUEUE);
    check_node_hint(avoids(), Some(n()), Some(n().label("rack", "r")), SKIP);
    let refused = || app("p", "refused");
    check_node_hint(refused(), Some(n().label("rack", "r")), Some(n()), QUEUE);
    check_node_hint(refused(), Some(n().zone("a")), Some(n()), SKIP);
    check_node_hint(refused(), Some(n()), Some(n().allocatable("cpu", "9")), None);
}

fn object(json: Value) -> AnyObject {
    match decoded(json) {
        ClusterObject::Other(object) => object,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn check_namespace_hint(
    pending: PodBuilder,
    old: Option<Value>,
    new: Option<Value>,
    expected: Option<Hint>,
) {
    let change = Change::Object { old: old.map(object), new: new.map(object) };
    assert_eq!(four_nodes().hint(&pending.build(), &change), expected, "{change:?}");
}

#[test]
fn wakes_for_namespaces_that_selectors_see_differently() {
    let prod = || {
        let selector = json!({"matchLabels": {"env": "prod"}});
        with(term(ZONE, "web"), "namespaceSelector", selector)
    };
    let (is_prod, is_dev) = (|| Some(namespace("x", "prod")), || Some(namespace("x", "dev")));
    let wants = || near(pod("p"), &[prod()]);
    check_namespace_hint(wants(), is_dev(), is_prod(), QUEUE);
    check_namespace_hint(wants(), None, is_prod(), QUEUE);
    check_namespace_hint(wants(), is_prod(), is_dev(), SKIP);
    check_namespace_hint(wants(), None, is_dev(), SKIP);
    let avoids = || away(pod("p"), &[prod()]);
    check_namespace_hint(avoids(), is_prod(), is_dev(), QUEUE);
    check_namespace_hint(avoids(), is_prod(), None, QUEUE);
    check_namespace_hint(avoids(), is_dev(), is_prod(), SKIP);
    let first = near(app("p", "web"), &[with(prod(), "namespaces", json!(["default"]))]);
    check_namespace_hint(first, is_prod(), is_dev(), QUEUE);
    let (mine_before, mine_after) = (namespace("default", "a"), namespace("default", "b"));
    check_namespace_hint(pod("p"), Some(mine_before.clone()), Some(mine_after), QUEUE);
    check_namespace_hint(pod("p"), Some(mine_before.clone()), Some(mine_before), SKIP);
}

#[test]
fn wakes_when_the_pods_own_terms_or_labels_change() {
    let old = near(app("p", "web"), &[term(ZONE, "db")]).build();
    let hint = |new: PodBuilder| {
        let new = new.build();
        four_nodes().hint(&new, &Change::TargetPod { old: old.clone(), new: new.clone() })
    };
    assert_eq!(hint(near(app("p", "other"), &[term(ZONE, "db")])), QUEUE);
    assert_eq!(hint(near(app("p", "web"), &[term(HOST, "db")])), QUEUE);
    assert_eq!(hint(near(app("p", "web"), &[term(ZONE, "db")]).cpu("1")), SKIP);
}

/// A small random cluster: for each node its zone (0: none); for each pod its
/// node, application and what it keeps away from. The pending pod has at least
/// one required term, so that it never skips.
#[derive(Clone, Debug)]
struct Case {
    nodes: Vec<u8>,
    pods: Vec<(usize, u8, Option<u8>)>,
    wants: Vec<(bool, u8)>,
    avoids: (bool, u8),
}

fn cases() -> impl Strategy<Value = Case> {
    let nodes = prop::collection::vec(0u8..4, 1..6);
    let pods = prop::collection::vec((0usize..6, 0u8..3, prop::option::of(0u8..3)), 1..8);
    let wants = prop::collection::vec((any::<bool>(), 0u8..3), 0..3);
    (nodes, pods, wants, (any::<bool>(), 0u8..3)).prop_map(|(nodes, pods, wants, avoids)| Case {
        nodes,
        pods,
        wants,
        avoids,
    })
}

impl Case {
    fn pending(&self) -> Arc<PodInfo> {
        let term =
            |(zone, app): &(bool, u8)| term(if *zone { ZONE } else { HOST }, &format!("app{app}"));
        let wants: Vec<Value> = self.wants.iter().map(term).collect();
        away(near(app("p", "app0"), &wants), &[term(&self.avoids)]).build()
    }

    fn pod(&self, n: usize) -> PodBuilder {
        let (on, app_, avoids) = self.pods[n];
        let pod =
            app(&format!("w{n}"), &format!("app{app_}")).on(&format!("n{}", on % self.nodes.len()));
        match avoids {
            Some(other) => away(pod, &[term(ZONE, &format!("app{other}"))]),
            None => pod,
        }
    }

    fn node(&self, n: usize) -> NodeBuilder {
        let node = node(&format!("n{n}"));
        let zone = self.nodes[n];
        if zone > 0 { node.zone(&format!("z{zone}")) } else { node }
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

use expect_test::{Expect, expect};
use serde_json::{Value, json};
use steersman_framework::events::{Change, Hint};
use steersman_testing::bench::Bench;
use steersman_testing::{NodeBuilder, PodBuilder, node, pod};

use super::*;

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// A term that wants a label's value.
fn label_in(key: &str, value: &str) -> Value {
    json!({"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]})
}

/// A term that wants every one of these names.
fn named(names: &[&str]) -> Value {
    let name = |n| json!({"key": "metadata.name", "operator": "In", "values": [n]});
    json!({"matchFields": names.iter().map(name).collect::<Vec<_>>()})
}

fn required(terms: Value) -> Value {
    json!({REQUIRED: {"nodeSelectorTerms": terms}})
}

fn preferred(terms: &[(i32, Value)]) -> Value {
    let term = |(weight, term): &(i32, Value)| json!({"weight": weight, "preference": term});
    json!({PREFERRED: terms.iter().map(term).collect::<Vec<_>>()})
}

fn with_affinity(affinity: Value) -> PodBuilder {
    pod("a").spec(json!({"affinity": {"nodeAffinity": affinity}}))
}

fn with_selector(key: &str, value: &str) -> PodBuilder {
    pod("a").spec(json!({"nodeSelector": {key: value}}))
}

fn bench() -> Bench {
    Bench::new(&descriptor()).nodes(nodes())
}

fn bench_with_added(affinity: Value) -> Bench {
    Bench::with_args(&descriptor(), json!({"addedAffinity": affinity})).nodes(nodes())
}

fn nodes() -> [NodeBuilder; 3] {
    [node("n1").zone("z1"), node("n2").zone("z2"), node("n3").zone("z2").label("disk", "ssd")]
}

const ZONE: &str = steersman_api::node::ZONE_LABEL;

#[track_caller]
fn check_filter(bench: &Bench, pod: PodBuilder, expected: Expect) {
    expected.assert_eq(&bench.filter(&pod.build()));
}

#[test]
fn pod_that_selects_nothing_needs_no_filter() {
    check_filter(&bench(), pod("a"), expect!["skip\n"]);
    check_filter(&bench(), with_affinity(preferred(&[(1, label_in("k", "v"))])), expect!["skip\n"]);
}

#[test]
fn rejects_nodes_that_lack_a_pair_of_the_selector() {
    check_filter(
        &bench(),
        with_selector(ZONE, "z2").spec(json!({"nodeSelector": {"disk": "ssd"}})),
        expect![[r"
            n1: UnschedulableAndUnresolvable: node(s) didn't match Pod's node affinity/selector
            n2: UnschedulableAndUnresolvable: node(s) didn't match Pod's node affinity/selector
            n3: fit
        "]],
    );
}

#[test]
fn rejects_nodes_that_meet_none_of_the_required_terms() {
    check_filter(
        &bench(),
        with_affinity(required(json!([label_in(ZONE, "z1"), label_in("disk", "ssd")]))),
        expect![[r"
            n1: fit
            n2: UnschedulableAndUnresolvable: node(s) didn't match Pod's node affinity/selector
            n3: fit
        "]],
    );
}

#[test]
fn selector_and_affinity_must_both_be_met() {
    check_filter(
        &bench(),
        with_affinity(required(json!([label_in(ZONE, "z2")])))
            .spec(json!({"nodeSelector": {"disk": "ssd"}})),
        expect![[r"
            n1: UnschedulableAndUnresolvable: node(s) didn't match Pod's node affinity/selector
            n2: UnschedulableAndUnresolvable: node(s) didn't match Pod's node affinity/selector
            n3: fit
        "]],
    );
}

#[test]
fn empty_term_is_met_by_no_node() {
    check_filter(
        &bench(),
        with_affinity(required(json!([{}]))),
        expect![[r"
            n1: UnschedulableAndUnresolvable: node(s) didn't match Pod's node affinity/selector
            n2: UnschedulableAndUnresolvable: node(s) didn't match Pod's node affinity/selector
            n3: UnschedulableAndUnresolvable: node(s) didn't match Pod's node affinity/selector
        "]],
    );
}

#[test]
fn terms_that_all_name_nodes_leave_the_others_out() {
    let mut term = named(&["n2"]);
    term["matchExpressions"] = label_in("disk", "ssd")["matchExpressions"].take();
    check_filter(
        &bench(),
        with_affinity(required(json!([named(&["n1", "n1"]), term, named(&["n2", "n3"])]))),
        expect![[r"
            n1: fit
            n2: UnschedulableAndUnresolvable: node(s) didn't match Pod's node affinity/selector
            n3: left out
        "]],
    );
}

#[test]
fn one_term_without_a_name_keeps_all_nodes_in() {
    check_filter(
        &bench(),
        with_affinity(required(json!([named(&["n1"]), label_in("disk", "ssd")]))),
        expect![[r"
            n1: fit
            n2: UnschedulableAndUnresolvable: node(s) didn't match Pod's node affinity/selector
            n3: fit
        "]],
    );
    let not_n1 = json!({"matchFields": [
        {"key": "metadata.name", "operator": "NotIn", "values": ["n1"]}]});
    check_filter(
        &bench(),
        with_affinity(required(json!([not_n1]))),
        expect![[r"
            n1: UnschedulableAndUnresolvable: node(s) didn't match Pod's node affinity/selector
            n2: fit
            n3: fit
        "]],
    );
}

#[test]
fn terms_that_each_name_two_nodes_at_once_conflict() {
    check_filter(
        &bench(),
        with_affinity(required(json!([named(&["n1", "n2"]), named(&["n2", "n3"])]))),
        expect!["UnschedulableAndUnresolvable: pod affinity terms conflict\n"],
    );
}

#[test]
fn added_affinity_is_required_of_all_pods_and_named_first() {
    let bench = bench_with_added(required(json!([label_in(ZONE, "z2")])));
    check_filter(
        &bench,
        pod("a"),
        expect![[r"
            n1: UnschedulableAndUnresolvable: node(s) didn't match scheduler-enforced node affinity
            n2: fit
            n3: fit
        "]],
    );
    check_filter(
        &bench,
        with_selector("disk", "ssd"),
        expect![[r"
            n1: UnschedulableAndUnresolvable: node(s) didn't match scheduler-enforced node affinity
            n2: UnschedulableAndUnresolvable: node(s) didn't match Pod's node affinity/selector
            n3: fit
        "]],
    );
}

#[test]
fn scores_the_weights_of_preferred_terms_that_are_met() {
    let pod = with_affinity(preferred(&[
        (10, label_in(ZONE, "z2")),
        (20, label_in("disk", "ssd")),
        (5, named(&["n1"])),
        (100, json!({})),
    ]))
    .build();
    assert_eq!(bench().score(&pod), "n1=16 n2=33 n3=100");
    let added = bench_with_added(preferred(&[(30, label_in(ZONE, "z1")), (0, json!({}))]));
    assert_eq!(added.score(&pod), "n1=100 n2=28 n3=85");
}

#[test]
fn no_preference_is_not_scored() {
    assert_eq!(bench().score(&pod("a").build()), "skip");
    let nothing_met = with_affinity(preferred(&[(10, label_in(ZONE, "z9"))])).build();
    assert_eq!(bench().score(&nothing_met), "n1=0 n2=0 n3=0");
}

#[track_caller]
fn check_node(bench: &Bench, old: Option<NodeBuilder>, new: NodeBuilder, expected: Option<Hint>) {
    let change = Change::Node { old: old.map(NodeBuilder::build), new: Some(new.build()) };
    assert_eq!(bench.hint(&with_selector("disk", "ssd").build(), &change), expected);
}

#[test]
fn node_that_matches_now_and_did_not_before_brings_pods_back() {
    let (plain, ssd) = (node("n"), node("n").label("disk", "ssd"));
    check_node(&bench(), None, ssd.clone(), Some(Hint::Queue));
    check_node(&bench(), None, plain.clone(), Some(Hint::Skip));
    check_node(&bench(), Some(plain.clone()), ssd.clone(), Some(Hint::Queue));
    check_node(&bench(), Some(ssd.clone()), plain.clone(), Some(Hint::Skip));
    check_node(&bench(), Some(ssd.clone()), ssd.clone().label("k", "v"), Some(Hint::Skip));
    check_node(&bench(), Some(ssd.clone()), ssd.taint("k", "v", "NoSchedule"), None);
}

#[test]
fn node_that_meets_the_added_affinity_now_brings_pods_back() {
    let bench = bench_with_added(required(json!([label_in(ZONE, "z2")])));
    let ssd = node("n").label("disk", "ssd");
    check_node(&bench, None, ssd.clone(), Some(Hint::Skip));
    check_node(&bench, Some(ssd.clone()), ssd.clone().zone("z2"), Some(Hint::Queue));
    check_node(&bench, Some(ssd.clone()), ssd.zone("z1"), Some(Hint::Skip));
}

#[test]
fn pod_comes_back_when_it_selects_other_nodes() {
    let old = with_selector("disk", "ssd");
    let hint = |new: PodBuilder| {
        let new = new.build();
        let change = Change::TargetPod { old: old.clone().build(), new: new.clone() };
        bench().hint(&new, &change)
    };
    assert_eq!(hint(with_selector("disk", "hdd")), Some(Hint::Queue));
    let narrower = with_affinity(required(json!([label_in(ZONE, "z1")])));
    assert_eq!(hint(narrower.spec(json!({"nodeSelector": {"disk": "ssd"}}))), Some(Hint::Queue));
    assert_eq!(hint(old.clone().label("k", "v")), Some(Hint::Skip));
}

#[test]
fn signature_holds_all_that_selects_nodes() {
    let signature = |pod: PodBuilder| bench().signature(&pod.build()).expect("a signature");
    let plain = signature(pod("a"));
    assert_eq!(plain, signature(pod("b").label("k", "v")));
    for other in [
        with_selector("disk", "ssd"),
        with_affinity(required(json!([label_in(ZONE, "z1")]))),
        with_affinity(preferred(&[(1, label_in(ZONE, "z1"))])),
    ] {
        assert_ne!(plain, signature(other));
    }
}

use std::sync::Arc;

use expect_test::{Expect, expect};
use serde_json::{Value, json};
use steersman_api::pod::PodInfo;
use steersman_framework::events::{Change, Hint};
use steersman_testing::bench::Bench;
use steersman_testing::{NodeBuilder, PodBuilder, node, pod};

use super::descriptor;

const GPU: &str = "example.com/gpu";

fn sized(name: &str, cpu: &str, memory: &str) -> NodeBuilder {
    node(name).allocatable("cpu", cpu).allocatable("memory", memory)
}

#[track_caller]
fn check_filter(bench: &Bench, pod: PodBuilder, expected: &Expect) {
    expected.assert_eq(&bench.filter(&pod.build()));
}

#[test]
fn rejects_pod_when_a_resource_is_short() {
    let bench = Bench::new(&descriptor())
        .nodes([node("full"), node("free"), node("small").allocatable("cpu", "2")])
        .pods([pod("a").cpu("2").memory("6Gi").on("full")]);
    check_filter(
        &bench,
        pod("p").cpu("2").memory("2Gi"),
        &expect![[r#"
        full: fit
        free: fit
        small: fit
    "#]],
    );
    check_filter(
        &bench,
        pod("p").cpu("2001m").memory("3Gi"),
        &expect![[r#"
        full: Unschedulable: Insufficient cpu, Insufficient memory
        free: fit
        small: UnschedulableAndUnresolvable: Insufficient cpu
    "#]],
    );
}

#[test]
fn reasons_come_places_first_then_basic_resources_then_others_by_name() {
    let bench = Bench::new(&descriptor())
        .nodes([sized("n", "1", "1").allocatable("pods", "1").allocatable(GPU, "1")])
        .pods([pod("a").on("n")]);
    let everything = pod("p")
        .cpu("2")
        .memory("2")
        .request("ephemeral-storage", "1")
        .request(GPU, "2")
        .request("hugepages-2Mi", "2Mi")
        .request("example.com/fpga", "1");
    check_filter(
        &bench,
        everything,
        &expect![[r#"
        n: UnschedulableAndUnresolvable: Too many pods, Insufficient cpu, Insufficient memory, Insufficient ephemeral-storage, Insufficient example.com/fpga, Insufficient example.com/gpu, Insufficient hugepages-2Mi
    "#]],
    );
}

#[test]
fn eviction_cannot_help_when_any_resource_is_short_on_the_empty_node() {
    let bench = Bench::new(&descriptor())
        .nodes([sized("n", "2", "2").allocatable(GPU, "2")])
        .pods([pod("a").cpu("1").memory("1").request(GPU, "1").on("n")]);
    check_filter(
        &bench,
        pod("p").cpu("2").request(GPU, "2"),
        &expect![[r#"
        n: Unschedulable: Insufficient cpu, Insufficient example.com/gpu
    "#]],
    );
    check_filter(
        &bench,
        pod("p").cpu("2").request(GPU, "3"),
        &expect![[r#"
        n: UnschedulableAndUnresolvable: Insufficient cpu, Insufficient example.com/gpu
    "#]],
    );
}

#[test]
fn eviction_may_always_help_against_too_many_pods() {
    let bench = Bench::new(&descriptor()).nodes([node("n").allocatable("pods", "0")]);
    check_filter(
        &bench,
        pod("p"),
        &expect![[r#"
        n: Unschedulable: Too many pods
    "#]],
    );
}

#[test]
fn request_of_nothing_fits_where_more_is_used_than_there_is() {
    let bench =
        Bench::new(&descriptor())
            .nodes([node("n").allocatable("cpu", "1")])
            .pods([pod("a").cpu("2").request(GPU, "1").on("n")]);
    let fits = expect![[r#"
        n: fit
    "#]];
    check_filter(&bench, pod("p"), &fits);
    check_filter(&bench, pod("p").cpu("0").memory("1").request(GPU, "0"), &fits);
    check_filter(
        &bench,
        pod("p").cpu("1m"),
        &expect![[r#"
        n: Unschedulable: Insufficient cpu
    "#]],
    );
}

#[test]
fn resources_that_are_not_counted_are_not_checked() {
    let bench = Bench::new(&descriptor()).nodes([node("n")]);
    check_filter(
        &bench,
        pod("p").request("storage", "1Ti"),
        &expect![[r#"
        n: fit
    "#]],
    );
}

#[test]
fn ignored_extended_resources_are_not_checked() {
    let nodes = || [node("n")];
    let check = |args: Value, resource: &str, expected: &Expect| {
        let bench = Bench::with_args(&descriptor(), args).nodes(nodes());
        check_filter(&bench, pod("p").request(resource, "1"), expected);
    };
    let fits = expect![[r#"
        n: fit
    "#]];
    let rejected = expect![[r#"
        n: UnschedulableAndUnresolvable: Insufficient example.com/gpu
    "#]];
    check(json!({"ignoredResources": [GPU]}), GPU, &fits);
    check(json!({"ignoredResources": ["example.com/fpga"]}), GPU, &rejected);
    check(json!({"ignoredResourceGroups": ["example.com"]}), GPU, &fits);
    check(json!({"ignoredResourceGroups": ["example"]}), GPU, &rejected);
    // Only extended resources can be ignored.
    let native =
        json!({"ignoredResources": ["hugepages-2Mi"], "ignoredResourceGroups": ["hugepages-2Mi"]});
    check(
        native,
        "hugepages-2Mi",
        &expect![[r#"
        n: UnschedulableAndUnresolvable: Insufficient hugepages-2Mi
    "#]],
    );
}

#[track_caller]
fn check_score(
    strategy: Value,
    nodes: impl IntoIterator<Item = NodeBuilder>,
    pods: impl IntoIterator<Item = PodBuilder>,
    pod: PodBuilder,
    expected: &str,
) {
    let args = json!({"scoringStrategy": strategy});
    let bench = Bench::with_args(&descriptor(), args).nodes(nodes).pods(pods);
    assert_eq!(bench.score(&pod.build()), expected);
}

#[test]
fn least_and_most_allocated_take_the_mean_of_the_shares() {
    let nodes =
        || [sized("empty", "4", "8Gi"), sized("half", "4", "8Gi"), sized("low", "1", "1Gi")];
    let pods = || [pod("a").cpu("2").memory("4Gi").on("half")];
    let asks = || pod("p").cpu("1").memory("2Gi");
    let least = json!({"type": "LeastAllocated"});
    check_score(least, nodes(), pods(), asks(), "empty=75 half=25 low=0");
    let most = json!({"type": "MostAllocated"});
    check_score(most, nodes(), pods(), asks(), "empty=25 half=75 low=100");
}

#[test]
fn weights_and_integer_division_shape_the_mean() {
    let resources = json!([{"name": "cpu", "weight": 3}, {"name": "memory", "weight": 1}]);
    let asks = || pod("p").cpu("1").memory("1");
    let nodes = || [sized("n", "3", "8")];
    let least = json!({"type": "LeastAllocated", "resources": resources});
    // (66 × 3 + 87) / 4
    check_score(least, nodes(), [], asks(), "n=71");
    let most = json!({"type": "MostAllocated", "resources": resources});
    // (33 × 3 + 12) / 4
    check_score(most, nodes(), [], asks(), "n=27");
}

#[test]
fn containers_without_requests_count_as_small_ones() {
    let nodes = || [sized("busy", "1", "1000Mi"), sized("idle", "1", "1000Mi")];
    let pods = || [pod("a").on("busy"), pod("b").on("busy")];
    let strategy = json!({"type": "LeastAllocated"});
    // Each counts as a tenth of the CPU and a fifth of the memory.
    check_score(strategy, nodes(), pods(), pod("p"), "busy=55 idle=85");
}

#[test]
fn pod_level_requests_count_on_the_node_but_not_for_the_pod_itself() {
    let level = || json!({"resources": {"requests": {"cpu": "5", "memory": "5Gi"}}});
    let nodes = || [sized("n", "10", "10Gi")];
    let strategy = || json!({"type": "LeastAllocated"});
    let asks = pod("p").cpu("1").memory("1Gi").spec(level());
    check_score(strategy(), nodes(), [], asks, "n=90");
    let there = pod("a").cpu("1").memory("1Gi").spec(level()).on("n");
    check_score(strategy(), nodes(), [there], pod("p").cpu("1").memory("1Gi"), "n=40");
}

#[test]
fn resources_that_the_node_lacks_or_the_pod_does_not_request_are_left_out() {
    let resources = json!([
        {"name": GPU, "weight": 1},
        {"name": "ephemeral-storage", "weight": 1},
        {"name": "storage", "weight": 1},
    ]);
    let strategy = || json!({"type": "LeastAllocated", "resources": resources});
    let nodes = || {
        let gpu = node("gpu").allocatable(GPU, "4");
        let both = node("both").allocatable(GPU, "4").allocatable("ephemeral-storage", "10");
        [gpu, both, node("none")]
    };
    check_score(strategy(), nodes(), [], pod("p").request(GPU, "1"), "gpu=75 both=87 none=0");
    check_score(strategy(), nodes(), [], pod("p"), "gpu=0 both=100 none=0");
}

#[test]
fn requested_to_capacity_ratio_rounds_and_leaves_zeroes_out() {
    let resources = json!([{"name": "cpu", "weight": 2}, {"name": "memory", "weight": 1}]);
    let strategy = |shape: Value| {
        json!({
            "type": "RequestedToCapacityRatio",
            "resources": resources,
            "requestedToCapacityRatio": {"shape": shape},
        })
    };
    let rising = || json!([{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]);
    let falling = || json!([{"utilization": 0, "score": 10}, {"utilization": 100, "score": 0}]);
    let nodes = || [sized("a", "10", "10"), sized("b", "3", "10"), sized("c", "1", "10")];
    let asks = || pod("p").cpu("1").memory("5");
    // a: (10 × 2 + 50) / 3, b: (33 × 2 + 50) / 3, c: (100 × 2 + 50) / 3
    check_score(strategy(rising()), nodes(), [], asks(), "a=23 b=39 c=83");
    // c: the CPU is used up and scores 0, which does not count.
    check_score(strategy(falling()), nodes(), [], asks(), "a=77 b=61 c=50");
    let too_much = pod("p").cpu("20").memory("20");
    check_score(strategy(falling()), nodes(), [], too_much, "a=0 b=0 c=0");
}

#[test]
fn huge_amounts_do_not_wrap_around() {
    let nodes = || [sized("n", "4", "7Ei")];
    let asks = || pod("p").cpu("2").memory("6Ei");
    check_score(json!({"type": "LeastAllocated"}), nodes(), [], asks(), "n=32");
    let pods = || [pod("a").memory("7Ei").on("n"), pod("b").memory("7Ei").on("n")];
    check_score(json!({"type": "MostAllocated"}), nodes(), pods(), asks(), "n=77");
    let bench = Bench::new(&descriptor()).nodes(nodes()).pods(pods());
    check_filter(
        &bench,
        asks(),
        &expect![[r#"
        n: Unschedulable: Insufficient memory
    "#]],
    );
}

#[test]
fn signature_tells_pods_apart_by_what_they_request() {
    let bench = Bench::new(&descriptor());
    let signature = |pod: PodBuilder| bench.signature(&pod.build()).expect("a signature");
    assert_eq!(signature(pod("a").cpu("1").label("x", "y")), signature(pod("b").cpu("1000m")));
    assert_ne!(signature(pod("a").cpu("1")), signature(pod("a").cpu("2")));
    // Nothing requested is not the same as zero requested: one has defaults.
    assert_ne!(signature(pod("a")), signature(pod("a").cpu("0")));
}

/// The hint of a cluster of one node `n` and these pods about a change for a
/// pod.
#[track_caller]
fn check_hint(
    node: NodeBuilder,
    pods: impl IntoIterator<Item = PodBuilder>,
    rejected: PodBuilder,
    change: &Change,
    expected: Option<Hint>,
) {
    let bench = Bench::new(&descriptor()).nodes([node]).pods(pods);
    assert_eq!(bench.hint(&rejected.build(), change), expected, "{change:?}");
}

fn node_change(old: Option<NodeBuilder>, new: Option<NodeBuilder>) -> Change {
    Change::Node { old: old.map(NodeBuilder::build), new: new.map(NodeBuilder::build) }
}

fn leaves(pod: PodBuilder) -> Change {
    Change::AssignedPod { old: Some(pod.build()), new: None }
}

fn resized(old: PodBuilder, new: PodBuilder) -> Change {
    Change::AssignedPod { old: Some(old.build()), new: Some(new.build()) }
}

const QUEUE: Option<Hint> = Some(Hint::Queue);
const SKIP: Option<Hint> = Some(Hint::Skip);

#[test]
fn new_node_helps_when_the_pod_fits() {
    let new = || sized("n", "2", "8Gi");
    let added = || node_change(None, Some(new()));
    check_hint(new(), [], pod("p").cpu("2"), &added(), QUEUE);
    check_hint(new(), [], pod("p").cpu("3"), &added(), SKIP);
    // Pods may be there before their node is.
    check_hint(new(), [pod("a").cpu("1").on("n")], pod("p").cpu("2"), &added(), SKIP);
    let gone = node_change(None, Some(node("other")));
    check_hint(new(), [], pod("p").cpu("2"), &gone, SKIP);
}

#[test]
fn grown_node_helps_when_what_grew_is_requested_and_the_pod_fits() {
    let small = || sized("n", "2", "8Gi").allocatable("pods", "1");
    for (grown, asks, expected) in [
        (small().allocatable("cpu", "4"), pod("p").cpu("3"), QUEUE),
        (small().allocatable("cpu", "4"), pod("p").cpu("5"), SKIP),
        (small().allocatable("memory", "9Gi"), pod("p").cpu("2"), SKIP),
        (small().allocatable("memory", "9Gi"), pod("p").memory("9Gi"), QUEUE),
        (small().allocatable("ephemeral-storage", "1"), pod("p").cpu("2"), SKIP),
        (
            small().allocatable("ephemeral-storage", "1"),
            pod("p").request("ephemeral-storage", "1"),
            QUEUE,
        ),
        (small().allocatable(GPU, "1"), pod("p").request(GPU, "1"), QUEUE),
        (small().allocatable(GPU, "1"), pod("p").cpu("1"), SKIP),
        (small().allocatable("pods", "2"), pod("p"), QUEUE),
        (small().allocatable("cpu", "1"), pod("p").cpu("1"), SKIP),
        (small().label("x", "y"), pod("p").cpu("1"), None),
    ] {
        let change = node_change(Some(small()), Some(grown.clone()));
        check_hint(grown, [], asks, &change, expected);
    }
    check_hint(small(), [], pod("p"), &node_change(Some(small()), None), None);
}

#[test]
fn ignored_resources_do_not_keep_a_new_node_from_helping() {
    let args = json!({"ignoredResources": [GPU]});
    let bench = Bench::with_args(&descriptor(), args).nodes([node("n")]);
    let change = node_change(None, Some(node("n")));
    assert_eq!(bench.hint(&pod("p").request(GPU, "1").build(), &change), QUEUE);
}

#[test]
fn departure_helps_when_the_pod_fits_in_what_is_left() {
    let left = || pod("gone").cpu("1").on("n");
    let stays = || [pod("stays").cpu("2").on("n")];
    check_hint(node("n"), stays(), pod("p").cpu("2"), &leaves(left()), QUEUE);
    check_hint(node("n"), stays(), pod("p").cpu("3"), &leaves(left()), SKIP);
    check_hint(node("n"), stays(), pod("p"), &leaves(pod("gone").on("n")), QUEUE);
    check_hint(node("n"), [], pod("p"), &leaves(pod("gone").on("unknown")), SKIP);
    let arrival = Change::AssignedPod { old: None, new: Some(left().build()) };
    check_hint(node("n"), [], pod("p"), &arrival, None);
}

#[test]
fn change_that_makes_preemption_possible_helps() {
    let low = || [pod("low").cpu("3").priority(1).on("n")];
    let asks = || pod("p").cpu("3").priority(5);
    let gone = |priority| leaves(pod("gone").cpu("1").priority(priority).on("n"));
    check_hint(node("n"), low(), asks(), &gone(5), QUEUE);
    // It was possible before, as this one could have been evicted.
    check_hint(node("n"), low(), asks(), &gone(4), SKIP);
    let never = asks().spec(json!({"preemptionPolicy": "Never"}));
    check_hint(node("n"), low(), never, &gone(5), SKIP);
    let equal = [pod("equal").cpu("3").priority(5).on("n")];
    check_hint(node("n"), equal, asks(), &gone(5), SKIP);
    let grown = node_change(Some(node("n").allocatable("cpu", "2")), Some(node("n")));
    check_hint(node("n"), low(), asks(), &grown, QUEUE);
}

#[test]
fn resize_helps_when_what_shrank_is_requested_and_the_pod_fits() {
    let before = || pod("a").cpu("3").memory("4Gi").on("n");
    let less_cpu = || pod("a").cpu("1").memory("4Gi").on("n");
    let less_memory = || pod("a").cpu("3").memory("1Gi").on("n");
    let change = resized(before(), less_cpu());
    check_hint(node("n"), [less_cpu()], pod("p").cpu("3"), &change, QUEUE);
    check_hint(node("n"), [less_cpu()], pod("p").cpu("4"), &change, SKIP);
    check_hint(node("n"), [less_cpu()], pod("p").memory("1Gi"), &change, SKIP);
    let change = resized(before(), less_memory());
    check_hint(node("n"), [less_memory()], pod("p").memory("5Gi"), &change, QUEUE);
    let change = resized(less_cpu(), before());
    check_hint(node("n"), [before()], pod("p").cpu("1"), &change, None);
}

#[test]
fn resize_of_the_pod_itself_helps_when_it_asks_for_less() {
    let target =
        |old: PodBuilder, new: PodBuilder| Change::TargetPod { old: old.build(), new: new.build() };
    let less = target(pod("p").cpu("5"), pod("p").cpu("1"));
    check_hint(node("n"), [], pod("p").cpu("1"), &less, QUEUE);
    let more = target(pod("p").cpu("1"), pod("p").cpu("5"));
    check_hint(node("n"), [], pod("p").cpu("5"), &more, None);
}

#[test]
fn end_of_a_nomination_helps_pods_of_the_same_or_a_lower_priority() {
    let nominated = |node: &str, priority| {
        pod("nominated").cpu("3").priority(priority).status(json!({"nominatedNodeName": node}))
    };
    let change = |old: PodBuilder, new: Option<PodBuilder>| Change::UnscheduledPod {
        old: Some(old.build()),
        new: new.map(PodBuilder::build),
    };
    let asks = || pod("p").cpu("3").priority(5);
    let check = |change: &Change, expected| check_hint(node("n"), [], asks(), change, expected);
    check(&change(nominated("n", 5), None), QUEUE);
    check(&change(nominated("n", 4), None), SKIP);
    check(&change(nominated("elsewhere", 5), None), SKIP);
    check(&change(pod("other").priority(5), None), SKIP);
    check(&change(nominated("n", 5), Some(nominated("n", 5).cpu("1"))), QUEUE);
    check(&change(nominated("n", 5).memory("2"), Some(nominated("n", 5).memory("1"))), SKIP);
    let elsewhere = nominated("elsewhere", 5).spec(json!({"nodeSelector": {"a": "b"}}));
    check(&change(nominated("n", 5), Some(elsewhere)), QUEUE);
    let big: Arc<PodInfo> = pod("p").cpu("5").build();
    let bench = Bench::new(&descriptor()).nodes([node("n")]);
    assert_eq!(bench.hint(&big, &change(nominated("n", 5), None)), SKIP);
}

use serde_json::{Value, json};
use steersman_testing::bench::Bench;
use steersman_testing::{NodeBuilder, PodBuilder, node, pod};

use super::descriptor;

fn sized(name: &str, cpu: &str, memory: &str) -> NodeBuilder {
    node(name).allocatable("cpu", cpu).allocatable("memory", memory)
}

#[track_caller]
fn check_score(
    args: Value,
    nodes: impl IntoIterator<Item = NodeBuilder>,
    pods: impl IntoIterator<Item = PodBuilder>,
    pod: PodBuilder,
    expected: &str,
) {
    let bench = Bench::with_args(&descriptor(), args).nodes(nodes).pods(pods);
    assert_eq!(bench.score(&pod.build()), expected);
}

#[test]
fn prefers_nodes_that_the_pod_makes_more_even() {
    let nodes = ["even", "more-cpu", "more-memory"].map(|name| sized(name, "10", "10"));
    let pods = [
        pod("a").cpu("5").memory("5").on("even"),
        pod("b").cpu("6").on("more-cpu"),
        pod("c").memory("6").on("more-memory"),
    ];
    let asks_for_memory = pod("p").memory("4");
    check_score(
        json!({}),
        nodes.clone(),
        pods.clone(),
        asks_for_memory,
        "even=65 more-cpu=85 more-memory=65",
    );
    let asks_for_both = pod("p").cpu("1").memory("1");
    check_score(json!({}), nodes, pods, asks_for_both, "even=75 more-cpu=75 more-memory=75");
}

#[test]
fn pods_that_request_nothing_are_not_scored() {
    let skipped = [pod("p"), pod("p").cpu("0"), pod("p").request("example.com/gpu", "1")];
    for pod in skipped {
        check_score(json!({}), [node("n")], [], pod, "skip");
    }
    let args = json!({"resources": [{"name": "example.com/gpu", "weight": 1}]});
    check_score(args, [node("n")], [], pod("p").cpu("1"), "skip");
}

#[test]
fn defaults_of_containers_without_requests_do_not_count() {
    // With a default of 200Mi the memory would be used up.
    let pods = [pod("a").cpu("5").memory("5").on("n"), pod("b").on("n")];
    check_score(json!({}), [sized("n", "10", "10")], pods, pod("p").cpu("1"), "n=72");
}

#[test]
fn shares_are_at_most_one() {
    let pods = [pod("a").cpu("30").memory("5").on("n")];
    let nodes = [sized("n", "10", "10")];
    check_score(json!({}), nodes, pods, pod("p").memory("5"), "n=87");
}

#[test]
fn resources_that_the_node_lacks_or_the_pod_does_not_request_are_left_out() {
    let args = json!({"resources": [
        {"name": "cpu", "weight": 1},
        {"name": "memory", "weight": 1},
        {"name": "example.com/gpu", "weight": 1},
    ]});
    let nodes = || {
        [sized("gpu", "10", "10").allocatable("example.com/gpu", "2"), sized("plain", "10", "10")]
    };
    let without = pod("p").cpu("2").memory("2");
    check_score(args.clone(), nodes(), [], without.clone(), "gpu=75 plain=75");
    let with = without.request("example.com/gpu", "2");
    check_score(args, nodes(), [], with, "gpu=56 plain=75");
}

#[test]
fn pod_level_requests_count() {
    let pod_level = json!({"resources": {"requests": {"cpu": "5", "memory": "5"}}});
    let pod = pod("p").cpu("1").spec(pod_level);
    check_score(json!({}), [sized("n", "10", "10")], [], pod, "n=75");
}

#[test]
fn signature_holds_what_the_pod_requests() {
    let bench = Bench::new(&descriptor());
    let signature = |pod: PodBuilder| bench.signature(&pod.build()).expect("a signature");
    assert_eq!(signature(pod("a").cpu("1")), signature(pod("b").cpu("1000m")));
    assert_ne!(signature(pod("a").cpu("1")), signature(pod("a").cpu("2")));
}

use serde_json::json;
use steersman_testing::bench::Bench;
use steersman_testing::{NodeBuilder, PodBuilder, node, pod};

use super::*;

/// A node that holds images, given as names and MiB.
fn holding(name: &str, images: &[(&str, i64)]) -> NodeBuilder {
    let image = |(name, mib): &(&str, i64)| json!({"names": [name], "sizeBytes": mib * MIB});
    node(name).status(json!({"images": images.iter().map(image).collect::<Vec<_>>()}))
}

/// A pod with a container per image.
fn using(images: &[&str]) -> PodBuilder {
    let container = |image| json!({"name": "c", "image": image});
    let containers: Vec<_> = images.iter().map(container).collect();
    pod("a").spec(json!({"containers": containers}))
}

#[track_caller]
fn check(nodes: impl IntoIterator<Item = NodeBuilder>, pod: PodBuilder, expected: &str) {
    let bench = Bench::new(&descriptor()).nodes(nodes);
    assert_eq!(bench.score(&pod.build()), expected);
}

#[test]
fn points_lie_on_a_line_between_the_bounds() {
    for (mib, n_containers, expected) in [
        (0, 1, 0),
        (23, 1, 0),
        (24, 1, 0),
        (33, 1, 1),
        (511, 1, 49),
        (512, 1, 50),
        (1000, 1, 100),
        (5000, 1, 100),
        (1000, 2, 49),
        (5000, 2, 100),
        (1000, 0, 100),
    ] {
        assert_eq!(points(mib * MIB, n_containers), expected, "{mib} MiB, {n_containers}");
    }
    assert_eq!(points(i64::MAX, usize::MAX), 1);
    assert_eq!(points(i64::MIN, 1), 0);
}

#[test]
fn an_image_counts_by_the_share_of_nodes_that_hold_it() {
    let held = [("app:1", 1000)];
    check([holding("n1", &held)], using(&["app:1"]), "n1=100");
    check([holding("n1", &held), node("n2")], using(&["app:1"]), "n1=48 n2=0");
    let three = [holding("n1", &held), holding("n2", &held), node("n3")];
    check(three, using(&["app:1"]), "n1=65 n2=65 n3=0");
}

#[test]
fn size_is_the_one_that_the_first_node_told() {
    let nodes = [holding("n1", &[("app:1", 500)]), holding("n2", &[("app:1", 1000)])];
    check(nodes, using(&["app:1"]), "n1=48 n2=48");
}

#[test]
fn images_of_all_containers_and_volumes_add_up() {
    let nodes = || [holding("n1", &[("app:1", 300), ("init:1", 400), ("data:1", 500)])];
    check(nodes(), using(&["app:1", "other:1"]), "n1=14");
    check(nodes(), using(&["app:1", "app:1"]), "n1=29");
    let init = json!({"initContainers": [{"name": "i", "image": "init:1"}]});
    check(nodes(), using(&["app:1"]).spec(init), "n1=34");
    let volume = json!({"volumes": [{"name": "v", "image": {"reference": "data:1"}},
        {"name": "w", "emptyDir": {}}]});
    check(nodes(), using(&["app:1"]).spec(volume), "n1=79");
}

#[test]
fn name_without_tag_stands_for_latest() {
    for (written, as_nodes_write_it) in [
        ("app", "app:latest"),
        ("app:1", "app:1"),
        ("host:5000/app", "host:5000/app:latest"),
        ("host:5000/app:1", "host:5000/app:1"),
        ("host/app@sha256:ab", "host/app@sha256:ab"),
        ("", ":latest"),
    ] {
        assert_eq!(tagged(&written.into()), as_nodes_write_it);
    }
    check([holding("n1", &[("app:latest", 1000)])], using(&["app"]), "n1=100");
}

#[test]
fn signature_holds_the_images() {
    let signature = |pod: PodBuilder| Bench::new(&descriptor()).signature(&pod.build());
    let volume = json!({"volumes": [{"name": "v", "image": {"reference": "data:1"}}]});
    assert_eq!(signature(using(&["a"])), signature(using(&["a"]).label("k", "v")));
    assert_ne!(signature(using(&["a"])), signature(using(&["b"])));
    assert_ne!(signature(using(&["a"])), signature(using(&["a"]).spec(volume)));
}

use expect_test::expect;
use serde_json::{Value, json};
use steersman_testing::bench::Bench;
use steersman_testing::{PodBuilder, node, pod};

use super::*;

fn with_ports(name: &str, ports: Value) -> PodBuilder {
    pod(name).spec(json!({"containers": [{"name": "c", "image": "app", "ports": ports}]}))
}

/// A pod that wants a host port on all addresses.
fn wants(name: &str, port: u16) -> PodBuilder {
    with_ports(name, json!([{"containerPort": 80, "hostPort": port}]))
}

/// Node n1 with 80 taken by a and 81 by b, node n2 without pods.
fn bench() -> Bench {
    Bench::new(&descriptor())
        .nodes([node("n1"), node("n2")])
        .pods([wants("a", 80).on("n1"), wants("b", 81).on("n1")])
}

#[test]
fn pod_without_host_ports_needs_no_filter() {
    assert_eq!(bench().filter(&pod("p").build()), "skip\n");
    let container_port = with_ports("p", json!([{"containerPort": 80}]));
    assert_eq!(bench().filter(&container_port.build()), "skip\n");
}

#[test]
fn rejects_nodes_where_a_wanted_port_is_taken() {
    expect![[r"
        n1: Unschedulable: node(s) didn't have free ports for the requested pod ports
        n2: fit
    "]]
    .assert_eq(&bench().filter(&wants("p", 80).build()));
    expect![[r"
        n1: fit
        n2: fit
    "]]
    .assert_eq(&bench().filter(&wants("p", 82).build()));
    expect![[r"
        n1: Unschedulable: node(s) didn't have free ports for the requested pod ports
        n2: fit
    "]]
    .assert_eq(
        &bench().filter(
            &with_ports(
                "p",
                json!([{"containerPort": 1, "hostPort": 9}, {"containerPort": 2, "hostPort": 81}]),
            )
            .build(),
        ),
    );
}

#[test]
fn ports_of_another_protocol_do_not_conflict() {
    let udp = with_ports("p", json!([{"containerPort": 80, "hostPort": 80, "protocol": "UDP"}]));
    assert_eq!(bench().filter(&udp.build()), "n1: fit\nn2: fit\n");
}

/// The hint for pod p, which wants 80 and 81, after `gone` left.
#[track_caller]
fn check_departure(bench: &Bench, gone: PodBuilder, expected: Hint) {
    let p = with_ports(
        "p",
        json!([{"containerPort": 1, "hostPort": 80}, {"containerPort": 2, "hostPort": 81}]),
    );
    let change = Change::AssignedPod { old: Some(gone.build()), new: None };
    assert_eq!(bench.hint(&p.build(), &change), Some(expected));
}

#[test]
fn departure_brings_pods_back_when_their_ports_are_free_then() {
    let mut bench = bench();
    let a = wants("a", 80).on("n1");
    bench.cluster.remove_pod(&a.clone().build().uid, &"n1".into());
    check_departure(&bench, a, Hint::Skip);
    check_departure(&bench, wants("x", 99).on("n2"), Hint::Skip);
    let b = wants("b", 81).on("n1");
    bench.cluster.remove_pod(&b.clone().build().uid, &"n1".into());
    check_departure(&bench, b, Hint::Queue);
}

#[test]
fn departure_brings_pods_back_when_the_rest_of_their_ports_can_be_preempted() {
    let hint = |p: PodBuilder| {
        let mut bench = bench();
        let a = wants("a", 80).on("n1");
        bench.cluster.remove_pod(&a.clone().build().uid, &"n1".into());
        let p = p.spec(json!({"containers": [{"name": "c", "ports": [
            {"containerPort": 1, "hostPort": 80}, {"containerPort": 2, "hostPort": 81}]}]}));
        let change = Change::AssignedPod { old: Some(a.build()), new: None };
        bench.hint(&p.build(), &change)
    };
    assert_eq!(hint(pod("p")), Some(Hint::Skip));
    assert_eq!(hint(pod("p").priority(10)), Some(Hint::Queue));
    let polite = pod("p").priority(10).spec(json!({"preemptionPolicy": "Never"}));
    assert_eq!(hint(polite), Some(Hint::Skip));
}

#[test]
fn departure_of_a_nominated_pod_counts_for_its_node() {
    let nominated = |node: &str| wants("x", 80).status(json!({"nominatedNodeName": node}));
    check_departure(&bench(), nominated("n2"), Hint::Queue);
    check_departure(&bench(), nominated("n1"), Hint::Skip);
}

#[test]
fn departure_from_nowhere_counts() {
    check_departure(&bench(), wants("x", 80), Hint::Queue);
}

#[test]
fn departure_from_a_node_that_is_gone_does_not_count() {
    check_departure(&bench(), wants("x", 80).on("n3"), Hint::Skip);
}

#[test]
fn added_node_brings_pods_back_when_their_ports_are_free_there() {
    let hint = |name: &str| {
        let change = Change::Node { old: None, new: Some(node(name).build()) };
        bench().hint(&wants("p", 80).build(), &change)
    };
    assert_eq!(hint("n1"), Some(Hint::Skip));
    assert_eq!(hint("n2"), Some(Hint::Queue));
}

#[test]
fn updates_of_other_pods_free_no_port() {
    let old = wants("a", 80).on("n1");
    let new = old.clone().label("k", "v");
    let change = Change::AssignedPod { old: Some(old.build()), new: Some(new.build()) };
    assert_eq!(bench().hint(&wants("p", 80).build(), &change), None);
}

#[test]
fn signature_holds_the_host_ports() {
    let signature = |pod: PodBuilder| bench().signature(&pod.build());
    assert_eq!(signature(wants("a", 80)), signature(wants("b", 80)));
    assert_ne!(signature(wants("a", 80)), signature(wants("a", 81)));
}

use std::path::PathBuf;

use expect_test::{Expect, expect, expect_file};
use steersman_config::Config;

use super::*;
use crate::input::{Input, InputFile};
use crate::report::{Detail, ReportData, write_text};

fn simulated(manifests: &str, explain: bool) -> Simulated {
    simulated_with(manifests, explain, Preemption::Report)
}

fn simulated_with(manifests: &str, explain: bool, preemption: Preemption) -> Simulated {
    let input = Input::from_files([InputFile::new("input.yaml", manifests)]);
    assert_eq!(input.problems, []);
    let registry = steersman_plugins::table::in_tree();
    let config = Config::default_for(&registry).expect("the default configuration");
    let options = Options { config: &config, registry: &registry, seed: 0, explain, preemption };
    simulate(input.objects, options, &mut |_, _| ()).expect("a simulation")
}

fn testdata(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata/simulate").join(name)
}

const FATES: &str = include_str!("../../testdata/simulate/fates.yaml");

#[track_caller]
fn check_text(detail: Detail, expected: &str) {
    let simulated = simulated(FATES, detail.explain);
    let mut text = Vec::new();
    for notice in &simulated.notices {
        text.extend_from_slice(format!("note: {notice}\n").as_bytes());
    }
    write_text(&mut text, &simulated, detail).expect("a vector");
    let text = String::from_utf8(text).expect("text");
    expect_file![testdata(expected)].assert_eq(&text);
}

#[test]
fn every_fate_is_told_in_a_table() {
    check_text(Detail::default(), "fates.txt");
}

#[test]
fn wide_table_shows_what_pods_ask_for_and_explains_decisions() {
    check_text(Detail { wide: true, explain: true }, "fates-wide-explained.txt");
}

/// `urgent` has no room unless one of the others goes; `queued` comes after it.
const CROWD: &str = "
{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {cpu: '2', pods: '9'}}}
---
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: urgent}, value: 10}
---
{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: b, namespace: default},
 spec: {selector: {matchLabels: {app: db}}},
 status: {disruptionsAllowed: 0, currentHealthy: 1, desiredHealthy: 1, expectedPods: 1}}
---
{apiVersion: v1, kind: Pod, metadata: {name: db, labels: {app: db}}, spec: {nodeName: n1,
 containers: [{name: c, image: i, resources: {requests: {cpu: '1'}}}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {nodeName: n1,
 containers: [{name: c, image: i, resources: {requests: {cpu: '1'}}}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: urgent}, spec: {priorityClassName: urgent,
 containers: [{name: c, image: i, resources: {requests: {cpu: WANTED}}}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: queued}, spec: {
 containers: [{name: c, image: i, resources: {requests: {cpu: '1'}}}]}}
";

#[track_caller]
fn check_crowd(wanted: &str, preemption: Preemption, expected: &Expect) {
    let simulated = simulated_with(&CROWD.replace("WANTED", wanted), false, preemption);
    let mut text = Vec::new();
    write_text(&mut text, &simulated, Detail::default()).expect("a vector");
    let text = String::from_utf8(text).expect("text");
    let pod = serde_json::to_value(ReportData::new(&simulated, Vec::new(), Vec::new()));
    let json = pod.expect("JSON");
    let (pod, evicted) = (&json["pods"][0]["preemption"], &json["evicted"]);
    let (_, text) = text.split_once("\n\n").expect("tables");
    expected.assert_eq(&format!("{text}\n{pod}\n{evicted}\n"));
}

#[test]
fn preemption_is_told_and_not_applied() {
    check_crowd(
        "'1'",
        Preemption::Report,
        &expect![[r#"
        NODE   ZONE   PODS    CPU   MEMORY   OTHER
        n1             2/9   100%        -

        default/urgent fits on no node
          0/1 nodes are available: 1 Insufficient cpu.
          NodeResourcesFit   1 node   Insufficient cpu   n1
          evicting default/web from n1 would make room

        default/queued fits on no node
          0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.
          NodeResourcesFit   1 node   Insufficient cpu   n1

        0 of 2 pods placed on 1 node, 2 unschedulable

        {"budgetsViolated":0,"node":"n1","victims":["default/web"]}
        null
    "#]],
    );
    check_crowd(
        "'2'",
        Preemption::Report,
        &expect![[r#"
        NODE   ZONE   PODS    CPU   MEMORY   OTHER
        n1             2/9   100%        -

        default/urgent fits on no node
          0/1 nodes are available: 1 Insufficient cpu.
          NodeResourcesFit   1 node   Insufficient cpu   n1
          evicting default/db, default/web from n1 would make room, though one is protected by a disruption budget

        default/queued fits on no node
          0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.
          NodeResourcesFit   1 node   Insufficient cpu   n1

        0 of 2 pods placed on 1 node, 2 unschedulable

        {"budgetsViolated":1,"node":"n1","victims":["default/db","default/web"]}
        null
    "#]],
    );
}

#[test]
fn preemption_can_be_applied_or_left_out() {
    check_crowd(
        "'2'",
        Preemption::Apply,
        &expect![[r#"
        NODE   ZONE       PODS    CPU   MEMORY   OTHER
        n1            2 -> 1/9   100%        -

        default/db is evicted from n1 for default/urgent
        default/web is evicted from n1 for default/urgent

        default/queued fits on no node
          0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.
          NodeResourcesFit   1 node   Insufficient cpu   n1

        1 of 2 pods placed on 1 node, 1 unschedulable

        null
        [{"name":"db","namespace":"default","node":"n1","preemptor":"default/urgent"},{"name":"web","namespace":"default","node":"n1","preemptor":"default/urgent"}]
    "#]],
    );
    check_crowd(
        "'2'",
        Preemption::Off,
        &expect![[r#"
        NODE   ZONE   PODS    CPU   MEMORY   OTHER
        n1             2/9   100%        -

        default/urgent fits on no node
          0/1 nodes are available: 1 Insufficient cpu.
          NodeResourcesFit   1 node   Insufficient cpu   n1

        default/queued fits on no node
          0/1 nodes are available: 1 Insufficient cpu.
          NodeResourcesFit   1 node   Insufficient cpu   n1

        0 of 2 pods placed on 1 node, 2 unschedulable

        null
        null
    "#]],
    );
}

#[test]
fn every_fate_is_told_to_machines() {
    let simulated = simulated(FATES, true);
    let data = ReportData::new(&simulated, vec!["a notice".to_owned()], Vec::new());
    let json = serde_json::to_string_pretty(&data).expect("JSON");
    expect_file![testdata("fates.json")].assert_eq(&format!("{json}\n"));
}

#[test]
fn names_of_rejected_nodes_are_cut_unless_explained() {
    let nodes: String = (0..50)
        .map(|n| format!("{{apiVersion: v1, kind: Node, metadata: {{name: n{n:02}}}}}\n---\n"))
        .collect();
    let pod = "{apiVersion: v1, kind: Pod, metadata: {name: p}, \
               spec: {containers: [{name: c, image: i}]}}";
    for (explain, expected) in [(false, NODES_SHOWN), (true, 50)] {
        let simulated = simulated(&format!("{nodes}{pod}"), explain);
        let Fate::Unschedulable(no_fit) = &simulated.pods[0].fate else { panic!("{simulated:?}") };
        let [group] = no_fit.rejected.as_slice() else { panic!("{no_fit:?}") };
        assert_eq!((group.count, group.nodes.len()), (50, expected));
        assert!(no_fit.message.starts_with("0/50 nodes are available: 50 Too many pods. "));
    }
}

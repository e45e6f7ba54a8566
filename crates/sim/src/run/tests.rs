use std::path::PathBuf;

use expect_test::expect_file;
use steersman_config::Config;

use super::*;
use crate::input::{Input, InputFile};
use crate::report::{Detail, ReportData, write_text};

fn simulated(manifests: &str, explain: bool) -> Simulated {
    let input = Input::from_files([InputFile::new("input.yaml", manifests)]);
    assert_eq!(input.problems, []);
    let registry = steersman_plugins::table::in_tree();
    let config = Config::default_for(&registry).expect("the default configuration");
    let options = Options { config: &config, registry: &registry, seed: 0, explain };
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
        assert_eq!(no_fit.message, "0/50 nodes are available: 50 Too many pods.");
    }
}

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use expect_test::{expect, expect_file};
use steersman_api::selector::NodeSelector;
use steersman_api::taint::Toleration;

use super::*;

/// The result as text: what came in, then notices, then problems.
fn shown(input: &Input) -> String {
    let mut text = String::new();
    for object in &input.objects {
        match object {
            ClusterObject::Node(node) => writeln!(text, "Node {}", node.name),
            ClusterObject::Other(other) => writeln!(text, "{other:?}"),
            ClusterObject::Pod(pod) => writeln!(text, "Pod {}{}", pod.key, details(input, pod)),
        }
        .unwrap();
    }
    for notice in &input.notices {
        writeln!(text, "notice: {notice}").unwrap();
    }
    for problem in &input.problems {
        writeln!(text, "error: {problem}").unwrap();
    }
    text
}

fn details(input: &Input, pod: &PodInfo) -> String {
    let mut text = String::new();
    if let Some(workload) = input.workload_of(&pod.key) {
        write!(text, " of {workload}").unwrap();
    }
    if let Some(node) = &pod.node_name {
        write!(text, " on {node}").unwrap();
    }
    if pod.spec.priority != 0 {
        write!(text, " priority {}", pod.spec.priority).unwrap();
    }
    text
}

/// Reads `testdata/<case>/input.*` and compares with `expected.txt` there.
#[track_caller]
fn check_case(case: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(case);
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(&folder).expect(case).map(|entry| entry.expect(case).path()).collect();
    files.retain(|path| path.file_stem().is_some_and(|stem| stem == "input"));
    files.sort();
    let files = files.iter().map(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        InputFile::new(name, std::fs::read(path).expect(case))
    });
    expect_file![folder.join("expected.txt")].assert_eq(&shown(&Input::from_files(files)));
}

#[test]
fn deployment_becomes_a_replica_set_and_its_pods() {
    check_case("deployment");
}

#[test]
fn dump_of_a_cluster_does_not_double() {
    check_case("cluster-dump");
}

#[test]
fn stateful_set_numbers_its_pods_and_fills_gaps() {
    check_case("stateful-set");
}

#[test]
fn daemon_set_takes_every_node_that_accepts_it() {
    check_case("daemon-set");
}

#[test]
fn job_makes_the_pods_that_run_at_once() {
    check_case("job");
}

#[test]
fn bare_replica_set_adopts_pods_that_match() {
    check_case("adoption");
}

#[test]
fn priorities_come_from_classes() {
    check_case("priority");
}

#[test]
fn every_bad_document_is_named_and_the_good_ones_are_read() {
    check_case("bad-documents");
}

#[test]
fn pods_that_an_api_server_refuses_are_named() {
    check_case("bad-pods");
}

#[test]
fn workloads_that_an_api_server_refuses_are_named() {
    check_case("bad-workloads");
}

#[test]
fn kinds_that_scheduling_does_not_read_are_counted() {
    check_case("unknown-kinds");
}

#[test]
fn lists_are_read_item_by_item() {
    check_case("lists");
}

#[track_caller]
fn check_file(content: impl Into<Vec<u8>>, expected: expect_test::Expect) {
    expected.assert_eq(&shown(&Input::from_files([InputFile::new("f.yaml", content)])));
}

#[test]
fn empty_file_is_an_error() {
    let expected = "error: f.yaml: the file is empty, allowed: at least one Kubernetes object\n";
    for empty in ["", "\n\n", "# only a comment\n---\n---\n", "\u{feff}"] {
        let input = Input::from_files([InputFile::new("f.yaml", empty)]);
        assert_eq!(shown(&input), expected, "{empty:?}");
    }
}

#[test]
fn input_without_any_file_or_known_object_is_an_error() {
    let error = "error: input: found no object that scheduling reads, allowed: at least a Node \
                 and a Pod or a workload\n";
    assert_eq!(shown(&Input::from_files([])), error);
    let secret = "{apiVersion: v1, kind: Secret, metadata: {name: s}}";
    let input = Input::from_files([InputFile::new("f.yaml", secret)]);
    let notice = "notice: skipped 1 object of kinds that scheduling does not read: 1 Secret\n";
    assert_eq!(shown(&input), format!("{notice}{error}"));
}

#[test]
fn binary_file_is_an_error_that_names_the_offset() {
    check_file(
        b"\x7fELF\x02\x01\x01\x00\x00\xff\xfe".to_vec(),
        expect![[r#"
            error: f.yaml: not UTF-8 at byte 9; allowed: YAML or JSON text in UTF-8
        "#]],
    );
}

#[test]
fn pod_with_a_hundred_thousand_labels_is_read() {
    let mut text = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n  labels:\n".to_owned();
    for n in 0..100_000 {
        writeln!(text, "    label-{n}: value-{n}").unwrap();
    }
    text += "spec:\n  containers:\n  - name: c\n    image: i\n";
    let input = Input::from_files([InputFile::new("f.yaml", text)]);
    assert_eq!(input.problems, []);
    assert_eq!(input.pods().map(|pod| pod.labels.len()).collect::<Vec<_>>(), [100_000]);
}

#[test]
fn daemon_set_pods_are_pinned_and_tolerate_node_problems() {
    let input = Input::from_files([InputFile::new(
        "f.yaml",
        "\
{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {capacity: {pods: 5}}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: c}], hostNetwork: true}
",
    )]);
    assert_eq!(input.problems, []);
    let pod = input.pods().next().expect("the pod of n1");
    let affinity = pod.spec.required_node_affinity.as_ref().expect("the pin");
    let matches =
        |a: &NodeSelector, name| a.matches(name, &steersman_api::labels::Labels::default());
    assert!(matches(affinity, "n1") && !matches(affinity, "n2"));
    let keys: Vec<&str> =
        pod.spec.tolerations.iter().map(|t: &Toleration| t.key.as_str()).collect();
    assert_eq!(
        keys,
        [
            "node.kubernetes.io/not-ready",
            "node.kubernetes.io/unreachable",
            "node.kubernetes.io/disk-pressure",
            "node.kubernetes.io/memory-pressure",
            "node.kubernetes.io/pid-pressure",
            "node.kubernetes.io/unschedulable",
            "node.kubernetes.io/network-unavailable",
        ]
    );
}

#[test]
fn same_input_gives_the_same_output() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    let read = || Input::from_paths(&[folder.join("deployment")], &mut io::empty());
    assert_eq!(shown(&read()), shown(&read()));
}

#[test]
fn sample_cluster_is_read_without_a_problem() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/sample-cluster");
    let input = Input::from_paths(&[folder], &mut io::empty());
    assert_eq!(input.problems, []);
    assert_eq!((input.nodes().count(), input.pods().count()), (26, 93));
    let mut pending = input.pods().filter(|pod| !pod.is_bound());
    assert!(pending.all(|pod| input.workload_of(&pod.key).is_some()));
}

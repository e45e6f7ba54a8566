//! The project's copy of the corpora: this scheduler decides like the
//! reference.

use std::path::Path;

use steersman_conformance::{Options, Show, run};

/// Runs a file of `testdata/conformance`.
#[track_caller]
fn check(file: &str, n_lines: usize) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/conformance").join(file);
    let report = run(&[path], &Options::default()).expect("the corpus can be read");
    assert_eq!(report.failed(), 0, "\n{}", report.render(Show::First(5)));
    assert_eq!(report.passed(), n_lines);
}

#[track_caller]
fn check_family(family: &str) {
    check(&format!("decisions/{family}.jsonl.gz"), 150);
}

#[test]
fn config() {
    check("config/config.jsonl", 51);
}

#[test]
fn images() {
    check_family("images");
}

#[test]
fn interpod() {
    check_family("interpod");
}

#[test]
fn mixed() {
    check_family("mixed");
}

#[test]
fn nodeaffinity() {
    check_family("nodeaffinity");
}

#[test]
fn nodename_ports() {
    check_family("nodename_ports");
}

#[test]
fn preemption() {
    check("decisions/preemption.jsonl.gz", 250);
}

#[test]
fn resources() {
    check_family("resources");
}

#[test]
fn spread() {
    check_family("spread");
}

#[test]
fn spread_defaults() {
    check_family("spread_defaults");
}

#[test]
fn taints() {
    check_family("taints");
}

#[test]
fn volumes() {
    check_family("volumes");
}

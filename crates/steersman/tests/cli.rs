//! The program from outside: exit codes, and what goes where.

use std::io::Write;
use std::process::{Command, Output, Stdio};

const NODE: &str =
    "{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {cpu: 1, pods: 9}}}";

fn pod(cpu: &str) -> String {
    format!(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: p}}, spec: {{containers: \
         [{{name: c, image: i, resources: {{requests: {{cpu: {cpu}}}}}}}]}}}}"
    )
}

fn steersman(args: &[&str], stdin: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_steersman"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program");
    // A program that refuses its arguments does not read.
    let _ = child.stdin.take().expect("a pipe").write_all(stdin.as_bytes());
    child.wait_with_output().expect("its output")
}

#[track_caller]
fn check(args: &[&str], stdin: &str, code: i32, on_stdout: &str, on_stderr: &str) {
    let output = steersman(args, stdin);
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{out}{err}");
    assert!(out.contains(on_stdout), "{out}");
    assert!(err.contains(on_stderr), "{err}");
}

const FROM_STDIN: [&str; 3] = ["simulate", "-f", "-"];

#[test]
fn exit_code_tells_how_a_simulation_came_out() {
    let cluster = |cpu| format!("{NODE}\n---\n{}", pod(cpu));
    check(&FROM_STDIN, &cluster("1"), 0, "1 of 1 pod placed on 1 node", "");
    check(&FROM_STDIN, &cluster("2"), 2, "0/1 nodes are available: 1 Insufficient cpu.", "");
    check(&FROM_STDIN, &cluster("-2"), 1, "", "requests[\"cpu\"]");
    check(&FROM_STDIN, "", 1, "", "empty");
}

#[test]
fn one_bad_object_does_not_stop_the_rest() {
    let input = format!("{NODE}\n---\n{{kind: Pod}}\n---\n{}", pod("1"));
    check(&FROM_STDIN, &input, 1, "1 of 1 pod placed on 1 node", "apiVersion: required");
}

#[test]
fn wrong_usage_is_bad_input_and_help_is_not() {
    check(&["simulate"], "", 1, "", "--filename");
    check(&["simulate", "-f", "-", "--output", "xml"], NODE, 1, "", "possible values");
    check(&["--help"], "", 0, "simulate", "");
    check(&["simulate", "--help"], "", 0, "Examples:", "");
    check(&["conformance", "--ignore", "nothing", "x"], "", 1, "", "unknown field");
}

#[test]
fn configuration_errors_name_file_and_path() {
    let dir = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let file = dir.join("bad-config.yaml");
    let text = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n\
                parallelism: 0\npercentageOfNodesToScore: 101\n";
    std::fs::write(&file, text).expect("a file");
    let name = file.to_str().expect("a name");
    let args = ["simulate", "-f", "-", "--config", name];
    check(&args, NODE, 1, "", "bad-config.yaml: parallelism: found 0");
    check(&args, NODE, 1, "", "bad-config.yaml: percentageOfNodesToScore: found 101");
}

#[test]
fn output_for_machines_is_json_and_yaml() {
    let cluster = format!("{NODE}\n---\n{}", pod("1"));
    let json = steersman(&["simulate", "-f", "-", "-o", "json"], &cluster);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!(json["pods"][0]["node"], "n1");
    assert_eq!(json["problems"], serde_json::json!([]));
    check(&["simulate", "-f", "-", "-o", "yaml"], &cluster, 0, "status: placed", "");
}

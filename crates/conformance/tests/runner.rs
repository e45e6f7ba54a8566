//! The runner itself: what passes, and that everything that is compared can
//! fail.

use std::path::{Path, PathBuf};

use expect_test::{Expect, expect};
use serde_json::{Value, json};
use steersman_conformance::{Cause, Field, Options, Report, RunError, Show, UnknownField, run};

/// Writes `text` to a file of the test `test`; tests run at the same time.
fn file(test: &str, text: impl AsRef<[u8]>) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}.jsonl"));
    std::fs::write(&path, text).expect("the directory for tests is there");
    path
}

fn run_lines(test: &str, lines: &[Value], ignore: &[Field]) -> Report {
    let text: Vec<String> = lines.iter().map(ToString::to_string).collect();
    let options = Options { ignore: ignore.iter().copied().collect(), jobs: None };
    run(&[file(test, text.join("\n"))], &options).expect("the file is good")
}

/// Only plugins whose answers are plain to see.
fn config() -> Value {
    let enabled: Vec<Value> =
        ["PrioritySort", "NodeUnschedulable", "TaintToleration", "NodeAffinity", "DefaultBinder"]
            .into_iter()
            .map(|name| json!({"name": name}))
            .collect();
    json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"multiPoint": {
            "disabled": [{"name": "*"}],
            "enabled": enabled,
        }}}],
    })
}

fn node(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": spec})
}

fn pod(mut spec: Value) -> Value {
    spec["containers"] = json!([{"name": "c"}]);
    json!({"apiVersion": "v1", "kind": "Pod", "spec": spec,
        "metadata": {"name": "p", "namespace": "default", "uid": "p"}})
}

/// One node takes the pod, one is cordoned.
fn one_feasible() -> Value {
    json!({
        "name": "one-feasible",
        "config": config(),
        "objects": [node("n1", json!({})), node("n2", json!({"unschedulable": true}))],
        "pod": pod(json!({})),
        "expect": {
            "feasible": ["n1"],
            "rejected": {"n2": {"code": "UnschedulableAndUnresolvable",
                "plugin": "NodeUnschedulable", "reasons": ["node(s) were unschedulable"]}},
            "scores": {"n1": {"TaintToleration": 100, "NodeAffinity": 0}},
            "totals": {"n1": 100},
            "unschedulablePlugins": ["NodeUnschedulable"],
        },
    })
}

/// The pod wants a node that is cordoned; the other is out of question.
fn none_feasible() -> Value {
    let term = json!({"matchFields": [
        {"key": "metadata.name", "operator": "In", "values": ["n2"]}]});
    let message = "0/2 nodes are available: 1 node(s) didn't satisfy plugin(s) [NodeAffinity], \
                   1 node(s) were unschedulable.";
    let mut scenario = one_feasible();
    scenario["name"] = json!("none-feasible");
    scenario["pod"] = pod(json!({"affinity": {"nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}}));
    scenario["expect"] = json!({
        "feasible": [],
        "rejected": scenario["expect"]["rejected"],
        "rejectedOthers": {"code": "UnschedulableAndUnresolvable",
            "reasons": ["node(s) didn't satisfy plugin(s) [NodeAffinity]"]},
        "message": message,
        "fullMessage": message,
        "unschedulablePlugins": ["NodeAffinity", "NodeUnschedulable"],
        "preemption": {"code": "Unschedulable"},
    });
    scenario
}

/// The differences of the one line of `report`, as users see them.
#[track_caller]
fn shown(report: &Report) -> String {
    match report.failures.as_slice() {
        [] => String::new(),
        [_] => {
            let text = report.render(Show::All).to_string();
            let lines = text.lines().skip(4).map_while(|line| line.strip_prefix("  "));
            lines.map(|line| format!("{line}\n")).collect()
        }
        more => panic!("{} failures", more.len()),
    }
}

/// Puts `value` at `pointer` of the scenario's expectation: the runner must
/// show `expected`, and nothing when `field` is ignored.
#[track_caller]
fn check_fails(mut scenario: Value, field: Field, pointer: &str, value: Value, expected: Expect) {
    let target = scenario["expect"].pointer_mut(pointer).expect("it was there");
    *target = value;
    let test = format!("fails-{}", pointer.replace('/', "-"));
    let report = run_lines(&test, &[scenario.clone()], &[]);
    assert_eq!((report.passed(), report.failed()), (0, 1));
    expected.assert_eq(&shown(&report));

    let report = run_lines(&test, &[scenario], &[field]);
    assert_eq!(shown(&report), "", "{field} is ignored");
}

#[test]
fn what_is_as_expected_passes() {
    let report = run_lines("passes", &[one_feasible(), none_feasible()], &[]);
    let text = report.render(Show::All).to_string();
    assert_eq!(text, "family  passed/failed\npasses       2/0\n\n2 passed, 0 failed\n");
}

#[test]
fn wrong_feasible_nodes_fail() {
    let none = json!([]);
    check_fails(
        one_feasible(),
        Field::Feasible,
        "/feasible",
        none,
        expect![[r#"
              feasible n1: expected not mentioned, actual feasible
        "#]],
    );
}

#[test]
fn wrong_code_plugin_or_reason_of_a_rejection_fails() {
    let check = |pointer, value, expected| {
        check_fails(one_feasible(), Field::Rejected, pointer, value, expected);
    };
    check(
        "/rejected/n2/code",
        json!("Unschedulable"),
        expect![[r#"
              rejected n2
                expected: Unschedulable by NodeUnschedulable: node(s) were unschedulable
                actual:   UnschedulableAndUnresolvable by NodeUnschedulable: node(s) were unschedulable
        "#]],
    );
    check(
        "/rejected/n2/plugin",
        json!("NodeName"),
        expect![[r#"
              rejected n2
                expected: UnschedulableAndUnresolvable by NodeName: node(s) were unschedulable
                actual:   UnschedulableAndUnresolvable by NodeUnschedulable: node(s) were unschedulable
        "#]],
    );
    check(
        "/rejected/n2/reasons",
        json!([]),
        expect![[r#"
              rejected n2
                expected: UnschedulableAndUnresolvable by NodeUnschedulable
                actual:   UnschedulableAndUnresolvable by NodeUnschedulable: node(s) were unschedulable
        "#]],
    );
}

#[test]
fn wrong_verdict_on_the_others_fails() {
    let check = |pointer, value, expected| {
        check_fails(none_feasible(), Field::RejectedOthers, pointer, value, expected);
    };
    check(
        "/rejectedOthers/reasons",
        json!(["other"]),
        expect![[r#"
              rejectedOthers
                expected: UnschedulableAndUnresolvable: other
                actual:   UnschedulableAndUnresolvable: node(s) didn't satisfy plugin(s) [NodeAffinity]
        "#]],
    );
    check(
        "/rejectedOthers/code",
        json!("Unschedulable"),
        expect![[r#"
              rejectedOthers
                expected: Unschedulable: node(s) didn't satisfy plugin(s) [NodeAffinity]
                actual:   UnschedulableAndUnresolvable: node(s) didn't satisfy plugin(s) [NodeAffinity]
        "#]],
    );
    check(
        "/rejectedOthers",
        json!(null),
        expect![[r#"
              rejectedOthers
                expected: nothing
                actual:   UnschedulableAndUnresolvable: node(s) didn't satisfy plugin(s) [NodeAffinity]
        "#]],
    );
}

#[test]
fn wrong_scores_fail() {
    let check = |pointer, value, expected| {
        check_fails(one_feasible(), Field::Scores, pointer, value, expected);
    };
    check(
        "/scores/n1/TaintToleration",
        json!(300),
        expect![[r#"
              scores n1 TaintToleration: expected 300, actual 100
        "#]],
    );
    check(
        "/scores/n1/NodeAffinity",
        json!(5),
        expect![[r#"
              scores n1 NodeAffinity: expected 5, actual 0
        "#]],
    );
    // A plugin that the expectation does not know counts as well.
    check(
        "/scores/n1",
        json!({}),
        expect![[r#"
              scores n1 TaintToleration: expected 0, actual 100
        "#]],
    );
    check(
        "/scores",
        json!({"n2": {}}),
        expect![[r#"
              scores n1: expected no scores, actual TaintToleration 100
              scores n2: expected every score is 0, actual no scores
        "#]],
    );
}

#[test]
fn missing_and_zero_scores_are_equal() {
    let mut scenario = one_feasible();
    scenario["expect"]["scores"]["n1"] = json!({"TaintToleration": 100, "Unheard": 0});
    assert_eq!(shown(&run_lines("zero", &[scenario], &[])), "");
}

#[test]
fn wrong_totals_fail() {
    check_fails(
        one_feasible(),
        Field::Totals,
        "/totals/n1",
        json!(101),
        expect![[r#"
              totals n1: expected 101, actual 100
        "#]],
    );
}

#[test]
fn wrong_messages_fail() {
    let other = || json!("0/2 nodes are available.");
    check_fails(
        none_feasible(),
        Field::Message,
        "/message",
        other(),
        expect![[r#"
              message
                expected: 0/2 nodes are available.
                actual:   0/2 nodes are available: 1 node(s) didn't satisfy plugin(s) [NodeAffinity], 1 node(s) were unschedulable.
        "#]],
    );
    check_fails(
        none_feasible(),
        Field::FullMessage,
        "/fullMessage",
        other(),
        expect![[r#"
              fullMessage
                expected: 0/2 nodes are available.
                actual:   0/2 nodes are available: 1 node(s) didn't satisfy plugin(s) [NodeAffinity], 1 node(s) were unschedulable.
        "#]],
    );
}

#[test]
fn wrong_unschedulable_plugins_fail() {
    let pointer = "/unschedulablePlugins";
    let one = json!(["NodeAffinity"]);
    check_fails(
        none_feasible(),
        Field::UnschedulablePlugins,
        pointer,
        one,
        expect![[r#"
              unschedulablePlugins
                expected: NodeAffinity
                actual:   NodeAffinity, NodeUnschedulable
        "#]],
    );
}

#[test]
fn wrong_preemption_fails() {
    let check = |value, expected| {
        check_fails(none_feasible(), Field::Preemption, "/preemption", value, expected);
    };
    check(
        json!({"code": "Unschedulable", "message": "preemption: no"}),
        expect![[r#"
              preemption message: expected preemption: no, actual (empty)
        "#]],
    );
    let victims = |node: &str| json!({"nominatedNode": node, "victims": ["default/a", "x/b"]});
    let any_of = [victims("n1"), victims("n2")];
    check(
        json!({"code": "Success", "anyOf": any_of}),
        expect![[r#"
              preemption code: expected Success, actual Unschedulable
              preemption nomination
                expected: n1 without default/a, x/b, or n2 without default/a, x/b
                actual:   none
        "#]],
    );
}

#[test]
fn ignoring_preemption_leaves_out_the_full_message() {
    let mut scenario = none_feasible();
    scenario["expect"]["fullMessage"] = json!("other");
    assert_eq!(shown(&run_lines("full-message", &[scenario], &[Field::Preemption])), "");
}

#[test]
fn an_error_where_a_decision_is_due_fails_whatever_is_ignored() {
    let mut scenario = one_feasible();
    scenario["pod"] = pod(json!({"schedulerName": "other"}));
    expect![[r#"
          error
            expected: no error
            actual:   no profile serves schedulerName "other"
    "#]]
    .assert_eq(&shown(&run_lines("unserved", &[scenario], &Field::ALL)));

    let mut scenario = one_feasible();
    scenario["expect"] = json!({"error": "plugin failed"});
    expect![[r#"
          error
            expected: plugin failed
            actual:   a decision, feasible nodes: 1
    "#]]
    .assert_eq(&shown(&run_lines("error-due", &[scenario], &Field::ALL)));
}

#[test]
fn the_words_of_an_error_are_compared() {
    let mut scenario = one_feasible();
    scenario["pod"] = pod(json!({"schedulerName": "other"}));
    scenario["expect"] = json!({"error": "no profile serves schedulerName \"other\""});
    assert_eq!(shown(&run_lines("error", &[scenario.clone()], &[])), "");
    check_fails(
        scenario,
        Field::Error,
        "/error",
        json!("not found"),
        expect![[r#"
              error
                expected: not found
                actual:   no profile serves schedulerName "other"
        "#]],
    );
}

/// What is wrong with a line that cannot be used.
#[track_caller]
fn check_unusable(test: &str, line: impl AsRef<[u8]>, expected: Expect) {
    let good = one_feasible().to_string();
    let text = [line.as_ref(), b"\n\n", good.as_bytes(), b"\n"].concat();
    let report = run(&[file(test, text)], &Options::default()).expect("the file is good");
    assert_eq!((report.passed(), report.failed()), (1, 1), "the good line is still run");
    let [failure] = report.failures.as_slice() else { panic!("one failure") };
    let Cause::Unusable(problem) = &failure.cause else { panic!("{:?}", failure.cause) };
    expected.assert_eq(&format!("{}:{}: {problem}", failure.scenario, failure.line));
}

#[test]
fn lines_of_the_wrong_shape_fail_and_say_why() {
    check_unusable(
        "not-json",
        "{\"name\": ",
        expect!["line 1:1: is not JSON: EOF while parsing a value at line 1 column 9"],
    );
    check_unusable(
        "not-utf8",
        b"\"\xff\"",
        expect!["line 1:1: is not JSON: invalid unicode code point at line 1 column 2"],
    );
    check_unusable(
        "no-kind",
        "{\"name\": \"x\"}",
        expect![
            "x:1: is neither a document (with `yaml`) nor a scenario (with `pod` and `expect`)"
        ],
    );
    check_unusable(
        "list",
        "[1]",
        expect![
            "line 1:1: is neither a document (with `yaml`) nor a scenario (with `pod` and `expect`)"
        ],
    );
    let document = json!({"name": "d", "yaml": ""}).to_string();
    check_unusable(
        "document",
        document,
        expect![
            "d:1: one of the fields `error` and `defaulted` must be there, and only one; `startupError` belongs to `defaulted`"
        ],
    );
}

#[test]
fn scenarios_that_cannot_be_used_fail_and_say_why() {
    let scenario = |pointer: &str, value: Value| {
        let mut scenario = one_feasible();
        *scenario.pointer_mut(pointer).expect("it was there") = value;
        scenario.to_string()
    };
    let unknown = json!({"feasible": [], "victims": []});
    check_unusable(
        "unknown-field",
        scenario("/expect", unknown),
        expect![
            "one-feasible:1: expect.victims: unknown field `victims`, expected one of `error`, `feasible`, `rejected`, `rejectedOthers`, `scores`, `totals`, `message`, `fullMessage`, `unschedulablePlugins`, `preemption`"
        ],
    );
    check_unusable(
        "no-expectation",
        scenario("/expect", json!({})),
        expect![
            "one-feasible:1: expect: one of the fields `error` and `feasible` must be there, and only one"
        ],
    );
    check_unusable(
        "bad-config",
        scenario("/config", json!({"kind": "x"})),
        expect![[r#"
        one-feasible:1: config: apiVersion: required: "kubescheduler.config.k8s.io/v1"
        kind: found "x", allowed: "KubeSchedulerConfiguration""#]],
    );
    check_unusable(
        "no-pod",
        scenario("/pod", json!({})),
        expect!["one-feasible:1: pod (object without a name): apiVersion and kind are required"],
    );
    let no_effect = node("n1", json!({"taints": [{"key": "a", "effect": "Sometimes"}]}));
    check_unusable(
        "bad-object",
        scenario("/objects/0", no_effect),
        expect![[
            r#"one-feasible:1: objects[0] (Node n1): spec.taints[0].effect: found "Sometimes", allowed: NoSchedule, PreferNoSchedule, NoExecute"#
        ]],
    );
    let wrong_type = node("n1", json!({"taints": 3}));
    check_unusable(
        "wrong-type",
        scenario("/objects/1", wrong_type),
        expect!["one-feasible:1: objects[1] (Node n1): spec.taints: found 3, allowed: a list"],
    );
    check_unusable(
        "no-object",
        scenario("/objects/1", json!({})),
        expect![
            "one-feasible:1: objects[1] (object without a name): apiVersion and kind are required"
        ],
    );
}

#[test]
fn objects_that_no_rule_reads_are_counted() {
    let mut scenario = one_feasible();
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"});
    scenario["objects"] =
        [scenario["objects"].as_array().cloned().unwrap_or_default(), vec![lease.clone(), lease]]
            .concat()
            .into();
    let report = run_lines("ignored", &[scenario], &[]);
    let text = report.render(Show::All).to_string();
    assert_eq!(
        text.lines().skip(3).collect::<Vec<_>>(),
        ["note: 2 objects of kind coordination.k8s.io/v1 Lease were ignored", "1 passed, 0 failed"]
    );
}

#[test]
fn wrong_documents_fail() {
    let head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";
    let document = |body: &str, rest: Value| {
        let mut line = json!({"name": "d", "yaml": format!("{head}{body}")});
        for (key, value) in rest.as_object().expect("an object") {
            line[key] = value.clone();
        }
        line
    };
    let check = |test: &str, line: Value, expected: Expect| {
        expected.assert_eq(&shown(&run_lines(test, &[line], &[])));
    };
    let registry = steersman_plugins::table::in_tree();
    let mut defaulted = steersman_config::defaulted_document(head, &registry).expect("it is good");
    check("document-good", document("", json!({"defaulted": defaulted})), expect![[""]]);
    defaulted["parallelism"] = json!(17);
    defaulted["leaderElection"]["leaseDuration"] = json!("20s");
    defaulted["more"] = json!([1]);
    check(
        "document-differs",
        document("", json!({"defaulted": defaulted})),
        expect![[r#"
              defaulted leaderElection.leaseDuration: expected "20s", actual "15s"
              defaulted more: expected [1], actual absent
              defaulted parallelism: expected 17, actual 16
        "#]],
    );
    let refused = document("parallelism: 0", json!({"defaulted": defaulted}));
    check(
        "document-refused",
        refused,
        expect![[r#"
              defaulted
                expected: accepted
                actual:   parallelism: found 0, allowed: 1 or more
        "#]],
    );
    let error = json!({"error": "parallelism: Invalid value: 0: should be more"});
    check(
        "document-accepted",
        document("", error.clone()),
        expect![[r#"
              error
                expected: parallelism: Invalid value: 0: should be more
                actual:   accepted
        "#]],
    );
    check("document-error", document("parallelism: 0", error.clone()), expect![[""]]);
    check(
        "document-path",
        document("percentageOfNodesToScore: 101", error),
        expect![[r#"
              error parallelism
                expected: a problem at this path
                actual:   percentageOfNodesToScore: found 101, allowed: 0 to 100, where 0 means a share that depends on the number of nodes
        "#]],
    );
}

#[test]
fn old_versions_are_accepted_or_refused_by_name() {
    let version = "kubescheduler.config.k8s.io/v1beta3";
    let line = json!({
        "name": "old",
        "yaml": format!("apiVersion: {version}\nkind: KubeSchedulerConfiguration\n"),
        "error": format!("no kind \"KubeSchedulerConfiguration\" is registered for version {version:?}"),
    });
    assert_eq!(shown(&run_lines("old", std::slice::from_ref(&line), &[])), "");
    let mut unnamed = line;
    unnamed["yaml"] = json!("apiVersion: v1\nkind: List\n");
    expect![[r#"
          error
            expected: accepted, or refused with the version v1beta3 named
            actual:   apiVersion: found "v1", allowed: "kubescheduler.config.k8s.io/v1"
                      kind: found "List", allowed: "KubeSchedulerConfiguration"
    "#]]
    .assert_eq(&shown(&run_lines("old-unnamed", &[unnamed], &[])));
}

#[test]
fn report_shows_the_first_failures_and_counts_all() {
    let mut wrong = one_feasible();
    wrong["expect"]["totals"]["n1"] = json!(1);
    let lines = [wrong.clone(), one_feasible(), wrong];
    let report = run_lines("first", &lines, &[]);
    let text = report.render(Show::First(1)).to_string();
    let text = text.replace(env!("CARGO_TARGET_TMPDIR"), "DIR");
    expect![[r#"
        family  passed/failed
        first        1/2

        one-feasible (DIR/first.jsonl:1)
          totals n1: expected 1, actual 100

        1 more failures are not shown

        1 passed, 2 failed
    "#]]
    .assert_eq(&text);
    let json = serde_json::to_string_pretty(&report).expect("a report is JSON");
    expect![[r#"
        {
          "families": [
            {
              "name": "first",
              "passed": 1,
              "failed": 2
            }
          ],
          "failures": [
            {
              "scenario": "one-feasible",
              "family": "first",
              "file": "DIR/first.jsonl",
              "line": 1,
              "cause": {
                "differs": [
                  {
                    "field": "totals",
                    "at": "n1",
                    "expected": "1",
                    "actual": "100"
                  }
                ]
              }
            },
            {
              "scenario": "one-feasible",
              "family": "first",
              "file": "DIR/first.jsonl",
              "line": 3,
              "cause": {
                "differs": [
                  {
                    "field": "totals",
                    "at": "n1",
                    "expected": "1",
                    "actual": "100"
                  }
                ]
              }
            }
          ],
          "ignoredObjects": {},
          "notices": {}
        }"#]]
    .assert_eq(&json.replace(env!("CARGO_TARGET_TMPDIR"), "DIR"));
}

#[test]
fn results_are_in_the_files_order_for_any_number_of_threads() {
    let lines: Vec<Value> = (0..40)
        .map(|i| {
            let mut scenario = one_feasible();
            scenario["name"] = json!(format!("s-{i:02}"));
            scenario["expect"]["totals"]["n1"] = json!(i);
            scenario
        })
        .collect();
    let text: Vec<String> = lines.iter().map(ToString::to_string).collect();
    let path = file("order", text.join("\n"));
    let rendered = |jobs: usize| {
        let options = Options { jobs: jobs.try_into().ok(), ..Options::default() };
        let report = run(&[path.clone(), path.clone()], &options).expect("the file is good");
        assert_eq!(report.failures[41].scenario, "s-01");
        report.render(Show::All).to_string()
    };
    assert_eq!(rendered(1), rendered(7));
}

#[test]
fn gzip_is_known_by_its_bytes() {
    use std::io::Write;
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(one_feasible().to_string().as_bytes()).expect("memory takes it");
    let bytes = gzip.finish().expect("memory takes it");
    let report = run(&[file("gzip", &bytes)], &Options::default()).expect("the file is good");
    assert_eq!(report.passed(), 1);

    let cut = run(&[file("cut", &bytes[..40])], &Options::default());
    assert!(matches!(cut, Err(RunError::Read(_))), "{cut:?}");
}

#[test]
fn files_that_are_missing_or_empty_are_an_error() {
    let missing = run(&["no/such/file".into()], &Options::default()).expect_err("no such file");
    assert_eq!(missing.to_string(), "no/such/file: cannot be read");
    let path = file("empty", "\n \n");
    let empty = run(std::slice::from_ref(&path), &Options::default()).expect_err("no line");
    assert_eq!(empty.to_string(), format!("{}: holds no line", path.display()));
    assert!(matches!(run(&[], &Options::default()), Err(RunError::NoFiles)));
}

#[test]
fn fields_are_known_by_their_names_in_the_corpus() {
    for field in Field::ALL {
        assert_eq!(field.name().parse(), Ok(field));
    }
    let unknown = "victims".parse::<Field>();
    assert_eq!(unknown, Err(UnknownField("victims".to_owned())));
    assert_eq!(
        unknown.map_err(|error| error.to_string()),
        Err("unknown field \"victims\", allowed: error, feasible, rejected, rejectedOthers, \
             scores, totals, message, fullMessage, unschedulablePlugins, preemption"
            .to_owned())
    );
}

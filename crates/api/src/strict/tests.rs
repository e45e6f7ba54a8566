use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::NodeAffinity;
use serde::Deserialize;
use serde_json::json;

use super::*;
use crate::duration::GoDuration;

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Outer {
    count: i32,
    ratio: f32,
    on: bool,
    name: Option<String>,
    wait: Option<GoDuration>,
    mode: Mode,
    inner: Vec<Inner>,
    labels: BTreeMap<String, String>,
    raw: Option<Value>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Inner {
    id: u8,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
enum Mode {
    #[default]
    #[serde(alias = "")]
    Slow,
    Fast,
}

fn problems_of<T: DeserializeOwned>(document: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    let decoded: Option<T> = decode(document, &"doc".into(), &mut problems);
    assert!(decoded.is_some(), "{problems:?}");
    problems.iter().map(ToString::to_string).collect()
}

#[track_caller]
fn check(document: &Value, expected: &[&str]) {
    assert_eq!(problems_of::<Outer>(document), expected);
}

#[test]
fn decodes_what_fits() {
    let document = json!({"count": 3, "ratio": 1, "on": true, "name": "n", "wait": "1m30s",
        "mode": "Fast", "inner": [{"id": 7}], "labels": {"any": "key"}, "raw": {"x": [1]}});
    let decoded: Outer =
        decode(&document, &FieldPath::root(), &mut Vec::new()).expect("nothing is wrong");
    assert_eq!(
        decoded,
        Outer {
            count: 3,
            ratio: 1.0,
            on: true,
            name: Some("n".to_owned()),
            wait: Some(GoDuration::from_secs(90)),
            mode: Mode::Fast,
            inner: vec![Inner { id: 7 }],
            labels: BTreeMap::from([("any".to_owned(), "key".to_owned())]),
            raw: Some(json!({"x": [1]})),
        }
    );
}

#[test]
fn null_means_not_set() {
    let document = json!({"count": null, "on": null, "name": null, "wait": null, "mode": null,
        "inner": [null], "labels": null, "raw": null});
    let decoded: Option<Outer> = decode(&document, &FieldPath::root(), &mut Vec::new());
    assert_eq!(decoded, Some(Outer { inner: vec![Inner::default()], ..Outer::default() }));
}

#[test]
fn reports_every_problem_with_its_path() {
    let document = json!({"count": "3", "ratio": [], "on": "yes", "name": 5, "wait": "soon",
        "mode": "Warp", "inner": [{"id": 1}, {"id": 256, "idd": 1}, 4], "Labels": {},
        "labels": {"a": 1}});
    let mut found = problems_of::<Outer>(&document);
    found.sort();
    assert_eq!(
        found,
        [
            "doc.Labels: unknown field, allowed: count, ratio, on, name, wait, mode, inner, \
             labels, raw",
            "doc.count: found \"3\", allowed: a whole number from -2147483648 to 2147483647",
            "doc.inner[1].id: found 256, allowed: a whole number from 0 to 255",
            "doc.inner[1].idd: unknown field, allowed: id",
            "doc.inner[2]: found 4, allowed: an object",
            "doc.labels.a: found 1, allowed: a string",
            "doc.mode: found \"Warp\", allowed: Slow, Fast",
            "doc.name: found 5, allowed: a string",
            "doc.on: found \"yes\", allowed: true or false",
            "doc.ratio: found [], allowed: a number",
            "doc.wait: found \"soon\", allowed: a duration such as \"1m30s\"",
        ]
    );
}

#[test]
fn numbers_must_fit_their_type() {
    check(&json!({"count": 1e1}), &[]);
    check(
        &json!({"ratio": 1e40}),
        &["doc.ratio: found 1e+40, allowed: a number of single precision"],
    );
    check(
        &json!({"count": 1.5}),
        &["doc.count: found 1.5, allowed: a whole number from -2147483648 to 2147483647"],
    );
    check(
        &json!({"count": 1e99}),
        &["doc.count: found 1e+99, allowed: a whole number from -2147483648 to 2147483647"],
    );
}

#[test]
fn wrong_kind_is_named_before_wrong_content() {
    check(&json!({"wait": 15}), &["doc.wait: found 15, allowed: a string"]);
}

#[test]
fn long_values_are_cut() {
    let found = problems_of::<Outer>(&json!({"count": "é".repeat(1000)}));
    assert!(found[0].len() < 250, "{}", found[0].len());
}

#[test]
fn wrong_values_count_as_not_set() {
    let document = json!({"count": "3", "name": "n", "mode": "Warp"});
    let decoded: Option<Outer> = decode(&document, &FieldPath::root(), &mut Vec::new());
    assert_eq!(decoded, Some(Outer { name: Some("n".to_owned()), ..Outer::default() }));
}

#[test]
fn nothing_can_be_made_of_a_list_of_bad_variants() {
    let mut problems = Vec::new();
    let decoded: Option<Vec<Mode>> = decode(&json!(["Warp"]), &"doc".into(), &mut problems);
    assert_eq!(decoded, None);
    assert_eq!(problems, [Problem::invalid(&"doc[0]".into(), "\"Warp\"", "Slow, Fast")]);
}

#[test]
fn kubernetes_types_are_strict_too() {
    let affinity = json!({"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpression": [], "matchFields": null}]}});
    assert_eq!(
        problems_of::<NodeAffinity>(&affinity),
        ["doc.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]\
          .matchExpression: unknown field, allowed: matchExpressions, matchFields"]
    );
}

#[test]
fn consequences_are_left_out() {
    let problem = |path: &str| Problem::new(&path.into(), "x");
    let mut problems = vec![problem("a[0]"), problem("b.c")];
    let more = ["a[0]", "a[0].x", "a[0][1]", "a[01]", "a[1].x", "b", "b.cd", "b.c.d", "c"];
    append_independent(&mut problems, more.map(problem).into());
    let paths: Vec<&str> = problems.iter().map(|p| p.path.as_str()).collect();
    assert_eq!(paths, ["a[0]", "b.c", "a[01]", "a[1].x", "b", "b.cd", "c"]);
}

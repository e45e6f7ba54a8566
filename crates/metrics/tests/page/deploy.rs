//! Dashboard and alerts use metrics that exist, with labels that exist.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use steersman_metrics::{Definition, Options, SchedulerMetrics};

fn monitoring() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/monitoring")
}

fn read(file: &str) -> String {
    fs::read_to_string(monitoring().join(file)).expect("a file of deploy/monitoring")
}

/// Every string of a document that stands under one of `keys`.
fn strings(value: &Value, keys: &[&str], found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                match value {
                    Value::String(text) if keys.contains(&key.as_str()) => found.push(text.clone()),
                    _ => strings(value, keys, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| strings(item, keys, found)),
        _ => {}
    }
}

/// The metrics of an expression, with the labels that select their series.
fn metrics_of(expression: &str) -> Vec<(String, Vec<String>)> {
    let prefixes = ["scheduler_", "steersman_", "rest_client_", "leader_election_", "process_"];
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let mut found = Vec::new();
    let mut rest = expression;
    while let Some(start) = rest.find(is_word) {
        rest = &rest[start..];
        let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        if prefixes.iter().any(|prefix| word.starts_with(prefix)) {
            let selector = after.strip_prefix('{').and_then(|s| s.split_once('}'));
            let selector = selector.map_or("", |(selector, _)| selector);
            let label =
                |part: &str| part.split(['=', '!', '~']).next().unwrap_or("").trim().to_owned();
            let labels = selector.split(',').map(label).filter(|label| !label.is_empty());
            found.push((word.to_owned(), labels.collect()));
        }
        rest = after;
    }
    found
}

#[track_caller]
fn check(what: &str, expressions: &[String]) {
    let metrics = SchedulerMetrics::new(Options::default());
    let known: BTreeMap<&str, &Definition> =
        metrics.definitions().iter().map(|definition| (definition.name, definition)).collect();
    let from_outside: BTreeSet<&str> = ["job", "instance", "namespace", "pod", "le"].into();
    let mut n = 0;
    for expression in expressions {
        for (name, labels) in metrics_of(expression) {
            n += 1;
            let parts = ["_bucket", "_count", "_sum"];
            let family = parts.iter().find_map(|part| name.strip_suffix(part)).unwrap_or(&name);
            let definition = known.get(family).or_else(|| known.get(name.as_str()));
            let definition = definition.unwrap_or_else(|| panic!("{what}: no metric {name}"));
            assert_eq!(definition.kind == "histogram", family != name, "{what}: {expression}");
            for label in &labels {
                let exists =
                    definition.labels.contains(&label.as_str()) || from_outside.contains(&**label);
                assert!(exists, "{what}: {name} has no label {label}");
            }
        }
    }
    assert!(n >= 10, "{what}: only {n} metrics were found");
}

#[test]
fn the_dashboard_uses_what_exists() {
    let dashboard: Value = serde_json::from_str(&read("dashboard.json")).expect("it is JSON");
    let mut expressions = Vec::new();
    strings(&dashboard, &["expr", "query", "definition"], &mut expressions);
    check("dashboard.json", &expressions);
}

#[test]
fn the_alerts_use_what_exists() {
    let rules: Value = serde_saphyr::from_str(&read("alerts.yaml")).expect("it is YAML");
    let mut expressions = Vec::new();
    strings(&rules, &["expr"], &mut expressions);
    check("alerts.yaml", &expressions);
}

/// What `promtool test rules` then finds out (`testdata/e2e/prometheus.e2e`).
#[test]
fn each_alert_has_a_case_that_fires_and_one_that_does_not() {
    let rules: Value = serde_saphyr::from_str(&read("alerts.yaml")).expect("it is YAML");
    let tests: Value = serde_saphyr::from_str(&read("alerts_test.yaml")).expect("it is YAML");
    let mut alerts = Vec::new();
    strings(&rules, &["alert"], &mut alerts);
    assert!(alerts.len() >= 10, "only {} alerts were found", alerts.len());
    let mut expected: BTreeMap<(String, bool), usize> = BTreeMap::new();
    for test in tests["tests"].as_array().expect("a list of tests") {
        assert!(test["interval"].is_string(), "{}: all samples are of one moment", test["name"]);
        for case in test["promql_expr_test"].as_array().expect("a list of cases") {
            let expression = case["expr"].as_str().expect("an expression");
            let named = expression.strip_prefix("ALERTS{alertname=\"");
            let alert = named.and_then(|rest| rest.strip_suffix("\", alertstate=\"firing\"}"));
            let alert = alert.unwrap_or_else(|| panic!("{expression} asks for no alert"));
            let fires = !case["exp_samples"].as_array().expect("a list of samples").is_empty();
            *expected.entry((alert.to_owned(), fires)).or_default() += 1;
        }
    }
    for alert in &alerts {
        for fires in [true, false] {
            assert!(expected.contains_key(&(alert.clone(), fires)), "{alert}, fires: {fires}");
        }
    }
    let known = |(alert, _): &(String, bool)| alerts.contains(alert);
    assert!(expected.keys().all(known), "cases of other alerts: {expected:?}");
}

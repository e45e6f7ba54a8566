//! The two forms of an event.

use serde_json::{Map, Value};

/// Names that differ: in `events.k8s.io`, and in the core group.
const RENAMED: [(&str, &str); 6] = [
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("reportingController", "reportingComponent"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
];
const COUNT: (&str, &str) = ("deprecatedCount", "count");

/// An event of `events.k8s.io` as one of the core group.
pub(super) fn to_core(event: Value) -> Value {
    rewrite(event, "v1", |name| {
        let mut pairs = RENAMED.iter().chain([&COUNT]);
        pairs.find(|(newer, _)| *newer == name).map(|(_, core)| *core)
    })
}

/// An event of the core group as one of `events.k8s.io`.
pub(super) fn from_core(event: Value) -> Value {
    rewrite(event, "events.k8s.io/v1", |name| {
        let mut pairs = RENAMED.iter().chain([&COUNT]);
        pairs.find(|(_, core)| *core == name).map(|(newer, _)| *newer)
    })
}

fn rewrite(event: Value, version: &str, renamed: impl Fn(&str) -> Option<&'static str>) -> Value {
    let Value::Object(map) = event else { return event };
    let rewritten: Map<String, Value> = map
        .into_iter()
        .map(|(name, value)| match renamed(&name) {
            Some(other) => (other.to_owned(), value),
            None if name == "apiVersion" => (name, version.into()),
            None => (name, value),
        })
        .collect();
    Value::Object(rewritten)
}

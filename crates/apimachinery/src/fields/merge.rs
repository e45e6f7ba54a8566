//! A configuration merged into an object.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::compare::{Granularity, granularity};
use super::path;
use crate::schema::At;

/// The live value with the configuration's in it. Of values that are looked at
/// as a whole, the configuration's counts.
pub(super) fn merge(at: At<'_>, live: &Value, config: &Value) -> Value {
    match (granularity(at, config), live, config) {
        (Granularity::Fields, Value::Object(live), Value::Object(config)) => {
            Value::Object(merge_fields(at, live, config))
        }
        (Granularity::Entries, Value::Array(live), Value::Array(config)) => {
            match merge_entries(at, live, config) {
                Some(merged) => Value::Array(merged),
                None => Value::Array(config.clone()),
            }
        }
        // Null says nothing about the entries of what can have some.
        (Granularity::Fields | Granularity::Entries, live, Value::Null) => live.clone(),
        _ => config.clone(),
    }
}

fn merge_fields(
    at: At<'_>,
    live: &Map<String, Value>,
    config: &Map<String, Value>,
) -> Map<String, Value> {
    let mut merged = live.clone();
    for (name, config) in config {
        let value = match (live.get(name), at.field(name)) {
            (Some(live), Some(at)) => merge(at, live, config),
            _ => config.clone(),
        };
        merged.insert(name.clone(), value);
    }
    merged
}

/// Entries that both have come in the configuration's order. Entries that only
/// the object has keep their place among them.
fn merge_entries(at: At<'_>, live: &[Value], config: &[Value]) -> Option<Vec<Value>> {
    let item = at.item()?;
    let steps = |list: &[Value]| -> Option<Vec<Box<str>>> {
        list.iter().map(|entry| path::entry(at, entry).ok()).collect()
    };
    let (live_steps, config_steps) = (steps(live)?, steps(config)?);
    let listed: BTreeSet<&Box<str>> = config_steps.iter().collect();
    let mut by_step: BTreeMap<&str, Option<&Value>> = BTreeMap::new();
    for (step, entry) in live_steps.iter().zip(live) {
        // Of several entries with one step, none is the one to merge with.
        by_step.entry(step).and_modify(|known| *known = None).or_insert(Some(entry));
    }
    let combine = |step: &str, config: &Value| match by_step.get(step) {
        Some(Some(live)) => merge(item, live, config),
        _ => config.clone(),
    };
    let mut rest = config_steps.iter().zip(config).peekable();
    let mut shared = config_steps.iter().filter(|step| by_step.contains_key(step.as_ref()));
    let mut next_shared = shared.next();
    let mut merged = Vec::new();
    for (step, live) in live_steps.iter().zip(live) {
        if !listed.contains(step) {
            merged.push(live.clone());
        } else if next_shared == Some(step) {
            for (config_step, config) in rest.by_ref() {
                merged.push(combine(config_step, config));
                if config_step == step {
                    break;
                }
            }
            next_shared = shared.next();
        }
    }
    merged.extend(rest.map(|(step, config)| combine(step, config)));
    Some(merged)
}

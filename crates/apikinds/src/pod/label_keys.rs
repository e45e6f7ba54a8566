//! `matchLabelKeys` and `mismatchLabelKeys`: at creation the pod's own values of
//! these labels become part of the selectors.
//!
//! Source: KEP-3243 (topology spread), KEP-3633 (affinity to pods).

use serde_json::{Map, Value, json};

use crate::fields::{items_mut, object_at};

/// Merges the label keys of every selector of a new pod.
pub(super) fn merge(pod: &mut Value) {
    let labels = pod.pointer("/metadata/labels").and_then(Value::as_object).cloned();
    let labels = labels.unwrap_or_default();
    let Some(spec) = object_at(pod, "/spec") else { return };
    for constraint in items_mut(spec, "/topologySpreadConstraints") {
        add(constraint, "matchLabelKeys", "In", &labels);
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        let required = format!("/affinity/{kind}/requiredDuringSchedulingIgnoredDuringExecution");
        for term in items_mut(spec, &required) {
            add(term, "matchLabelKeys", "In", &labels);
            add(term, "mismatchLabelKeys", "NotIn", &labels);
        }
        let preferred = format!("/affinity/{kind}/preferredDuringSchedulingIgnoredDuringExecution");
        for weighted in items_mut(spec, &preferred) {
            if let Some(term) = object_at(weighted, "/podAffinityTerm") {
                add(term, "matchLabelKeys", "In", &labels);
                add(term, "mismatchLabelKeys", "NotIn", &labels);
            }
        }
    }
}

fn add(of: &mut Value, keys: &str, operator: &str, labels: &Map<String, Value>) {
    let keys = of.get(keys).and_then(Value::as_array).cloned().unwrap_or_default();
    let made: Vec<Value> = keys
        .iter()
        .filter_map(Value::as_str)
        .filter_map(|key| Some(made(key, operator, labels.get(key)?)))
        .collect();
    // Without a selector nothing is selected, whatever is added to it.
    let Some(selector) = object_at(of, "/labelSelector") else { return };
    if made.is_empty() {
        return;
    }
    if !selector.get("matchExpressions").is_some_and(Value::is_array) {
        selector["matchExpressions"] = json!([]);
    }
    let Some(requirements) = selector["matchExpressions"].as_array_mut() else { return };
    for requirement in made {
        // Objects that were saved and loaded again have been through this.
        if !requirements.contains(&requirement) {
            requirements.push(requirement);
        }
    }
}

fn made(key: &str, operator: &str, value: &Value) -> Value {
    json!({"key": key, "operator": operator, "values": [value]})
}

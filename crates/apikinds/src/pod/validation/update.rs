//! What may change of a pod once it exists.
//!
//! Sources: the documentation of pods ("Pod update and replacement"), KEP-3521
//! and KEP-3838 (pods with scheduling gates).

use serde_json::Value;
use steersman_apimachinery::error::FieldError;

use crate::fields::{at, child, entries, field, items, number, same, set};

/// What the API says may change.
const MAY_CHANGE: &str = "pod updates may not change fields other than \
    `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
    `spec.tolerations` (only additions to existing tolerations),\
    `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
const ADD_ONLY: &str = "only additions are allowed (no mutations or deletions)";
const TERMS: &str =
    "/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";

/// Checks a change of a pod's spec.
pub(crate) fn check(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    for list in ["containers", "initContainers"] {
        let pointer = format!("/{list}");
        if items(new, &pointer).len() != items(old, &pointer).len() {
            let why = "pod updates may not add or remove containers";
            errors.push(FieldError::forbidden(format!("spec.{list}"), why));
            return;
        }
    }
    check_deadline(new, old, errors);
    check_tolerations(new, old, errors);
    check_gates(new, old, errors);
    // What is left must be as it was.
    let mut rest = new.clone();
    take_over(&mut rest, old, "activeDeadlineSeconds");
    take_over(&mut rest, old, "tolerations");
    take_over(&mut rest, old, "schedulingGates");
    if number(old, "/terminationGracePeriodSeconds").is_some_and(|seconds| seconds < 0)
        && number(new, "/terminationGracePeriodSeconds") == Some(1)
    {
        take_over(&mut rest, old, "terminationGracePeriodSeconds");
    }
    for list in ["containers", "initContainers"] {
        for i in 0..items(new, &format!("/{list}")).len() {
            let image = old.pointer(&format!("/{list}/{i}/image")).cloned();
            if let Some(container) = rest.pointer_mut(&format!("/{list}/{i}")) {
                set(container, "image", image.unwrap_or_default());
            }
        }
    }
    if !items(old, "/schedulingGates").is_empty() {
        check_gated(new, old, errors);
        take_over(&mut rest, old, "nodeSelector");
        let affinity = old.get("affinity").and_then(|affinity| affinity.get("nodeAffinity"));
        if let Some(rest) = child(&mut rest, "affinity") {
            set(rest, "nodeAffinity", affinity.cloned().unwrap_or_default());
        }
    }
    let mut changed = Vec::new();
    differences(Some(&rest), Some(old), "spec", &mut changed);
    if !changed.is_empty() {
        let why = format!("{MAY_CHANGE}\n{}", changed.join("\n"));
        errors.push(FieldError::forbidden("spec", &why));
    }
}

fn take_over(new: &mut Value, old: &Value, name: &str) {
    set(new, name, old.get(name).cloned().unwrap_or_default());
}

fn check_deadline(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    const FIELD: &str = "spec.activeDeadlineSeconds";
    let (before, after) =
        (number(old, "/activeDeadlineSeconds"), number(new, "/activeDeadlineSeconds"));
    match (before, after) {
        (Some(before), Some(after)) if after > before => {
            let why = "must be less than or equal to previous value";
            errors.push(FieldError::invalid(FIELD, after, why));
        }
        (Some(_), None) => {
            let why = "must not update from a positive integer to nil value";
            errors.push(FieldError::invalid(FIELD, Value::Null, why));
        }
        _ => {}
    }
}

/// Tolerations may be added, and those that are there may last longer or
/// shorter.
fn check_tolerations(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    let without_seconds = |toleration: &Value| {
        let mut toleration = toleration.clone();
        set(&mut toleration, "tolerationSeconds", Value::Null);
        toleration
    };
    let kept = |old: &Value| {
        let old = without_seconds(old);
        let mut new = items(new, "/tolerations").iter().map(without_seconds);
        new.any(|new| same(Some(&new), Some(&old)))
    };
    if !items(old, "/tolerations").iter().all(kept) {
        let why = "existing toleration can not be modified except its tolerationSeconds";
        errors.push(FieldError::forbidden("spec.tolerations", why));
    }
}

fn check_gates(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    let had =
        |name: &str| items(old, "/schedulingGates").iter().any(|gate| field(gate, "name") == name);
    for (i, gate) in items(new, "/schedulingGates").iter().enumerate() {
        let name = field(gate, "name");
        if !had(name) {
            let why = format!("only deletion is allowed, but found new scheduling gate '{name}'");
            errors.push(FieldError::forbidden(format!("spec.schedulingGates[{i}].name"), &why));
        }
    }
}

/// While gates hold a pod back, the nodes it may run on may become fewer.
fn check_gated(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    let selector = at(new, "/nodeSelector");
    let keeps = |(key, value): (&String, &Value)| {
        selector.and_then(|selector| selector.get(key)) == Some(value)
    };
    if !entries(old, "/nodeSelector").all(keeps) {
        let why = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
        let found = selector.cloned().unwrap_or_default();
        errors.push(FieldError::invalid("spec.nodeSelector", found, why));
    }
    let (before, after) = (items(old, TERMS), items(new, TERMS));
    if before.is_empty() {
        return;
    }
    let path = format!("spec{}", TERMS.replace('/', "."));
    if before.len() != after.len() {
        let why = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        errors.push(FieldError::invalid(path, Value::from(after.to_vec()), why));
        return;
    }
    for (i, (before, after)) in before.iter().zip(after).enumerate() {
        // A term without requirements matches no node; adding to it would make
        // it match some.
        let was_empty = same(Some(before), None);
        let grows = |list: &str| {
            let (before, after) = (items(before, list), items(after, list));
            after.len() >= before.len() && before.iter().zip(after).all(|(b, a)| b == a)
        };
        let fine = if was_empty {
            same(Some(after), None)
        } else {
            grows("/matchExpressions") && grows("/matchFields")
        };
        if !fine {
            errors.push(FieldError::invalid(format!("{path}[{i}]"), after.clone(), ADD_ONLY));
        }
    }
}

/// One line for each value that differs, the old one and the new one.
fn differences(new: Option<&Value>, old: Option<&Value>, path: &str, lines: &mut Vec<String>) {
    if same(new, old) {
        return;
    }
    match (new, old) {
        (Some(Value::Object(new)), Some(Value::Object(old))) => {
            let mut keys: Vec<&String> = new.keys().chain(old.keys()).collect();
            keys.sort();
            keys.dedup();
            for key in keys {
                differences(new.get(key), old.get(key), &format!("{path}.{key}"), lines);
            }
        }
        (Some(Value::Array(new)), Some(Value::Array(old))) => {
            for i in 0..new.len().max(old.len()) {
                differences(new.get(i), old.get(i), &format!("{path}[{i}]"), lines);
            }
        }
        (new, old) => {
            let shown =
                |value: Option<&Value>| value.map_or_else(|| "unset".to_owned(), Value::to_string);
            lines.push(format!("  {path}: was {}, is {}", shown(old), shown(new)));
        }
    }
}

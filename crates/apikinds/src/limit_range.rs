//! LimitRange objects: what they give to pods that ask for nothing, and what
//! they refuse.
//!
//! Source: the documentation of limit ranges.

use std::collections::BTreeMap;

use serde_json::Value;
use steersman_api::quantity::Quantity;
use steersman_apimachinery::error::ApiError;
use steersman_apimachinery::rules::Request;

use crate::fields::{child, default, entries, field, items, items_mut, name, namespace, set};
use crate::simple::Simple;

/// The rules of `limitranges`.
pub(crate) static LIMIT_RANGE: Simple =
    Simple { created_by_update: true, default: defaults, ..Simple::CREATED_AT };

const ANNOTATION: &str = "kubernetes.io/limit-ranger";

/// A maximum is the default limit of containers, a default limit the default
/// request, and so is a minimum.
fn defaults(range: &mut Value) {
    for item in items_mut(range, "/spec/limits") {
        if field(item, "type") != "Container" {
            continue;
        }
        for (from, to) in
            [("max", "default"), ("default", "defaultRequest"), ("min", "defaultRequest")]
        {
            let amounts = item.get(from).and_then(Value::as_object).cloned().unwrap_or_default();
            if amounts.is_empty() {
                continue;
            }
            let Some(target) = child(item, to) else { continue };
            for (resource, amount) in amounts {
                default(target, &resource, amount);
            }
        }
    }
}

/// Gives a new pod the defaults of its namespace's limit ranges and refuses it
/// when it breaks them.
pub(crate) fn apply(pod: &mut Value, request: &Request<'_>) -> Result<(), ApiError> {
    let ranges = request.view.list("", "limitranges", Some(namespace(pod)));
    let limits: Vec<&Value> =
        ranges.iter().flat_map(|range| items(range, "/spec/limits")).collect();
    let mut set_by_default = Vec::new();
    for list in ["containers", "initContainers"] {
        for container in items_mut(pod, &format!("/spec/{list}")) {
            for item in limits.iter().filter(|item| field(item, "type") == "Container") {
                give_defaults(container, item, list == "initContainers", &mut set_by_default);
            }
        }
    }
    if !set_by_default.is_empty()
        && let Some(annotations) = pod.get_mut("metadata").and_then(|m| child(m, "annotations"))
    {
        let text = format!("LimitRanger plugin set: {}", set_by_default.join("; "));
        set(annotations, ANNOTATION, text);
    }
    let mut broken = Vec::new();
    for item in &limits {
        match field(item, "type") {
            "Container" => {
                for list in ["/spec/containers", "/spec/initContainers"] {
                    for container in items(pod, list) {
                        let requests = amounts(container, "/resources/requests");
                        let limits = amounts(container, "/resources/limits");
                        check(item, "Container", &requests, &limits, &mut broken);
                    }
                }
            }
            "Pod" => {
                let requests = total(pod, "/resources/requests");
                let limits = total(pod, "/resources/limits");
                check(item, "Pod", &requests, &limits, &mut broken);
            }
            _ => {}
        }
    }
    match &broken[..] {
        [] => Ok(()),
        [one] => Err(ApiError::forbidden(request.resource, name(pod), one)),
        several => {
            let all = format!("[{}]", several.join(", "));
            Err(ApiError::forbidden(request.resource, name(pod), &all))
        }
    }
}

/// Sets what a container does not state.
fn give_defaults(container: &mut Value, item: &Value, init: bool, notes: &mut Vec<String>) {
    let label =
        format!("{}container {}", if init { "init " } else { "" }, field(container, "name"));
    // A default request does not go above a limit that the author gave: the
    // limit is the request then, and stands there already.
    for (from, to, word) in
        [("/defaultRequest", "requests", "request"), ("/default", "limits", "limit")]
    {
        let mut given = Vec::new();
        for (resource, amount) in entries(item, from) {
            let stated = container.pointer(&format!("/resources/{to}"));
            if stated.and_then(|stated| stated.get(resource)).is_some() {
                continue;
            }
            let target = child(container, "resources").and_then(|resources| child(resources, to));
            if let Some(target) = target {
                set(target, resource, amount.clone());
                given.push(resource.as_str());
            }
        }
        if !given.is_empty() {
            notes.push(format!("{} {word} for {label}", given.join(", ")));
        }
    }
}

type Amounts = BTreeMap<String, Quantity>;

fn amounts(of: &Value, pointer: &str) -> Amounts {
    let parse = |amount: &Value| Quantity::parse(amount.as_str()?).ok();
    entries(of, pointer)
        .filter_map(|(resource, amount)| Some((resource.clone(), parse(amount)?)))
        .collect()
}

/// The sum over containers, or the most that an init container needs.
fn total(pod: &Value, pointer: &str) -> Amounts {
    let mut total = Amounts::new();
    for container in items(pod, "/spec/containers") {
        for (resource, amount) in amounts(container, pointer) {
            let sum = total.entry(resource).or_default();
            *sum = sum.plus(amount);
        }
    }
    for container in items(pod, "/spec/initContainers") {
        for (resource, amount) in amounts(container, pointer) {
            let most = total.entry(resource).or_default();
            *most = amount.max(*most);
        }
    }
    total
}

fn check(item: &Value, what: &str, requests: &Amounts, limits: &Amounts, broken: &mut Vec<String>) {
    let shown = |amount: &Value| amount.as_str().unwrap_or_default().to_owned();
    for (resource, bound) in entries(item, "/min") {
        let Ok(min) = Quantity::parse(&shown(bound)) else { continue };
        let rule = format!("minimum {resource} usage per {what} is {}", shown(bound));
        match requests.get(resource) {
            None => broken.push(format!("{rule}.  No request is specified")),
            Some(asked) if *asked < min => broken.push(format!("{rule}, but request is {asked}")),
            Some(_) => {}
        }
        if let Some(limit) = limits.get(resource).filter(|limit| **limit < min) {
            broken.push(format!("{rule}, but limit is {limit}"));
        }
    }
    for (resource, bound) in entries(item, "/max") {
        let Ok(max) = Quantity::parse(&shown(bound)) else { continue };
        let rule = format!("maximum {resource} usage per {what} is {}", shown(bound));
        match limits.get(resource) {
            None => broken.push(format!("{rule}.  No limit is specified")),
            Some(limit) if *limit > max => broken.push(format!("{rule}, but limit is {limit}")),
            Some(_) => {}
        }
        if let Some(asked) = requests.get(resource).filter(|asked| **asked > max) {
            broken.push(format!("{rule}, but request is {asked}"));
        }
    }
    for (resource, bound) in entries(item, "/maxLimitRequestRatio") {
        let Ok(most) = Quantity::parse(&shown(bound)) else { continue };
        let (Some(limit), Some(asked)) = (limits.get(resource), requests.get(resource)) else {
            continue;
        };
        let ratio = limit.milli_value() as f64 / asked.milli_value().max(1) as f64;
        if ratio > most.milli_value() as f64 / 1000.0 {
            broken.push(format!(
                "{resource} max limit to request ratio per {what} is {}, but provided ratio is \
                 {ratio:.6}",
                shown(bound)
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn bounds_of_containers_are_defaults_too() {
        let mut range = json!({"spec": {"limits": [
            {"type": "Container", "max": {"cpu": "2"}, "min": {"memory": "1Mi"}},
            {"type": "Pod", "max": {"cpu": "4"}},
        ]}});
        defaults(&mut range);
        let expected = json!({"spec": {"limits": [
            {
                "type": "Container", "max": {"cpu": "2"}, "min": {"memory": "1Mi"},
                "default": {"cpu": "2"}, "defaultRequest": {"cpu": "2", "memory": "1Mi"},
            },
            {"type": "Pod", "max": {"cpu": "4"}},
        ]}});
        assert_eq!(range, expected);
    }
}

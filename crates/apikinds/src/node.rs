//! `nodes` and `runtimeclasses`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use steersman_apimachinery::error::FieldError;
use steersman_apimachinery::rules::Column;

use crate::fields::{at, default, entries, field, flag, items, object_at, quantities, text};
use crate::simple::{Simple, age_cell, name_cell};
use crate::syntax::{dns_label, label_value, qualified_name, report};

const ROLE_PREFIX: &str = "node-role.kubernetes.io/";
const ROLE: &str = "kubernetes.io/role";

/// The rules of `nodes`. Their status is their own to state, on creation too.
pub(crate) static NODE: Simple = Simple {
    generation: false,
    default: |object| {
        quantities(object, "/status/capacity");
        quantities(object, "/status/allocatable");
        let Some(status) = object_at(object, "/status") else { return };
        if let Some(capacity) = at(status, "/capacity").cloned() {
            default(status, "allocatable", capacity);
        }
    },
    validate,
    selectable: &["spec.unschedulable"],
    select: |object, _| flag(object, "/spec/unschedulable").to_string(),
    columns: &[
        Column::name(),
        Column::text("Status", "Whether the node is ready and takes pods"),
        Column::text("Roles", "Roles, from the node's labels"),
        Column::text("Age", "Time since creation"),
        Column::text("Version", "Version of the kubelet"),
        Column::text("Internal-IP", "Address inside of the cluster").wide(),
        Column::text("External-IP", "Address outside of the cluster").wide(),
        Column::text("OS-Image", "Operating system").wide(),
        Column::text("Kernel-Version", "Version of the kernel").wide(),
        Column::text("Container-Runtime", "What runs containers, and its version").wide(),
    ],
    cells: |object, now| {
        let info = |name: &str| match text(object, &format!("/status/nodeInfo/{name}")) {
            "" => json!("<unknown>"),
            text => json!(text),
        };
        vec![
            name_cell(object),
            status(object).into(),
            roles(object).into(),
            age_cell(object, now),
            text(object, "/status/nodeInfo/kubeletVersion").into(),
            address(object, "InternalIP").into(),
            address(object, "ExternalIP").into(),
            info("osImage"),
            info("kernelVersion"),
            info("containerRuntimeVersion"),
        ]
    },
    ..Simple::NEW
};

/// The rules of `runtimeclasses`.
pub(crate) static RUNTIME_CLASS: Simple = Simple {
    versioned_update: true,
    validate: |new, old| {
        let mut errors = Vec::new();
        let handler = field(new, "handler");
        report(&mut errors, "handler", handler, dns_label(handler));
        if old.is_some_and(|old| field(old, "handler") != handler) {
            errors.push(FieldError::invalid("handler", handler, "field is immutable"));
        }
        errors
    },
    generation: false,
    columns: &[
        Column::name(),
        Column::text("Handler", "What runs containers of the class"),
        Column::text("Age", "Time since creation"),
    ],
    cells: |object, now| {
        vec![name_cell(object), field(object, "handler").into(), age_cell(object, now)]
    },
    ..Simple::NEW
};

fn validate(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut seen = BTreeSet::new();
    for (i, taint) in items(new, "/spec/taints").iter().enumerate() {
        let path = format!("spec.taints[{i}]");
        let (key, value, effect) =
            (field(taint, "key"), field(taint, "value"), field(taint, "effect"));
        report(&mut errors, &format!("{path}.key"), key, qualified_name(key));
        report(&mut errors, &format!("{path}.value"), value, label_value(value));
        match effect {
            "NoSchedule" | "PreferNoSchedule" | "NoExecute" => {}
            "" => errors.push(FieldError::required(format!("{path}.effect"), "")),
            other => errors.push(FieldError::not_supported(
                format!("{path}.effect"),
                other,
                &["NoSchedule", "PreferNoSchedule", "NoExecute"],
            )),
        }
        if !seen.insert((key, effect)) {
            let mut error = FieldError::duplicate(path, taint.clone());
            "taints must be unique by key and effect pair".clone_into(&mut error.detail);
            errors.push(error);
        }
    }
    for list in ["capacity", "allocatable"] {
        for (resource, amount) in entries(new, &format!("/status/{list}")) {
            let path = format!("status.{list}[{resource}]");
            check_amount(amount, &path, &mut errors);
        }
    }
    if let Some(old) = old {
        check_update(new, old, &mut errors);
    }
    errors
}

fn check_amount(amount: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let shown = amount.as_str().map_or_else(|| amount.to_string(), str::to_owned);
    let why = match steersman_api::quantity::Quantity::parse(&shown) {
        Ok(amount) if !amount.is_negative() => return,
        Ok(_) => "must be greater than or equal to 0",
        Err(_) => "must be a quantity",
    };
    errors.push(FieldError::invalid(path, amount.clone(), why));
}

/// The provider's name and the ranges of pods are set once.
fn check_update(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    let (before, after) = (text(old, "/spec/providerID"), text(new, "/spec/providerID"));
    if !before.is_empty() && before != after {
        let why = "node updates may not change providerID except from \"\" to valid";
        errors.push(FieldError::forbidden("spec.providerID", why));
    }
    let (before, after) = (items(old, "/spec/podCIDRs"), items(new, "/spec/podCIDRs"));
    if !before.is_empty() && before != after {
        let why = "node updates may not change podCIDR except from \"\" to valid";
        errors.push(FieldError::forbidden("spec.podCIDRs", why));
    }
}

fn status(node: &Value) -> String {
    let conditions: BTreeMap<&str, &str> = items(node, "/status/conditions")
        .iter()
        .map(|condition| (field(condition, "type"), field(condition, "status")))
        .collect();
    let mut status = match conditions.get("Ready") {
        Some(&"True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    }
    .to_owned();
    if flag(node, "/spec/unschedulable") {
        status.push_str(",SchedulingDisabled");
    }
    status
}

fn roles(node: &Value) -> String {
    let roles: BTreeSet<&str> = entries(node, "/metadata/labels")
        .filter_map(|(key, value)| match key.strip_prefix(ROLE_PREFIX) {
            Some(role) => Some(role),
            None if key == ROLE => value.as_str(),
            None => None,
        })
        .filter(|role| !role.is_empty())
        .collect();
    if roles.is_empty() {
        return "<none>".to_owned();
    }
    roles.into_iter().collect::<Vec<_>>().join(",")
}

fn address<'a>(node: &'a Value, kind: &str) -> &'a str {
    let mut addresses = items(node, "/status/addresses").iter();
    let found = addresses.find(|address| field(address, "type") == kind);
    found.map_or("<none>", |address| field(address, "address"))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use jiff::Timestamp;
    use steersman_apimachinery::rules::{Part, Rules};

    use super::*;

    #[test]
    fn what_a_node_has_it_may_give_away() {
        let mut node = json!({"status": {"capacity": {"cpu": 4}}});
        NODE.default(&mut node);
        assert_eq!(node["status"]["allocatable"], json!({"cpu": "4"}));
        node["status"]["capacity"] = json!({"cpu": "8"});
        NODE.default(&mut node);
        assert_eq!(node["status"]["allocatable"], json!({"cpu": "4"}));
    }

    #[test]
    fn taints_are_unique_and_have_an_effect() {
        let node = json!({"spec": {"taints": [
            {"key": "a", "effect": "NoSchedule"},
            {"key": "a", "effect": "NoExecute"},
            {"key": "a", "value": "x", "effect": "NoSchedule"},
            {"key": "b"},
            {"key": "c", "effect": "Never"},
        ]}});
        let errors = NODE.validate(&node, None, Part::Main);
        let lines: Vec<String> =
            errors.iter().map(|error| format!("{}: {}", error.field, error.body())).collect();
        expect![[r#"
            spec.taints[2]: Duplicate value: {"effect":"NoSchedule","key":"a","value":"x"}: taints must be unique by key and effect pair
            spec.taints[3].effect: Required value
            spec.taints[4].effect: Unsupported value: "Never": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute""#]]
        .assert_eq(&lines.join("\n"));
    }

    #[test]
    fn rows_tell_readiness_roles_and_addresses() {
        let now: Timestamp = "2026-01-01T01:00:00Z".parse().expect("a time");
        let node = json!({
            "metadata": {
                "name": "n1",
                "creationTimestamp": "2026-01-01T00:00:00Z",
                "labels": {"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "edge"},
            },
            "spec": {"unschedulable": true},
            "status": {
                "conditions": [{"type": "Ready", "status": "True"}],
                "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
                "nodeInfo": {"kubeletVersion": "v1.36.0", "osImage": "Linux"},
            },
        });
        expect![[r#"["n1","Ready,SchedulingDisabled","edge,worker","60m","v1.36.0","10.0.0.1","<none>","Linux","<unknown>","<unknown>"]"#]]
            .assert_eq(&Value::from(NODE.cells(&node, now)).to_string());
        expect![[r#"["n2","Unknown","<none>","<unknown>","","<none>","<none>","<unknown>","<unknown>","<unknown>"]"#]]
            .assert_eq(&Value::from(NODE.cells(&json!({"metadata": {"name": "n2"}}), now)).to_string());
    }
}

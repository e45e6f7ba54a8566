//! What is wrong with a pod, or with a pod template.
//!
//! Only what scheduling, or a user of scheduling, can see: sources of volumes,
//! security contexts and the like are taken as they come.

mod containers;
mod references;
mod scheduling;
mod update;

use serde_json::Value;
use steersman_apimachinery::error::FieldError;

use crate::fields::{at, entries, field, flag, items, number};
use crate::syntax::{dns_subdomain, qualified_name, report};

pub(crate) use scheduling::check_node_term;
pub(super) use update::check as check_update;

/// Checks a pod's spec that stands at `path`.
pub(crate) fn check_spec(spec: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    containers::check(spec, path, &mut errors);
    check_policies(spec, path, &mut errors);
    check_gates(spec, path, &mut errors);
    scheduling::check(spec, path, &mut errors);
    references::check(spec, path, &mut errors);
    for (resource, amount) in entries(spec, "/overhead") {
        let path = format!("{path}.overhead[{resource}]");
        containers::check_amount(resource, amount, &path, &mut errors);
    }
    errors
}

fn check_policies(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let choices: [(&str, &[&str]); 3] = [
        ("restartPolicy", &["Always", "OnFailure", "Never"]),
        ("dnsPolicy", &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"]),
        ("preemptionPolicy", &["PreemptLowerPriority", "Never"]),
    ];
    for (name, allowed) in choices {
        if let Some(found) = at(spec, &format!("/{name}"))
            && !found.as_str().is_some_and(|found| allowed.contains(&found))
        {
            errors.push(FieldError::not_supported(
                format!("{path}.{name}"),
                found.clone(),
                allowed,
            ));
        }
    }
    for name in ["serviceAccountName", "nodeName", "priorityClassName", "schedulerName"] {
        let found = field(spec, name);
        if !found.is_empty() {
            report(errors, &format!("{path}.{name}"), found, dns_subdomain(found));
        }
    }
    if let Some(seconds) = number(spec, "/activeDeadlineSeconds")
        && !(1..=i64::from(i32::MAX)).contains(&seconds)
    {
        let why = "must be between 1 and 2147483647, inclusive";
        errors.push(FieldError::invalid(format!("{path}.activeDeadlineSeconds"), seconds, why));
    }
}

fn check_gates(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let gates = items(spec, "/schedulingGates");
    for (i, gate) in gates.iter().enumerate() {
        let name = field(gate, "name");
        let path = format!("{path}.schedulingGates[{i}]");
        report(errors, &format!("{path}.name"), name, qualified_name(name));
        if gates[..i].iter().any(|other| field(other, "name") == name) {
            errors.push(FieldError::duplicate(path, name));
        }
    }
    if !gates.is_empty() && !field(spec, "nodeName").is_empty() {
        let why = "cannot be set until all schedulingGates have been cleared";
        errors.push(FieldError::forbidden(format!("{path}.nodeName"), why));
    }
}

/// Whether a pod has the host's network.
fn on_host_network(spec: &Value) -> bool {
    flag(spec, "/hostNetwork")
}

#[cfg(test)]
mod tests;

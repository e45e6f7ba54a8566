//! Where a pod wants to run: node selectors, affinity, tolerations, spreading.

use std::collections::BTreeSet;

use serde_json::Value;
use steersman_apimachinery::error::FieldError;

use crate::fields::{at, entries, field, items, number};
use crate::selectors;
use crate::syntax::{dns_label, label_value, qualified_name, report};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Checks all of it.
pub(super) fn check(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for (key, value) in entries(spec, "/nodeSelector") {
        let path = format!("{path}.nodeSelector");
        report(errors, &path, key, qualified_name(key));
        let value = value.as_str().unwrap_or_default();
        report(errors, &path, value, label_value(value));
    }
    if let Some(affinity) = at(spec, "/affinity") {
        let path = format!("{path}.affinity");
        if let Some(to_nodes) = at(affinity, "/nodeAffinity") {
            check_node_affinity(to_nodes, &format!("{path}.nodeAffinity"), errors);
        }
        for kind in ["podAffinity", "podAntiAffinity"] {
            if let Some(to_pods) = affinity.get(kind) {
                check_pod_affinity(to_pods, &format!("{path}.{kind}"), errors);
            }
        }
    }
    for (i, toleration) in items(spec, "/tolerations").iter().enumerate() {
        check_toleration(toleration, &format!("{path}.tolerations[{i}]"), errors);
    }
    check_spread(spec, path, errors);
}

fn check_node_affinity(affinity: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if let Some(selector) = at(affinity, &format!("/{REQUIRED}")) {
        let path = format!("{path}.{REQUIRED}.nodeSelectorTerms");
        let terms = items(selector, "/nodeSelectorTerms");
        if terms.is_empty() {
            errors.push(FieldError::required(&*path, "must have at least one node selector term"));
        }
        for (i, term) in terms.iter().enumerate() {
            check_node_term(term, &format!("{path}[{i}]"), errors);
        }
    }
    for (i, preference) in items(affinity, &format!("/{PREFERRED}")).iter().enumerate() {
        let path = format!("{path}.{PREFERRED}[{i}]");
        check_weight(preference, &path, errors);
        if let Some(term) = at(preference, "/preference") {
            check_node_term(term, &format!("{path}.preference"), errors);
        }
    }
}

fn check_weight(weighted: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let weight = number(weighted, "/weight").unwrap_or(0);
    if !(1..=100).contains(&weight) {
        let why = "must be in the range 1-100";
        errors.push(FieldError::invalid(format!("{path}.weight"), weight, why));
    }
}

/// Checks a term of a node selector; also of volumes and of resource slices.
pub(crate) fn check_node_term(term: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for (i, requirement) in items(term, "/matchExpressions").iter().enumerate() {
        let path = format!("{path}.matchExpressions[{i}]");
        let values = items(requirement, "/values");
        let wrong = match field(requirement, "operator") {
            "In" | "NotIn" if values.is_empty() => Some(FieldError::required(
                format!("{path}.values"),
                "must be specified when `operator` is 'In' or 'NotIn'",
            )),
            "Exists" | "DoesNotExist" if !values.is_empty() => Some(FieldError::forbidden(
                format!("{path}.values"),
                "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
            )),
            "Gt" | "Lt" if values.len() != 1 => Some(FieldError::required(
                format!("{path}.values"),
                "must be specified single value when `operator` is 'Lt' or 'Gt'",
            )),
            "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => None,
            other => Some(FieldError::invalid(
                format!("{path}.operator"),
                other,
                "not a valid selector operator",
            )),
        };
        errors.extend(wrong);
        let key = field(requirement, "key");
        report(errors, &format!("{path}.key"), key, qualified_name(key));
    }
    for (i, requirement) in items(term, "/matchFields").iter().enumerate() {
        let path = format!("{path}.matchFields[{i}]");
        match field(requirement, "operator") {
            "In" | "NotIn" if items(requirement, "/values").len() != 1 => {
                errors.push(FieldError::required(
                    format!("{path}.values"),
                    "must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
                ));
            }
            "In" | "NotIn" => {}
            other => errors.push(FieldError::invalid(
                format!("{path}.operator"),
                other,
                "not a valid selector operator",
            )),
        }
        let key = field(requirement, "key");
        if key != "metadata.name" {
            let why = "not a valid field selector key";
            errors.push(FieldError::invalid(format!("{path}.key"), key, why));
        }
    }
}

fn check_pod_affinity(affinity: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for (i, term) in items(affinity, &format!("/{REQUIRED}")).iter().enumerate() {
        check_pod_term(term, &format!("{path}.{REQUIRED}[{i}]"), errors);
    }
    for (i, weighted) in items(affinity, &format!("/{PREFERRED}")).iter().enumerate() {
        let path = format!("{path}.{PREFERRED}[{i}]");
        check_weight(weighted, &path, errors);
        if let Some(term) = at(weighted, "/podAffinityTerm") {
            check_pod_term(term, &format!("{path}.podAffinityTerm"), errors);
        }
    }
}

fn check_pod_term(term: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for name in ["labelSelector", "namespaceSelector"] {
        if let Some(selector) = at(term, &format!("/{name}")) {
            selectors::check(selector, &format!("{path}.{name}"), errors);
        }
    }
    for namespace in items(term, "/namespaces").iter().filter_map(Value::as_str) {
        report(errors, &format!("{path}.namespace"), namespace, dns_label(namespace));
    }
    check_label_keys(term, &["matchLabelKeys", "mismatchLabelKeys"], path, errors);
    check_topology_key(term, path, errors);
}

fn check_topology_key(of: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let path = format!("{path}.topologyKey");
    match field(of, "topologyKey") {
        "" => errors.push(FieldError::required(path, "can not be empty")),
        key => report(errors, &path, key, qualified_name(key)),
    }
}

/// Checks keys that become part of a selector. They are merged by the time of
/// this check, so a key that the author's selector names too is there twice.
fn check_label_keys(of: &Value, lists: &[&str], path: &str, errors: &mut Vec<FieldError>) {
    let selector = at(of, "/labelSelector");
    for list in lists {
        let keys = items(of, &format!("/{list}"));
        let path = format!("{path}.{list}");
        if !keys.is_empty() && selector.is_none() {
            let why = "must not be specified when labelSelector is not set";
            errors.push(FieldError::forbidden(&*path, why));
        }
        for (i, key) in keys.iter().filter_map(Value::as_str).enumerate() {
            let path = format!("{path}[{i}]");
            report(errors, &path, key, qualified_name(key));
            let named = selector.map_or(0, |selector| times_named(selector, key));
            if *list == "matchLabelKeys" && named > 1 {
                let why = "exists in both matchLabelKeys and labelSelector";
                errors.push(FieldError::invalid(&*path, key, why));
            }
            let other = items(of, "/mismatchLabelKeys");
            if *list == "matchLabelKeys" && other.iter().any(|other| other == key) {
                let why = "exists in both matchLabelKeys and mismatchLabelKeys";
                errors.push(FieldError::invalid(path, key, why));
            }
        }
    }
}

fn times_named(selector: &Value, key: &str) -> usize {
    let pairs = entries(selector, "/matchLabels").filter(|(name, _)| *name == key).count();
    let requirements = items(selector, "/matchExpressions").iter();
    pairs + requirements.filter(|requirement| field(requirement, "key") == key).count()
}

fn check_toleration(toleration: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let part = |name: &str| field(toleration, name);
    let (key, operator, value, effect) =
        (part("key"), part("operator"), part("value"), part("effect"));
    if !key.is_empty() {
        report(errors, &format!("{path}.key"), key, qualified_name(key));
    } else if operator != "Exists" {
        let why = "operator must be Exists when `key` is empty, which means \"match all values \
                   and all keys\"";
        errors.push(FieldError::invalid(format!("{path}.operator"), operator, why));
    }
    if number(toleration, "/tolerationSeconds").is_some() && effect != "NoExecute" {
        let why = "effect must be 'NoExecute' when `tolerationSeconds` is set";
        errors.push(FieldError::invalid(format!("{path}.effect"), effect, why));
    }
    let at_operator = format!("{path}.operator");
    match operator {
        "" | "Equal" => {
            let wrong = label_value(value);
            if !wrong.is_empty() {
                errors.push(FieldError::invalid(at_operator, value, &wrong.join(";")));
            }
        }
        "Exists" if !value.is_empty() => {
            let why = "value must be empty when `operator` is 'Exists'";
            errors.push(FieldError::invalid(at_operator, toleration.clone(), why));
        }
        "Exists" => {}
        other => {
            errors.push(FieldError::not_supported(at_operator, other, &["Equal", "Exists"]));
        }
    }
    if !matches!(effect, "" | "NoSchedule" | "PreferNoSchedule" | "NoExecute") {
        let allowed = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
        errors.push(FieldError::not_supported(format!("{path}.effect"), effect, &allowed));
    }
}

fn check_spread(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let mut seen = BTreeSet::new();
    for (i, constraint) in items(spec, "/topologySpreadConstraints").iter().enumerate() {
        let path = format!("{path}.topologySpreadConstraints[{i}]");
        let skew = number(constraint, "/maxSkew").unwrap_or(0);
        if skew <= 0 {
            let why = "must be greater than zero";
            errors.push(FieldError::invalid(format!("{path}.maxSkew"), skew, why));
        }
        check_topology_key(constraint, &path, errors);
        let action = field(constraint, "whenUnsatisfiable");
        if !matches!(action, "DoNotSchedule" | "ScheduleAnyway") {
            errors.push(FieldError::not_supported(
                format!("{path}.whenUnsatisfiable"),
                action,
                &["DoNotSchedule", "ScheduleAnyway"],
            ));
        }
        let what = format!("{{{}, {action}}}", field(constraint, "topologyKey"));
        if !seen.insert(what.clone()) {
            errors.push(FieldError::duplicate(
                format!("{path}.{{topologyKey, whenUnsatisfiable}}"),
                what,
            ));
        }
        check_min_domains(constraint, action, &path, errors);
        for name in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            let found = field(constraint, name);
            if !matches!(found, "" | "Honor" | "Ignore") {
                let path = format!("{path}.{name}");
                errors.push(FieldError::not_supported(path, found, &["Honor", "Ignore"]));
            }
        }
        check_label_keys(constraint, &["matchLabelKeys"], &path, errors);
        if let Some(selector) = at(constraint, "/labelSelector") {
            selectors::check(selector, &format!("{path}.labelSelector"), errors);
        }
    }
}

fn check_min_domains(constraint: &Value, action: &str, path: &str, errors: &mut Vec<FieldError>) {
    let Some(least) = number(constraint, "/minDomains") else { return };
    let path = format!("{path}.minDomains");
    if least <= 0 {
        errors.push(FieldError::invalid(&*path, least, "must be greater than zero"));
    }
    if action != "DoNotSchedule" {
        let why =
            format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
        errors.push(FieldError::invalid(path, least, &why));
    }
}

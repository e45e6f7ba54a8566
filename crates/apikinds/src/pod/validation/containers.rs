//! Containers: names, images, ports, resources.

use std::collections::BTreeSet;

use serde_json::Value;
use steersman_api::quantity::Quantity;
use steersman_apimachinery::error::FieldError;

use super::on_host_network;
use crate::fields::{at, entries, field, items, number};
use crate::syntax::{dns_label, port_name, port_number, qualified_name, report};

/// Resources that containers have without anybody declaring them.
const STANDARD: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

/// Checks the containers of a pod's spec, and the resources of the pod itself.
pub(super) fn check(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let mut names = BTreeSet::new();
    let mut host_ports = BTreeSet::new();
    if items(spec, "/containers").is_empty() {
        errors.push(FieldError::required(format!("{path}.containers"), ""));
    }
    for list in ["initContainers", "containers"] {
        for (i, container) in items(spec, &format!("/{list}")).iter().enumerate() {
            let path = format!("{path}.{list}[{i}]");
            check_container(container, list, &path, &mut names, errors);
            check_ports(container, on_host_network(spec), &path, errors);
            // Init containers run one after the other: they may share ports.
            if list == "containers" {
                check_host_ports(container, &path, &mut host_ports, errors);
            }
        }
    }
    if let Some(resources) = at(spec, "/resources") {
        check_resources(resources, &format!("{path}.resources"), errors);
    }
}

fn check_container<'a>(
    container: &'a Value,
    list: &str,
    path: &str,
    names: &mut BTreeSet<&'a str>,
    errors: &mut Vec<FieldError>,
) {
    let name = field(container, "name");
    let name_path = format!("{path}.name");
    if name.is_empty() {
        errors.push(FieldError::required(&*name_path, ""));
    } else {
        report(errors, &name_path, name, dns_label(name));
        if !names.insert(name) {
            errors.push(FieldError::duplicate(name_path, name));
        }
    }
    let image = field(container, "image");
    if image.is_empty() {
        errors.push(FieldError::required(format!("{path}.image"), ""));
    } else if image.trim() != image {
        let why = "must not have leading or trailing whitespace";
        errors.push(FieldError::invalid(format!("{path}.image"), image, why));
    }
    let choices: [(&str, &[&str]); 2] = [
        ("imagePullPolicy", &["Always", "IfNotPresent", "Never"]),
        ("terminationMessagePolicy", &["FallbackToLogsOnError", "File"]),
    ];
    for (name, allowed) in choices {
        let found = field(container, name);
        if !found.is_empty() && !allowed.contains(&found) {
            errors.push(FieldError::not_supported(format!("{path}.{name}"), found, allowed));
        }
    }
    let restarts = field(container, "restartPolicy");
    if list == "initContainers" && !matches!(restarts, "" | "Always" | "Never" | "OnFailure") {
        errors.push(FieldError::not_supported(
            format!("{path}.restartPolicy"),
            restarts,
            &["Always", "Never", "OnFailure"],
        ));
    }
    if let Some(resources) = at(container, "/resources") {
        check_resources(resources, &format!("{path}.resources"), errors);
    }
}

fn check_ports(container: &Value, host_network: bool, path: &str, errors: &mut Vec<FieldError>) {
    let mut names = BTreeSet::new();
    for (i, port) in items(container, "/ports").iter().enumerate() {
        let path = format!("{path}.ports[{i}]");
        let name = field(port, "name");
        if !name.is_empty() {
            report(errors, &format!("{path}.name"), name, port_name(name));
            if !names.insert(name) {
                errors.push(FieldError::duplicate(format!("{path}.name"), name));
            }
        }
        let number_of = |name: &str| number(port, &format!("/{name}")).unwrap_or(0);
        let (inner, outer) = (number_of("containerPort"), number_of("hostPort"));
        if inner == 0 {
            errors.push(FieldError::required(format!("{path}.containerPort"), ""));
        } else if let Some(why) = port_number(inner) {
            errors.push(FieldError::invalid(format!("{path}.containerPort"), inner, why));
        }
        if outer != 0
            && let Some(why) = port_number(outer)
        {
            errors.push(FieldError::invalid(format!("{path}.hostPort"), outer, why));
        }
        if host_network && outer != 0 && inner != outer {
            let why = "must match `hostPort` when `hostNetwork` is true";
            errors.push(FieldError::invalid(format!("{path}.containerPort"), inner, why));
        }
        let protocol = field(port, "protocol");
        if !matches!(protocol, "TCP" | "UDP" | "SCTP") {
            let path = format!("{path}.protocol");
            errors.push(FieldError::not_supported(path, protocol, &["SCTP", "TCP", "UDP"]));
        }
    }
}

fn check_host_ports(
    container: &Value,
    path: &str,
    taken: &mut BTreeSet<String>,
    errors: &mut Vec<FieldError>,
) {
    for (i, port) in items(container, "/ports").iter().enumerate() {
        let Some(number) = number(port, "/hostPort").filter(|number| *number != 0) else {
            continue;
        };
        let what = format!("{}/{}/{number}", field(port, "protocol"), field(port, "hostIP"));
        if !taken.insert(what.clone()) {
            errors.push(FieldError::duplicate(format!("{path}.ports[{i}].hostPort"), what));
        }
    }
}

fn check_resources(resources: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for (name, amount) in entries(resources, "/limits") {
        let path = format!("{path}.limits[{name}]");
        check_resource_name(name, &path, errors);
        check_amount(name, amount, &path, errors);
    }
    let mut huge_pages = entries(resources, "/limits").any(|(name, _)| is_huge_page(name));
    let limit_of = |name: &str| resources.pointer("/limits").and_then(|limits| limits.get(name));
    for (name, amount) in entries(resources, "/requests") {
        let at = format!("{path}.requests[{name}]");
        check_resource_name(name, &at, errors);
        check_amount(name, amount, &at, errors);
        huge_pages |= is_huge_page(name);
        let Some(limit) = limit_of(name).filter(|limit| !limit.is_null()) else {
            if !may_be_overcommitted(name) {
                errors.push(FieldError::required(
                    format!("{path}.limits"),
                    "Limit must be set for non overcommitable resources",
                ));
            }
            continue;
        };
        let (Some(asked), Some(most)) = (parse(amount), parse(limit)) else { continue };
        let shown = limit.as_str().map_or_else(|| limit.to_string(), str::to_owned);
        let at = format!("{path}.requests");
        if asked != most && !may_be_overcommitted(name) {
            let why = format!("must be equal to {name} limit of {shown}");
            errors.push(FieldError::invalid(at, amount.clone(), &why));
        } else if asked > most {
            let why = format!("must be less than or equal to {name} limit of {shown}");
            errors.push(FieldError::invalid(at, amount.clone(), &why));
        }
    }
    let has = |name: &str| {
        let requests = resources.pointer("/requests").and_then(|requests| requests.get(name));
        requests.is_some() || limit_of(name).is_some()
    };
    if huge_pages && !has("cpu") && !has("memory") {
        errors.push(FieldError::forbidden(path, "HugePages require cpu or memory"));
    }
}

/// Checks one amount of a resource.
pub(super) fn check_amount(
    resource: &str,
    amount: &Value,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    let Some(parsed) = parse(amount) else {
        errors.push(FieldError::invalid(path, amount.clone(), "must be a quantity"));
        return;
    };
    if parsed.is_negative() {
        let why = "must be greater than or equal to 0";
        errors.push(FieldError::invalid(path, amount.clone(), why));
    }
    let whole = !STANDARD.contains(&resource);
    if whole && parsed.milli_value() % 1000 != 0 {
        errors.push(FieldError::invalid(path, amount.clone(), "must be an integer"));
    }
}

fn check_resource_name(name: &str, path: &str, errors: &mut Vec<FieldError>) {
    let wrong = qualified_name(name);
    if !wrong.is_empty() {
        report(errors, path, name, wrong);
    } else if !name.contains('/') && !STANDARD.contains(&name) && !is_huge_page(name) {
        let why = "must be a standard resource for containers";
        errors.push(FieldError::invalid(path, name, why));
    } else if name.contains('/') && !is_native(name) && name.starts_with("requests.") {
        let why = "doesn't follow extended resource name standard";
        errors.push(FieldError::invalid(path, name, why));
    }
}

/// Whether the sum of limits may be more than there is.
fn may_be_overcommitted(name: &str) -> bool {
    is_native(name) && !is_huge_page(name)
}

fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

fn is_huge_page(name: &str) -> bool {
    name.starts_with("hugepages-")
}

/// Amounts are texts; plain numbers are taken too, as clients send them.
fn parse(amount: &Value) -> Option<Quantity> {
    match amount {
        Value::String(text) => Quantity::parse(text).ok(),
        Value::Number(number) => Quantity::parse(&number.to_string()).ok(),
        _ => None,
    }
}

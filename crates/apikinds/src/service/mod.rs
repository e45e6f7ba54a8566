//! `services`, `endpoints`, `endpointslices`.

mod addresses;
mod endpoints;

pub(crate) use addresses::KUBERNETES_IP;
pub(crate) use endpoints::{ENDPOINT_SLICE, ENDPOINTS};

use std::collections::BTreeSet;

use serde_json::{Value, json};
use steersman_apimachinery::error::FieldError;
use steersman_apimachinery::rules::Column;

use crate::fields::{at, child, default, field, items, items_mut, number, object_at, set, text};
use crate::selectors;
use crate::simple::{Simple, age_cell, name_cell};
use crate::syntax::{dns_label, port_number, report};

/// How long clients stick to a pod, in seconds.
const AFFINITY_SECONDS: i64 = 10_800;

/// The rules of `services`.
pub(crate) static SERVICE: Simple = Simple {
    created_by_update: true,
    generation: false,
    default: defaults,
    create: |object, request| {
        set(object, "status", json!({"loadBalancer": {}}));
        addresses::allocate(object, None, request)
    },
    update: |new, old, request| {
        keep_addresses(new, old);
        addresses::allocate(new, Some(old), request)
    },
    validate,
    selectable: &["spec.clusterIP", "spec.type"],
    columns: &[
        Column::name(),
        Column::text("Type", "How the service is reached"),
        Column::text("Cluster-IP", "Address inside of the cluster"),
        Column::text("External-IP", "Addresses outside of the cluster"),
        Column::text("Port(s)", "Ports of the service"),
        Column::text("Age", "Time since creation"),
        Column::text("Selector", "Which pods serve it").wide(),
    ],
    cells: |object, now| {
        let or = |text: &str, other: &str| json!(if text.is_empty() { other } else { text });
        vec![
            name_cell(object),
            text(object, "/spec/type").into(),
            or(text(object, "/spec/clusterIP"), "<none>"),
            external_ip(object).into(),
            or(&ports(object), "<none>"),
            age_cell(object, now),
            selectors::map_cell(object, "/spec/selector"),
        ]
    },
    ..Simple::NEW
};

fn defaults(object: &mut Value) {
    let Some(spec) = object_at(object, "/spec") else { return };
    default(spec, "type", "ClusterIP");
    default(spec, "sessionAffinity", "None");
    if field(spec, "sessionAffinity") == "ClientIP"
        && let Some(config) = child(spec, "sessionAffinityConfig")
        && let Some(client) = child(config, "clientIP")
    {
        default(client, "timeoutSeconds", AFFINITY_SECONDS);
    }
    for port in items_mut(spec, "/ports") {
        default(port, "protocol", "TCP");
        let number = port.get("port").cloned().unwrap_or_default();
        let target = port.get("targetPort");
        let unset = target.is_none_or(|target| target == 0 || target == "");
        if unset && !number.is_null() {
            set(port, "targetPort", number);
        }
    }
    let kind = field(spec, "type").to_owned();
    if matches!(&*kind, "NodePort" | "LoadBalancer") {
        default(spec, "externalTrafficPolicy", "Cluster");
    }
    if kind == "LoadBalancer" {
        default(spec, "allocateLoadBalancerNodePorts", true);
    }
    if kind != "ExternalName" {
        default(spec, "internalTrafficPolicy", "Cluster");
    }
}

/// A manifest that is sent again does not state what was allocated.
fn keep_addresses(new: &mut Value, old: &Value) {
    let had_ip = text(old, "/spec/type") != "ExternalName";
    let needs_ip = text(new, "/spec/type") != "ExternalName";
    let ports = items(old, "/spec/ports").to_vec();
    let old = old.get("spec").cloned().unwrap_or_default();
    let Some(spec) = object_at(new, "/spec") else { return };
    if had_ip && needs_ip {
        for name in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            if let Some(value) = at(&old, &format!("/{name}")) {
                default(spec, name, value.clone());
            }
        }
    }
    if !matches!(field(spec, "type"), "NodePort" | "LoadBalancer") {
        return;
    }
    for port in items_mut(spec, "/ports") {
        let same_port = |other: &&Value| {
            ["port", "protocol"].iter().all(|name| other.get(name) == port.get(name))
        };
        let node_port = ports.iter().find(same_port).and_then(|old| number(old, "/nodePort"));
        if let Some(node_port) = node_port {
            default(port, "nodePort", node_port);
        }
    }
}

fn validate(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let kind = text(new, "/spec/type");
    let allowed = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
    if !allowed.contains(&kind) {
        errors.push(FieldError::not_supported("spec.type", kind, &allowed));
    }
    let affinity = text(new, "/spec/sessionAffinity");
    if !matches!(affinity, "None" | "ClientIP") {
        let path = "spec.sessionAffinity";
        errors.push(FieldError::not_supported(path, affinity, &["ClientIP", "None"]));
    }
    if kind == "ExternalName" && text(new, "/spec/externalName").is_empty() {
        errors.push(FieldError::required("spec.externalName", ""));
    }
    check_ports(new, &mut errors);
    if let Some(old) = old {
        let (before, after) = (text(old, "/spec/clusterIP"), text(new, "/spec/clusterIP"));
        let kept = !before.is_empty() && text(old, "/spec/type") != "ExternalName";
        if kept && kind != "ExternalName" && before != after {
            let why = "may not change once set";
            let found = at(new, "/spec/clusterIPs").cloned().unwrap_or_else(|| json!([after]));
            errors.push(FieldError::invalid("spec.clusterIPs[0]", found, why));
        }
    }
    errors
}

fn check_ports(service: &Value, errors: &mut Vec<FieldError>) {
    let ports = items(service, "/spec/ports");
    let headless = text(service, "/spec/clusterIP") == "None";
    if ports.is_empty() && !headless && text(service, "/spec/type") != "ExternalName" {
        errors.push(FieldError::required("spec.ports", ""));
    }
    let mut names = BTreeSet::new();
    let mut numbers = BTreeSet::new();
    for (i, port) in ports.iter().enumerate() {
        let path = format!("spec.ports[{i}]");
        let name = field(port, "name");
        if name.is_empty() {
            if ports.len() > 1 {
                errors.push(FieldError::required(format!("{path}.name"), ""));
            }
        } else {
            report(errors, &format!("{path}.name"), name, dns_label(name));
            if !names.insert(name) {
                errors.push(FieldError::duplicate(format!("{path}.name"), name));
            }
        }
        let own = number(port, "/port").unwrap_or(0);
        if let Some(why) = port_number(own) {
            errors.push(FieldError::invalid(format!("{path}.port"), own, why));
        }
        let target = number(port, "/targetPort");
        if let Some((target, why)) = target.and_then(|port| Some((port, port_number(port)?))) {
            errors.push(FieldError::invalid(format!("{path}.targetPort"), target, why));
        }
        let protocol = field(port, "protocol");
        if !matches!(protocol, "TCP" | "UDP" | "SCTP") {
            let path = format!("{path}.protocol");
            errors.push(FieldError::not_supported(path, protocol, &["SCTP", "TCP", "UDP"]));
        }
        if !numbers.insert((own, protocol)) {
            let found = json!({"port": own, "protocol": protocol});
            errors.push(FieldError::duplicate(path.clone(), found));
        }
        let external = matches!(text(service, "/spec/type"), "NodePort" | "LoadBalancer");
        if !external && number(port, "/nodePort").is_some_and(|port| port != 0) {
            let why = "may not be used when `type` is 'ClusterIP'";
            errors.push(FieldError::forbidden(format!("{path}.nodePort"), why));
        }
    }
}

fn external_ip(service: &Value) -> String {
    let own: Vec<&str> =
        items(service, "/spec/externalIPs").iter().filter_map(Value::as_str).collect();
    let none = || "<none>".to_owned();
    match text(service, "/spec/type") {
        "ExternalName" => text(service, "/spec/externalName").to_owned(),
        "ClusterIP" | "NodePort" if own.is_empty() => none(),
        "ClusterIP" | "NodePort" => own.join(","),
        "LoadBalancer" => {
            let balancers: BTreeSet<&str> = items(service, "/status/loadBalancer/ingress")
                .iter()
                .map(|ingress| match field(ingress, "ip") {
                    "" => field(ingress, "hostname"),
                    ip => ip,
                })
                .filter(|address| !address.is_empty())
                .collect();
            let all: Vec<&str> = balancers.into_iter().chain(own).collect();
            if all.is_empty() { "<pending>".to_owned() } else { all.join(",") }
        }
        _ => "<unknown>".to_owned(),
    }
}

fn ports(service: &Value) -> String {
    let one = |port: &Value| {
        let own = number(port, "/port").unwrap_or(0);
        let protocol = field(port, "protocol");
        match number(port, "/nodePort").unwrap_or(0) {
            0 => format!("{own}/{protocol}"),
            outer => format!("{own}:{outer}/{protocol}"),
        }
    };
    items(service, "/spec/ports").iter().map(one).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests;

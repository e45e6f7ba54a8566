//! What an API server refuses, as far as scheduling can tell. Selectors,
//! tolerations and requests are checked where the scheduling view reads them.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1 as core_v1;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as ApiQuantity;
use steersman_api::problem::{FieldPath, Problem};
use steersman_api::quantity::Quantity;

/// All annotations of an object, keys and values, in bytes.
const MAX_ANNOTATIONS: usize = 256 << 10;
/// Ports.
const PORTS: std::ops::RangeInclusive<i32> = 1..=65535;
/// Weights of preferences.
const WEIGHTS: std::ops::RangeInclusive<i32> = 1..=100;

/// Checks a pod as its author wrote it.
pub(super) fn check_pod(pod: &core_v1::Pod, problems: &mut Vec<Problem>) {
    check_annotations(pod.metadata.annotations.as_ref(), problems);
    let Some(spec) = &pod.spec else { return };
    let at = FieldPath::from("spec");
    let mut names = BTreeSet::new();
    let init = spec.init_containers.iter().flatten().enumerate();
    let init = init.map(|(i, c)| (c, at.field("initContainers").index(i)));
    let main = spec.containers.iter().enumerate();
    let main = main.map(|(i, c)| (c, at.field("containers").index(i)));
    for (container, at) in init.chain(main) {
        if container.name.is_empty() {
            problems.push(Problem::required(&at.field("name"), "a container's name"));
        } else if !names.insert(container.name.as_str()) {
            let name = format!("{:?}", container.name);
            problems.push(Problem::duplicate(&at.field("name"), name));
        }
        check_resources(container.resources.as_ref(), &at.field("resources"), problems);
        check_ports(container, spec.host_network == Some(true), &at.field("ports"), problems);
    }
    check_resources(spec.resources.as_ref(), &at.field("resources"), problems);
    check_weights(spec, problems);
}

/// Checks a node as its author wrote it.
pub(super) fn check_node(node: &core_v1::Node, problems: &mut Vec<Problem>) {
    check_annotations(node.metadata.annotations.as_ref(), problems);
    // The allocatable amounts are checked where they are read.
    for (name, amount) in node.status.iter().flat_map(|s| s.capacity.iter().flatten()) {
        amount_at(amount, &FieldPath::from("status.capacity").key(name), problems);
    }
}

fn check_annotations(annotations: Option<&BTreeMap<String, String>>, problems: &mut Vec<Problem>) {
    let size: usize = annotations.into_iter().flatten().map(|(k, v)| k.len() + v.len()).sum();
    if size > MAX_ANNOTATIONS {
        let allowed = format!("up to {MAX_ANNOTATIONS} bytes");
        let found = format!("{size} bytes");
        problems.push(Problem::invalid(&FieldPath::from("metadata.annotations"), found, allowed));
    }
}

/// Limits are well-formed, and no smaller than requests.
fn check_resources(
    resources: Option<&core_v1::ResourceRequirements>,
    at: &FieldPath,
    problems: &mut Vec<Problem>,
) {
    let Some(limits) = resources.and_then(|r| r.limits.as_ref()) else { return };
    let requests = resources.and_then(|r| r.requests.as_ref());
    for (name, limit) in limits {
        let Some(max) = amount_at(limit, &at.field("limits").key(name), problems) else { continue };
        let Some(request) = requests.and_then(|r| r.get(name)) else { continue };
        // An unreadable request is reported where it is read.
        let Ok(wanted) = Quantity::parse(&request.0) else { continue };
        let at = at.field("requests").key(name);
        if wanted > max {
            let allowed = format!("up to {:?}, the limit", limit.0);
            problems.push(Problem::invalid(&at, format_args!("{:?}", request.0), allowed));
        } else if wanted < max && !may_be_overcommitted(name) {
            let allowed = format!("{:?}, the limit: {name} cannot be shared", limit.0);
            problems.push(Problem::invalid(&at, format_args!("{:?}", request.0), allowed));
        }
    }
}

/// Whether a container may use more of the resource than it requests: so it is
/// with what Kubernetes itself knows, other than huge pages.
fn may_be_overcommitted(resource: &str) -> bool {
    let native = !resource.contains('/') || resource.contains("kubernetes.io/");
    native && !resource.starts_with("hugepages-")
}

fn amount_at(
    amount: &ApiQuantity,
    at: &FieldPath,
    problems: &mut Vec<Problem>,
) -> Option<Quantity> {
    match Quantity::parse(&amount.0) {
        Ok(parsed) if !parsed.is_negative() => Some(parsed),
        Ok(_) => {
            problems.push(Problem::invalid(at, format_args!("{:?}", amount.0), "0 or more"));
            None
        }
        Err(error) => {
            problems.push(Problem::new(at, error.to_string()));
            None
        }
    }
}

fn check_ports(
    container: &core_v1::Container,
    host_network: bool,
    at: &FieldPath,
    problems: &mut Vec<Problem>,
) {
    let allowed = format!("{} to {}", PORTS.start(), PORTS.end());
    for (i, port) in container.ports.iter().flatten().enumerate() {
        let at = at.index(i);
        if !PORTS.contains(&port.container_port) {
            let at = at.field("containerPort");
            problems.push(Problem::invalid(&at, port.container_port, &allowed));
        }
        let Some(host_port) = port.host_port.filter(|port| *port != 0) else { continue };
        if !PORTS.contains(&host_port) {
            problems.push(Problem::invalid(&at.field("hostPort"), host_port, &allowed));
        } else if host_network && host_port != port.container_port {
            let allowed = format!("{}, the containerPort: hostNetwork is on", port.container_port);
            problems.push(Problem::invalid(&at.field("hostPort"), host_port, allowed));
        }
    }
}

fn check_weights(spec: &core_v1::PodSpec, problems: &mut Vec<Problem>) {
    let Some(affinity) = &spec.affinity else { return };
    let nodes = affinity.node_affinity.iter().flat_map(|a| {
        a.preferred_during_scheduling_ignored_during_execution.iter().flatten().map(|t| t.weight)
    });
    let weights = |terms: &Option<Vec<core_v1::WeightedPodAffinityTerm>>| -> Vec<i32> {
        terms.iter().flatten().map(|t| t.weight).collect()
    };
    let wanted = affinity
        .pod_affinity
        .as_ref()
        .map(|a| weights(&a.preferred_during_scheduling_ignored_during_execution));
    let unwanted = affinity
        .pod_anti_affinity
        .as_ref()
        .map(|a| weights(&a.preferred_during_scheduling_ignored_during_execution));
    let kinds = [
        ("nodeAffinity", nodes.collect()),
        ("podAffinity", wanted.unwrap_or_default()),
        ("podAntiAffinity", unwanted.unwrap_or_default()),
    ];
    for (field, weights) in kinds {
        for (i, weight) in weights.into_iter().enumerate().filter(|(_, w)| !WEIGHTS.contains(w)) {
            let at = FieldPath::from("spec.affinity")
                .field(field)
                .field("preferredDuringSchedulingIgnoredDuringExecution")
                .index(i)
                .field("weight");
            problems.push(Problem::invalid(&at, weight, "1 to 100"));
        }
    }
}

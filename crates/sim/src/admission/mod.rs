//! What an API server does to objects before a scheduler sees them: defaults,
//! priorities, label keys merged into selectors, validation. Only what
//! scheduling can tell.
//!
//! Source: the API documentation of the fields, and the admission plugins that
//! are on by default (Priority, DefaultTolerationSeconds, DefaultStorageClass).

mod claims;
mod label_keys;
mod priority;
mod resources;
mod validation;

use k8s_openapi::api::core::v1 as core_v1;
use steersman_api::problem::Problem;

pub use claims::{DefaultClass, admit_claim};
pub use priority::PriorityClasses;

/// The scheduler of pods that name none.
const DEFAULT_SCHEDULER: &str = "default-scheduler";
/// How long a pod stays on a node that is not ready, in seconds.
const DEFAULT_TOLERATION_SECONDS: i64 = 300;
/// The label that every namespace carries: its name.
pub const NAMESPACE_NAME_LABEL: &str = "kubernetes.io/metadata.name";
/// The taint of nodes that are not ready.
pub(crate) const NOT_READY_TAINT: &str = "node.kubernetes.io/not-ready";
/// The taint of nodes that nothing was heard of.
pub(crate) const UNREACHABLE_TAINT: &str = "node.kubernetes.io/unreachable";

/// Admits a new pod: fills in what its author left out and reports what an API
/// server would refuse. A pod with a UID comes from an API server, which has
/// resolved its priority already.
pub fn admit_pod(pod: &mut core_v1::Pod, classes: &PriorityClasses, problems: &mut Vec<Problem>) {
    let set = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
    let bound = pod.spec.as_ref().is_some_and(|spec| set(&spec.node_name));
    let stored = bound || set(&pod.metadata.uid);
    if let Some(spec) = &mut pod.spec {
        spec.scheduler_name.get_or_insert_with(|| DEFAULT_SCHEDULER.to_owned());
        default_ports(spec);
        classes.resolve(spec, stored, problems);
        default_tolerations(spec);
    }
    // Before requests take the place of missing limits' ones: the messages
    // speak of what the author wrote.
    validation::check_pod(pod, problems);
    resources::default_requests(pod);
    label_keys::merge(pod, problems);
}

/// Admits a namespace: it carries its name as a label.
pub fn admit_namespace(namespace: &mut core_v1::Namespace) {
    let name = namespace.metadata.name.clone().unwrap_or_default();
    let labels = namespace.metadata.labels.get_or_insert_default();
    labels.insert(NAMESPACE_NAME_LABEL.to_owned(), name);
}

/// Admits a node: what it has is what it may give away, unless it says else.
pub fn admit_node(node: &mut core_v1::Node, problems: &mut Vec<Problem>) {
    let found_before = problems.len();
    validation::check_node(node, problems);
    // Malformed amounts stay where their author wrote them.
    if problems.len() == found_before
        && let Some(status) = &mut node.status
        && status.allocatable.is_none()
    {
        status.allocatable.clone_from(&status.capacity);
    }
}

/// Ports are TCP, and on the host's network the container's port is the host's.
fn default_ports(spec: &mut core_v1::PodSpec) {
    let host_network = spec.host_network == Some(true);
    let init = spec.init_containers.iter_mut().flatten();
    for container in init.chain(&mut spec.containers) {
        for port in container.ports.iter_mut().flatten() {
            port.protocol.get_or_insert_with(|| "TCP".to_owned());
            if host_network && port.host_port.unwrap_or(0) == 0 {
                port.host_port = Some(port.container_port);
            }
        }
    }
}

/// A pod leaves a node that fails after five minutes, unless it says else.
fn default_tolerations(spec: &mut core_v1::PodSpec) {
    for key in [NOT_READY_TAINT, UNREACHABLE_TAINT] {
        let tolerations = spec.tolerations.get_or_insert_default();
        let says_so = tolerations.iter().any(|toleration| {
            let matches = |field: &Option<String>, wanted: &str| {
                field.as_deref().is_none_or(|text| text.is_empty() || text == wanted)
            };
            matches(&toleration.key, key) && matches(&toleration.effect, "NoExecute")
        });
        if !says_so {
            tolerations.push(core_v1::Toleration {
                key: Some(key.to_owned()),
                operator: Some("Exists".to_owned()),
                effect: Some("NoExecute".to_owned()),
                toleration_seconds: Some(DEFAULT_TOLERATION_SECONDS),
                ..Default::default()
            });
        }
    }
}

#[cfg(test)]
mod tests;

//! Simulated nodes: what they are made of, their heartbeats, and their pods.

pub(crate) mod file;
pub(crate) mod heartbeat;
pub(crate) mod kubelet;
mod process;
pub(crate) mod shape;
pub(crate) mod status;

use k8s_openapi::api::core::v1::Node;

/// `false`: the node says that it is not ready.
pub const READY_ANNOTATION: &str = "playground.steersman.dev/ready";
/// `stopped`: the node falls silent, as if it had lost its power.
pub const HEARTBEAT_ANNOTATION: &str = "playground.steersman.dev/heartbeat";
/// How many seconds a pod's containers run before they end.
pub const RUN_ANNOTATION: &str = "playground.steersman.dev/run-seconds";
/// With which code they end.
pub const EXIT_ANNOTATION: &str = "playground.steersman.dev/exit-code";

/// Who tells what happens on nodes.
const KUBELET: &str = "kubelet";

/// What a node does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Health {
    /// Its job.
    Well,
    /// It says that it cannot run pods.
    NotReady,
    /// Nothing at all.
    Silent,
}

pub(crate) fn health(node: &Node) -> Health {
    let annotation =
        |key: &str| node.metadata.annotations.as_ref().and_then(|a| a.get(key)).map(String::as_str);
    if annotation(HEARTBEAT_ANNOTATION) == Some("stopped") {
        Health::Silent
    } else if annotation(READY_ANNOTATION) == Some("false") {
        Health::NotReady
    } else {
        Health::Well
    }
}

/// The status of a condition of the node: `True`, `False`, `Unknown`, or empty
/// when there is none.
pub(crate) fn condition_status<'a>(node: &'a Node, kind: &str) -> &'a str {
    let conditions = node.status.as_ref().and_then(|s| s.conditions.as_deref());
    let condition = conditions.unwrap_or_default().iter().find(|c| c.type_ == kind);
    condition.map(|c| c.status.as_str()).unwrap_or_default()
}

//! NodePorts keeps pods apart that want one host port.
//!
//! # What it does
//! A node has each of its ports once per protocol and address; a host port
//! without an address, or on `0.0.0.0`, takes the port on all of them. The
//! ports of containers count, and of init containers that keep running.
//!
//! # Rejects or scores when
//! A host port that the pod wants is taken on the node: `node(s) didn't have
//! free ports for the requested pod ports`, which evictions may change. Left
//! out for pods without host ports.
//!
//! # Args
//! None.
//!
//! # Requeue events
//! A pod leaves a node and gave up a port that the pod wants, so that its ports
//! are all free there, or held by pods that preemption could send away. A node is
//! added where they are.
//!
//! # Parity
//! As kube-scheduler v1.36, which tries the pod again also when another pod
//! still holds one of its ports on that node.

use std::sync::Arc;

use steersman_api::node_info::NodeInfo;
use steersman_api::pod::PodInfo;
use steersman_api::ports::HostPort;
use steersman_framework::events::{
    ActionType, Change, ClusterEvent, EnqueueExtensions, EventResource, Hint, HintCtx,
};
use steersman_framework::extensions::{CycleCtx, Extensions, Filter, PreFilter, PrepareCtx};
use steersman_framework::point::PointSet;
use steersman_framework::registry::Descriptor;
use steersman_framework::signature::{Scope, Sign, Signable, SignatureBuilder};
use steersman_framework::verdict::{FilterVerdict, PluginError, PreFilterVerdict, Rejection};

/// The plugin's name.
pub const NAME: &str = "NodePorts";

const REASON: &str = "node(s) didn't have free ports for the requested pod ports";

/// The plugin's entry in the registry.
pub fn descriptor() -> Descriptor {
    Descriptor::plain(NAME, PointSet::PRE_FILTER | PointSet::FILTER, |_| {
        let plugin = Arc::new(NodePorts);
        Ok(Extensions {
            pre_filter: Some(plugin.clone()),
            filter: Some(plugin.clone()),
            events: Some(plugin.clone()),
            sign: Some(plugin),
            ..Extensions::default()
        })
    })
}

fn are_free(ports: &[HostPort], node: &NodeInfo) -> bool {
    !node.used_ports().conflict(ports)
}

/// Whether the pod's ports are free on `node`, or would be if preemption sent
/// pods of lower priority away.
fn may_be_free(pod: &PodInfo, node: &NodeInfo) -> bool {
    let gives_way =
        |other: &PodInfo| pod.spec.may_preempt && other.spec.priority < pod.spec.priority;
    are_free(&pod.spec.host_ports, node)
        || node.pods().iter().all(|other| gives_way(other) || !conflict(pod, other))
}

fn conflict(pod: &PodInfo, other: &PodInfo) -> bool {
    let theirs = &other.spec.host_ports;
    pod.spec.host_ports.iter().any(|port| theirs.iter().any(|their| port.conflicts_with(their)))
}

struct NodePorts;

impl PreFilter for NodePorts {
    fn pre_filter(&self, ctx: &mut PrepareCtx<'_>) -> Result<PreFilterVerdict, PluginError> {
        Ok(match ctx.pod.spec.host_ports.is_empty() {
            true => PreFilterVerdict::Skip,
            false => PreFilterVerdict::Proceed,
        })
    }
}

impl Filter for NodePorts {
    fn filter(&self, ctx: &CycleCtx<'_>, node: &NodeInfo) -> Result<FilterVerdict, PluginError> {
        Ok(match are_free(&ctx.pod.spec.host_ports, node) {
            true => FilterVerdict::Fit,
            false => FilterVerdict::Reject(Rejection::unschedulable(REASON)),
        })
    }

    fn scope(&self) -> Scope {
        Scope::Node
    }
}

impl EnqueueExtensions for NodePorts {
    fn events(&self) -> Vec<ClusterEvent> {
        vec![
            ClusterEvent::new(EventResource::ASSIGNED_POD, ActionType::DELETE),
            ClusterEvent::new(EventResource::NODE, ActionType::ADD),
        ]
    }

    fn hint(&self, ctx: &HintCtx<'_>, change: &Change) -> Result<Hint, PluginError> {
        let node = match change {
            Change::AssignedPod { old: Some(gone), .. } if !conflict(ctx.pod, gone) => {
                return Ok(Hint::Skip);
            }
            // A pod that was only nominated to its node held the port too.
            Change::AssignedPod { old: Some(gone), .. } => {
                gone.node_name.as_ref().or(gone.nominated_node.as_ref())
            }
            Change::Node { new: Some(new), .. } => Some(&new.name),
            _ => None,
        };
        let Some(node) = node else { return Ok(Hint::Queue) };
        // A node that is gone again announces itself when it comes back.
        let node = ctx.cluster.nodes().by_name(node);
        Ok(Hint::queue_if(node.is_some_and(|node| may_be_free(ctx.pod, node))))
    }
}

impl Sign for NodePorts {
    fn sign(&self, pod: &PodInfo, signature: &mut SignatureBuilder) -> Signable {
        signature.part("hostPorts", &pod.spec.host_ports);
        Signable::Yes
    }
}

#[cfg(test)]
mod tests;

//! The nodes as the scheduler counts them.

use std::collections::BTreeMap;

use serde::Serialize;
use steersman_api::name::Name;
use steersman_api::node_info::NodeInfo;
use steersman_api::resources::Resources;
use steersman_api::taint::Taint;

use super::{Limit, Page};
use crate::inspect::Moment;

/// The nodes, and the pods that are assumed on them.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterView {
    /// In the order in which they are looked at.
    pub nodes: Page<NodeSummary>,
    /// Pods that take room on nodes, assumed ones included.
    pub pods: usize,
    /// Pods that take room on a node on which the watch has not shown them yet,
    /// by UID.
    pub assumed: Page<AssumedPod>,
    /// Pods that are said to be on nodes that are not known.
    pub pods_on_unknown_nodes: usize,
}

/// A pod and the node on which it is assumed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AssumedPod {
    /// Namespace/name.
    pub pod: String,
    /// Its UID.
    pub uid: String,
    /// The node.
    pub node: String,
}

/// A node in one line.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeSummary {
    /// Its name.
    pub node: String,
    /// How many pods are on it.
    pub pods: usize,
    /// What they request together.
    pub requested: Requests,
    /// What the node offers; the number of pods is `pods`.
    pub allocatable: Requests,
    /// Whether new pods are kept off (`spec.unschedulable`).
    pub unschedulable: bool,
    /// How many taints it has.
    pub taints: usize,
}

/// Amounts by resource: `cpu` in thousandths of a core, everything else in
/// bytes or pieces.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Requests(pub BTreeMap<String, i64>);

/// A node with its pods.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeDetail {
    /// The node.
    #[serde(flatten)]
    pub summary: NodeSummary,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its taints, as `key=value:effect`.
    pub taint_list: Vec<String>,
    /// The pods on it, by name.
    pub pod_list: Page<PodOnNode>,
}

/// A pod on a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PodOnNode {
    /// Namespace/name.
    pub pod: String,
    /// Its UID.
    pub uid: String,
    /// Its priority.
    pub priority: i32,
    /// What it requests.
    pub requests: Requests,
    /// Whether it is on its way out.
    pub terminating: bool,
}

impl Requests {
    fn of(resources: &Resources) -> Self {
        let basic = [
            ("cpu", resources.milli_cpu),
            ("memory", resources.memory),
            ("ephemeral-storage", resources.ephemeral_storage),
        ];
        let basic = basic.into_iter().map(|(name, amount)| (name.to_owned(), amount));
        let scalars = resources.scalars().map(|(name, amount)| (name.to_string(), amount));
        Self(basic.chain(scalars).filter(|(_, amount)| *amount != 0).collect())
    }
}

impl NodeSummary {
    fn of(info: &NodeInfo) -> Self {
        let node = info.node();
        let mut allocatable = Requests::of(&node.allocatable);
        allocatable.0.insert("pods".to_owned(), node.allowed_pods);
        Self {
            node: node.name.to_string(),
            pods: info.pods().len(),
            requested: Requests::of(info.requested()),
            allocatable,
            unschedulable: node.unschedulable,
            taints: node.taints.len(),
        }
    }
}

impl ClusterView {
    /// The cluster now.
    pub fn of(moment: Moment<'_>, limit: Limit) -> Self {
        let Moment { scheduler, .. } = moment;
        let nodes = scheduler.cluster().nodes();
        let assumed = scheduler.assumed().map(|(pod, node)| AssumedPod {
            pod: pod.key.to_string(),
            uid: pod.uid.to_string(),
            node: node.to_string(),
        });
        Self {
            nodes: Page::of(nodes.len(), limit, nodes.iter().map(NodeSummary::of)),
            pods: scheduler.placed_count(),
            assumed: Page::of(scheduler.assumed_count(), limit, assumed),
            pods_on_unknown_nodes: scheduler.cluster().orphan_count(),
        }
    }
}

impl NodeDetail {
    /// One node now; `None` when it is not known.
    pub fn of(moment: Moment<'_>, node: &Name, limit: Limit) -> Option<Self> {
        let info = moment.scheduler.cluster().nodes().by_name(node)?;
        let mut pods: Vec<_> = info.pods().iter().collect();
        pods.sort_by(|a, b| (&a.key, &a.uid).cmp(&(&b.key, &b.uid)));
        let pods = pods.into_iter().map(|pod| PodOnNode {
            pod: pod.key.to_string(),
            uid: pod.uid.to_string(),
            priority: pod.spec.priority,
            requests: Requests::of(&pod.resources.requests),
            terminating: pod.terminating,
        });
        let labels = info.node().labels.iter();
        Some(Self {
            summary: NodeSummary::of(info),
            labels: labels.map(|(key, value)| (key.to_string(), value.to_string())).collect(),
            taint_list: info.node().taints.iter().map(taint).collect(),
            pod_list: Page::of(info.pods().len(), limit, pods),
        })
    }
}

fn taint(taint: &Taint) -> String {
    let Taint { key, value, effect } = taint;
    let value = if value.is_empty() { String::new() } else { format!("={value}") };
    format!("{key}{value}:{}", effect.name())
}

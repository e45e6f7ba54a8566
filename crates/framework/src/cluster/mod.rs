//! The state of the cluster as plugins read it: nodes with their pods, indexes
//! over those pods, and the other objects.
//!
//! The core owns the one [`Cluster`] and is the only one to change it; a cycle
//! reads it in place, nothing is copied per pod.

mod affinity;
mod claims;
mod images;
mod nodes;
mod population;
mod preemptions;
mod stores;

use std::collections::HashMap;
use std::sync::Arc;

pub use affinity::{AffinityGroup, AffinityIndex};
pub use claims::ClaimIndex;
pub use images::{ImageState, ImageTable};
pub use nodes::NodeTable;
pub use population::{GroupCount, LabelGroup, Population};
pub use preemptions::{Departure, Preemptions, UnderWay};
use steersman_api::key::PodUid;
use steersman_api::name::Name;
use steersman_api::node::Node;
use steersman_api::node_info::NodeIdx;
use steersman_api::pod::PodInfo;
pub use stores::Stores;

/// See the module documentation.
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    nodes: NodeTable,
    population: Population,
    affinity: AffinityIndex,
    claims: ClaimIndex,
    images: ImageTable,
    /// Objects other than pods and nodes.
    pub stores: Stores,
    /// Pods that wait for others to make room.
    pub preemptions: Preemptions,
    /// Pods whose node is not known: it was not seen yet, or it is gone while
    /// they remain.
    orphans: HashMap<Name, Vec<Arc<PodInfo>>>,
}

impl Cluster {
    /// An empty cluster.
    pub fn new() -> Self {
        Self::default()
    }

    /// The nodes.
    pub fn nodes(&self) -> &NodeTable {
        &self.nodes
    }

    /// The pods on nodes, counted by labels.
    pub fn population(&self) -> &Population {
        &self.population
    }

    /// The pods on nodes that care about other pods, counted by what they say.
    pub fn affinity(&self) -> &AffinityIndex {
        &self.affinity
    }

    /// The claims that pods on nodes use.
    pub fn claims(&self) -> &ClaimIndex {
        &self.claims
    }

    /// The container images that nodes hold.
    pub fn images(&self) -> &ImageTable {
        &self.images
    }

    /// Adds a node, or puts a newer version in place; pods that were waiting
    /// for the node are counted on it. Returns the older version.
    pub fn set_node(&mut self, node: Arc<Node>) -> Option<Arc<Node>> {
        let name = node.name.clone();
        self.images.add(&node);
        let old = self.nodes.set(node);
        match &old {
            Some(old) => self.images.remove(old),
            None => {
                for pod in self.orphans.remove(&name).unwrap_or_default() {
                    self.add_pod(pod, &name);
                }
            }
        }
        old
    }

    /// Removes a node. Its pods are kept aside until they are removed or the
    /// node comes back.
    pub fn remove_node(&mut self, name: &Name) -> Option<Arc<Node>> {
        let info = self.nodes.remove(name)?;
        self.images.remove(info.node());
        for pod in info.pods() {
            self.population.remove(pod, info.idx());
            self.affinity.remove(pod, info.idx());
            self.claims.remove(pod);
        }
        if !info.pods().is_empty() {
            self.orphans.insert(name.clone(), info.pods().to_vec());
        }
        Some(info.node().clone())
    }

    /// Counts a pod on the node of that name, which may not be known yet. The
    /// pod must not be counted anywhere already.
    pub fn add_pod(&mut self, pod: Arc<PodInfo>, node: &Name) {
        let Some(info) = self.nodes.by_name_mut(node) else {
            self.orphans.entry(node.clone()).or_default().push(pod);
            return;
        };
        let idx = info.idx();
        info.add_pod(pod.clone());
        self.population.add(&pod, idx);
        self.affinity.add(&pod, idx);
        self.claims.add(&pod);
    }

    /// Takes a pod off the node of that name; `None` when it is not there.
    pub fn remove_pod(&mut self, uid: &PodUid, node: &Name) -> Option<Arc<PodInfo>> {
        let Some(info) = self.nodes.by_name_mut(node) else {
            let waiting = self.orphans.get_mut(node)?;
            let at = waiting.iter().position(|p| p.uid == *uid)?;
            let pod = waiting.swap_remove(at);
            if waiting.is_empty() {
                self.orphans.remove(node);
            }
            return Some(pod);
        };
        let idx = info.idx();
        let pod = info.remove_pod(uid)?;
        self.population.remove(&pod, idx);
        self.affinity.remove(&pod, idx);
        self.claims.remove(&pod);
        Some(pod)
    }

    /// Brings the order of the nodes up to date after nodes came, went or moved
    /// between zones. Costs nothing when none did.
    pub fn refresh_order(&mut self) {
        self.nodes.refresh_order();
    }

    /// How many pods wait for a node that is not known.
    pub fn orphan_count(&self) -> usize {
        self.orphans.values().map(Vec::len).sum()
    }
}

/// Counts how often something stands on each node; small and sorted.
pub(crate) type PerNode<C> = std::collections::BTreeMap<NodeIdx, C>;

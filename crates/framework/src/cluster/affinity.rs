//! The pods on nodes that care about other pods, counted by what they say.

use std::collections::{BTreeMap, HashMap};

use steersman_api::name::Interned;
use steersman_api::node_info::NodeIdx;
use steersman_api::pod::{PodAffinity, PodInfo};

use super::PerNode;

/// Pods on nodes, grouped by equal affinity. Pods without any are not here.
#[derive(Clone, Debug, Default)]
pub struct AffinityIndex {
    index: HashMap<Interned<PodAffinity>, u64>,
    /// By age, so that the order does not depend on where things are stored.
    groups: BTreeMap<u64, AffinityGroup>,
    next: u64,
}

/// Pods that say the same about other pods.
#[derive(Clone, Debug)]
pub struct AffinityGroup {
    /// What they say. The terms name the namespaces they mean, so pods of
    /// different namespaces share a group only when they mean the same.
    pub affinity: Interned<PodAffinity>,
    nodes: PerNode<u32>,
}

impl AffinityGroup {
    /// The nodes that have pods of the group, and how many.
    pub fn nodes(&self) -> impl Iterator<Item = (NodeIdx, u32)> {
        self.nodes.iter().map(|(idx, count)| (*idx, *count))
    }
}

impl AffinityIndex {
    /// All groups.
    pub fn iter(&self) -> impl Iterator<Item = &AffinityGroup> {
        self.groups.values()
    }

    pub(super) fn add(&mut self, pod: &PodInfo, node: NodeIdx) {
        let affinity = &pod.spec.affinity;
        if affinity.is_empty() {
            return;
        }
        let next = &mut self.next;
        let slot = *self.index.entry(affinity.clone()).or_insert_with(|| {
            *next += 1;
            *next
        });
        let group = self
            .groups
            .entry(slot)
            .or_insert_with(|| AffinityGroup { affinity: affinity.clone(), nodes: PerNode::new() });
        *group.nodes.entry(node).or_default() += 1;
    }

    pub(super) fn remove(&mut self, pod: &PodInfo, node: NodeIdx) {
        let Some(slot) = self.index.get(&pod.spec.affinity).copied() else { return };
        let Some(group) = self.groups.get_mut(&slot) else { return };
        let Some(count) = group.nodes.get_mut(&node) else { return };
        *count -= 1;
        if *count == 0 {
            group.nodes.remove(&node);
        }
        if group.nodes.is_empty() {
            self.groups.remove(&slot);
            self.index.remove(&pod.spec.affinity);
        }
    }
}

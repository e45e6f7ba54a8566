//! The pods on nodes, counted by namespace and labels.
//!
//! Spreading and inter-pod affinity ask how many pods of which labels stand
//! where. Pods are copies: there are far fewer sets of labels than pods, so a
//! selector is tried once per set, and the counts are there already.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use steersman_api::labels::Labels;
use steersman_api::name::Name;
use steersman_api::node_info::NodeIdx;
use steersman_api::pod::PodInfo;

use super::PerNode;

/// All pods on nodes. See the module documentation.
#[derive(Clone, Debug, Default)]
pub struct Population {
    groups: Vec<LabelGroup>,
    free: Vec<usize>,
    index: HashMap<(Name, Labels), usize>,
    by_namespace: BTreeMap<Name, BTreeSet<usize>>,
}

/// Pods of one namespace with equal labels.
#[derive(Clone, Debug)]
pub struct LabelGroup {
    /// Their namespace.
    pub namespace: Name,
    /// Their labels.
    pub labels: Labels,
    nodes: PerNode<GroupCount>,
}

/// How many pods of a group are on a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupCount {
    /// All of them.
    pub total: u32,
    /// Those being deleted.
    pub terminating: u32,
}

impl LabelGroup {
    /// The nodes that have pods of the group, and how many.
    pub fn nodes(&self) -> impl Iterator<Item = (NodeIdx, GroupCount)> {
        self.nodes.iter().map(|(idx, count)| (*idx, *count))
    }

    /// How many of the group are on `node`.
    pub fn on(&self, node: NodeIdx) -> GroupCount {
        self.nodes.get(&node).copied().unwrap_or_default()
    }
}

impl Population {
    /// The groups of one namespace.
    pub fn in_namespace(&self, namespace: &Name) -> impl Iterator<Item = &LabelGroup> {
        self.by_namespace.get(namespace).into_iter().flatten().map(|slot| &self.groups[*slot])
    }

    /// The groups of all namespaces, namespace by namespace.
    pub fn iter(&self) -> impl Iterator<Item = &LabelGroup> {
        self.by_namespace.values().flatten().map(|slot| &self.groups[*slot])
    }

    /// The namespaces that have pods on nodes.
    pub fn namespaces(&self) -> impl Iterator<Item = &Name> {
        self.by_namespace.keys()
    }

    pub(super) fn add(&mut self, pod: &PodInfo, node: NodeIdx) {
        let key = (pod.key.namespace.clone(), pod.labels.clone());
        let slot = match self.index.get(&key) {
            Some(slot) => *slot,
            None => self.new_group(key),
        };
        let count = self.groups[slot].nodes.entry(node).or_default();
        count.total += 1;
        count.terminating += u32::from(pod.terminating);
    }

    pub(super) fn remove(&mut self, pod: &PodInfo, node: NodeIdx) {
        let key = (pod.key.namespace.clone(), pod.labels.clone());
        let Some(slot) = self.index.get(&key).copied() else { return };
        let group = &mut self.groups[slot];
        let Some(count) = group.nodes.get_mut(&node) else { return };
        count.total -= 1;
        count.terminating -= u32::from(pod.terminating);
        if count.total == 0 {
            group.nodes.remove(&node);
        }
        if group.nodes.is_empty() {
            self.drop_group(&key, slot);
        }
    }

    fn new_group(&mut self, key: (Name, Labels)) -> usize {
        let (namespace, labels) = key.clone();
        let group = LabelGroup { namespace: namespace.clone(), labels, nodes: PerNode::new() };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.groups[slot] = group;
                slot
            }
            None => {
                self.groups.push(group);
                self.groups.len() - 1
            }
        };
        self.by_namespace.entry(namespace).or_default().insert(slot);
        self.index.insert(key, slot);
        slot
    }

    fn drop_group(&mut self, key: &(Name, Labels), slot: usize) {
        self.index.remove(key);
        self.free.push(slot);
        // The empty slot must not keep the labels alive.
        self.groups[slot].labels = Labels::default();
        if let Some(slots) = self.by_namespace.get_mut(&key.0) {
            slots.remove(&slot);
            if slots.is_empty() {
                self.by_namespace.remove(&key.0);
            }
        }
    }
}

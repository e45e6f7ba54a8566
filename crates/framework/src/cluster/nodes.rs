//! The table of nodes and the order in which they are looked at.

use std::collections::HashMap;
use std::sync::Arc;

use steersman_api::name::Name;
use steersman_api::node::Node;
use steersman_api::node_info::{NodeIdx, NodeInfo};

/// Nodes in dense slots, by name, and in zone-interleaved order.
#[derive(Clone, Debug, Default)]
pub struct NodeTable {
    slots: Vec<Option<NodeInfo>>,
    free: Vec<NodeIdx>,
    by_name: HashMap<Name, NodeIdx>,
    /// Zones in the order in which they appeared, each with its nodes in the
    /// order in which they appeared.
    zones: Vec<Zone>,
    order: Vec<NodeIdx>,
    order_is_stale: bool,
}

#[derive(Clone, Debug)]
struct Zone {
    key: Option<(Name, Name)>,
    nodes: Vec<NodeIdx>,
}

impl NodeTable {
    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// The node at `idx`, if one is there.
    pub fn get(&self, idx: NodeIdx) -> Option<&NodeInfo> {
        self.slots.get(idx.get())?.as_ref()
    }

    /// The node of that name.
    pub fn by_name(&self, name: &Name) -> Option<&NodeInfo> {
        self.get(*self.by_name.get(name)?)
    }

    /// All nodes, by place in the table.
    pub fn iter(&self) -> impl Iterator<Item = &NodeInfo> {
        self.slots.iter().flatten()
    }

    /// How many places the table has, empty ones included: the size of a table
    /// that is indexed by [`NodeIdx`].
    pub fn slot_count(&self) -> usize {
        self.slots.len()
    }

    /// The order in which nodes are evaluated: one of each zone in turn, so
    /// that a sample of the nodes spans the zones. As of the last
    /// [`super::Cluster::refresh_order`].
    pub fn evaluation_order(&self) -> &[NodeIdx] {
        debug_assert!(!self.order_is_stale, "refresh_order comes before a cycle");
        &self.order
    }

    pub(super) fn by_name_mut(&mut self, name: &Name) -> Option<&mut NodeInfo> {
        let idx = self.by_name.get(name)?;
        self.slots[idx.get()].as_mut()
    }

    pub(super) fn set(&mut self, node: Arc<Node>) -> Option<Arc<Node>> {
        if let Some(idx) = self.by_name.get(&node.name).copied() {
            let info = self.slots[idx.get()].as_mut()?;
            let old = info.node().clone();
            let (old_zone, new_zone) = (old.zone_key(), node.zone_key());
            info.set_node(node);
            if old_zone != new_zone {
                self.leave_zone(idx, old_zone.as_ref());
                self.enter_zone(idx, new_zone);
            }
            return Some(old);
        }
        let idx = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            NodeIdx(u32::try_from(self.slots.len() - 1).expect("fewer than 2^32 nodes"))
        });
        self.by_name.insert(node.name.clone(), idx);
        self.enter_zone(idx, node.zone_key());
        self.slots[idx.get()] = Some(NodeInfo::new(idx, node));
        None
    }

    pub(super) fn remove(&mut self, name: &Name) -> Option<NodeInfo> {
        let idx = self.by_name.remove(name)?;
        let info = self.slots[idx.get()].take()?;
        self.leave_zone(idx, info.node().zone_key().as_ref());
        self.free.push(idx);
        Some(info)
    }

    fn enter_zone(&mut self, idx: NodeIdx, key: Option<(Name, Name)>) {
        self.order_is_stale = true;
        match self.zones.iter_mut().find(|zone| zone.key == key) {
            Some(zone) => zone.nodes.push(idx),
            None => self.zones.push(Zone { key, nodes: vec![idx] }),
        }
    }

    fn leave_zone(&mut self, idx: NodeIdx, key: Option<&(Name, Name)>) {
        self.order_is_stale = true;
        for zone in self.zones.iter_mut().filter(|zone| zone.key.as_ref() == key) {
            zone.nodes.retain(|other| *other != idx);
        }
        self.zones.retain(|zone| !zone.nodes.is_empty());
    }

    pub(super) fn refresh_order(&mut self) {
        if !self.order_is_stale {
            return;
        }
        self.order_is_stale = false;
        self.order.clear();
        let longest = self.zones.iter().map(|zone| zone.nodes.len()).max().unwrap_or(0);
        for round in 0..longest {
            self.order.extend(self.zones.iter().filter_map(|zone| zone.nodes.get(round)));
        }
    }
}

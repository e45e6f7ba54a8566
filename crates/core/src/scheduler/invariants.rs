//! What must be true at every moment, checked by recounting from scratch. For
//! tests and for debugging a live scheduler; far too slow for anything else.

use std::collections::BTreeMap;

use steersman_api::node_info::NodeInfo;
use steersman_api::resources::Resources;

use super::Scheduler;
use crate::pods::PlacedState;

impl Scheduler {
    /// Everything that is wrong; nothing, unless there is a bug.
    pub fn broken_invariants(&self) -> Vec<String> {
        let mut broken = Vec::new();
        self.check_places(&mut broken);
        self.check_accounting(&mut broken);
        broken
    }

    /// A pod stands in one place only.
    fn check_places(&self, broken: &mut Vec<String>) {
        for (uid, binding) in self.bindings.iter() {
            let fate = binding.fate;
            let places = self.queue.all_places(uid);
            if fate.is_none() && places != [crate::queue::Place::InFlight] {
                broken.push(format!("pod {uid} is being bound and stands in {places:?}"));
            }
            if fate.is_none() && self.pods.get(uid).is_none() {
                broken.push(format!("pod {uid} is being bound and takes no room"));
            }
        }
        let placed: BTreeMap<_, _> = self.pods.iter().map(|p| (&p.pod.uid, p)).collect();
        for (uid, placed) in placed {
            let places = self.queue.all_places(uid);
            let binding = self.bindings.get(uid).is_some_and(|b| b.fate.is_none());
            if placed.state != PlacedState::Assumed && !places.is_empty() {
                broken.push(format!("pod {uid} is bound and stands in {places:?}"));
            }
            if placed.state == PlacedState::Assumed && !binding {
                broken.push(format!("pod {uid} is assumed and nobody binds it"));
            }
        }
        let assumed = self.pods.iter().filter(|p| p.state != PlacedState::Bound).count();
        if self.pods.assumed_count() != assumed {
            let counted = self.pods.assumed_count();
            broken.push(format!("{assumed} pods are assumed, {counted} counted"));
        }
        let in_flight = self.queue.counts().in_flight;
        let under_way = self.bindings.iter().filter(|(_, b)| b.fate.is_none()).count();
        if in_flight != under_way {
            broken.push(format!("{in_flight} pods in flight, {under_way} being bound"));
        }
    }

    /// Nodes count exactly the pods that are placed on them.
    fn check_accounting(&self, broken: &mut Vec<String>) {
        let mut expected: BTreeMap<&str, (usize, Resources)> = BTreeMap::new();
        let mut on_known_nodes = 0;
        let placed: BTreeMap<_, _> = self.pods.iter().map(|p| (&p.pod.uid, p)).collect();
        for placed in placed.values() {
            if self.cluster.nodes().by_name(&placed.node).is_none() {
                continue;
            }
            on_known_nodes += 1;
            let (count, sum) = expected.entry(&placed.node).or_default();
            *count += 1;
            sum.add(&placed.pod.resources.requests);
        }
        for node in self.cluster.nodes().iter() {
            let (count, sum) = expected.remove(&**node.name()).unwrap_or_default();
            if node.pods().len() != count || *node.requested() != sum {
                broken.push(format!("node {} counts {}", node.name(), found(node)));
            }
        }
        let orphans = self.pods.len() - on_known_nodes;
        if self.cluster.orphan_count() != orphans {
            let counted = self.cluster.orphan_count();
            broken.push(format!("{orphans} pods on unknown nodes, {counted} counted"));
        }
        let grouped: u32 = self
            .cluster
            .population()
            .iter()
            .flat_map(|group| group.nodes().map(|(_, count)| count.total))
            .sum();
        if usize::try_from(grouped) != Ok(on_known_nodes) {
            broken.push(format!("{on_known_nodes} pods on nodes, {grouped} counted by labels"));
        }
    }
}

fn found(node: &NodeInfo) -> String {
    format!("{} pods with {}", node.pods().len(), node.requested())
}

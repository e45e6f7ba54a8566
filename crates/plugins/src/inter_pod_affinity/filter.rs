//! Filtering by required terms: the pod's own, and the anti-affinity of the
//! pods that are there.

use steersman_api::labels::Labels;
use steersman_api::node_info::{NodeIdx, NodeInfo};
use steersman_api::pod::{AffinityTerm, PodInfo};
use steersman_framework::cluster::Cluster;
use steersman_framework::extensions::{
    CycleCtx, Filter, PreFilter, PreFilterExtensions, PrepareCtx,
};
use steersman_framework::verdict::{FilterVerdict, PluginError, PreFilterVerdict, Rejection};

use super::InterPodAffinity;
use super::tally::Tally;
use super::terms::{Seen, all_mean, groups_meant, means};

const REASON_AFFINITY: &str = "node(s) didn't match pod affinity rules";
const REASON_ANTI_AFFINITY: &str = "node(s) didn't match pod anti-affinity rules";
const REASON_EXISTING: &str = "node(s) didn't satisfy existing pods anti-affinity rules";

/// How many pods matter, by domain.
#[derive(Clone, Debug, Default)]
struct FilterData {
    /// Pods that all required affinity terms mean, once per term.
    wanted: Tally,
    /// Pods that a required anti-affinity term means.
    unwanted: Tally,
    /// Pods whose required anti-affinity means the pending pod.
    unwilling: Tally,
    /// Whether the required affinity means the pending pod itself.
    means_itself: bool,
}

impl FilterData {
    fn new(cluster: &Cluster, pod: &PodInfo) -> Self {
        let affinity = &pod.spec.affinity;
        let (population, stores) = (cluster.population(), &cluster.stores);
        let mut data = Self {
            means_itself: all_mean(&affinity.required, pod, stores),
            unwilling: count_unwilling(cluster, pod),
            ..Self::default()
        };
        for group in groups_meant(&affinity.required, population, stores) {
            let nodes = group.nodes().map(|(idx, count)| (idx, count.total));
            for (node, pods) in with_labels(cluster, nodes) {
                for term in &affinity.required {
                    data.wanted.add(&term.topology_key, node, pods);
                }
            }
        }
        for term in &affinity.required_anti {
            for group in groups_meant(std::slice::from_ref(term), population, stores) {
                let nodes = group.nodes().map(|(idx, count)| (idx, count.total));
                for (node, pods) in with_labels(cluster, nodes) {
                    data.unwanted.add(&term.topology_key, node, pods);
                }
            }
        }
        data
    }

    /// Counts `by` pods like `other` more on the node.
    fn change(&mut self, ctx: (&Cluster, &PodInfo), other: &PodInfo, node: &Labels, by: i64) {
        let (cluster, pod) = ctx;
        let (affinity, stores) = (&pod.spec.affinity, &cluster.stores);
        if all_mean(&affinity.required, other, stores) {
            for term in &affinity.required {
                self.wanted.add(&term.topology_key, node, by);
            }
        }
        for term in affinity.required_anti.iter().filter(|term| means(term, other, stores)) {
            self.unwanted.add(&term.topology_key, node, by);
        }
        let seen = Seen::new(pod, stores);
        let anti = &other.spec.affinity.required_anti;
        for term in anti.iter().filter(|term| seen.is_meant_by(term)) {
            self.unwilling.add(&term.topology_key, node, by);
        }
    }

    fn judge(&self, pod: &PodInfo, node: &Labels) -> FilterVerdict {
        let affinity = &pod.spec.affinity;
        if !self.satisfies_affinity(&affinity.required, node) {
            return FilterVerdict::Reject(Rejection::unresolvable(REASON_AFFINITY));
        }
        if self.unwanted.of_node(node).any(|pods| pods > 0) {
            return FilterVerdict::Reject(Rejection::unschedulable(REASON_ANTI_AFFINITY));
        }
        if self.unwilling.of_node(node).any(|pods| pods > 0) {
            return FilterVerdict::Reject(Rejection::unschedulable(REASON_EXISTING));
        }
        FilterVerdict::Fit
    }

    fn satisfies_affinity(&self, terms: &[AffinityTerm], node: &Labels) -> bool {
        let mut all_near = true;
        for term in terms {
            match self.wanted.get(&term.topology_key, node) {
                Some(pods) => all_near &= pods > 0,
                None => return false,
            }
        }
        // The first pod of a group that wants to be together has none to be
        // near to.
        all_near || (self.means_itself && self.wanted.is_empty())
    }
}

fn count_unwilling(cluster: &Cluster, pod: &PodInfo) -> Tally {
    let seen = Seen::new(pod, &cluster.stores);
    let mut unwilling = Tally::default();
    for group in cluster.affinity().iter() {
        let anti = &group.affinity.required_anti;
        for term in anti.iter().filter(|term| seen.is_meant_by(term)) {
            for (node, pods) in with_labels(cluster, group.nodes()) {
                unwilling.add(&term.topology_key, node, pods);
            }
        }
    }
    unwilling
}

/// The labels of nodes in place of the nodes, and counts as sums need them.
pub(super) fn with_labels(
    cluster: &Cluster,
    nodes: impl Iterator<Item = (NodeIdx, u32)>,
) -> impl Iterator<Item = (&Labels, i64)> {
    nodes.filter_map(|(idx, count)| {
        Some((&cluster.nodes().get(idx)?.node().labels, i64::from(count)))
    })
}

impl PreFilter for InterPodAffinity {
    fn pre_filter(&self, ctx: &mut PrepareCtx<'_>) -> Result<PreFilterVerdict, PluginError> {
        let affinity = &ctx.pod.spec.affinity;
        let data = FilterData::new(ctx.cluster, ctx.pod);
        if data.unwilling.is_empty()
            && affinity.required.is_empty()
            && affinity.required_anti.is_empty()
        {
            return Ok(PreFilterVerdict::Skip);
        }
        ctx.state.put(data);
        Ok(PreFilterVerdict::Proceed)
    }

    fn extensions(&self) -> Option<&dyn PreFilterExtensions> {
        Some(self)
    }
}

impl PreFilterExtensions for InterPodAffinity {
    fn add_pod(
        &self,
        ctx: &mut PrepareCtx<'_>,
        added: &PodInfo,
        node: &NodeInfo,
    ) -> Result<(), PluginError> {
        what_if(ctx, added, node, 1)
    }

    fn remove_pod(
        &self,
        ctx: &mut PrepareCtx<'_>,
        removed: &PodInfo,
        node: &NodeInfo,
    ) -> Result<(), PluginError> {
        what_if(ctx, removed, node, -1)
    }
}

fn what_if(
    ctx: &mut PrepareCtx<'_>,
    other: &PodInfo,
    node: &NodeInfo,
    by: i64,
) -> Result<(), PluginError> {
    let data = ctx.state.get_mut::<FilterData>().ok_or_else(no_data)?;
    data.change((ctx.cluster, ctx.pod), other, &node.node().labels, by);
    Ok(())
}

impl Filter for InterPodAffinity {
    fn filter(&self, ctx: &CycleCtx<'_>, node: &NodeInfo) -> Result<FilterVerdict, PluginError> {
        let data = ctx.state.get::<FilterData>().ok_or_else(no_data)?;
        Ok(data.judge(ctx.pod, &node.node().labels))
    }
}

fn no_data() -> PluginError {
    PluginError("InterPodAffinity: PreFilter did not run".to_owned())
}

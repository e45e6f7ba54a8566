//! The judging half of a scheduling cycle: which nodes can run a pod, and which
//! of them is best.

use steersman_api::name::Name;
use steersman_api::node_info::NodeIdx;
use steersman_api::pod::PodInfo;
use steersman_framework::cluster::Cluster;
use steersman_framework::diagnosis::{Diagnosis, NodeRejection, OthersRejection};
use steersman_framework::extender::ExtenderError;
use steersman_framework::extensions::{NodeScore, PrepareCtx};
use steersman_framework::observer::Observer;
use steersman_framework::point::ExtensionPoint;
use steersman_framework::state::CycleState;

use crate::profile::{PluginSet, Profile};
use crate::queue::Nominations;
use crate::runner::{
    Asked, AttemptError, Failed, FilterSet, NoNodes, NodeAnswer, Plight, Prepared, Remedy, phase,
    post_filter, pre_filter,
};

/// What a cycle reads.
#[derive(Clone, Copy)]
pub(crate) struct Inputs<'a> {
    pub(crate) profile: &'a Profile,
    pub(crate) pod: &'a PodInfo,
    pub(crate) cluster: &'a Cluster,
    pub(crate) nominations: &'a Nominations,
    /// For drawing among equals.
    pub(crate) lot: u64,
}

/// Which nodes to look at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sampling {
    /// Where in the evaluation order to start.
    pub(crate) start: usize,
    /// Enough feasible nodes.
    pub(crate) wanted: usize,
}

/// Below this many nodes all are looked at.
const MIN_FEASIBLE_NODES: usize = 100;
/// The least share of nodes that is looked at, in percent.
const MIN_PERCENTAGE: usize = 5;

impl Sampling {
    /// All nodes.
    pub(crate) const ALL: Self = Self { start: 0, wanted: usize::MAX };

    /// How many feasible nodes are enough among `n_nodes`: `percentage` of
    /// them; a share that shrinks with their number when it is 0; never fewer
    /// than [`MIN_FEASIBLE_NODES`].
    pub(crate) fn wanted(percentage: u8, n_nodes: usize) -> usize {
        let percentage = match percentage {
            0 => 50_usize.saturating_sub(n_nodes / 125).max(MIN_PERCENTAGE),
            given => given.into(),
        };
        if n_nodes < MIN_FEASIBLE_NODES || percentage >= 100 {
            return n_nodes;
        }
        (n_nodes * percentage / 100).max(MIN_FEASIBLE_NODES)
    }
}

/// The result of filtering.
#[derive(Debug)]
pub(crate) struct Filtered {
    /// In evaluation order.
    pub(crate) feasible: Vec<NodeIdx>,
    /// Why the others are not.
    pub(crate) diagnosis: Diagnosis,
    /// Plugins that rejected anything.
    pub(crate) rejected_by: PluginSet,
    /// Plugins that the pod does not need.
    pub(crate) skip: PluginSet,
    /// How many nodes were looked at.
    pub(crate) n_evaluated: usize,
    /// What went wrong without harm.
    pub(crate) notes: Vec<String>,
}

impl Inputs<'_> {
    /// Finds feasible nodes. What plugins prepared stays in `state`.
    pub(crate) fn filter(
        &self,
        state: &mut CycleState,
        sampling: Sampling,
        observer: &mut dyn Observer,
    ) -> Result<Filtered, AttemptError> {
        let mut filtered = Filtered {
            feasible: Vec::new(),
            diagnosis: Diagnosis { n_nodes: self.cluster.nodes().len(), ..Diagnosis::default() },
            rejected_by: PluginSet::default(),
            skip: PluginSet::default(),
            n_evaluated: 0,
            notes: Vec::new(),
        };
        if self.cluster.nodes().is_empty() {
            // No plugin is asked; the first node may help as far as any that
            // could say no is concerned.
            filtered.rejected_by = self.profile.judges();
            return Ok(filtered);
        }
        let mut ctx = self.preparing(state);
        let prepared = match pre_filter(self.profile, &mut ctx, observer)? {
            Ok(prepared) => prepared,
            Err(no_nodes) => {
                self.note_no_nodes(no_nodes, &mut filtered);
                return Ok(filtered);
            }
        };
        filtered.skip = prepared.skip;
        filtered.rejected_by = prepared.narrowed_by;
        filtered.diagnosis.others.clone_from(&prepared.others);
        let filters = self.filters(prepared.skip);
        // Room may have been made on the nominated node: no other is looked at
        // while it fits there.
        if let Some(idx) = self.nominated_node() {
            let mut nodes = std::iter::once(idx);
            self.look(&filters, &mut nodes, usize::MAX, state, &mut filtered, observer)?;
            self.ask_extenders(&mut filtered)?;
        }
        if filtered.feasible.is_empty() {
            let mut nodes = self.candidates(&prepared, sampling.start);
            self.look(&filters, &mut *nodes, sampling.wanted, state, &mut filtered, observer)?;
            self.ask_extenders(&mut filtered)?;
        }
        self.finish(&mut filtered);
        Ok(filtered)
    }

    /// What plugins that prepare something read and write.
    pub(crate) fn preparing<'s>(&'s self, state: &'s mut CycleState) -> PrepareCtx<'s> {
        PrepareCtx { pod: self.pod, cluster: self.cluster, state }
    }

    /// Asks the filters about nodes until enough are feasible.
    fn look(
        &self,
        filters: &FilterSet<'_>,
        nodes: &mut dyn Iterator<Item = NodeIdx>,
        wanted: usize,
        state: &CycleState,
        filtered: &mut Filtered,
        observer: &mut dyn Observer,
    ) -> Result<(), Failed> {
        let n_plugins = self.profile.filter.len();
        phase(ExtensionPoint::Filter, self.pod, n_plugins, observer, |observer| {
            let looked = self.check_until(filters, nodes, wanted, state, filtered, observer);
            filters.tell_asked(observer);
            looked
        })
    }

    fn check_until(
        &self,
        filters: &FilterSet<'_>,
        nodes: &mut dyn Iterator<Item = NodeIdx>,
        wanted: usize,
        state: &CycleState,
        filtered: &mut Filtered,
        observer: &mut dyn Observer,
    ) -> Result<(), Failed> {
        while filtered.feasible.len() < wanted
            && let Some(idx) = nodes.next()
        {
            self.check(filters, state, idx, filtered, observer)?;
            filtered.n_evaluated += 1;
        }
        Ok(())
    }

    /// Lets the extenders say which of the feasible nodes they accept.
    fn ask_extenders(&self, filtered: &mut Filtered) -> Result<(), ExtenderError> {
        let Some(slot) = self.profile.extender_slot() else { return Ok(()) };
        let Filtered { feasible, diagnosis, notes, .. } = filtered;
        if self.asked().narrow(feasible, diagnosis, notes)? {
            filtered.rejected_by.insert(slot);
        }
        Ok(())
    }

    /// What extenders are asked about.
    pub(crate) fn asked(&self) -> Asked<'_> {
        Asked { extenders: &self.profile.extenders, pod: self.pod, cluster: self.cluster }
    }

    fn filters(&self, skip: PluginSet) -> FilterSet<'_> {
        let Self { profile, pod, cluster, nominations, .. } = *self;
        FilterSet::new(profile, skip, pod, cluster, nominations)
    }

    /// Asks what can be done about a pod that fits nowhere; what the plugins
    /// say becomes part of its message.
    pub(crate) fn remedy(
        &self,
        filtered: &mut Filtered,
        state: &CycleState,
        observer: &mut dyn Observer,
    ) -> Remedy {
        if filtered.diagnosis.n_nodes == 0 {
            return Remedy::default();
        }
        let filters = self.filters(filtered.skip);
        let plight = Plight {
            filters: &filters,
            state,
            diagnosis: &filtered.diagnosis,
            nominated: self.nominated_to(),
            lot: self.lot,
        };
        let n_plugins = self.profile.post_filter.len();
        let mut remedy =
            phase(ExtensionPoint::PostFilter, self.pod, n_plugins, observer, |observer| {
                post_filter(plight, observer)
            });
        filtered.diagnosis.post_filter_message = std::mem::take(&mut remedy.message);
        // The diagnosis names the plugins that rejected nodes as they are.
        filtered.rejected_by.insert_all(remedy.in_the_way);
        remedy
    }

    fn nominated_to(&self) -> Option<&Name> {
        self.nominations.node_of(&self.pod.uid).or(self.pod.nominated_node.as_ref())
    }

    fn nominated_node(&self) -> Option<NodeIdx> {
        Some(self.cluster.nodes().by_name(self.nominated_to()?)?.idx())
    }

    /// The nodes to look at, from `start` on and around. One by one: a cycle
    /// that soon has enough must not pay for all nodes.
    fn candidates<'s>(
        &'s self,
        prepared: &'s Prepared,
        start: usize,
    ) -> Box<dyn Iterator<Item = NodeIdx> + 's> {
        let nodes = self.cluster.nodes();
        if let Some(names) = &prepared.candidates {
            let known = names.iter().filter_map(|name| nodes.by_name(name));
            return Box::new(known.map(|node| node.idx()));
        }
        let order = nodes.evaluation_order();
        let (before, after) = order.split_at(start.min(order.len()));
        Box::new(after.iter().chain(before).copied())
    }

    fn check(
        &self,
        filters: &FilterSet<'_>,
        state: &CycleState,
        idx: NodeIdx,
        filtered: &mut Filtered,
        observer: &mut dyn Observer,
    ) -> Result<(), Failed> {
        let Some(node) = self.cluster.nodes().get(idx) else { return Ok(()) };
        match filters.check(state, node, observer)? {
            NodeAnswer::Fit => filtered.feasible.push(idx),
            NodeAnswer::Rejected(plugin, rejected) => {
                filtered.rejected_by.insert(plugin);
                let rejection =
                    NodeRejection { plugin: rejected.plugin, rejection: rejected.rejection };
                filtered.diagnosis.rejected.insert(idx, rejection);
            }
        }
        Ok(())
    }

    fn note_no_nodes(&self, no_nodes: NoNodes, filtered: &mut Filtered) {
        let (plugin, rejection) = match no_nodes {
            NoNodes::Rejected(idx, rejected) => {
                filtered.rejected_by.insert(idx);
                (Some(rejected.plugin), rejected.rejection)
            }
            NoNodes::Disjoint(plugins, rejection) => {
                filtered.rejected_by = plugins;
                (None, rejection)
            }
        };
        filtered.diagnosis.pre_filter_message = Some(rejection.reasons.join(", "));
        filtered.diagnosis.others = Some(OthersRejection { plugin, rejection });
        self.finish(filtered);
    }

    fn finish(&self, filtered: &mut Filtered) {
        filtered.diagnosis.unschedulable_plugins = self.profile.names(filtered.rejected_by);
    }
}

/// The best node: the highest score, and among equals the one that `lot`
/// draws.
pub(crate) fn best(totals: &[NodeScore], lot: u64) -> Option<NodeIdx> {
    let highest = totals.iter().map(|s| s.score).max()?;
    let equals = || totals.iter().filter(|s| s.score == highest);
    let n = u64::try_from(equals().count()).ok()?;
    let drawn = usize::try_from(lot % n).ok()?;
    equals().nth(drawn).map(|s| s.node)
}

/// A number for drawing among equals: the same for the same seed, pod and
/// attempt, and independent of everything else, so that one draw more or less
/// elsewhere changes nothing.
pub(crate) fn lot(seed: u64, pod_uid: &str, attempt: u32) -> u64 {
    // FNV-1a over the UID, then the finalizer of SplitMix64 to spread the bits.
    let fnv = pod_uid
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325, |h: u64, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
    let mut z =
        seed.wrapping_add(fnv).wrapping_add(u64::from(attempt).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_wanted(percentage: u8, n_nodes: usize, wanted: usize) {
        assert_eq!(Sampling::wanted(percentage, n_nodes), wanted);
    }

    #[test]
    fn looks_for_enough_feasible_nodes() {
        check_wanted(0, 50, 50);
        check_wanted(0, 100, 100);
        check_wanted(0, 1000, 420);
        check_wanted(0, 5000, 500);
        check_wanted(0, 6000, 300);
        check_wanted(0, 100_000, 5000);
        check_wanted(30, 1000, 300);
        check_wanted(1, 1000, 100);
        check_wanted(100, 1000, 1000);
    }

    #[test]
    fn best_is_among_the_highest_and_every_equal_can_be_drawn() {
        let score = |node, score| NodeScore { node: NodeIdx(node), score };
        let totals = [score(0, 5), score(1, 9), score(2, 9), score(3, 1), score(4, 9)];
        let drawn: std::collections::BTreeSet<u32> = (0..20)
            .filter_map(|attempt| best(&totals, lot(7, "uid", attempt)))
            .map(|n| n.0)
            .collect();
        assert_eq!(drawn, [1, 2, 4].into());
        assert_eq!(best(&[], 0), None);
    }
}

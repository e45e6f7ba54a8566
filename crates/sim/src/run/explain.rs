//! What led to a decision, recorded while it is made.

use std::collections::BTreeMap;

use steersman_api::name::Name;
use steersman_api::node_info::NodeIdx;
use steersman_core::{Attempt, Outcome as AttemptOutcome};
use steersman_framework::cluster::Cluster;
use steersman_framework::extensions::NodeScore;
use steersman_framework::observer::{Call, Observer, Outcome};
use steersman_framework::point::ExtensionPoint;

/// How many of the best nodes are kept.
const BEST_NODES: usize = 3;

/// What led to a pod's last decision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// How many nodes were looked at.
    pub n_evaluated: usize,
    /// How many of them can run the pod.
    pub n_feasible: usize,
    /// The best of these, best first. Empty when there was nothing to compare.
    pub best: Vec<ScoredNode>,
    /// How many nodes each plugin rejected for which reason.
    pub rejections: BTreeMap<(&'static str, String), usize>,
}

/// A node and its scores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScoredNode {
    /// The node.
    pub node: Name,
    /// Whether it was chosen.
    pub chosen: bool,
    /// By plugin in the order of scoring, normalised and weighted.
    pub scores: Vec<(&'static str, i64)>,
    /// Their sum.
    pub total: i64,
}

/// Watches one attempt.
#[derive(Debug, Default)]
pub(super) struct DecisionRecorder {
    scores: Vec<(&'static str, Vec<NodeScore>)>,
    rejections: BTreeMap<(&'static str, String), usize>,
}

impl DecisionRecorder {
    pub(super) fn new() -> Self {
        Self::default()
    }

    pub(super) fn finish(self, attempt: &Attempt, cluster: &Cluster) -> Decision {
        let chosen = match &attempt.outcome {
            AttemptOutcome::Assumed(node) | AttemptOutcome::Waiting(node) => Some(node),
            _ => None,
        };
        let mut totals: BTreeMap<NodeIdx, i64> = BTreeMap::new();
        for score in self.scores.iter().flat_map(|(_, scores)| scores) {
            *totals.entry(score.node).or_default() += score.score;
        }
        let name = |idx| cluster.nodes().get(idx).map(|n| n.name().clone());
        let mut best: Vec<ScoredNode> = totals
            .into_iter()
            .filter_map(|(idx, total)| {
                let node = name(idx)?;
                let chosen = chosen == Some(&node);
                Some(ScoredNode { node, chosen, scores: self.scores_of(idx), total })
            })
            .collect();
        // Among equals the chosen one first, so that it is never cut off.
        best.sort_by(|a, b| {
            (b.total, b.chosen).cmp(&(a.total, a.chosen)).then_with(|| a.node.cmp(&b.node))
        });
        best.truncate(BEST_NODES);
        Decision {
            n_evaluated: attempt.n_evaluated,
            n_feasible: attempt.n_feasible,
            best,
            rejections: self.rejections,
        }
    }

    fn scores_of(&self, node: NodeIdx) -> Vec<(&'static str, i64)> {
        let of = |(plugin, scores): &(&'static str, Vec<NodeScore>)| {
            let score = scores.iter().find(|s| s.node == node)?;
            Some((*plugin, score.score))
        };
        self.scores.iter().filter_map(of).collect()
    }
}

impl Observer for DecisionRecorder {
    fn after(&mut self, call: Call<'_>, outcome: Outcome<'_>) {
        let Outcome::Rejected(rejection) = outcome else { return };
        if call.point != ExtensionPoint::Filter {
            return;
        }
        for reason in &rejection.reasons {
            *self.rejections.entry((call.plugin, reason.to_string())).or_default() += 1;
        }
    }

    fn scored(&mut self, plugin: &'static str, scores: &[NodeScore]) {
        self.scores.push((plugin, scores.to_vec()));
    }

    fn wants_nodes(&self) -> bool {
        true
    }
}

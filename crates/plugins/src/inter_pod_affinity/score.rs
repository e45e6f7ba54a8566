//! Scoring by preferred terms, and by required affinity of pods that are there.

use std::sync::Arc;

use steersman_api::node_info::{NodeIdx, NodeInfo};
use steersman_api::pod::{AffinityTerm, PodAffinity, PodInfo, WeightedAffinityTerm};
use steersman_framework::cluster::Cluster;
use steersman_framework::extensions::{CycleCtx, NodeScore, PreScore, PrepareCtx, ScorePlugin};
use steersman_framework::verdict::{MAX_NODE_SCORE, PluginError, PreScoreVerdict, Score};

use super::InterPodAffinity;
use super::filter::with_labels;
use super::tally::Tally;
use super::terms::{Seen, groups_meant};

/// The sum of weights in each domain.
#[derive(Clone)]
struct ScoreData(Arc<Tally>);

#[derive(Default)]
struct Sums {
    tally: Tally,
    /// Whether anything was added, sums of 0 included.
    touched: bool,
}

impl Sums {
    /// Adds what the pod's own preferences say about the pods that are there.
    fn add_own(&mut self, cluster: &Cluster, pod: &PodInfo) {
        let own = &pod.spec.affinity;
        for (weighted, sign) in signed(&own.preferred, &own.preferred_anti) {
            let term = &weighted.term;
            let meant = std::slice::from_ref(term);
            for group in groups_meant(meant, cluster.population(), &cluster.stores) {
                let nodes = group.nodes().map(|(idx, count)| (idx, count.total));
                for (node, pods) in with_labels(cluster, nodes) {
                    let weight = sign * i64::from(weighted.weight) * pods;
                    self.touched |= self.tally.add(&term.topology_key, node, weight);
                }
            }
        }
    }

    /// Adds what the pods that are there say about the pod.
    fn add_others(&mut self, cluster: &Cluster, pod: &PodInfo, hard_weight: i32) {
        let seen = Seen::new(pod, &cluster.stores);
        for group in cluster.affinity().iter() {
            for (term, weight) in opinions(&group.affinity, hard_weight) {
                if !seen.is_meant_by(term) {
                    continue;
                }
                for (node, pods) in with_labels(cluster, group.nodes()) {
                    self.touched |= self.tally.add(&term.topology_key, node, weight * pods);
                }
            }
        }
    }
}

/// The terms of a pod on a node that are weighed, with their weights.
fn opinions(
    affinity: &PodAffinity,
    hard_weight: i32,
) -> impl Iterator<Item = (&AffinityTerm, i64)> {
    let required = if hard_weight > 0 { &affinity.required[..] } else { &[] };
    let required = required.iter().map(move |term| (term, i64::from(hard_weight)));
    let preferred = signed(&affinity.preferred, &affinity.preferred_anti)
        .map(|(weighted, sign)| (&weighted.term, sign * i64::from(weighted.weight)));
    required.chain(preferred)
}

fn signed<'a>(
    attracting: &'a [WeightedAffinityTerm],
    repelling: &'a [WeightedAffinityTerm],
) -> impl Iterator<Item = (&'a WeightedAffinityTerm, i64)> {
    attracting.iter().map(|term| (term, 1)).chain(repelling.iter().map(|term| (term, -1)))
}

impl PreScore for InterPodAffinity {
    fn pre_score(
        &self,
        ctx: &mut PrepareCtx<'_>,
        _: &[NodeIdx],
    ) -> Result<PreScoreVerdict, PluginError> {
        let own = &ctx.pod.spec.affinity;
        let prefers = !own.preferred.is_empty() || !own.preferred_anti.is_empty();
        if self.args.ignore_preferred_terms_of_existing_pods && !prefers {
            return Ok(PreScoreVerdict::Skip);
        }
        let mut sums = Sums::default();
        sums.add_own(ctx.cluster, ctx.pod);
        sums.add_others(ctx.cluster, ctx.pod, self.args.hard_pod_affinity_weight);
        if !sums.touched {
            return Ok(PreScoreVerdict::Skip);
        }
        ctx.state.put(ScoreData(Arc::new(sums.tally)));
        Ok(PreScoreVerdict::Proceed)
    }
}

impl ScorePlugin for InterPodAffinity {
    fn score(&self, ctx: &CycleCtx<'_>, node: &NodeInfo) -> Result<Score, PluginError> {
        let missing = || PluginError("InterPodAffinity: PreScore did not run".to_owned());
        let data = ctx.state.get::<ScoreData>().ok_or_else(missing)?;
        Ok(data.0.of_node(&node.node().labels).sum())
    }

    fn normalize(&self, _: &CycleCtx<'_>, scores: &mut [NodeScore]) -> Result<(), PluginError> {
        stretch_between(scores);
        Ok(())
    }
}

/// Gives the worst node 0 and the best 100, and all of them 0 when they are
/// equal.
fn stretch_between(scores: &mut [NodeScore]) {
    let worst = scores.iter().map(|s| s.score).min().unwrap_or(0);
    let best = scores.iter().map(|s| s.score).max().unwrap_or(0);
    for score in scores {
        score.score = if best > worst { stretched(score.score - worst, best - worst) } else { 0 };
    }
}

/// `part` of `whole` in hundredths, rounded as the reference rounds.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "sums of weights are far below 2^52, and the result is at most 100"
)]
fn stretched(part: Score, whole: Score) -> Score {
    (MAX_NODE_SCORE as f64 * (part as f64 / whole as f64)) as Score
}

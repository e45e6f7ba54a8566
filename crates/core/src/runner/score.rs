//! PreScore, Score and normalisation: how good are the feasible nodes?

use steersman_api::node_info::{NodeIdx, NodeInfo};
use steersman_api::pod::PodInfo;
use steersman_framework::cluster::Cluster;
use steersman_framework::extensions::{CycleCtx, NodeScore, PrepareCtx};
use steersman_framework::observer::{Call, Observer};
use steersman_framework::point::ExtensionPoint;
use steersman_framework::state::CycleState;
use steersman_framework::verdict::{MAX_NODE_SCORE, PluginError, PreScoreVerdict};

use super::{Failed, run, run_quietly};
use crate::profile::{PluginSet, Profile, ScoreSlot};

/// Scores of feasible nodes.
#[derive(Clone, Debug, Default)]
pub(crate) struct ScoreTable {
    /// Per node, summed over plugins, in the order of the nodes handed in.
    pub(crate) totals: Vec<NodeScore>,
    /// Per plugin and node, normalised and weighted, in the same order.
    pub(crate) by_plugin: Vec<(&'static str, Vec<i64>)>,
}

/// Scores `nodes`, which are feasible.
pub(crate) fn score(
    profile: &Profile,
    pod: &PodInfo,
    cluster: &Cluster,
    state: &mut CycleState,
    nodes: &[NodeIdx],
    observer: &mut dyn Observer,
) -> Result<ScoreTable, Failed> {
    let mut skip = PluginSet::default();
    for slot in &profile.pre_score {
        let call = Call { point: ExtensionPoint::PreScore, plugin: slot.name, pod, node: None };
        let mut ctx = PrepareCtx { pod, cluster, state };
        match run(call, observer, || slot.plugin.pre_score(&mut ctx, nodes))? {
            PreScoreVerdict::Proceed => {}
            PreScoreVerdict::Skip => skip.insert(slot.idx),
        }
    }
    let mut table = ScoreTable {
        totals: nodes.iter().map(|node| NodeScore { node: *node, score: 0 }).collect(),
        by_plugin: Vec::new(),
    };
    let ctx = CycleCtx { pod, cluster, state };
    for slot in profile.score.iter().filter(|s| !skip.contains(s.slot.idx)) {
        let scores = score_with(slot, &ctx, nodes, observer)?;
        observer.scored(slot.slot.name, &scores);
        for (total, score) in table.totals.iter_mut().zip(&scores) {
            total.score += score.score;
        }
        let scores = scores.into_iter().map(|s| s.score).collect();
        table.by_plugin.push((slot.slot.name, scores));
    }
    Ok(table)
}

/// One plugin's scores of all nodes, normalised and weighted.
fn score_with(
    slot: &ScoreSlot,
    ctx: &CycleCtx<'_>,
    nodes: &[NodeIdx],
    observer: &mut dyn Observer,
) -> Result<Vec<NodeScore>, Failed> {
    let (name, plugin) = (slot.slot.name, &slot.slot.plugin);
    let mut scores = Vec::with_capacity(nodes.len());
    let per_node = observer.wants_nodes();
    for node in nodes.iter().filter_map(|idx| ctx.cluster.nodes().get(*idx)) {
        let call = |node| Call { point: ExtensionPoint::Score, plugin: name, pod: ctx.pod, node };
        let score = if per_node {
            run(call(Some(node.name())), observer, || plugin.score(ctx, node))?
        } else {
            run_quietly(ExtensionPoint::Score, name, || plugin.score(ctx, node))?
        };
        scores.push(NodeScore { node: node.idx(), score });
    }
    run_quietly(ExtensionPoint::Score, name, || plugin.normalize(ctx, &mut scores))?;
    for score in &mut scores {
        if !(0..=MAX_NODE_SCORE).contains(&score.score) {
            return Err(out_of_range(name, score.score, ctx.cluster.nodes().get(score.node)));
        }
        score.score *= slot.weight;
    }
    Ok(scores)
}

fn out_of_range(plugin: &'static str, score: i64, node: Option<&NodeInfo>) -> Failed {
    let node = node.map(|n| n.name().to_string()).unwrap_or_default();
    let error =
        PluginError(format!("score {score} of node {node:?}, allowed: 0 to {MAX_NODE_SCORE}"));
    Failed { point: ExtensionPoint::Score, plugin, error }
}

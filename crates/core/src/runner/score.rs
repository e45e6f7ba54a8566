//! PreScore, Score and normalisation: how good are the feasible nodes?

use steersman_api::node_info::{NodeIdx, NodeInfo};
use steersman_framework::extensions::{CycleCtx, NodeScore, PrepareCtx};
use steersman_framework::observer::{Call, Observer, Outcome, Phase};
use steersman_framework::point::ExtensionPoint;
use steersman_framework::verdict::{MAX_NODE_SCORE, PluginError, PreScoreVerdict};

use super::{Answer, Failed, phase, run, run_quietly};
use crate::profile::{PluginSet, Profile, ScoreSlot};

/// Scores of feasible nodes.
#[derive(Clone, Debug, Default)]
pub(crate) struct ScoreTable {
    /// Per node, summed over plugins, in the order of the nodes handed in.
    pub(crate) totals: Vec<NodeScore>,
    /// Per plugin and node, normalised and weighted, in the same order.
    pub(crate) by_plugin: Vec<(&'static str, Vec<i64>)>,
}

impl ScoreTable {
    /// Adds scores that come from elsewhere to the totals; in the same order.
    pub(crate) fn add(&mut self, scores: &[i64]) {
        for (total, score) in self.totals.iter_mut().zip(scores) {
            total.score = total.score.saturating_add(*score);
        }
    }
}

/// Scores `nodes`, which are feasible.
pub(crate) fn score(
    profile: &Profile,
    ctx: &mut PrepareCtx<'_>,
    nodes: &[NodeIdx],
    observer: &mut dyn Observer,
) -> Result<ScoreTable, Failed> {
    let n_plugins = profile.pre_score.len();
    let skip = phase(ExtensionPoint::PreScore, ctx.pod, n_plugins, observer, |observer| {
        pre_score(profile, ctx, nodes, observer)
    })?;
    let ctx = CycleCtx { pod: ctx.pod, cluster: ctx.cluster, state: ctx.state };
    let n_plugins = profile.score.len();
    phase(ExtensionPoint::Score, ctx.pod, n_plugins, observer, |observer| {
        score_with_all(profile, skip, ctx, nodes, observer)
    })
}

/// The plugins that the pod does not need.
fn pre_score(
    profile: &Profile,
    ctx: &mut PrepareCtx<'_>,
    nodes: &[NodeIdx],
    observer: &mut dyn Observer,
) -> Result<PluginSet, Failed> {
    let (point, pod) = (ExtensionPoint::PreScore, ctx.pod);
    let mut skip = PluginSet::default();
    for slot in &profile.pre_score {
        let call = Call { point, plugin: slot.name, pod, node: None };
        match run(call, observer, || slot.plugin.pre_score(ctx, nodes))? {
            PreScoreVerdict::Proceed => {}
            PreScoreVerdict::Skip => skip.insert(slot.idx),
        }
    }
    Ok(skip)
}

fn score_with_all(
    profile: &Profile,
    skip: PluginSet,
    ctx: CycleCtx<'_>,
    nodes: &[NodeIdx],
    observer: &mut dyn Observer,
) -> Result<ScoreTable, Failed> {
    let mut table = ScoreTable {
        totals: nodes.iter().map(|node| NodeScore { node: *node, score: 0 }).collect(),
        by_plugin: Vec::new(),
    };
    for slot in profile.score.iter().filter(|s| !skip.contains(s.slot.idx)) {
        let scores = score_with(slot, &ctx, nodes, observer)?;
        observer.scored(slot.slot.name, &scores);
        let phase = Phase { point: ExtensionPoint::Score, pod: ctx.pod };
        observer.asked(phase, slot.slot.name, scores.len());
        for (total, score) in table.totals.iter_mut().zip(&scores) {
            total.score += score.score;
        }
        let scores = scores.into_iter().map(|s| s.score).collect();
        table.by_plugin.push((slot.slot.name, scores));
    }
    Ok(table)
}

impl Answer for PluginSet {
    fn outcome(&self) -> Outcome<'_> {
        Outcome::Success
    }
}

impl Answer for ScoreTable {
    fn outcome(&self) -> Outcome<'_> {
        Outcome::Success
    }
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

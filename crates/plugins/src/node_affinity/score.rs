//! Prefers nodes that meet preferred terms.

use steersman_api::node::Node;
use steersman_api::node_info::{NodeIdx, NodeInfo};
use steersman_api::pod::WeightedNodeTerm;
use steersman_framework::extensions::{CycleCtx, NodeScore, PreScore, PrepareCtx, ScorePlugin};
use steersman_framework::signature::Scope;
use steersman_framework::verdict::{PluginError, PreScoreVerdict, Score};

use super::NodeAffinity;
use crate::normalize;

/// The sum of the weights of the terms that the node meets.
fn weight_of_met(terms: &[WeightedNodeTerm], node: &Node) -> Score {
    let met = terms.iter().filter(|preferred| preferred.term.matches(&node.name, &node.labels));
    met.map(|preferred| i64::from(preferred.weight)).sum()
}

impl PreScore for NodeAffinity {
    fn pre_score(
        &self,
        ctx: &mut PrepareCtx<'_>,
        _: &[NodeIdx],
    ) -> Result<PreScoreVerdict, PluginError> {
        let own = &ctx.pod.spec.preferred_node_affinity;
        Ok(match own.is_empty() && self.added_preferred.is_empty() {
            true => PreScoreVerdict::Skip,
            false => PreScoreVerdict::Proceed,
        })
    }
}

impl ScorePlugin for NodeAffinity {
    fn score(&self, ctx: &CycleCtx<'_>, node: &NodeInfo) -> Result<Score, PluginError> {
        let own = weight_of_met(&ctx.pod.spec.preferred_node_affinity, node.node());
        Ok(own + weight_of_met(&self.added_preferred, node.node()))
    }

    fn normalize(&self, _: &CycleCtx<'_>, scores: &mut [NodeScore]) -> Result<(), PluginError> {
        normalize::stretch(scores);
        Ok(())
    }

    fn scope(&self) -> Scope {
        Scope::Node
    }
}

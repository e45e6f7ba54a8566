//! Prefers nodes with few taints that the pod only should tolerate.

use steersman_api::node::Node;
use steersman_api::node_info::{NodeIdx, NodeInfo};
use steersman_api::pod::PodInfo;
use steersman_api::taint::TaintEffect;
use steersman_framework::extensions::{CycleCtx, NodeScore, PreScore, PrepareCtx, ScorePlugin};
use steersman_framework::signature::Scope;
use steersman_framework::verdict::{PluginError, PreScoreVerdict, Score};

use super::TaintToleration;
use crate::normalize;

/// How many taints of the node the pod should tolerate and does not.
fn penalty(pod: &PodInfo, node: &Node) -> Score {
    let untolerated = node.taints.iter().filter(|taint| {
        taint.effect == TaintEffect::PreferNoSchedule
            && !pod.spec.tolerations.iter().any(|toleration| toleration.tolerates(taint))
    });
    i64::try_from(untolerated.count()).unwrap_or(i64::MAX)
}

impl PreScore for TaintToleration {
    /// Never skips: a node without penalty has its 100 points in the scores that
    /// users compare with the reference's.
    fn pre_score(
        &self,
        _: &mut PrepareCtx<'_>,
        _: &[NodeIdx],
    ) -> Result<PreScoreVerdict, PluginError> {
        Ok(PreScoreVerdict::Proceed)
    }
}

impl ScorePlugin for TaintToleration {
    fn score(&self, ctx: &CycleCtx<'_>, node: &NodeInfo) -> Result<Score, PluginError> {
        Ok(penalty(ctx.pod, node.node()))
    }

    fn normalize(&self, _: &CycleCtx<'_>, scores: &mut [NodeScore]) -> Result<(), PluginError> {
        normalize::stretch_reversed(scores);
        Ok(())
    }

    fn scope(&self) -> Scope {
        Scope::Node
    }
}

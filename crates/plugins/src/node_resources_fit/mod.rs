//! The NodeResourcesFit plugin.
//!
//! # What it does
//! Keeps pods off nodes that lack the resources they request, and ranks nodes
//! by how full they are.
//!
//! # Rejects or scores when
//! * `Too many pods`: the node takes no more pods (`status.allocatable.pods`).
//! * `Insufficient cpu`, `Insufficient example.com/gpu`, …: what the pod
//!   requests is more than what the node offers (`status.allocatable`) less what
//!   the pods on it request. A request of zero always fits. No eviction helps
//!   when the node offers less than the pod requests even when it is empty.
//! * Scores come from the arguments' `scoringStrategy`, see
//!   [`args::StrategyType`]: a mean over its resources, by weight, of 0 to 100
//!   each. Containers without a request for CPU or memory count as small ones
//!   here, so that many of them do not look like none. Resources that the node
//!   does not offer are left out, and so are extended resources and the like
//!   that the pod does not request.
//!
//! A pod requests the larger of what its containers and sidecars request
//! together and what each init container requests beside the sidecars that
//! started before it, or what `spec.resources` says for the pod as a whole; the
//! overhead comes on top. See [`steersman_api::pod::PodResources`].
//!
//! # Args
//! [`args::NodeResourcesFitArgs`]: `ignoredResources` and
//! `ignoredResourceGroups` name extended resources that are not checked;
//! `scoringStrategy` ranks.
//!
//! # Requeue events
//! * A node is added, or offers more pods or more of a resource that the pod
//!   requests.
//! * A pod goes from its node, or is resized to less of a resource that the pod
//!   requests.
//! * A pod goes that was nominated to a node, loses its nomination or is resized.
//! * The pod itself is resized to less.
//!
//! In the first three cases the pod is tried again only when the node in
//! question has room for it now, or would have after the eviction of pods of
//! lower priority.
//!
//! # Parity
//! As kube-scheduler v1.36, but:
//! * Extended resources that a `DeviceClass` stands for are not left to
//!   DynamicResources: the node itself must offer them.
//! * Hints look at the room that is left on the node, where the reference looks
//!   at an empty node or only at the kind of change; and they respect the
//!   ignored resources.
//! * Pods have signatures; the reference has none while it supports extended
//!   resources by device class.
//! * Amounts near 2^63 are capped where the reference's arithmetic wraps around.
//!
//! Like the reference, scores do not know of pod-level requests of the pod that
//! is scheduled, though they count those of the pods on the nodes.

pub mod args;
mod hints;
mod ranking;
mod room;
pub(crate) mod usage;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use steersman_api::node_info::{NodeIdx, NodeInfo};
use steersman_api::pod::PodInfo;
use steersman_framework::extensions::{
    CycleCtx, Extensions, Filter, PreFilter, PreScore, PrepareCtx, ScorePlugin,
};
use steersman_framework::point::PointSet;
use steersman_framework::registry::{Descriptor, InitError};
use steersman_framework::signature::{Scope, Sign, Signable, SignatureBuilder};
use steersman_framework::verdict::{
    FilterVerdict, PluginError, PreFilterVerdict, PreScoreVerdict, RejectKind, Rejection, Score,
};

use self::args::NodeResourcesFitArgs;
use self::ranking::Ranking;
use self::room::{Ignored, Room};

/// The plugin's name in configurations.
pub const NAME: &str = "NodeResourcesFit";

/// The plugin's entry in a registry.
pub fn descriptor() -> Descriptor {
    let points = PointSet::PRE_FILTER | PointSet::FILTER | PointSet::PRE_SCORE | PointSet::SCORE;
    Descriptor::with_args::<NodeResourcesFitArgs, _>(NAME, points, |_, args| {
        let plugin = Arc::new(Fit::new(&args)?);
        Ok(Extensions {
            pre_filter: Some(plugin.clone()),
            filter: Some(plugin.clone()),
            pre_score: Some(plugin.clone()),
            score: Some(plugin.clone()),
            events: Some(plugin.clone()),
            sign: Some(plugin),
            ..Extensions::default()
        })
    })
}

/// The plugin with its arguments.
struct Fit {
    ignored: Ignored,
    ranking: Ranking,
}

impl Fit {
    fn new(args: &NodeResourcesFitArgs) -> Result<Self, InitError> {
        Ok(Self { ignored: Ignored::new(args), ranking: Ranking::new(&args.scoring_strategy)? })
    }
}

impl PreFilter for Fit {
    /// What the pod requests was computed when the pod was read.
    fn pre_filter(&self, _: &mut PrepareCtx<'_>) -> Result<PreFilterVerdict, PluginError> {
        Ok(PreFilterVerdict::Proceed)
    }
}

impl Filter for Fit {
    fn filter(&self, ctx: &CycleCtx<'_>, node: &NodeInfo) -> Result<FilterVerdict, PluginError> {
        let mut rejection = Rejection { kind: RejectKind::Unschedulable, reasons: Vec::new() };
        let requests = &ctx.pod.resources.requests;
        for shortage in Room::left_on(node).shortages(requests, &self.ignored) {
            rejection.kind = rejection.kind.max(shortage.kind);
            rejection.reasons.push(shortage.what.reason());
        }
        if rejection.reasons.is_empty() {
            return Ok(FilterVerdict::Fit);
        }
        Ok(FilterVerdict::Reject(rejection))
    }

    fn scope(&self) -> Scope {
        Scope::Node
    }
}

impl PreScore for Fit {
    /// What the pod counts as was computed when the pod was read.
    fn pre_score(
        &self,
        _: &mut PrepareCtx<'_>,
        _: &[NodeIdx],
    ) -> Result<PreScoreVerdict, PluginError> {
        Ok(PreScoreVerdict::Proceed)
    }
}

impl ScorePlugin for Fit {
    fn score(&self, ctx: &CycleCtx<'_>, node: &NodeInfo) -> Result<Score, PluginError> {
        Ok(self.ranking.score(&ctx.pod.resources.ranked, node))
    }

    fn scope(&self) -> Scope {
        Scope::Node
    }
}

impl Sign for Fit {
    fn sign(&self, pod: &PodInfo, signature: &mut SignatureBuilder) -> Signable {
        signature.part("resources", &pod.resources);
        Signable::Yes
    }
}

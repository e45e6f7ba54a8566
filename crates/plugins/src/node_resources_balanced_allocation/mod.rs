//! The NodeResourcesBalancedAllocation plugin.
//!
//! # What it does
//! Prefers nodes whose resources the pod would use more evenly than they are
//! used now, so that a node does not run out of one resource while much of
//! another is left.
//!
//! # Rejects or scores when
//! A node's evenness is 100 × (1 − d), rounded down, where d is the standard
//! deviation of the shares of its resources that are requested, each at most 1.
//! The score is 50 + (50 + evenness with the pod − evenness without it) / 2: 75
//! when the pod makes no difference, 50 to 100 at the extremes. Resources that
//! the node does not offer are left out, and so are extended resources and the
//! like that the pod does not request.
//!
//! A pod that requests none of the resources is not scored.
//!
//! # Args
//! [`args::NodeResourcesBalancedAllocationArgs`]: the resources that are
//! compared, CPU and memory by default.
//!
//! # Requeue events
//! None: it never rejects.
//!
//! # Parity
//! As kube-scheduler v1.36, but:
//! * Extended resources that a `DeviceClass` stands for count only where the
//!   node itself offers them.
//! * Pods have signatures; the reference has none while it supports extended
//!   resources by device class.

pub mod args;
mod evenness;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use steersman_api::node_info::{CpuAndMemory, NodeIdx, NodeInfo};
use steersman_api::pod::PodInfo;
use steersman_api::resources::ResourceKind;
use steersman_framework::extensions::{CycleCtx, Extensions, PreScore, PrepareCtx, ScorePlugin};
use steersman_framework::point::PointSet;
use steersman_framework::registry::Descriptor;
use steersman_framework::signature::{Scope, Sign, Signable, SignatureBuilder};
use steersman_framework::verdict::{MAX_NODE_SCORE, PluginError, PreScoreVerdict, Score};

use self::args::NodeResourcesBalancedAllocationArgs;
use self::evenness::evenness;
use crate::node_resources_fit::usage::Usage;

/// The plugin's name in configurations.
pub const NAME: &str = "NodeResourcesBalancedAllocation";

/// The plugin's entry in a registry.
pub fn descriptor() -> Descriptor {
    let points = PointSet::PRE_SCORE | PointSet::SCORE;
    Descriptor::with_args::<NodeResourcesBalancedAllocationArgs, _>(NAME, points, |_, args| {
        let plugin = Arc::new(BalancedAllocation::new(&args));
        Ok(Extensions {
            pre_score: Some(plugin.clone()),
            score: Some(plugin.clone()),
            sign: Some(plugin),
            ..Extensions::default()
        })
    })
}

/// The plugin with the resources that it compares.
struct BalancedAllocation {
    resources: Vec<ResourceKind>,
}

impl BalancedAllocation {
    fn new(args: &NodeResourcesBalancedAllocationArgs) -> Self {
        Self { resources: args.resources.iter().map(|r| ResourceKind::of(&r.name)).collect() }
    }

    /// Whether the pod asks for none of the resources.
    fn is_indifferent(&self, pod: &PodInfo) -> bool {
        self.resources.iter().all(|kind| pod.resources.requests.get(kind) == 0)
    }
}

impl PreScore for BalancedAllocation {
    fn pre_score(
        &self,
        ctx: &mut PrepareCtx<'_>,
        _: &[NodeIdx],
    ) -> Result<PreScoreVerdict, PluginError> {
        // All of many pods without requests would go to the one node that is
        // used most evenly.
        let skip = self.is_indifferent(ctx.pod);
        Ok(if skip { PreScoreVerdict::Skip } else { PreScoreVerdict::Proceed })
    }
}

impl ScorePlugin for BalancedAllocation {
    fn score(&self, ctx: &CycleCtx<'_>, node: &NodeInfo) -> Result<Score, PluginError> {
        // Profiles may leave the PreScore out that would skip such a pod.
        if self.is_indifferent(ctx.pod) {
            return Ok(0);
        }
        let requested = node.requested();
        let taken = CpuAndMemory { milli_cpu: requested.milli_cpu, memory: requested.memory };
        let asked = &ctx.pod.resources.requests;
        let usages = self.resources.iter().filter_map(|k| Usage::of(k, asked.get(k), node, taken));
        let with = evenness(usages.clone().map(|u| share(u.after, u.offered)));
        let without = evenness(usages.map(|u| share(u.before, u.offered)));
        Ok(MAX_NODE_SCORE / 2 + (MAX_NODE_SCORE / 2 + with - without) / 2)
    }

    fn scope(&self) -> Scope {
        Scope::Node
    }
}

/// Which share `part` is of `whole`, at most 1.
fn share(part: i64, whole: i64) -> f64 {
    (part as f64 / whole as f64).min(1.0)
}

impl Sign for BalancedAllocation {
    fn sign(&self, pod: &PodInfo, signature: &mut SignatureBuilder) -> Signable {
        signature.part("resources", &pod.resources);
        Signable::Yes
    }
}

//! TaintToleration keeps pods off nodes whose taints they do not tolerate.
//!
//! # What it does
//! Taints with the effect `NoSchedule` or `NoExecute` must all be tolerated.
//! Taints with the effect `PreferNoSchedule` should be.
//!
//! # Rejects or scores when
//! Rejects a node with a taint that must be tolerated and is not: `node(s) had
//! untolerated taint(s)`, which evictions cannot change. The penalty of a node
//! is how many `PreferNoSchedule` taints the pod does not tolerate; the node
//! with the most of them gets 0 points and a node without any 100.
//!
//! # Args
//! None.
//!
//! # Requeue events
//! A node that is added and whose taints the pod tolerates, or that changes so
//! that it tolerates them. An update of the pod's own tolerations.
//!
//! # Parity
//! As kube-scheduler v1.36. The operators `Lt` and `Gt`, which a feature gate
//! keeps off by default there, tolerate nothing.

mod hints;
mod score;

use std::sync::Arc;

use steersman_api::node::Node;
use steersman_api::node_info::NodeInfo;
use steersman_api::pod::PodInfo;
use steersman_api::taint::find_untolerated;
use steersman_framework::extensions::{CycleCtx, Extensions, Filter};
use steersman_framework::point::PointSet;
use steersman_framework::registry::Descriptor;
use steersman_framework::signature::{Scope, Sign, Signable, SignatureBuilder};
use steersman_framework::verdict::{FilterVerdict, PluginError, Rejection};

/// The plugin's name.
pub const NAME: &str = "TaintToleration";

const REASON: &str = "node(s) had untolerated taint(s)";

/// The plugin's entry in the registry.
pub fn descriptor() -> Descriptor {
    let points = PointSet::FILTER | PointSet::PRE_SCORE | PointSet::SCORE;
    Descriptor::plain(NAME, points, |_| {
        let plugin = Arc::new(TaintToleration);
        Ok(Extensions {
            filter: Some(plugin.clone()),
            pre_score: Some(plugin.clone()),
            score: Some(plugin.clone()),
            events: Some(plugin.clone()),
            sign: Some(plugin),
            ..Extensions::default()
        })
    })
}

/// Whether the pod tolerates every taint that would repel it.
fn tolerates(pod: &PodInfo, node: &Node) -> bool {
    find_untolerated(&node.taints, &pod.spec.tolerations, |taint| taint.effect.repels()).is_none()
}

struct TaintToleration;

impl Filter for TaintToleration {
    fn filter(&self, ctx: &CycleCtx<'_>, node: &NodeInfo) -> Result<FilterVerdict, PluginError> {
        Ok(match tolerates(ctx.pod, node.node()) {
            true => FilterVerdict::Fit,
            false => FilterVerdict::Reject(Rejection::unresolvable(REASON)),
        })
    }

    fn scope(&self) -> Scope {
        Scope::Node
    }
}

impl Sign for TaintToleration {
    fn sign(&self, pod: &PodInfo, signature: &mut SignatureBuilder) -> Signable {
        signature.part("tolerations", &pod.spec.tolerations);
        Signable::Yes
    }
}

#[cfg(test)]
mod tests;

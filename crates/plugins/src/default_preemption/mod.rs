//! DefaultPreemption makes room for a pod by evicting others.
//!
//! # What it does
//! Looks for a node on which the pod would fit if pods of lower priority were
//! gone, and picks as few and as unimportant ones as will do: from a drawn
//! start on it tries out nodes without their lower pods, then gives back those
//! that need not go, pods first whose disruption budget is used up, the more
//! important ones first. Among the nodes found it takes the one with the fewest
//! budgets violated, then the lowest highest priority, the lowest sum of
//! priorities, the fewest pods, and the latest start of its most important pods.
//! The pod is nominated there and waits for its victims to leave.
//!
//! # Rejects or scores when
//! Never. At PostFilter it says why it does not help: the pod's
//! `preemptionPolicy` is `Never`, victims on the nominated node are still
//! terminating, or no node becomes feasible. At PreEnqueue it keeps a pod out
//! while evictions for it are being requested.
//!
//! # Args
//! `DefaultPreemptionArgs`: `minCandidateNodesPercentage` (10) and
//! `minCandidateNodesAbsolute` (100), how many nodes to find victims on before
//! choosing.
//!
//! # Requeue events
//! None of its own: the core brings a pod back when the last of its victims is
//! gone, an eviction failed, or the nominated node has changed.
//!
//! # Parity
//! As kube-scheduler v1.36 with asynchronous preemption. Victims that were never
//! started count as equally young, and equals go by UID, where the reference
//! compares readings of the clock. Pods whose eviction was requested count as
//! terminating before the watch says so. A pod that waits for victims is woken
//! by the last one's departure for certain, not by chance of other plugins'
//! hints. Extenders cannot have pods evicted that do not rank below the preemptor.

pub mod args;
mod budgets;
mod choice;
mod dry_run;
mod victims;

use std::sync::Arc;

use steersman_api::disruption::PodDisruptionBudget;
use steersman_api::key::PodUid;
use steersman_api::object::StoredObject;
use steersman_api::pod::PodInfo;
use steersman_framework::cluster::Cluster;
use steersman_framework::events::{ClusterEvent, EnqueueExtensions, EventResource};
use steersman_framework::extensions::{Extensions, PostFilter, PostFilterCtx, PreEnqueue};
use steersman_framework::point::PointSet;
use steersman_framework::registry::Descriptor;
use steersman_framework::verdict::{
    PluginError, PostFilterVerdict, PreEnqueueVerdict, Reason, RejectKind,
};

use args::DefaultPreemptionArgs;
use dry_run::{DryRun, Found};

/// The plugin's name.
pub const NAME: &str = "DefaultPreemption";

const GATE: &str = "waiting for the preemption for this pod to be finished";
const NONE_LEFT: &str = "preemption: no candidate node for preemption";
const NEVER: &str = "preemption: not eligible due to preemptionPolicy=Never.";
const TERMINATING: &str =
    "preemption: not eligible due to a terminating pod on the nominated node.";

/// The plugin's entry in the registry.
pub fn descriptor() -> Descriptor {
    let points = PointSet::PRE_ENQUEUE | PointSet::POST_FILTER;
    Descriptor::with_args(NAME, points, |_, args: DefaultPreemptionArgs| {
        let plugin = Arc::new(DefaultPreemption { args });
        Ok(Extensions {
            pre_enqueue: Some(plugin.clone()),
            post_filter: Some(plugin.clone()),
            events: Some(plugin),
            ..Extensions::default()
        })
    })
}

struct DefaultPreemption {
    args: DefaultPreemptionArgs,
}

impl PreEnqueue for DefaultPreemption {
    fn pre_enqueue(
        &self,
        pod: &PodInfo,
        cluster: &Cluster,
    ) -> Result<PreEnqueueVerdict, PluginError> {
        Ok(match cluster.preemptions.holds(&pod.uid) {
            true => PreEnqueueVerdict::Gate(GATE.into()),
            false => PreEnqueueVerdict::Admit,
        })
    }
}

impl EnqueueExtensions for DefaultPreemption {
    fn events(&self) -> Vec<ClusterEvent> {
        Vec::new()
    }

    fn also_reads(&self) -> Vec<EventResource> {
        // Budgets decide who is evicted, never whether somebody can be.
        vec![EventResource(PodDisruptionBudget::RESOURCE)]
    }
}

impl PostFilter for DefaultPreemption {
    fn post_filter(&self, ctx: &PostFilterCtx<'_>) -> Result<PostFilterVerdict, PluginError> {
        if !ctx.cycle.pod.spec.may_preempt {
            let reasons = vec![NEVER.into()];
            return Ok(PostFilterVerdict::Unhelpful { reasons, clear_nomination: false });
        }
        let leaving = leaving_the_nominated_node(ctx);
        if !leaving.is_empty() {
            let reasons = vec![TERMINATING.into()];
            return Ok(PostFilterVerdict::Wait { reasons, victims: leaving });
        }
        let found = DryRun::new(ctx, &self.args).run().map_err(|error| named(&error))?;
        Ok(match found {
            Found::Candidates(candidates) => {
                let accepted = ctx.what_if.ask_extenders(candidates).map_err(|e| named(&e))?;
                match choice::best(accepted.into_iter().map(choice::sorted).collect()) {
                    Some(preemption) => PostFilterVerdict::Preempt(preemption),
                    None => {
                        let reasons = vec![NONE_LEFT.into()];
                        PostFilterVerdict::Unhelpful { reasons, clear_nomination: false }
                    }
                }
            }
            Found::Nothing(message) => {
                let reasons: Vec<Reason> = vec![format!("preemption: {message}").into()];
                PostFilterVerdict::Unhelpful { reasons, clear_nomination: true }
            }
        })
    }
}

fn named(error: &PluginError) -> PluginError {
    PluginError(format!("preemption: {error}"))
}

/// Whether `pod` may be evicted for `preemptor`.
fn is_below(pod: &PodInfo, preemptor: &PodInfo) -> bool {
    pod.spec.priority < preemptor.spec.priority
}

/// The pods of lower priority that preemption has sent away from the node that
/// the pod is nominated to, and that are still there. None when the pod could
/// not run there anyway: it had better look elsewhere.
fn leaving_the_nominated_node(ctx: &PostFilterCtx<'_>) -> Vec<PodUid> {
    let cluster = ctx.cycle.cluster;
    let Some(node) = ctx.nominated.and_then(|name| cluster.nodes().by_name(name)) else {
        return Vec::new();
    };
    let rejection = match ctx.diagnosis.rejected.get(&node.idx()) {
        Some(rejected) => Some(&rejected.rejection),
        None => ctx.diagnosis.others.as_ref().map(|others| &others.rejection),
    };
    // A node that nothing is said about was not worth looking at.
    if rejection.is_none_or(|it| it.kind == RejectKind::UnschedulableAndUnresolvable) {
        return Vec::new();
    }
    let is_leaving = |pod: &&Arc<PodInfo>| {
        is_below(pod, ctx.cycle.pod)
            && ((pod.terminating && pod.preempted) || cluster.preemptions.is_victim(&pod.uid))
    };
    node.pods().iter().filter(is_leaving).map(|pod| pod.uid.clone()).collect()
}

#[cfg(test)]
mod tests;

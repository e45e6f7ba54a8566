//! DynamicResources would allocate devices for the resource claims of pods.
//!
//! # What it does
//! Devices cannot be allocated yet. It keeps pods that name resource claims from
//! running without them, and says so; other pods it leaves alone.
//!
//! # Rejects or scores when
//! The pod names resource claims: `resource claims are not supported by this
//! scheduler yet`, on every node. Scores nothing.
//!
//! # Args
//! `DynamicResourcesArgs`: `filterTimeout`, `bindingTimeout`; without effect
//! until devices can be allocated.
//!
//! # Requeue events
//! None: nothing that happens in the cluster helps a pod with claims.
//!
//! # Parity
//! For pods without claims as kube-scheduler v1.36, what it says at PostFilter
//! included: `no new claims to deallocate`, or `not found` when another plugin
//! ended the cycle before it was asked. Pods with claims are refused.

pub mod args;

use std::sync::Arc;

use steersman_api::name::Name;
use steersman_api::node_info::NodeInfo;
use steersman_api::pod::PodInfo;
use steersman_framework::cluster::Cluster;
use steersman_framework::events::{ClusterEvent, EnqueueExtensions};
use steersman_framework::extensions::{
    BindCtx, BoxFuture, CycleCtx, Extensions, Filter, PostFilter, PostFilterCtx, PreBind,
    PreEnqueue, PreFilter, PrepareCtx, Reserve, ScorePlugin,
};
use steersman_framework::point::PointSet;
use steersman_framework::registry::Descriptor;
use steersman_framework::signature::{Scope, Sign, Signable, SignatureBuilder};
use steersman_framework::verdict::{
    FilterVerdict, PluginError, PostFilterVerdict, PreBindVerdict, PreEnqueueVerdict,
    PreFilterVerdict, Rejection, ReserveVerdict, Score,
};

use args::DynamicResourcesArgs;

/// The plugin's name.
pub const NAME: &str = "DynamicResources";

const REASON: &str = "resource claims are not supported by this scheduler yet";
const NOTHING_TO_DO: &str = "no new claims to deallocate";

/// The plugin's entry in the registry.
pub fn descriptor() -> Descriptor {
    let points = PointSet::PRE_ENQUEUE
        | PointSet::PRE_FILTER
        | PointSet::FILTER
        | PointSet::POST_FILTER
        | PointSet::SCORE
        | PointSet::RESERVE
        | PointSet::PRE_BIND;
    Descriptor::with_args(NAME, points, |_, _: DynamicResourcesArgs| {
        let plugin = Arc::new(DynamicResources);
        Ok(Extensions {
            pre_enqueue: Some(plugin.clone()),
            pre_filter: Some(plugin.clone()),
            filter: Some(plugin.clone()),
            post_filter: Some(plugin.clone()),
            score: Some(plugin.clone()),
            reserve: Some(plugin.clone()),
            pre_bind: Some(plugin.clone()),
            events: Some(plugin.clone()),
            sign: Some(plugin),
            ..Extensions::default()
        })
    })
}

struct DynamicResources;

/// Says that PreFilter has run.
#[derive(Clone, Copy)]
struct Asked;

fn refusal() -> Rejection {
    Rejection::unresolvable(REASON)
}

impl PreEnqueue for DynamicResources {
    fn pre_enqueue(&self, _: &PodInfo, _: &Cluster) -> Result<PreEnqueueVerdict, PluginError> {
        // Pods with claims are refused where users look for the reason: in the
        // message of their failed attempt.
        Ok(PreEnqueueVerdict::Admit)
    }
}

impl PreFilter for DynamicResources {
    fn pre_filter(&self, ctx: &mut PrepareCtx<'_>) -> Result<PreFilterVerdict, PluginError> {
        ctx.state.put(Asked);
        Ok(match ctx.pod.spec.has_resource_claims {
            true => PreFilterVerdict::Reject(refusal()),
            false => PreFilterVerdict::Skip,
        })
    }
}

impl Filter for DynamicResources {
    fn filter(&self, ctx: &CycleCtx<'_>, _: &NodeInfo) -> Result<FilterVerdict, PluginError> {
        Ok(match ctx.pod.spec.has_resource_claims {
            true => FilterVerdict::Reject(refusal()),
            false => FilterVerdict::Fit,
        })
    }

    fn scope(&self) -> Scope {
        Scope::Node
    }
}

impl PostFilter for DynamicResources {
    fn post_filter(&self, ctx: &PostFilterCtx<'_>) -> Result<PostFilterVerdict, PluginError> {
        if ctx.cycle.state.get::<Asked>().is_none() {
            return Err(PluginError("not found".to_owned()));
        }
        let reasons = vec![NOTHING_TO_DO.into()];
        Ok(PostFilterVerdict::Unhelpful { reasons, clear_nomination: false })
    }
}

impl ScorePlugin for DynamicResources {
    fn score(&self, _: &CycleCtx<'_>, _: &NodeInfo) -> Result<Score, PluginError> {
        Ok(0)
    }

    fn scope(&self) -> Scope {
        Scope::Node
    }
}

impl Reserve for DynamicResources {
    fn reserve(&self, ctx: &mut PrepareCtx<'_>, _: &Name) -> Result<ReserveVerdict, PluginError> {
        Ok(match ctx.pod.spec.has_resource_claims {
            true => ReserveVerdict::Reject(refusal()),
            false => ReserveVerdict::Reserved,
        })
    }

    fn unreserve(&self, _: &CycleCtx<'_>, _: &Name) {}
}

impl PreBind for DynamicResources {
    fn has_work(&self, _: &CycleCtx<'_>, _: &Name) -> bool {
        false
    }

    fn pre_bind<'a>(
        &'a self,
        ctx: BindCtx<'a>,
    ) -> BoxFuture<'a, Result<PreBindVerdict, PluginError>> {
        Box::pin(async move {
            Ok(match ctx.pod.spec.has_resource_claims {
                true => PreBindVerdict::Reject(refusal()),
                false => PreBindVerdict::Done,
            })
        })
    }
}

impl EnqueueExtensions for DynamicResources {
    fn events(&self) -> Vec<ClusterEvent> {
        Vec::new()
    }
}

impl Sign for DynamicResources {
    fn sign(&self, pod: &PodInfo, signature: &mut SignatureBuilder) -> Signable {
        signature.part("resourceClaims", &pod.spec.has_resource_claims);
        Signable::Yes
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use steersman_testing::bench::Bench;
    use steersman_testing::{node, pod};

    use super::*;

    #[test]
    fn pods_with_claims_are_refused_and_others_left_alone() {
        let bench = Bench::new(&descriptor()).nodes([node("n1")]);
        assert_eq!(bench.filter(&pod("a").build()), "skip\n");
        let claims = json!({"resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu"}]});
        assert_eq!(
            bench.filter(&pod("b").spec(claims).build()),
            "UnschedulableAndUnresolvable: resource claims are not supported by this scheduler \
             yet\n"
        );
    }
}

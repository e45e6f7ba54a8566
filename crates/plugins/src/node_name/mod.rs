//! NodeName keeps a pod that names its node off all others.
//!
//! # What it does
//! A pod may name its node in `spec.nodeName`. Such a pod needs no scheduler,
//! so this decides something only where a named node is judged before it is
//! taken for granted: in simulations and dry runs.
//!
//! # Rejects or scores when
//! The pod names another node: `node(s) didn't match the requested node name`,
//! which evictions cannot change.
//!
//! # Args
//! None.
//!
//! # Requeue events
//! The named node is added.
//!
//! # Parity
//! As kube-scheduler v1.36, which tries the pod again for every node that is
//! added, whatever its name.

use std::sync::Arc;

use steersman_api::name::Name;
use steersman_api::node_info::NodeInfo;
use steersman_api::pod::PodInfo;
use steersman_framework::events::{
    ActionType, Change, ClusterEvent, EnqueueExtensions, EventResource, Hint, HintCtx,
};
use steersman_framework::extensions::{CycleCtx, Extensions, Filter};
use steersman_framework::point::PointSet;
use steersman_framework::registry::Descriptor;
use steersman_framework::signature::{Scope, Sign, Signable, SignatureBuilder};
use steersman_framework::verdict::{FilterVerdict, PluginError, Rejection};

/// The plugin's name.
pub const NAME: &str = "NodeName";

const REASON: &str = "node(s) didn't match the requested node name";

/// The plugin's entry in the registry.
pub fn descriptor() -> Descriptor {
    Descriptor::plain(NAME, PointSet::FILTER, |_| {
        let plugin = Arc::new(NodeName);
        Ok(Extensions {
            filter: Some(plugin.clone()),
            events: Some(plugin.clone()),
            sign: Some(plugin),
            ..Extensions::default()
        })
    })
}

fn may_use(pod: &PodInfo, node: &Name) -> bool {
    pod.node_name.as_ref().is_none_or(|wanted| wanted == node)
}

struct NodeName;

impl Filter for NodeName {
    fn filter(&self, ctx: &CycleCtx<'_>, node: &NodeInfo) -> Result<FilterVerdict, PluginError> {
        Ok(match may_use(ctx.pod, node.name()) {
            true => FilterVerdict::Fit,
            false => FilterVerdict::Reject(Rejection::unresolvable(REASON)),
        })
    }

    fn scope(&self) -> Scope {
        Scope::Node
    }
}

impl EnqueueExtensions for NodeName {
    fn events(&self) -> Vec<ClusterEvent> {
        vec![ClusterEvent::new(EventResource::NODE, ActionType::ADD)]
    }

    fn hint(&self, ctx: &HintCtx<'_>, change: &Change) -> Result<Hint, PluginError> {
        Ok(match change {
            Change::Node { new: Some(new), .. } => Hint::queue_if(may_use(ctx.pod, &new.name)),
            _ => Hint::Queue,
        })
    }
}

impl Sign for NodeName {
    fn sign(&self, pod: &PodInfo, signature: &mut SignatureBuilder) -> Signable {
        signature.part("nodeName", &pod.node_name);
        Signable::Yes
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use steersman_testing::bench::Bench;
    use steersman_testing::{node, pod};

    use super::*;

    #[test]
    fn rejects_pod_on_nodes_that_it_does_not_name() {
        let bench = Bench::new(&descriptor()).nodes([node("n1"), node("n2")]);
        expect![[r"
            n1: fit
            n2: fit
        "]]
        .assert_eq(&bench.filter(&pod("a").build()));
        expect![[r"
            n1: UnschedulableAndUnresolvable: node(s) didn't match the requested node name
            n2: fit
        "]]
        .assert_eq(&bench.filter(&pod("a").on("n2").build()));
    }

    #[test]
    fn addition_of_the_named_node_brings_the_pod_back() {
        let bench = Bench::new(&descriptor());
        let hint = |name: &str| {
            let change = Change::Node { old: None, new: Some(node(name).build()) };
            bench.hint(&pod("a").on("n2").build(), &change)
        };
        assert_eq!(hint("n2"), Some(Hint::Queue));
        assert_eq!(hint("n1"), Some(Hint::Skip));
    }

    #[test]
    fn signature_holds_the_named_node() {
        let bench = Bench::new(&descriptor());
        assert_eq!(bench.signature(&pod("a").build()), bench.signature(&pod("b").build()));
        assert_ne!(
            bench.signature(&pod("a").on("n1").build()),
            bench.signature(&pod("a").on("n2").build())
        );
    }
}

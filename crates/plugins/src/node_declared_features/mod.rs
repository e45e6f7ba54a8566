//! NodeDeclaredFeatures keeps pods off nodes that lack a feature they need.
//!
//! # What it does
//! Nodes declare in `status.declaredFeatures` what their kubelet can do that
//! older ones cannot. What a pod needs of it follows from its spec:
//! `RestartAllContainersOnContainerExits` when a restart rule of a container or
//! init container says `RestartAllContainers`, and
//! `UserNamespacesHostNetworkSupport` when the pod has the host's network and
//! users of its own.
//!
//! # Rejects or scores when
//! The node does not declare a feature that the pod needs: `node(s) didn't
//! match Pod's required features`, which evictions cannot change. Left out for
//! pods that need none.
//!
//! # Args
//! None.
//!
//! # Requeue events
//! A node that is added and declares what the pod needs, or starts to. An
//! update of the pod itself after which it needs other features.
//!
//! # Parity
//! As kube-scheduler v1.36, whose other declared features are about updates of
//! running pods; there, every change of what a node declares brings pods back.

use std::sync::Arc;

use steersman_api::node::Node;
use steersman_api::node_info::NodeInfo;
use steersman_api::pod::PodInfo;
use steersman_framework::events::{
    ActionType, Change, ClusterEvent, EnqueueExtensions, EventResource, Hint, HintCtx,
};
use steersman_framework::extensions::{CycleCtx, Extensions, Filter, PreFilter, PrepareCtx};
use steersman_framework::point::PointSet;
use steersman_framework::registry::Descriptor;
use steersman_framework::signature::{Scope, Sign, Signable, SignatureBuilder};
use steersman_framework::verdict::{FilterVerdict, PluginError, PreFilterVerdict, Rejection};

/// The plugin's name.
pub const NAME: &str = "NodeDeclaredFeatures";

const REASON: &str = "node(s) didn't match Pod's required features";

/// The plugin's entry in the registry.
pub fn descriptor() -> Descriptor {
    Descriptor::plain(NAME, PointSet::PRE_FILTER | PointSet::FILTER, |_| {
        let plugin = Arc::new(NodeDeclaredFeatures);
        Ok(Extensions {
            pre_filter: Some(plugin.clone()),
            filter: Some(plugin.clone()),
            events: Some(plugin.clone()),
            sign: Some(plugin),
            ..Extensions::default()
        })
    })
}

fn has_all_features(node: &Node, pod: &PodInfo) -> bool {
    pod.spec.required_features.iter().all(|needed| node.declared_features.contains(needed))
}

struct NodeDeclaredFeatures;

impl PreFilter for NodeDeclaredFeatures {
    fn pre_filter(&self, ctx: &mut PrepareCtx<'_>) -> Result<PreFilterVerdict, PluginError> {
        Ok(match ctx.pod.spec.required_features.is_empty() {
            true => PreFilterVerdict::Skip,
            false => PreFilterVerdict::Proceed,
        })
    }
}

impl Filter for NodeDeclaredFeatures {
    fn filter(&self, ctx: &CycleCtx<'_>, node: &NodeInfo) -> Result<FilterVerdict, PluginError> {
        Ok(match has_all_features(node.node(), ctx.pod) {
            true => FilterVerdict::Fit,
            false => FilterVerdict::Reject(Rejection::unresolvable(REASON)),
        })
    }

    fn scope(&self) -> Scope {
        Scope::Node
    }
}

impl EnqueueExtensions for NodeDeclaredFeatures {
    fn events(&self) -> Vec<ClusterEvent> {
        let node = ActionType::ADD | ActionType::UPDATE_NODE_DECLARED_FEATURE;
        vec![
            ClusterEvent::new(EventResource::NODE, node),
            ClusterEvent::new(EventResource::TARGET_POD, ActionType::UPDATE),
        ]
    }

    fn hint(&self, ctx: &HintCtx<'_>, change: &Change) -> Result<Hint, PluginError> {
        Ok(match change {
            Change::Node { old, new: Some(new) } => {
                let lacked = old.as_ref().is_none_or(|old| !has_all_features(old, ctx.pod));
                Hint::queue_if(lacked && has_all_features(new, ctx.pod))
            }
            Change::TargetPod { old, new } => {
                Hint::queue_if(old.spec.required_features != new.spec.required_features)
            }
            _ => Hint::Queue,
        })
    }
}

impl Sign for NodeDeclaredFeatures {
    fn sign(&self, pod: &PodInfo, signature: &mut SignatureBuilder) -> Signable {
        signature.part("requiredFeatures", &pod.spec.required_features);
        Signable::Yes
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;
    use steersman_testing::bench::Bench;
    use steersman_testing::{NodeBuilder, PodBuilder, node, pod};

    use super::*;

    const USERS: &str = "UserNamespacesHostNetworkSupport";
    const RESTART: &str = "RestartAllContainersOnContainerExits";

    /// A pod that needs the feature [`USERS`].
    fn needy() -> PodBuilder {
        pod("a").spec(json!({"hostNetwork": true, "hostUsers": false}))
    }

    fn declaring(name: &str, features: &[&str]) -> NodeBuilder {
        node(name).status(json!({"declaredFeatures": features}))
    }

    #[test]
    fn rejects_nodes_that_do_not_declare_all_that_the_pod_needs() {
        let bench = Bench::new(&descriptor()).nodes([
            node("none"),
            declaring("users", &[USERS]),
            declaring("both", &[USERS, RESTART, "Other"]),
        ]);
        assert_eq!(bench.filter(&pod("a").build()), "skip\n");
        expect![[r"
            none: UnschedulableAndUnresolvable: node(s) didn't match Pod's required features
            users: fit
            both: fit
        "]]
        .assert_eq(&bench.filter(&needy().build()));
        let restarting = json!([{"name": "c", "image": "app", "restartPolicyRules": [
            {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [1]}}]}]);
        expect![[r"
            none: UnschedulableAndUnresolvable: node(s) didn't match Pod's required features
            users: UnschedulableAndUnresolvable: node(s) didn't match Pod's required features
            both: fit
        "]]
        .assert_eq(&bench.filter(&needy().spec(json!({"containers": restarting})).build()));
    }

    #[track_caller]
    fn check_node(old: Option<NodeBuilder>, new: NodeBuilder, expected: Option<Hint>) {
        let change = Change::Node { old: old.map(NodeBuilder::build), new: Some(new.build()) };
        assert_eq!(Bench::new(&descriptor()).hint(&needy().build(), &change), expected);
    }

    #[test]
    fn node_that_declares_the_features_now_brings_pods_back() {
        check_node(None, declaring("n", &[USERS]), Some(Hint::Queue));
        check_node(None, node("n"), Some(Hint::Skip));
        check_node(Some(node("n")), declaring("n", &[USERS]), Some(Hint::Queue));
        check_node(Some(node("n")), declaring("n", &[RESTART]), Some(Hint::Skip));
        check_node(Some(declaring("n", &[USERS])), node("n"), Some(Hint::Skip));
        check_node(Some(node("n")), node("n").label("k", "v"), None);
    }

    #[test]
    fn pod_comes_back_when_it_needs_other_features() {
        let hint = |new: PodBuilder| {
            let new = new.build();
            let change = Change::TargetPod { old: needy().build(), new: new.clone() };
            Bench::new(&descriptor()).hint(&new, &change)
        };
        assert_eq!(hint(pod("a")), Some(Hint::Queue));
        assert_eq!(hint(needy().label("k", "v")), Some(Hint::Skip));
    }

    #[test]
    fn signature_holds_the_features() {
        let signature = |pod: PodBuilder| Bench::new(&descriptor()).signature(&pod.build());
        assert_eq!(signature(pod("a")), signature(pod("b")));
        assert_ne!(signature(pod("a")), signature(needy()));
    }
}

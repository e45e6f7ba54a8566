//! NodeUnschedulable keeps pods off cordoned nodes.
//!
//! # What it does
//! `spec.unschedulable` on a node counts as a taint of the key
//! `node.kubernetes.io/unschedulable` with the effect `NoSchedule`.
//!
//! # Rejects or scores when
//! The node is cordoned and the pod does not tolerate that taint:
//! `node(s) were unschedulable`, which evictions cannot change.
//!
//! # Args
//! None.
//!
//! # Requeue events
//! A node that is added and is not cordoned, or is uncordoned. An update of
//! the pod itself after which it tolerates cordoned nodes.
//!
//! # Parity
//! As kube-scheduler v1.36.

use std::sync::Arc;

use steersman_api::name::Name;
use steersman_api::node_info::NodeInfo;
use steersman_api::pod::PodInfo;
use steersman_api::taint::{Taint, TaintEffect};
use steersman_framework::events::{
    ActionType, Change, ClusterEvent, EnqueueExtensions, EventResource, Hint, HintCtx,
};
use steersman_framework::extensions::{CycleCtx, Extensions, Filter};
use steersman_framework::point::PointSet;
use steersman_framework::registry::Descriptor;
use steersman_framework::signature::{Scope, Sign, Signable, SignatureBuilder};
use steersman_framework::verdict::{FilterVerdict, PluginError, Rejection};

/// The plugin's name.
pub const NAME: &str = "NodeUnschedulable";

const REASON: &str = "node(s) were unschedulable";
const TAINT_KEY: &str = "node.kubernetes.io/unschedulable";

/// The plugin's entry in the registry.
pub fn descriptor() -> Descriptor {
    Descriptor::plain(NAME, PointSet::FILTER, |_| {
        let plugin = Arc::new(NodeUnschedulable::new());
        Ok(Extensions {
            filter: Some(plugin.clone()),
            events: Some(plugin.clone()),
            sign: Some(plugin),
            ..Extensions::default()
        })
    })
}

struct NodeUnschedulable {
    /// What a cordon stands for.
    taint: Taint,
}

impl NodeUnschedulable {
    fn new() -> Self {
        let (key, value) = (TAINT_KEY.into(), Name::default());
        Self { taint: Taint { key, value, effect: TaintEffect::NoSchedule } }
    }

    fn tolerated_by(&self, pod: &PodInfo) -> bool {
        pod.spec.tolerations.iter().any(|toleration| toleration.tolerates(&self.taint))
    }
}

impl Filter for NodeUnschedulable {
    fn filter(&self, ctx: &CycleCtx<'_>, node: &NodeInfo) -> Result<FilterVerdict, PluginError> {
        Ok(match node.node().unschedulable && !self.tolerated_by(ctx.pod) {
            true => FilterVerdict::Reject(Rejection::unresolvable(REASON)),
            false => FilterVerdict::Fit,
        })
    }

    fn scope(&self) -> Scope {
        Scope::Node
    }
}

impl EnqueueExtensions for NodeUnschedulable {
    fn events(&self) -> Vec<ClusterEvent> {
        let node = ActionType::ADD | ActionType::UPDATE_NODE_TAINT;
        vec![
            ClusterEvent::new(EventResource::NODE, node),
            ClusterEvent::new(EventResource::TARGET_POD, ActionType::UPDATE_POD_TOLERATION),
        ]
    }

    fn hint(&self, _: &HintCtx<'_>, change: &Change) -> Result<Hint, PluginError> {
        Ok(match change {
            Change::Node { old, new: Some(new) } => {
                let was_closed = old.as_ref().is_none_or(|old| old.unschedulable);
                Hint::queue_if(was_closed && !new.unschedulable)
            }
            Change::TargetPod { old, new } => {
                Hint::queue_if(!self.tolerated_by(old) && self.tolerated_by(new))
            }
            _ => Hint::Queue,
        })
    }
}

impl Sign for NodeUnschedulable {
    fn sign(&self, pod: &PodInfo, signature: &mut SignatureBuilder) -> Signable {
        signature.part("tolerations", &pod.spec.tolerations);
        Signable::Yes
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use steersman_testing::bench::Bench;
    use steersman_testing::{NodeBuilder, node, pod};

    use super::*;

    fn tolerating(toleration: Value) -> Arc<PodInfo> {
        pod("a").spec(json!({"tolerations": [toleration]})).build()
    }

    fn cordoned(name: &str) -> NodeBuilder {
        node(name).spec(json!({"unschedulable": true}))
    }

    #[track_caller]
    fn check_filter(pod: &PodInfo, expected: &str) {
        let bench = Bench::new(&descriptor()).nodes([node("open"), cordoned("closed")]);
        assert_eq!(bench.filter(pod), format!("open: fit\nclosed: {expected}\n"));
    }

    #[test]
    fn rejects_pod_on_a_cordoned_node_unless_it_tolerates_that() {
        let rejected = "UnschedulableAndUnresolvable: node(s) were unschedulable";
        check_filter(&pod("a").build(), rejected);
        check_filter(&tolerating(json!({"key": TAINT_KEY, "operator": "Exists"})), "fit");
        check_filter(&tolerating(json!({"key": TAINT_KEY, "effect": "NoSchedule"})), "fit");
        check_filter(&tolerating(json!({"key": TAINT_KEY, "value": "true"})), rejected);
        let no_execute = json!({"key": TAINT_KEY, "operator": "Exists", "effect": "NoExecute"});
        check_filter(&tolerating(no_execute), rejected);
    }

    #[track_caller]
    fn check_node(old: Option<NodeBuilder>, new: NodeBuilder, expected: Option<Hint>) {
        let change = Change::Node { old: old.map(NodeBuilder::build), new: Some(new.build()) };
        assert_eq!(Bench::new(&descriptor()).hint(&pod("a").build(), &change), expected);
    }

    #[test]
    fn node_that_is_open_now_and_was_not_before_brings_pods_back() {
        check_node(None, node("n"), Some(Hint::Queue));
        check_node(None, cordoned("n"), Some(Hint::Skip));
        check_node(Some(cordoned("n")), node("n"), Some(Hint::Queue));
        check_node(Some(node("n")), cordoned("n"), Some(Hint::Skip));
        let tainted = node("n").taint("k", "v", "NoSchedule");
        check_node(Some(tainted), node("n"), Some(Hint::Skip));
        check_node(Some(node("n")), node("n").label("k", "v"), None);
    }

    #[test]
    fn pod_comes_back_when_it_starts_to_tolerate_cordoned_nodes() {
        let (intolerant, tolerant) =
            (pod("a").build(), tolerating(json!({"key": TAINT_KEY, "operator": "Exists"})));
        let other = tolerating(json!({"key": "k", "operator": "Exists"}));
        let hint = |new: &Arc<PodInfo>| {
            let change = Change::TargetPod { old: intolerant.clone(), new: new.clone() };
            Bench::new(&descriptor()).hint(new, &change)
        };
        assert_eq!(hint(&tolerant), Some(Hint::Queue));
        assert_eq!(hint(&other), Some(Hint::Skip));
    }

    #[test]
    fn signature_holds_the_tolerations() {
        let bench = Bench::new(&descriptor());
        let tolerant = tolerating(json!({"key": TAINT_KEY, "operator": "Exists"}));
        assert_eq!(bench.signature(&pod("a").build()), bench.signature(&pod("b").build()));
        assert_ne!(bench.signature(&pod("a").build()), bench.signature(&tolerant));
    }
}

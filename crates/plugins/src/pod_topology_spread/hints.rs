//! Which changes may lift a rejection.

use steersman_api::key::ObjectKey;
use steersman_api::name::Name;
use steersman_api::node::Node;
use steersman_api::object::{AnyObject, StoredObject};
use steersman_api::pod::{PodInfo, SpreadConstraint, WhenUnsatisfiable};
use steersman_api::workload::{ReplicaSet, ReplicationController, Service, StatefulSet};
use steersman_framework::events::{
    ActionType, Change, ClusterEvent, EnqueueExtensions, EventResource, Hint, HintCtx,
};
use steersman_framework::verdict::PluginError;

use super::PodTopologySpread;
use super::constraints::{
    KnownOwner, counts_labels, has_all_keys, includes, known_owner, pairs_if_selected,
};

/// What says which pods belong together.
const KIN: [EventResource; 4] = [
    EventResource(Service::RESOURCE),
    EventResource(ReplicationController::RESOURCE),
    EventResource(ReplicaSet::RESOURCE),
    EventResource(StatefulSet::RESOURCE),
];

impl EnqueueExtensions for PodTopologySpread {
    fn events(&self) -> Vec<ClusterEvent> {
        let came_or_went = ActionType::ADD | ActionType::DELETE;
        let mut events = vec![
            // Termination may come together with any other update.
            ClusterEvent::new(EventResource::ASSIGNED_POD, came_or_went | ActionType::UPDATE),
            ClusterEvent::new(
                EventResource::NODE,
                came_or_went | ActionType::UPDATE_NODE_LABEL | ActionType::UPDATE_NODE_TAINT,
            ),
            ClusterEvent::new(EventResource::TARGET_POD, ActionType::UPDATE),
        ];
        if self.defaults.can_reject() {
            let changed = came_or_went | ActionType::UPDATE_OTHER;
            events.extend(KIN.map(|resource| ClusterEvent::new(resource, changed)));
        }
        events
    }

    fn also_reads(&self) -> Vec<EventResource> {
        // Defaults that only prefer nodes lift nothing and select by these.
        if self.defaults.is_empty() { Vec::new() } else { KIN.to_vec() }
    }

    fn hint(&self, ctx: &HintCtx<'_>, change: &Change) -> Result<Hint, PluginError> {
        if let Change::Object { old, new } = change {
            let changed = ctx.pod.spec.spread_constraints.is_empty()
                && kin_changed(ctx.pod, old.as_ref(), new.as_ref());
            return Ok(Hint::queue_if(changed));
        }
        let stores = &ctx.cluster.stores;
        let constraints =
            self.defaults.constraints_of(ctx.pod, stores, WhenUnsatisfiable::DoNotSchedule);
        // Nothing rejects the pod any more.
        if constraints.is_empty() {
            return Ok(Hint::Queue);
        }
        let view = View { ctx, constraints: &constraints };
        Ok(Hint::queue_if(match change {
            Change::AssignedPod { old, new } => view.pod_changed(old.as_deref(), new.as_deref()),
            Change::Node { old, new } => view.node_changed(old.as_deref(), new.as_deref()),
            Change::TargetPod { old, new } => target_changed(old, new),
            Change::UnscheduledPod { .. } | Change::Object { .. } => false,
        }))
    }
}

fn target_changed(old: &PodInfo, new: &PodInfo) -> bool {
    old.labels != new.labels || old.spec != new.spec || old.controller != new.controller
}

/// The pod's `DoNotSchedule` constraints in the cluster as it is now.
struct View<'a> {
    ctx: &'a HintCtx<'a>,
    constraints: &'a [SpreadConstraint],
}

impl View<'_> {
    /// Whether a pod changed the counts. A higher count helps when its domain
    /// was the one with the fewest pods, which would take a recount to tell.
    fn pod_changed(&self, old: Option<&PodInfo>, new: Option<&PodInfo>) -> bool {
        let Some(name) = old.or(new).and_then(node_of) else { return true };
        // The pods of an unknown node are not counted.
        let Some(info) = self.ctx.cluster.nodes().by_name(name) else { return false };
        has_all_keys(&info.node().labels, self.constraints)
            && self.constraints.iter().any(|constraint| {
                let counts = |pod: Option<&PodInfo>| {
                    pod.is_some_and(|p| {
                        p.key.namespace == self.ctx.pod.key.namespace
                            && !p.terminating
                            && counts_labels(constraint, &p.labels)
                    })
                };
                counts(old) != counts(new) && includes(constraint, &self.ctx.pod.spec, info.node())
            })
    }

    fn node_changed(&self, old: Option<&Node>, new: Option<&Node>) -> bool {
        let before = old.and_then(|node| self.footprint(node));
        let after = new.and_then(|node| self.footprint(node));
        match (before, new) {
            (Some(domains), None) => domains.iter().any(|(_, counts)| *counts),
            (before, _) => before != after,
        }
    }

    /// The domains of a node, and whether its pods count there. `None` when the
    /// node makes no difference: it lacks a label, or it counts nowhere and the
    /// pod may not run on it.
    fn footprint<'n>(&self, node: &'n Node) -> Option<Vec<(&'n Name, bool)>> {
        let spec = &self.ctx.pod.spec;
        let domain = |constraint: &SpreadConstraint| {
            let value = node.labels.get(&constraint.topology_key)?;
            Some((value, includes(constraint, spec, node)))
        };
        let domains = self.constraints.iter().map(domain).collect::<Option<Vec<_>>>()?;
        let matters = domains.iter().any(|(_, counts)| *counts) || spec.allows_node(node);
        matters.then_some(domains)
    }
}

/// Where a pod is, or is expected.
fn node_of(pod: &PodInfo) -> Option<&Name> {
    pod.node_name.as_ref().or(pod.nominated_node.as_ref())
}

/// Whether a service or controller says something new about which pods belong
/// together with `pod`.
fn kin_changed(pod: &PodInfo, old: Option<&AnyObject>, new: Option<&AnyObject>) -> bool {
    let Some(object) = new.or(old) else { return false };
    if object.key().namespace != pod.key.namespace {
        return false;
    }
    if object.resource() == Service::RESOURCE {
        let pairs = |object: Option<&AnyObject>| {
            let service = object?.get::<Service>()?;
            pairs_if_selected(service, pod).cloned()
        };
        return pairs(old) != pairs(new);
    }
    let owns =
        |name: &Name| *object.key() == ObjectKey::namespaced(pod.key.namespace.clone(), name);
    match known_owner(pod) {
        Some(KnownOwner::ReplicationController(name)) if owns(name) => {
            differ::<ReplicationController>(old, new)
        }
        Some(KnownOwner::ReplicaSet(name)) if owns(name) => differ::<ReplicaSet>(old, new),
        Some(KnownOwner::StatefulSet(name)) if owns(name) => differ::<StatefulSet>(old, new),
        _ => false,
    }
}

/// Whether two versions of an object differ; not when it is of another kind.
fn differ<T: StoredObject + PartialEq>(old: Option<&AnyObject>, new: Option<&AnyObject>) -> bool {
    old.and_then(AnyObject::get::<T>) != new.and_then(AnyObject::get::<T>)
}

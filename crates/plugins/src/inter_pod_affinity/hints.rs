//! Which changes may lift a rejection.

use steersman_api::labels::Labels;
use steersman_api::name::Name;
use steersman_api::namespace::Namespace;
use steersman_api::node::Node;
use steersman_api::object::{AnyObject, StoredObject};
use steersman_api::pod::{AffinityTerm, PodAffinity, PodInfo};
use steersman_framework::cluster::Stores;
use steersman_framework::events::{
    ActionType, Change, ClusterEvent, EnqueueExtensions, EventResource, Hint, HintCtx,
};
use steersman_framework::verdict::PluginError;

use super::InterPodAffinity;
use super::terms::{Seen, all_mean, means, selects};

impl EnqueueExtensions for InterPodAffinity {
    fn events(&self) -> Vec<ClusterEvent> {
        let came_or_went = ActionType::ADD | ActionType::DELETE;
        let event = |resource, update| ClusterEvent::new(resource, came_or_went | update);
        vec![
            event(EventResource::ASSIGNED_POD, ActionType::UPDATE_POD_LABEL),
            event(EventResource::NODE, ActionType::UPDATE_NODE_LABEL),
            event(EventResource(Namespace::RESOURCE), ActionType::UPDATE_OTHER),
            ClusterEvent::new(EventResource::TARGET_POD, ActionType::UPDATE),
        ]
    }

    fn hint(&self, ctx: &HintCtx<'_>, change: &Change) -> Result<Hint, PluginError> {
        let view = View::new(ctx);
        Ok(Hint::queue_if(match change {
            Change::AssignedPod { old, new } => view.pod_changed(old.as_deref(), new.as_deref()),
            Change::Node { old: None, new: Some(new) } => view.node_came(new),
            // Its pods went with it, and they are not known any more.
            Change::Node { old: Some(_), new: None } => true,
            Change::Node { old: Some(old), new: Some(new) } => {
                view.node_moved(&old.labels, &new.labels)
            }
            Change::Object { old, new } => view.namespace_changed(old.as_ref(), new.as_ref()),
            Change::TargetPod { old, new } => {
                old.labels != new.labels || old.spec.affinity != new.spec.affinity
            }
            Change::Node { old: None, new: None } | Change::UnscheduledPod { .. } => false,
        }))
    }
}

/// The rejected pod in the cluster as it is now.
struct View<'a> {
    ctx: &'a HintCtx<'a>,
    own: &'a PodAffinity,
    stores: &'a Stores,
    seen: Seen<'a>,
}

impl<'a> View<'a> {
    fn new(ctx: &'a HintCtx<'a>) -> Self {
        let stores = &ctx.cluster.stores;
        Self { ctx, own: &ctx.pod.spec.affinity, stores, seen: Seen::new(ctx.pod, stores) }
    }

    fn pod_changed(&self, old: Option<&PodInfo>, new: Option<&PodInfo>) -> bool {
        if self.ceased_to_refuse(old, new) {
            return true;
        }
        let node = match old.or(new).and_then(node_of) {
            Some(name) => match self.ctx.cluster.nodes().by_name(name) {
                Some(info) => Some(&info.node().labels),
                // The pods of an unknown node are not counted.
                None => return false,
            },
            None => None,
        };
        let has_domain = |term: &&AffinityTerm| {
            node.is_none_or(|labels| labels.contains_key(&term.topology_key))
        };
        let mut unwanted = self.own.required_anti.iter().filter(has_domain);
        let meant = |term, pod: Option<&PodInfo>| pod.is_some_and(|p| means(term, p, self.stores));
        if unwanted.any(|term| meant(term, old) && !meant(term, new)) {
            return true;
        }
        let wanted = |pod: Option<&PodInfo>| {
            pod.is_some_and(|p| all_mean(&self.own.required, p, self.stores))
        };
        self.own.required.iter().any(|term| has_domain(&term))
            && match (wanted(old), wanted(new)) {
                (false, true) => true,
                (true, false) => self.may_be_first(),
                _ => false,
            }
    }

    /// Whether the pod's anti-affinity refused the rejected pod and does so no
    /// more. The node is not asked for its domain: it may have lost the label
    /// since, and the pod is not there to tell at that change.
    fn ceased_to_refuse(&self, old: Option<&PodInfo>, new: Option<&PodInfo>) -> bool {
        let Some(old) = old else { return false };
        let still_says = new.is_some_and(|new| new.spec.affinity == old.spec.affinity);
        !still_says
            && old.spec.affinity.required_anti.iter().any(|term| self.seen.is_meant_by(term))
    }

    /// Whether the pod could be the first of a group that wants to be together,
    /// if no other were there.
    fn may_be_first(&self) -> bool {
        all_mean(&self.own.required, self.ctx.pod, self.stores)
    }

    fn node_came(&self, node: &Node) -> bool {
        let required = &self.own.required;
        let has_domain = |term: &AffinityTerm| node.labels.contains_key(&term.topology_key);
        if required.iter().all(has_domain) {
            return true;
        }
        // The pod cannot run there, but the node may have brought pods into a
        // domain of others.
        let info = self.ctx.cluster.nodes().by_name(&node.name);
        let mut pods = info.into_iter().flat_map(|info| info.pods());
        required.iter().any(has_domain) && pods.any(|pod| all_mean(required, pod, self.stores))
    }

    fn node_moved(&self, old: &Labels, new: &Labels) -> bool {
        let moved =
            |term: &AffinityTerm| old.get(&term.topology_key) != new.get(&term.topology_key);
        let came = |term: &AffinityTerm| moved(term) && new.contains_key(&term.topology_key);
        let affinity = if self.may_be_first() {
            self.own.required.iter().any(moved)
        } else {
            self.own.required.iter().any(came)
        };
        let refuses = |term: &AffinityTerm| moved(term) && self.seen.is_meant_by(term);
        affinity
            || self.own.required_anti.iter().any(moved)
            || self
                .ctx
                .cluster
                .affinity()
                .iter()
                .any(|group| group.affinity.required_anti.iter().any(refuses))
    }

    fn namespace_changed(&self, old: Option<&AnyObject>, new: Option<&AnyObject>) -> bool {
        let Some(object) = new.or(old) else { return false };
        let (old, new) = (labels_of(old), labels_of(new));
        if old == new {
            return false;
        }
        // Terms of other pods may have meant the pod by its namespace.
        if *self.ctx.pod.key.namespace == *object.key().name {
            return true;
        }
        let before = |term: &AffinityTerm| selects(term, || old);
        let after = |term: &AffinityTerm| selects(term, || new);
        self.own.required.iter().any(|term| !before(term) && after(term))
            || self.own.required_anti.iter().any(|term| before(term) && !after(term))
            || (self.own.required.iter().any(|term| before(term) && !after(term))
                && self.may_be_first())
    }
}

fn labels_of(namespace: Option<&AnyObject>) -> Option<&Labels> {
    Some(&namespace?.get::<Namespace>()?.labels)
}

/// Where a pod is, or is expected.
fn node_of(pod: &PodInfo) -> Option<&Name> {
    pod.node_name.as_ref().or(pod.nominated_node.as_ref())
}

//! Cluster events and queueing hints: which changes of the cluster may make a
//! rejected pod schedulable.

use std::fmt;
use std::sync::Arc;

use bitflags::bitflags;
use steersman_api::node::Node;
use steersman_api::object::AnyObject;
use steersman_api::pod::PodInfo;

use crate::cluster::Cluster;
use crate::verdict::PluginError;

/// What kind of thing changed. Upstream's names, as metrics and logs have them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventResource(pub &'static str);

impl EventResource {
    /// A node.
    pub const NODE: Self = Self("Node");
    /// A pod that has a node.
    pub const ASSIGNED_POD: Self = Self("AssignedPod");
    /// The rejected pod itself.
    pub const TARGET_POD: Self = Self("TargetPod");
    /// Another pod without a node.
    pub const UNSCHEDULED_POD: Self = Self("UnscheduledPod");
    /// Anything at all.
    pub const WILDCARD: Self = Self("*");
}

bitflags! {
    /// How it changed.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub struct ActionType: u32 {
        /// It came.
        const ADD = 1;
        /// It went.
        const DELETE = 1 << 1;
        /// A node's allocatable resources.
        const UPDATE_NODE_ALLOCATABLE = 1 << 2;
        /// A node's labels.
        const UPDATE_NODE_LABEL = 1 << 3;
        /// A node's taints or `spec.unschedulable`.
        const UPDATE_NODE_TAINT = 1 << 4;
        /// A node's conditions.
        const UPDATE_NODE_CONDITION = 1 << 5;
        /// A node's annotations.
        const UPDATE_NODE_ANNOTATION = 1 << 6;
        /// A node's declared features.
        const UPDATE_NODE_DECLARED_FEATURE = 1 << 7;
        /// A pod's labels.
        const UPDATE_POD_LABEL = 1 << 8;
        /// A pod asks for less of some resource.
        const UPDATE_POD_SCALE_DOWN = 1 << 9;
        /// A pod asks for more of some resource.
        const UPDATE_POD_SCALE_UP = 1 << 10;
        /// A pod's tolerations.
        const UPDATE_POD_TOLERATION = 1 << 11;
        /// A pod lost its last scheduling gate.
        const UPDATE_POD_SCHEDULING_GATES_ELIMINATED = 1 << 12;
        /// The resource claims generated for a pod.
        const UPDATE_POD_GENERATED_RESOURCE_CLAIM = 1 << 13;
        /// A change that no finer action names.
        const UPDATE_OTHER = 1 << 14;
        /// Any update.
        const UPDATE = Self::UPDATE_NODE_ALLOCATABLE.bits()
            | Self::UPDATE_NODE_LABEL.bits()
            | Self::UPDATE_NODE_TAINT.bits()
            | Self::UPDATE_NODE_CONDITION.bits()
            | Self::UPDATE_NODE_ANNOTATION.bits()
            | Self::UPDATE_NODE_DECLARED_FEATURE.bits()
            | Self::UPDATE_POD_LABEL.bits()
            | Self::UPDATE_POD_SCALE_DOWN.bits()
            | Self::UPDATE_POD_SCALE_UP.bits()
            | Self::UPDATE_POD_TOLERATION.bits()
            | Self::UPDATE_POD_SCHEDULING_GATES_ELIMINATED.bits()
            | Self::UPDATE_POD_GENERATED_RESOURCE_CLAIM.bits()
            | Self::UPDATE_OTHER.bits();
        /// Anything.
        const ALL = u32::MAX;
    }
}

/// A kind of change, or a set of kinds, of one kind of thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClusterEvent {
    /// What changed.
    pub resource: EventResource,
    /// How. An update of several parts has several actions.
    pub actions: ActionType,
}

impl ClusterEvent {
    /// An event.
    pub const fn new(resource: EventResource, actions: ActionType) -> Self {
        Self { resource, actions }
    }

    /// Whether a plugin that registered `self` wants to hear of `happened`.
    pub fn covers(&self, happened: &Self) -> bool {
        (self.resource == EventResource::WILDCARD || self.resource == happened.resource)
            && self.actions.intersects(happened.actions)
    }
}

impl fmt::Display for ClusterEvent {
    /// The label that metrics carry: `NodeAdd`, `NodeUpdateNodeLabel`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.resource.0)?;
        if self.actions == ActionType::ALL {
            return f.write_str("All");
        }
        for (name, _) in self.actions.iter_names() {
            if name == "UPDATE" && self.actions != ActionType::UPDATE {
                continue;
            }
            for word in name.split('_').filter(|word| *word != "OTHER") {
                let (first, rest) = word.split_at(1);
                write!(f, "{first}{}", rest.to_lowercase())?;
            }
        }
        Ok(())
    }
}

/// One change of the cluster, with what was there before and after. Additions
/// have no `old`, deletions no `new`.
#[derive(Clone, Debug)]
pub enum Change {
    /// A node.
    Node {
        /// Before.
        old: Option<Arc<Node>>,
        /// After.
        new: Option<Arc<Node>>,
    },
    /// A pod that has a node (in `old` or `new`), assumed ones included.
    AssignedPod {
        /// Before.
        old: Option<Arc<PodInfo>>,
        /// After.
        new: Option<Arc<PodInfo>>,
    },
    /// The rejected pod itself was updated.
    TargetPod {
        /// Before.
        old: Arc<PodInfo>,
        /// After.
        new: Arc<PodInfo>,
    },
    /// Another pod without a node.
    UnscheduledPod {
        /// Before.
        old: Option<Arc<PodInfo>>,
        /// After.
        new: Option<Arc<PodInfo>>,
    },
    /// Any other object.
    Object {
        /// Before.
        old: Option<AnyObject>,
        /// After.
        new: Option<AnyObject>,
    },
}

/// Whether a change may help a pod.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// It may: try the pod again.
    Queue,
    /// It does not.
    Skip,
}

impl Hint {
    /// [`Hint::Queue`] when `may_help`.
    pub const fn queue_if(may_help: bool) -> Self {
        if may_help { Self::Queue } else { Self::Skip }
    }
}

/// What a hint may look at.
#[derive(Clone, Copy, Debug)]
pub struct HintCtx<'a> {
    /// The rejected pod.
    pub pod: &'a PodInfo,
    /// The cluster after the change; changes that came later may show too.
    pub cluster: &'a Cluster,
}

/// Which events may lift a plugin's rejections.
///
/// Two rules: complete (a change that lifts a rejection is never skipped, or
/// the pod waits for the last-resort flush) and precise (a change that cannot
/// is skipped, or the pod is tried in vain).
pub trait EnqueueExtensions: Send + Sync {
    /// The events to hear of.
    fn events(&self) -> Vec<ClusterEvent>;

    /// Kinds of objects that the plugin reads besides those of its events:
    /// their changes lift no rejection, and yet they have to be known.
    fn also_reads(&self) -> Vec<EventResource> {
        Vec::new()
    }

    /// Whether a change may help a pod that this plugin rejected. Called for
    /// changes that [`EnqueueExtensions::events`] covers.
    ///
    /// # Errors
    /// An error counts as [`Hint::Queue`] and is logged.
    fn hint(&self, ctx: &HintCtx<'_>, change: &Change) -> Result<Hint, PluginError> {
        let _ = (ctx, change);
        Ok(Hint::Queue)
    }
}

impl Change {
    /// What happened, in the terms plugins register for. `None` when nothing
    /// that scheduling reads has changed.
    pub fn event(&self) -> Option<ClusterEvent> {
        let (resource, actions) = match self {
            Self::Node { old, new } => (EventResource::NODE, actions(old, new, node_actions)),
            Self::AssignedPod { old, new } => {
                (EventResource::ASSIGNED_POD, actions(old, new, |o, n| pod_actions(o, n)))
            }
            Self::UnscheduledPod { old, new } => {
                (EventResource::UNSCHEDULED_POD, actions(old, new, |o, n| pod_actions(o, n)))
            }
            Self::TargetPod { old, new } => {
                let mut actions = pod_actions(old, new);
                if actions.is_empty() && whole_spec_differs(old, new) {
                    actions = ActionType::UPDATE_OTHER;
                }
                (EventResource::TARGET_POD, actions)
            }
            Self::Object { old, new } => {
                let resource = new.as_ref().or(old.as_ref())?.resource();
                let actions = actions(old, new, |_, _| ActionType::UPDATE_OTHER);
                (EventResource(resource), actions)
            }
        };
        (!actions.is_empty()).then_some(ClusterEvent { resource, actions })
    }
}

fn actions<T>(
    old: &Option<T>,
    new: &Option<T>,
    update: impl Fn(&T, &T) -> ActionType,
) -> ActionType {
    match (old, new) {
        (None, None) => ActionType::empty(),
        (None, Some(_)) => ActionType::ADD,
        (Some(_), None) => ActionType::DELETE,
        (Some(old), Some(new)) => update(old, new),
    }
}

fn node_actions(old: &Arc<Node>, new: &Arc<Node>) -> ActionType {
    let mut actions = ActionType::empty();
    let allocatable = |n: &Node| (n.allocatable.clone(), n.allowed_pods);
    actions.set(ActionType::UPDATE_NODE_ALLOCATABLE, allocatable(old) != allocatable(new));
    actions.set(ActionType::UPDATE_NODE_LABEL, old.labels != new.labels);
    actions.set(
        ActionType::UPDATE_NODE_TAINT,
        old.taints != new.taints || old.unschedulable != new.unschedulable,
    );
    actions.set(ActionType::UPDATE_NODE_CONDITION, old.conditions != new.conditions);
    actions.set(ActionType::UPDATE_NODE_ANNOTATION, old.annotations != new.annotations);
    actions.set(
        ActionType::UPDATE_NODE_DECLARED_FEATURE,
        old.declared_features != new.declared_features,
    );
    actions
}

fn pod_actions(old: &PodInfo, new: &PodInfo) -> ActionType {
    let mut actions = ActionType::empty();
    actions.set(ActionType::UPDATE_POD_LABEL, old.labels != new.labels);
    let (before, after) = (&old.resources.requests, &new.resources.requests);
    actions.set(ActionType::UPDATE_POD_SCALE_DOWN, asks_for_less(before, after));
    actions.set(ActionType::UPDATE_POD_SCALE_UP, asks_for_less(after, before));
    actions.set(ActionType::UPDATE_POD_TOLERATION, old.spec.tolerations != new.spec.tolerations);
    actions.set(
        ActionType::UPDATE_POD_SCHEDULING_GATES_ELIMINATED,
        !old.spec.scheduling_gates.is_empty() && new.spec.scheduling_gates.is_empty(),
    );
    let changed = old.spec != new.spec
        || old.terminating != new.terminating
        || old.controller != new.controller
        || annotations_differ(old, new);
    if actions.is_empty() && changed {
        actions = ActionType::UPDATE_OTHER;
    }
    actions
}

/// Annotations are known only where somebody outside looks at them.
fn annotations_differ(old: &PodInfo, new: &PodInfo) -> bool {
    let (Some(before), Some(after)) = (&old.object, &new.object) else { return false };
    let before = before.metadata.annotations.as_ref().filter(|all| !all.is_empty());
    let after = after.metadata.annotations.as_ref().filter(|all| !all.is_empty());
    before != after
}

/// Whether parts of the spec changed that no plugin reads.
fn whole_spec_differs(old: &PodInfo, new: &PodInfo) -> bool {
    match (&old.object, &new.object) {
        (Some(before), Some(after)) => !Arc::ptr_eq(before, after) && before.spec != after.spec,
        _ => false,
    }
}

/// Whether `after` is smaller than `before` in some resource.
fn asks_for_less(
    before: &steersman_api::resources::Resources,
    after: &steersman_api::resources::Resources,
) -> bool {
    after.milli_cpu < before.milli_cpu
        || after.memory < before.memory
        || after.ephemeral_storage < before.ephemeral_storage
        || before.scalars().any(|(name, amount)| after.scalar(name) < amount)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_labelled_as_in_metrics() {
        let label = |resource, actions| ClusterEvent::new(resource, actions).to_string();
        assert_eq!(label(EventResource::NODE, ActionType::ADD), "NodeAdd");
        assert_eq!(
            label(EventResource::NODE, ActionType::UPDATE_NODE_LABEL),
            "NodeUpdateNodeLabel"
        );
        assert_eq!(label(EventResource("Service"), ActionType::UPDATE_OTHER), "ServiceUpdate");
        assert_eq!(label(EventResource::WILDCARD, ActionType::ALL), "*All");
    }

    #[test]
    fn node_update_names_every_part_that_changed() {
        let old = Arc::new(Node { name: "n".into(), ..Node::default() });
        let mut new = (*old).clone();
        new.unschedulable = true;
        new.allowed_pods = 7;
        let change = Change::Node { old: Some(old.clone()), new: Some(Arc::new(new)) };
        assert_eq!(
            change.event().map(|e| e.actions),
            Some(ActionType::UPDATE_NODE_TAINT | ActionType::UPDATE_NODE_ALLOCATABLE)
        );
        let nothing = Change::Node { old: Some(old.clone()), new: Some(old) };
        assert_eq!(nothing.event(), None);
    }
}

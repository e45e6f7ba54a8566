//! Which changes may give a pod the room that it lacked.

use steersman_api::name::Name;
use steersman_api::node_info::NodeInfo;
use steersman_api::pod::PodInfo;
use steersman_api::resources::Resources;
use steersman_framework::events::{
    ActionType, Change, ClusterEvent, EnqueueExtensions, EventResource, Hint, HintCtx,
};
use steersman_framework::verdict::PluginError;

use super::Fit;
use super::room::Room;

impl EnqueueExtensions for Fit {
    fn events(&self) -> Vec<ClusterEvent> {
        use ActionType as A;
        use EventResource as R;
        vec![
            ClusterEvent::new(R::NODE, A::ADD | A::UPDATE_NODE_ALLOCATABLE),
            ClusterEvent::new(R::ASSIGNED_POD, A::DELETE | A::UPDATE_POD_SCALE_DOWN),
            ClusterEvent::new(R::TARGET_POD, A::UPDATE_POD_SCALE_DOWN),
            // Pods that are nominated to a node count as if they were there.
            ClusterEvent::new(
                R::UNSCHEDULED_POD,
                A::DELETE | A::UPDATE_POD_SCALE_DOWN | A::UPDATE_OTHER,
            ),
        ]
    }

    fn hint(&self, ctx: &HintCtx<'_>, change: &Change) -> Result<Hint, PluginError> {
        let asks = &ctx.pod.resources.requests;
        let may_help = match change {
            Change::Node { old, new: Some(new) } => {
                let grew = old.as_ref().is_none_or(|old| {
                    new.allowed_pods > old.allowed_pods
                        || is_less(asks, &old.allocatable, &new.allocatable)
                });
                grew && self.has_room(ctx, &new.name, Evictions::Considered)
            }
            Change::AssignedPod { old: Some(old), new } => {
                let node = old.node_name.as_ref();
                let gives_way = gives_way(asks, old, new.as_deref());
                gives_way && node.is_some_and(|node| self.has_room(ctx, node, evictions(ctx, old)))
            }
            Change::UnscheduledPod { old: Some(old), new } => {
                let node = old.nominated_node.as_ref();
                let stays = new.as_ref().filter(|new| new.nominated_node == old.nominated_node);
                // Nominated pods of lower priority are not counted.
                old.spec.priority >= ctx.pod.spec.priority
                    && gives_way(asks, old, stays.map(|new| &**new))
                    && node.is_some_and(|n| self.has_room(ctx, n, Evictions::Considered))
            }
            Change::TargetPod { .. } => true,
            Change::Node { .. }
            | Change::AssignedPod { .. }
            | Change::UnscheduledPod { .. }
            | Change::Object { .. } => false,
        };
        Ok(Hint::queue_if(may_help))
    }
}

/// Whether a hint thinks of the evictions that preemption could do.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Evictions {
    Considered,
    LeftOut,
}

/// The departure of a pod that could have been evicted anyway does not make
/// preemption possible where it was not.
fn evictions(ctx: &HintCtx<'_>, leaver: &PodInfo) -> Evictions {
    if leaver.spec.priority >= ctx.pod.spec.priority {
        Evictions::Considered
    } else {
        Evictions::LeftOut
    }
}

impl Fit {
    /// Whether the node has room for the pod now, or would have after
    /// evictions.
    fn has_room(&self, ctx: &HintCtx<'_>, node: &Name, evictions: Evictions) -> bool {
        let Some(node) = ctx.cluster.nodes().by_name(node) else { return false };
        let fits = |room: Room<'_>| room.fits(&ctx.pod.resources.requests, &self.ignored);
        fits(Room::left_on(node))
            || (evictions == Evictions::Considered
                && ctx.pod.spec.may_preempt
                && has_lower(node, ctx.pod.spec.priority)
                && fits(Room::without_lower(node, ctx.pod.spec.priority)))
    }
}

fn has_lower(node: &NodeInfo, priority: i32) -> bool {
    node.pods().iter().any(|p| p.spec.priority < priority)
}

/// Whether a pod goes away, or asks for less of something that is in `asks`.
fn gives_way(asks: &Resources, old: &PodInfo, new: Option<&PodInfo>) -> bool {
    new.is_none_or(|new| is_less(asks, &new.resources.requests, &old.resources.requests))
}

/// Whether some resource in `asks` is less in `a` than in `b`.
fn is_less(asks: &Resources, a: &Resources, b: &Resources) -> bool {
    (asks.milli_cpu > 0 && a.milli_cpu < b.milli_cpu)
        || (asks.memory > 0 && a.memory < b.memory)
        || (asks.ephemeral_storage > 0 && a.ephemeral_storage < b.ephemeral_storage)
        || asks.scalars().any(|(name, _)| a.scalar(name) < b.scalar(name))
}

//! Which changes may make room for a pod's volumes.

use std::collections::BTreeSet;

use steersman_api::csi_node::CsiNode;
use steersman_api::key::ObjectKey;
use steersman_api::name::Name;
use steersman_api::object::{AnyObject, StoredObject};
use steersman_api::persistent_volume::PersistentVolume;
use steersman_api::persistent_volume_claim::PersistentVolumeClaim;
use steersman_api::pod::PodInfo;
use steersman_api::storage_class::StorageClass;
use steersman_api::volume_attachment::VolumeAttachment;
use steersman_framework::cluster::Stores;
use steersman_framework::events::{
    ActionType, Change, ClusterEvent, EnqueueExtensions, EventResource, Hint, HintCtx,
};
use steersman_framework::verdict::{FilterVerdict, PluginError, RejectKind};

use super::count::{Counter, attached_volumes, may_count};
use super::{NodeVolumeLimits, check};
use crate::pod_claims;

impl EnqueueExtensions for NodeVolumeLimits {
    fn events(&self) -> Vec<ClusterEvent> {
        use ActionType as A;
        let object = |resource, actions| ClusterEvent::new(EventResource(resource), actions);
        vec![
            ClusterEvent::new(EventResource::ASSIGNED_POD, A::DELETE),
            ClusterEvent::new(EventResource::NODE, A::ADD),
            object(CsiNode::RESOURCE, A::UPDATE_OTHER | A::DELETE),
            object(VolumeAttachment::RESOURCE, A::DELETE),
            object(PersistentVolumeClaim::RESOURCE, A::ADD | A::UPDATE_OTHER),
            object(PersistentVolume::RESOURCE, A::ADD | A::UPDATE_OTHER | A::DELETE),
            object(StorageClass::RESOURCE, A::UPDATE_OTHER | A::DELETE),
        ]
    }

    fn hint(&self, ctx: &HintCtx<'_>, change: &Change) -> Result<Hint, PluginError> {
        let stores = &ctx.cluster.stores;
        Ok(Hint::queue_if(match change {
            Change::AssignedPod { old: Some(gone), .. } => {
                may_count(gone) && shares_driver(ctx.pod, gone, stores)
            }
            Change::Node { new: Some(new), .. } => {
                let Some(node) = ctx.cluster.nodes().by_name(&new.name) else {
                    return Ok(Hint::Skip);
                };
                let attached = attached_volumes(stores);
                let verdict = check(ctx.pod, node, stores, attached.get(&new.name));
                match verdict {
                    Ok(FilterVerdict::Reject(rejection)) => {
                        // Pods can be there before their node is.
                        let spec = &ctx.pod.spec;
                        let mut others = node.pods().iter();
                        rejection.kind == RejectKind::Unschedulable
                            && spec.may_preempt
                            && others.any(|other| other.spec.priority < spec.priority)
                    }
                    Ok(FilterVerdict::Fit) | Err(_) => true,
                }
            }
            Change::Object { old, new } => {
                object_may_help(ctx.pod, stores, old.as_ref(), new.as_ref())
            }
            _ => true,
        }))
    }
}

/// The drivers of the pod's volumes; `None` when not all can be told. Which
/// in-tree plugins have moved differs between nodes: what `csi_node` says counts.
fn drivers(pod: &PodInfo, stores: &Stores, csi_node: Option<&CsiNode>) -> Option<BTreeSet<Name>> {
    let volumes = Counter { stores, csi_node }.volumes_of_new(pod).ok()?;
    Some(volumes.into_iter().map(|volume| volume.driver).collect())
}

/// Whether a departed pod may have used volumes of a driver that `pod` uses.
/// When its claims are gone with it, nobody knows.
fn shares_driver(pod: &PodInfo, gone: &PodInfo, stores: &Stores) -> bool {
    let Some(node) = gone.node_name.as_ref().or(gone.nominated_node.as_ref()) else { return true };
    let csi_node = stores.get::<CsiNode>(&ObjectKey::cluster(node));
    let Some(wanted) = drivers(pod, stores, csi_node) else { return true };
    drivers(gone, stores, csi_node).is_none_or(|given_up| !wanted.is_disjoint(&given_up))
}

fn object_may_help(
    pod: &PodInfo,
    stores: &Stores,
    old: Option<&AnyObject>,
    new: Option<&AnyObject>,
) -> bool {
    let Some(object) = new.or(old) else { return true };
    if let Some(attachment) = object.get::<VolumeAttachment>() {
        let csi_node = stores.get(&ObjectKey::cluster(&attachment.node));
        return drivers(pod, stores, csi_node)
            .is_none_or(|drivers| drivers.contains(&attachment.attacher));
    }
    if let Some(before) = old.and_then(AnyObject::get::<CsiNode>) {
        let after = new.and_then(AnyObject::get::<CsiNode>);
        return limits_grew(pod, stores, before, after);
    }
    if let Some(volume) = object.get::<PersistentVolume>() {
        // What is no longer there, or is something else now, counts less.
        let before = old.and_then(AnyObject::get::<PersistentVolume>);
        let replaced = before.is_some_and(|old| new.is_none() || old.source != volume.source);
        let mut claims = pod.claims().filter_map(|used| stores.get(&used.key));
        return replaced
            || claims.any(|claim: &PersistentVolumeClaim| *claim.volume_name == *volume.key.name);
    }
    if let Some(class) = object.get::<StorageClass>() {
        let mut claims = pod_claims::unbound(pod, stores);
        return claims.any(|claim| *claim.class == *class.key.name);
    }
    pod_claims::uses(pod, object.key())
}

/// Whether a driver of the pod can attach more volumes than before, or counts
/// fewer.
fn limits_grew(pod: &PodInfo, stores: &Stores, before: &CsiNode, after: Option<&CsiNode>) -> bool {
    let Some(after) = after else { return true };
    let Some(drivers) = drivers(pod, stores, Some(before)) else { return true };
    let grew = |driver: &Name| match (before.limit(driver), after.limit(driver)) {
        (Some(before), Some(after)) => after > before,
        (before, None) => before.is_some(),
        (None, Some(_)) => false,
    };
    before.migrated_plugins != after.migrated_plugins || drivers.iter().any(grew)
}

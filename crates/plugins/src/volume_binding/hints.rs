//! Which changes may give a pod its volumes.

use steersman_api::csi_driver::CsiDriver;
use steersman_api::csi_node::CsiNode;
use steersman_api::csi_storage_capacity::CsiStorageCapacity;
use steersman_api::key::ObjectKey;
use steersman_api::name::Name;
use steersman_api::node::Node;
use steersman_api::object::{AnyObject, StoredObject};
use steersman_api::persistent_volume::{PersistentVolume, VolumeSource};
use steersman_api::persistent_volume_claim::PersistentVolumeClaim;
use steersman_api::pod::PodInfo;
use steersman_api::storage_class::StorageClass;
use steersman_framework::cluster::Stores;
use steersman_framework::events::{
    ActionType, Change, ClusterEvent, EnqueueExtensions, EventResource, Hint, HintCtx,
};
use steersman_framework::verdict::PluginError;

use super::VolumeBinding;
use super::needs::{BoundVolume, waiting_class};
use crate::csi_migration::translated_affinity;
use crate::pod_claims;

impl EnqueueExtensions for VolumeBinding {
    fn events(&self) -> Vec<ClusterEvent> {
        use ActionType as A;
        let object = |resource, actions| ClusterEvent::new(EventResource(resource), actions);
        let seen = A::ADD | A::UPDATE_OTHER;
        vec![
            object(StorageClass::RESOURCE, seen),
            object(PersistentVolumeClaim::RESOURCE, seen),
            object(PersistentVolume::RESOURCE, seen | A::DELETE),
            ClusterEvent::new(EventResource::NODE, A::ADD | A::UPDATE_NODE_LABEL),
            object(CsiNode::RESOURCE, seen | A::DELETE),
            object(CsiDriver::RESOURCE, A::UPDATE_OTHER | A::DELETE),
            object(CsiStorageCapacity::RESOURCE, seen),
            // Its binding failed: what was set aside for it is free again.
            ClusterEvent::new(EventResource::ASSIGNED_POD, A::DELETE),
        ]
    }

    fn hint(&self, ctx: &HintCtx<'_>, change: &Change) -> Result<Hint, PluginError> {
        let claims = Claims { pod: ctx.pod, stores: &ctx.cluster.stores };
        Ok(Hint::queue_if(match change {
            Change::Node { new: Some(node), .. } => claims.may_be_met_on(node),
            Change::AssignedPod { old: Some(gone), .. } => claims.competed_with(gone),
            Change::Object { old, new } => claims.may_use(old.as_ref(), new.as_ref()),
            _ => true,
        }))
    }
}

/// The claims of a rejected pod.
struct Claims<'a> {
    pod: &'a PodInfo,
    stores: &'a Stores,
}

impl<'a> Claims<'a> {
    fn iter(&self) -> impl Iterator<Item = &'a PersistentVolumeClaim> {
        let stores = self.stores;
        self.pod.claims().filter_map(move |used| stores.get(&used.key))
    }

    fn unbound(&self) -> impl Iterator<Item = &'a PersistentVolumeClaim> {
        self.iter().filter(|claim| !claim.is_fully_bound())
    }

    fn is_of_class(&self, class: &str) -> bool {
        self.unbound().any(|claim| *claim.class == *class)
    }

    /// Whether all volumes that the claims have can be reached from `node`, and
    /// those that they have not can be found or made there as far as is told at
    /// a glance.
    fn may_be_met_on(&self, node: &Node) -> bool {
        let csi_node = self.stores.get::<CsiNode>(&ObjectKey::cluster(&node.name));
        self.iter().all(|claim| {
            if !claim.is_fully_bound() {
                let selected = claim.selected_node.as_ref();
                return waiting_class(claim, self.stores).is_some()
                    && selected.is_none_or(|selected| *selected == node.name);
            }
            let key = ObjectKey::cluster(&claim.volume_name);
            let volume = self.stores.shared::<PersistentVolume>(&key);
            volume.is_some_and(|volume| {
                let translated = translated_affinity(&volume);
                BoundVolume { volume, translated }.is_reachable_from(&node.labels, csi_node)
            })
        })
    }

    /// Whether something may have been set aside for `gone` that these claims
    /// can use. When its claims are gone with it, nobody knows.
    fn competed_with(&self, gone: &PodInfo) -> bool {
        if self.unbound().next().is_none() {
            return false;
        }
        gone.claims().any(|used| match self.stores.get::<PersistentVolumeClaim>(&used.key) {
            Some(claim) => !claim.is_fully_bound() && self.is_of_class(&claim.class),
            None => true,
        })
    }

    fn may_use(&self, old: Option<&AnyObject>, new: Option<&AnyObject>) -> bool {
        let Some(object) = new.or(old) else { return true };
        if object.get::<PersistentVolume>().is_some() {
            let volumes = [old, new].map(|o| o.and_then(AnyObject::get::<PersistentVolume>));
            return self.may_use_volume(volumes[0], volumes[1]);
        }
        if let Some(class) = object.get::<StorageClass>() {
            let old = old.and_then(AnyObject::get::<StorageClass>);
            return old != Some(class) && self.is_of_class(&class.key.name);
        }
        if let Some(capacity) = object.get::<CsiStorageCapacity>() {
            let old = old.and_then(AnyObject::get::<CsiStorageCapacity>);
            let grew =
                old.is_none_or(|old| capacity.limit() > old.limit() || capacity.nodes != old.nodes);
            return grew && self.is_of_class(&capacity.class);
        }
        if let Some(driver) = object.get::<CsiDriver>() {
            let stops = new.is_none() || !driver.publishes_capacity;
            return stops && self.is_provisioned_by(&driver.key.name);
        }
        if object.get::<CsiNode>().is_some() {
            let migrated = |object: Option<&AnyObject>| -> Vec<Name> {
                let node = object.and_then(AnyObject::get::<CsiNode>);
                node.map(|node| node.migrated_plugins.to_vec()).unwrap_or_default()
            };
            return migrated(old) != migrated(new) && self.has_in_tree_volume();
        }
        pod_claims::uses(self.pod, object.key())
    }

    fn may_use_volume(
        &self,
        old: Option<&PersistentVolume>,
        new: Option<&PersistentVolume>,
    ) -> bool {
        // A volume that is kept for a claim stands in its way where it cannot
        // be reached.
        let was_kept = old.and_then(|old| old.claim.as_ref());
        let lets_go = was_kept
            .is_some_and(|reference| self.unbound().any(|claim| claim.key == reference.key));
        let Some(new) = new else { return lets_go };
        lets_go
            || self.is_of_class(&new.class)
            || self.iter().any(|claim| *claim.volume_name == *new.key.name)
    }

    fn is_provisioned_by(&self, driver: &str) -> bool {
        let mut classes = self.unbound().filter_map(|claim| waiting_class(claim, self.stores));
        classes.any(|class| *class.provisioner == *driver)
    }

    fn has_in_tree_volume(&self) -> bool {
        let key = |claim: &PersistentVolumeClaim| ObjectKey::cluster(&claim.volume_name);
        let mut volumes = self.iter().filter_map(|claim| self.stores.get(&key(claim)));
        volumes.any(|volume: &PersistentVolume| matches!(volume.source, VolumeSource::Disk(_)))
    }
}

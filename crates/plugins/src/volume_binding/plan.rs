//! Which volumes a pod would use on a node.

use std::sync::Arc;

use steersman_api::csi_node::CsiNode;
use steersman_api::csi_storage_capacity::CsiStorageCapacity;
use steersman_api::key::ObjectKey;
use steersman_api::labels::Labels;
use steersman_api::node::Node;
use steersman_api::persistent_volume::{PersistentVolume, VolumeSource};
use steersman_api::persistent_volume_claim::PersistentVolumeClaim;
use steersman_framework::cluster::Stores;
use steersman_framework::verdict::Reason;

use super::needs::{Bound, BoundVolume, Existing, Needs, Provisioning, Unbound};
use crate::csi_migration::System;

pub(super) const REASON_AFFINITY: &str = "node(s) didn't match PersistentVolume's node affinity";
const REASON_NO_VOLUME: &str = "node(s) didn't find available persistent volumes to bind";
const REASON_NO_SPACE: &str = "node(s) did not have enough free storage";
const REASON_GONE: &str =
    "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)";

/// See the module documentation.
#[derive(Default)]
pub(super) struct Plan {
    /// Claims that get a volume that is there.
    pub(super) bindings: Vec<(Arc<PersistentVolumeClaim>, Arc<PersistentVolume>)>,
    /// Claims for which a volume is made, and where the storage comes from when
    /// it is counted.
    pub(super) provisions: Vec<(Arc<PersistentVolumeClaim>, Option<Arc<CsiStorageCapacity>>)>,
}

impl Plan {
    /// What the pod would get on `node`, or why that is not enough.
    pub(super) fn find(needs: &Needs, stores: &Stores, node: &Node) -> Result<Self, Vec<Reason>> {
        let csi_node = stores.get::<CsiNode>(&ObjectKey::cluster(&node.name));
        let bound = check_bound(&needs.bound, &node.labels, csi_node);
        match (bound, find_unbound(&needs.unbound, node)) {
            (Ok(()), Ok(plan)) => Ok(plan),
            // The order in which users know them.
            (Err(REASON_GONE), Err(other)) => Err(vec![other.into(), REASON_GONE.into()]),
            (Err(bound), Err(other)) => Err(vec![bound.into(), other.into()]),
            (Err(reason), Ok(_)) | (Ok(()), Err(reason)) => Err(vec![reason.into()]),
        }
    }
}

/// The first thing that is wrong with the volumes of bound claims.
fn check_bound(
    bound: &[Bound],
    labels: &Labels,
    csi_node: Option<&CsiNode>,
) -> Result<(), &'static str> {
    for bound in bound {
        match bound {
            Bound::Gone => return Err(REASON_GONE),
            Bound::Volume(volume) if !volume.is_reachable_from(labels, csi_node) => {
                return Err(REASON_AFFINITY);
            }
            Bound::Volume(_) => {}
        }
    }
    Ok(())
}

impl BoundVolume {
    /// Whether a node of those labels can reach the volume.
    pub(super) fn is_reachable_from(&self, labels: &Labels, csi_node: Option<&CsiNode>) -> bool {
        match &self.translated {
            Some(translated) if is_served_by_csi(&self.volume, csi_node) => {
                translated.matches("", labels)
            }
            _ => self.volume.is_reachable_from(labels),
        }
    }
}

fn is_served_by_csi(volume: &PersistentVolume, csi_node: Option<&CsiNode>) -> bool {
    let VolumeSource::Disk(disk) = &volume.source else { return false };
    let system = System::of_disk(disk);
    system.zip(csi_node).is_some_and(|(system, node)| system.is_announced_by(node))
}

/// Finds volumes, or ways to make them, for all claims.
fn find_unbound(unbound: &[Unbound], node: &Node) -> Result<Plan, &'static str> {
    let mut plan = Plan::default();
    let elsewhere = |unbound: &Unbound| {
        unbound.claim.selected_node.as_ref().is_some_and(|selected| *selected != node.name)
    };
    if unbound.iter().any(elsewhere) {
        return Err(REASON_NO_VOLUME);
    }
    let mut to_make = Vec::new();
    for unbound in unbound {
        match find_existing(&unbound.existing, &plan, &node.labels) {
            Some(volume) => plan.bindings.push((unbound.claim.clone(), volume)),
            None => to_make.push(unbound),
        }
    }
    for unbound in to_make {
        let Provisioning::By { class, capacities } = &unbound.provisioning else {
            return Err(REASON_NO_VOLUME);
        };
        if !class.allows_topology(&node.labels) {
            return Err(REASON_NO_VOLUME);
        }
        let within_reach =
            |capacity: &&Arc<CsiStorageCapacity>| capacity.nodes.matches(&node.labels);
        let from = match capacities {
            None => None,
            Some(capacities) => {
                Some(capacities.iter().find(within_reach).ok_or(REASON_NO_SPACE)?.clone())
            }
        };
        plan.provisions.push((unbound.claim.clone(), from));
    }
    Ok(plan)
}

fn find_existing(
    existing: &Existing,
    plan: &Plan,
    labels: &Labels,
) -> Option<Arc<PersistentVolume>> {
    let volumes = match existing {
        Existing::Kept(volume) => std::slice::from_ref(volume),
        Existing::Any(volumes) => volumes,
    };
    let is_taken =
        |volume: &PersistentVolume| plan.bindings.iter().any(|(_, taken)| taken.key == volume.key);
    let mut free = volumes.iter().filter(|volume| !is_taken(volume));
    free.find(|volume| volume.is_reachable_from(labels)).cloned()
}

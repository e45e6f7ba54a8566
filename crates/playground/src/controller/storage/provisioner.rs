//! Makes volumes for claims of the playground's own classes.
//!
//! It is told of claims by an annotation, as a provisioner beside the cluster
//! would be, and makes volumes that their zone can reach.

use k8s_openapi::api::core::v1::{
    CSIPersistentVolumeSource, PersistentVolume, PersistentVolumeClaim, PersistentVolumeSpec,
};
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::json;

use super::classes::{self, DISK};
use super::topology::Place;
use super::{
    PROVISIONED_BY, PROVISIONER, SELECTED_NODE, annotation, claim, class_of, is_unbound, made_for,
    volume_name, wake_unbound,
};
use crate::cluster::{Change, Key, Seen, World};
use crate::engine::plan::{Call, Note, Plan, View};

pub(in super::super) fn wake(world: &World, seen: &Seen, wake: &mut dyn FnMut(Key)) {
    match seen {
        Seen::Claim(Change { new: Some(claim), .. }) if is_unbound(claim) => {
            wake(Key::of(&claim.metadata));
        }
        Seen::StorageClass(Change { new: Some(class), .. }) => {
            wake_unbound(world, class.metadata.name.as_deref(), wake);
        }
        // There may be a place for volumes now.
        Seen::Node(Change { old: None, .. }) => {
            for claim in world.claims.iter().filter(|claim| is_ours(claim)) {
                wake(Key::of(&claim.metadata));
            }
        }
        _ => {}
    }
}

/// Makes the volume of a claim that is to have one.
pub(in super::super) fn plan(view: View<'_>, key: &Key) -> Plan {
    let mut plan = Plan { ordered: true, ..Plan::default() };
    let Some(claim) = view.world.claims.get(key).filter(|claim| is_ours(claim)) else {
        return plan;
    };
    let name = class_of(claim).unwrap_or_default();
    let class = view.world.storage_classes.get(&Key::new("", name));
    let Some(class) = class.filter(|class| class.provisioner == DISK) else { return plan };
    if view.world.volumes.get(&Key::new("", made_for(claim))).is_some() {
        return plan;
    }
    let node = annotation(&claim.metadata, SELECTED_NODE);
    if node.is_none() && classes::waits(class) {
        return plan;
    }
    match place(view.world, claim, class, node) {
        Ok(place) => make(&mut plan, claim, class, place),
        Err(why) => {
            let message = format!("failed to provision volume with StorageClass \"{name}\": {why}");
            let note = Note::warning(&**claim, DISK, "ProvisioningFailed", message);
            if node.is_some() {
                // The scheduler is to choose again.
                let patch = json!({"metadata": {"annotations": {SELECTED_NODE: null}}});
                plan.call_noting(claim::guarded(claim, patch), note);
            } else {
                plan.note(note);
            }
        }
    }
    plan
}

/// Whether the claim is to have a volume from here and has none.
fn is_ours(claim: &PersistentVolumeClaim) -> bool {
    is_unbound(claim)
        && claim.metadata.deletion_timestamp.is_none()
        && volume_name(claim).is_empty()
        && annotation(&claim.metadata, PROVISIONER[0]) == Some(DISK)
}

fn place(
    world: &World,
    claim: &PersistentVolumeClaim,
    class: &StorageClass,
    node: Option<&str>,
) -> Result<Place, String> {
    if claim.spec.as_ref().is_some_and(|spec| spec.selector.is_some()) {
        return Err("claim Selector is not supported".to_owned());
    }
    let generating = "error generating accessibility requirements";
    let Some(name) = node else {
        let claim = claim.metadata.name.as_deref().unwrap_or_default();
        return Place::of_any(world, class, claim)
            .ok_or_else(|| format!("{generating}: no available topology found"));
    };
    let Some(node) = world.nodes.get(&Key::new("", name)) else {
        return Err(format!("failed to get target node: node \"{name}\" not found"));
    };
    Place::of_node(class, node).ok_or_else(|| {
        format!("{generating}: topology of selected node '{name}' is not in allowed topologies")
    })
}

fn make(plan: &mut Plan, claim: &PersistentVolumeClaim, class: &StorageClass, place: Place) {
    let Some(spec) = claim.spec.clone() else { return };
    let name = made_for(claim);
    let reference = serde_json::from_value(claim::reference_to(claim));
    let volume = PersistentVolume {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            annotations: Some([(PROVISIONED_BY.to_owned(), DISK.to_owned())].into()),
            ..Default::default()
        },
        spec: Some(PersistentVolumeSpec {
            access_modes: spec.access_modes,
            capacity: spec.resources.and_then(|resources| resources.requests),
            claim_ref: Some(reference.expect("a reference has the form of a reference")),
            csi: Some(CSIPersistentVolumeSource {
                driver: DISK.to_owned(),
                volume_handle: name.clone(),
                ..Default::default()
            }),
            mount_options: class.mount_options.clone(),
            node_affinity: place.affinity(),
            persistent_volume_reclaim_policy: class.reclaim_policy.clone(),
            storage_class_name: class.metadata.name.clone(),
            volume_attributes_class_name: spec.volume_attributes_class_name,
            volume_mode: spec.volume_mode,
            ..Default::default()
        }),
        status: None,
    };
    let key = Key::of(&claim.metadata);
    let begun = format!("External provisioner is provisioning volume for claim \"{key}\"");
    plan.note(Note::normal(claim, DISK, "Provisioning", begun));
    let done = format!("Successfully provisioned volume {name}");
    let note = Note::normal(claim, DISK, "ProvisioningSucceeded", done);
    plan.call_noting(Call::create(&volume), note);
}

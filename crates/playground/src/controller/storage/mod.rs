//! Volumes for claims: who gets which one, who makes them, and what becomes of
//! them afterwards.
//!
//! ```text
//! claim Pending ──suitable volume, or one that was made──► Bound ──volume gone──► Lost
//! volume Available ──claim──► Bound ──claim gone──► Released ──Delete──► gone
//! ```
//!
//! A binding is written in both objects, the volume first: a claim that names a
//! volume can rely on it. Each step checks what it was decided from, so two
//! claims never get one volume.
//!
//! Claims of classes that wait for their first consumer are left alone until the
//! scheduler has chosen: it writes either the claim into a volume or the node
//! into the claim.

pub(super) mod claim;
pub(crate) mod classes;
pub(super) mod ephemeral;
mod matching;
pub(super) mod protection;
pub(super) mod provisioner;
mod topology;
pub(super) mod volume;

use std::sync::Arc;

use k8s_openapi::api::core::v1::{ObjectReference, PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::cluster::{Key, World, uid};

/// Who tells what happens to claims and volumes.
const REPORTER: &str = "persistentvolume-controller";
/// Set on a claim when it is bound in both directions.
const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
/// Set on what was bound by a controller, and not by who made it.
const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
/// Who made a volume.
const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
/// Who is to make a volume for a claim; the second name is the older one.
const PROVISIONER: [&str; 2] =
    ["volume.kubernetes.io/storage-provisioner", "volume.beta.kubernetes.io/storage-provisioner"];
/// The node of the pod for which the scheduler wants a volume.
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
/// How classes were named before there was a field for it.
const OLD_CLASS: &str = "volume.beta.kubernetes.io/storage-class";

fn annotation<'a>(metadata: &'a ObjectMeta, key: &str) -> Option<&'a str> {
    metadata.annotations.as_ref()?.get(key).map(String::as_str)
}

/// The class of a claim, empty when it wants none; `None` when it says nothing.
fn class_of(claim: &PersistentVolumeClaim) -> Option<&str> {
    let old = annotation(&claim.metadata, OLD_CLASS);
    old.or_else(|| claim.spec.as_ref()?.storage_class_name.as_deref())
}

fn class_of_volume(volume: &PersistentVolume) -> &str {
    let named = || volume.spec.as_ref()?.storage_class_name.as_deref();
    annotation(&volume.metadata, OLD_CLASS).or_else(named).unwrap_or_default()
}

/// The volume that a claim names, empty when it names none.
fn volume_name(claim: &PersistentVolumeClaim) -> &str {
    let spec = claim.spec.as_ref();
    spec.and_then(|spec| spec.volume_name.as_deref()).unwrap_or_default()
}

fn claim_ref(volume: &PersistentVolume) -> Option<&ObjectReference> {
    volume.spec.as_ref()?.claim_ref.as_ref()
}

fn key_of_claim(reference: &ObjectReference) -> Key {
    Key::new(
        reference.namespace.clone().unwrap_or_default(),
        reference.name.clone().unwrap_or_default(),
    )
}

/// Whether a volume is bound to the claim or, without a uid, kept for it.
fn is_for(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    claim_ref(volume).is_some_and(|reference| {
        let known = reference.uid.as_deref().unwrap_or_default();
        key_of_claim(reference) == Key::of(&claim.metadata)
            && (known.is_empty() || known == uid(&claim.metadata))
    })
}

fn phase(volume: &PersistentVolume) -> &str {
    volume.status.as_ref().and_then(|s| s.phase.as_deref()).unwrap_or_default()
}

/// Whether the claim is not bound in both directions yet.
fn is_unbound(claim: &PersistentVolumeClaim) -> bool {
    annotation(&claim.metadata, BIND_COMPLETED).is_none()
}

/// The name of the volume that is made for a claim.
fn made_for(claim: &PersistentVolumeClaim) -> String {
    format!("pvc-{}", uid(&claim.metadata))
}

/// The names of the claims that a pod uses, and whether each is of an ephemeral
/// volume.
fn claims_of(pod: &Pod) -> impl Iterator<Item = (String, bool)> {
    pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten()).filter_map(|volume| {
        if let Some(source) = &volume.persistent_volume_claim {
            return Some((source.claim_name.clone(), false));
        }
        volume.ephemeral.is_some().then(|| (ephemeral::claim_name(pod, &volume.name), true))
    })
}

/// Whether the claim has its volume.
pub(crate) fn is_bound(claim: &PersistentVolumeClaim) -> bool {
    claim.status.as_ref().is_some_and(|status| status.phase.as_deref() == Some("Bound"))
}

/// Whether all claims of the pod have their volumes. A pod whose node was not
/// chosen by the scheduler may have to wait for them there.
pub(crate) fn has_volumes(world: &World, pod: &Pod) -> bool {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let bound = |name| world.claims.get(&Key::new(namespace, name)).is_some_and(|c| is_bound(c));
    claims_of(pod).all(|(name, _)| bound(name))
}

/// The pods that use a claim.
pub(crate) fn users<'a>(
    world: &'a World,
    claim: &'a PersistentVolumeClaim,
) -> impl Iterator<Item = &'a Arc<Pod>> {
    let pods = world.pods.in_namespace(claim.metadata.namespace.as_deref().unwrap_or_default());
    let name = claim.metadata.name.as_deref().unwrap_or_default();
    pods.filter(move |pod| claims_of(pod).any(|(used, _)| used == name))
}

/// Wakes all claims that have no volume yet and are of that class.
fn wake_unbound(world: &World, class: Option<&str>, wake: &mut dyn FnMut(Key)) {
    for claim in world.claims.iter() {
        if is_unbound(claim) && class_of(claim) == class {
            wake(Key::of(&claim.metadata));
        }
    }
}

#[cfg(test)]
mod tests;

//! Which volume suits a claim.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{
    PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimSpec, PersistentVolumeSpec,
};
use steersman_api::quantity::Quantity;

use super::{claim_ref, class_of, class_of_volume, is_for, phase};
use crate::cluster::World;
use crate::workload::selects;

/// The volume that a claim gets: the one that is kept for it, or else the
/// smallest that suits it, by name among equals. A claim that waits for a pod
/// takes only what is kept for it.
pub(super) fn find<'a>(
    world: &'a World,
    claim: &PersistentVolumeClaim,
    waits: bool,
) -> Option<&'a Arc<PersistentVolume>> {
    let spec = claim.spec.as_ref()?;
    let class = class_of(claim).unwrap_or_default();
    let mut best: Option<(Quantity, &Arc<PersistentVolume>)> = None;
    for volume in world.volumes.iter() {
        let taken = claim_ref(volume).is_some();
        let is_kept = taken && is_for(volume, claim);
        if taken && !is_kept || volume.metadata.deletion_timestamp.is_some() {
            continue;
        }
        let Some(volume_spec) = &volume.spec else { continue };
        let size = capacity(volume_spec);
        let fits = class_of_volume(volume) == class
            && mode(volume_spec.volume_mode.as_ref()) == mode(spec.volume_mode.as_ref())
            && attributes(volume_spec.volume_attributes_class_name.as_ref())
                == attributes(spec.volume_attributes_class_name.as_ref())
            && size >= request(spec);
        if !fits {
            continue;
        }
        if is_kept {
            return Some(volume);
        }
        let selected = || spec.selector.as_ref().is_none_or(|s| selects(s, &volume.metadata));
        let is_smaller = || best.as_ref().is_none_or(|(smallest, _)| size < *smallest);
        let suits = !waits
            && phase(volume) == "Available"
            && offers_modes(volume_spec, spec)
            && selected()
            && is_smaller();
        if suits {
            best = Some((size, volume));
        }
    }
    best.map(|(_, volume)| volume)
}

/// Why a claim cannot have the volume that it names.
pub(super) fn mismatch(
    volume: &PersistentVolume,
    claim: &PersistentVolumeClaim,
) -> Option<&'static str> {
    let (spec, volume_spec) = (claim.spec.as_ref()?, volume.spec.as_ref()?);
    if capacity(volume_spec) < request(spec) {
        Some("requested PV is too small")
    } else if class_of_volume(volume) != class_of(claim).unwrap_or_default() {
        Some("storageClassName does not match")
    } else if mode(volume_spec.volume_mode.as_ref()) != mode(spec.volume_mode.as_ref()) {
        Some("incompatible volumeMode")
    } else if !offers_modes(volume_spec, spec) {
        Some("incompatible accessMode")
    } else {
        None
    }
}

fn offers_modes(volume: &PersistentVolumeSpec, claim: &PersistentVolumeClaimSpec) -> bool {
    let offered = volume.access_modes.as_deref().unwrap_or_default();
    claim.access_modes.iter().flatten().all(|wanted| offered.contains(wanted))
}

fn capacity(volume: &PersistentVolumeSpec) -> Quantity {
    let storage = volume.capacity.as_ref().and_then(|capacity| capacity.get("storage"));
    storage.and_then(|storage| Quantity::parse(&storage.0).ok()).unwrap_or_default()
}

fn request(claim: &PersistentVolumeClaimSpec) -> Quantity {
    let requests = claim.resources.as_ref().and_then(|r| r.requests.as_ref());
    let storage = requests.and_then(|requests| requests.get("storage"));
    storage.and_then(|storage| Quantity::parse(&storage.0).ok()).unwrap_or_default()
}

fn mode(mode: Option<&String>) -> &str {
    mode.map_or("Filesystem", String::as_str)
}

fn attributes(class: Option<&String>) -> &str {
    class.map_or("", String::as_str)
}

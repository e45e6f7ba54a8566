//! Keeps the phase of each volume right, and gives back or deletes what its claim
//! has left.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use serde_json::json;

use super::classes::DISK;
use super::{
    BOUND_BY_CONTROLLER, PROVISIONED_BY, REPORTER, annotation, claim_ref, key_of_claim, phase,
    volume_name,
};
use crate::cluster::{Key, Seen, World, uid};
use crate::engine::plan::{Call, Note, Part, Plan, View};
use crate::workload::later_by;

/// A volume is deleted when it has been released for so long. Watches of volumes
/// and claims are not in step: the claim may only not have been seen yet.
const PATIENCE: SignedDuration = SignedDuration::from_secs(1);

pub(in super::super) fn wake(world: &World, seen: &Seen, wake: &mut dyn FnMut(Key)) {
    match seen {
        Seen::Volume(change) => wake(Key::of(&change.object().metadata)),
        Seen::Claim(change) => {
            let mut names: Vec<&str> = change.both().map(|claim| volume_name(claim)).collect();
            names.dedup();
            let moved = names.len() > 1 || change.new.is_none();
            names.iter().filter(|name| !name.is_empty()).for_each(|name| wake(Key::new("", *name)));
            if moved {
                // Volumes that were meant for the claim, too.
                let id = uid(&change.object().metadata);
                for volume in world.volumes.iter() {
                    if claim_ref(volume).is_some_and(|r| r.uid.as_deref() == Some(id)) {
                        wake(Key::of(&volume.metadata));
                    }
                }
            }
        }
        _ => {}
    }
}

/// Takes the next step with a volume.
pub(in super::super) fn plan(view: View<'_>, key: &Key) -> Plan {
    let mut plan = Plan { ordered: true, ..Plan::default() };
    let Some(volume) = view.world.volumes.get(key) else { return plan };
    let Some(reference) = claim_ref(volume) else {
        set_phase(&mut plan, volume, "Available", view.now);
        return plan;
    };
    let id = reference.uid.as_deref().unwrap_or_default();
    if id.is_empty() {
        // Kept for a claim; whoever looks at the claim binds it.
        set_phase(&mut plan, volume, "Available", view.now);
        return plan;
    }
    let claim = view.world.claims.get(&key_of_claim(reference));
    let claim = claim.filter(|claim| uid(&claim.metadata) == id);
    match claim {
        None => release(&mut plan, view, volume),
        Some(claim) => keep(&mut plan, view, volume, claim),
    }
    plan
}

fn keep(plan: &mut Plan, view: View<'_>, volume: &PersistentVolume, claim: &PersistentVolumeClaim) {
    let name = volume_name(claim);
    if name.is_empty() {
        // Whoever looks at the claim finishes the binding.
    } else if Some(name) == volume.metadata.name.as_deref() {
        set_phase(plan, volume, "Bound", view.now);
    } else if annotation(&volume.metadata, PROVISIONED_BY).is_some() && policy(volume) == "Delete" {
        // The claim it was made for has got another one.
        release(plan, view, volume);
    } else {
        give_back(plan, volume, view.now);
    }
}

/// The claim is gone, and the reclaim policy says what comes next.
fn release(plan: &mut Plan, view: View<'_>, volume: &PersistentVolume) {
    let now = view.now;
    if !has_phase(volume, "Released") && !has_phase(volume, "Failed") {
        plan.call(phase_patch(volume, "Released", None, now));
        return;
    }
    match policy(volume) {
        "Delete" => delete(plan, volume, now),
        "Recycle" => {
            // Simulated volumes hold nothing that would have to be scrubbed.
            give_back(plan, volume, now);
            plan.note(Note::normal(volume, REPORTER, "VolumeRecycled", "Volume recycled"));
        }
        // It is kept as it is until somebody has looked after its data.
        _ => {}
    }
}

fn delete(plan: &mut Plan, volume: &PersistentVolume, now: Timestamp) {
    if volume.metadata.deletion_timestamp.is_some() {
        return;
    }
    let is_csi = volume.spec.as_ref().is_some_and(|spec| spec.csi.is_some());
    match annotation(&volume.metadata, PROVISIONED_BY) {
        Some(DISK) => {
            let since = volume.status.as_ref().and_then(|s| s.last_phase_transition_time.as_ref());
            let end = since.map_or(now, |since| later_by(since.0, PATIENCE));
            if end > now {
                plan.wake_at(end);
            } else {
                plan.call(Call::delete(volume, None));
            }
        }
        // Somebody else made it, or has to delete it.
        Some(_) => {}
        None if is_csi || has_phase(volume, "Failed") => {}
        None => {
            let name = volume.metadata.name.as_deref().unwrap_or_default();
            let message = format!(
                "error getting deleter volume plugin for volume \"{name}\": no deletable volume \
                 plugin matched"
            );
            let call = phase_patch(volume, "Failed", Some(&message), now);
            let note = Note::warning(volume, REPORTER, "VolumeFailedDelete", message);
            plan.call_noting(call, note);
        }
    }
}

/// Takes a binding back. What whoever made the volume said of a claim stays.
fn give_back(plan: &mut Plan, volume: &PersistentVolume, now: Timestamp) {
    let mut metadata = json!({"resourceVersion": volume.metadata.resource_version});
    let reference = if annotation(&volume.metadata, BOUND_BY_CONTROLLER).is_some() {
        metadata["annotations"] = json!({BOUND_BY_CONTROLLER: null});
        json!(null)
    } else {
        json!({"uid": null, "resourceVersion": null})
    };
    let patch = json!({"metadata": metadata, "spec": {"claimRef": reference}});
    plan.call(Call::patch(volume, Part::Main, patch));
    plan.call(phase_patch(volume, "Available", None, now));
}

fn set_phase(plan: &mut Plan, volume: &PersistentVolume, wanted: &str, now: Timestamp) {
    if !has_phase(volume, wanted) {
        plan.call(phase_patch(volume, wanted, None, now));
    }
}

pub(super) fn has_phase(volume: &PersistentVolume, wanted: &str) -> bool {
    phase(volume) == wanted
}

/// The call that sets the phase of a volume.
pub(super) fn phase_patch(
    volume: &PersistentVolume,
    phase: &str,
    message: Option<&str>,
    now: Timestamp,
) -> Call {
    let status = json!({
        "phase": phase,
        "message": message,
        "reason": null,
        "lastPhaseTransitionTime": now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
    });
    let patch = json!({"metadata": {"uid": volume.metadata.uid}, "status": status});
    Call::patch(volume, Part::Status, patch)
}

fn policy(volume: &PersistentVolume) -> &str {
    let spec = volume.spec.as_ref();
    spec.and_then(|spec| spec.persistent_volume_reclaim_policy.as_deref()).unwrap_or("Retain")
}

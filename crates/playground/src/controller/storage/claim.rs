//! Finds a volume for each claim, and says so when there is none.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use serde_json::{Map, Value, json};

use super::volume::{has_phase, phase_patch};
use super::{
    BIND_COMPLETED, BOUND_BY_CONTROLLER, PROVISIONER, REPORTER, SELECTED_NODE, annotation,
    claim_ref, class_of, class_of_volume, classes, is_for, is_unbound, key_of_claim, matching,
    phase, volume_name, wake_unbound,
};
use crate::cluster::{Change, Key, Seen, Watched, World, uid};
use crate::engine::plan::{Call, Note, Part, Plan, View};
use crate::workload::{has_ended, is_terminating, merge_diff};

pub(in super::super) fn wake(world: &World, seen: &Seen, wake: &mut dyn FnMut(Key)) {
    match seen {
        Seen::Claim(Change { new: Some(claim), .. }) => wake(Key::of(&claim.metadata)),
        Seen::Volume(change) => {
            change.both().filter_map(|v| claim_ref(v)).map(key_of_claim).for_each(&mut *wake);
            let free = |v: &PersistentVolume| claim_ref(v).is_none() && phase(v) == "Available";
            let is_free = change.new.as_deref().is_some_and(free);
            if is_free && !change.old.as_deref().is_some_and(free) {
                let volume = change.object();
                let (name, class) = (volume.metadata.name.as_deref(), class_of_volume(volume));
                for claim in world.claims.iter().filter(|claim| is_unbound(claim)) {
                    let suits = class_of(claim).unwrap_or_default() == class;
                    if suits || Some(volume_name(claim)) == name {
                        wake(Key::of(&claim.metadata));
                    }
                }
            }
        }
        Seen::StorageClass(Change { new: Some(class), .. }) => {
            wake_unbound(world, class.metadata.name.as_deref(), wake);
            if classes::is_default(class) {
                wake_unbound(world, None, wake);
            }
        }
        _ => {}
    }
}

/// Binds a claim to a volume as far as that is possible now.
pub(in super::super) fn plan(view: View<'_>, key: &Key) -> Plan {
    let mut plan = Plan { ordered: true, ..Plan::default() };
    let Some(claim) = view.world.claims.get(key) else { return plan };
    if !is_unbound(claim) {
        check_bound(&mut plan, view, claim);
    } else if claim.metadata.deletion_timestamp.is_some() {
        // What is going needs no volume any more.
    } else if volume_name(claim).is_empty() {
        find_volume(&mut plan, view, claim);
    } else {
        take_named(&mut plan, view, claim);
    }
    plan
}

/// The volume of a bound claim must be there and be its own.
fn check_bound(plan: &mut Plan, view: View<'_>, claim: &PersistentVolumeClaim) {
    let name = volume_name(claim);
    let volume = view.world.volumes.get(&Key::new("", name));
    let (reason, message) = match volume {
        Some(volume) if claim_ref(volume).is_none() || is_for(volume, claim) => {
            return bind(plan, volume, claim, view.now);
        }
        Some(_) => (
            "ClaimMisbound",
            "Two claims are bound to the same volume, this one is bound incorrectly",
        ),
        None if name.is_empty() => (
            "ClaimLost",
            "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!",
        ),
        None => {
            ("ClaimLost", "Bound claim has lost its PersistentVolume. Data on the volume is lost!")
        }
    };
    if let Some(call) = status(claim, &json!({"phase": "Lost"})) {
        plan.call_noting(call, Note::warning(claim, REPORTER, reason, message));
    }
}

fn find_volume(plan: &mut Plan, view: View<'_>, claim: &PersistentVolumeClaim) {
    let name = class_of(claim).unwrap_or_default();
    let class = view.world.storage_classes.get(&Key::new("", name));
    let is_chosen = annotation(&claim.metadata, SELECTED_NODE).is_some();
    let waits = class.is_some_and(|class| classes::waits(class)) && !is_chosen;
    if let Some(volume) = matching::find(view.world, claim, waits) {
        return bind(plan, volume, claim, view.now);
    }
    let Some(name) = class_of(claim) else {
        return match default_class(view.world) {
            Some(class) => {
                let patch = json!({"spec": {"storageClassName": class.metadata.name}});
                plan.call(guarded(claim, patch));
            }
            None => no_class(plan, claim),
        };
    };
    match class {
        _ if name.is_empty() => no_class(plan, claim),
        None => {
            let message = format!("storageclass.storage.k8s.io \"{name}\" not found");
            plan.note(Note::warning(claim, REPORTER, "ProvisioningFailed", message));
        }
        Some(_) if waits => plan.note(waiting_for(view.world, claim)),
        Some(class) => ask_for_volume(plan, claim, class),
    }
}

fn no_class(plan: &mut Plan, claim: &PersistentVolumeClaim) {
    let message = "no persistent volumes available for this claim and no storage class is set";
    plan.note(Note::normal(claim, REPORTER, "FailedBinding", message));
}

/// The newest of the default classes, as if it had been meant to replace others.
fn default_class(world: &World) -> Option<&StorageClass> {
    let defaults = world.storage_classes.iter().filter(|class| classes::is_default(class));
    let newest = defaults.min_by_key(|class| {
        let created = class.metadata.creation_timestamp.as_ref().map(|time| time.0);
        (std::cmp::Reverse(created), class.metadata.name.clone())
    });
    newest.map(|class| &**class)
}

fn waiting_for(world: &World, claim: &PersistentVolumeClaim) -> Note {
    let pods = super::users(world, claim);
    let pods = pods.filter(|pod| pod.node().is_none() && !has_ended(pod) && !is_terminating(pod));
    let pods: Vec<&str> = pods.filter_map(|pod| pod.metadata.name.as_deref()).collect();
    let (reason, message) = match pods.as_slice() {
        [] => (
            "WaitForFirstConsumer",
            "waiting for first consumer to be created before binding".to_owned(),
        ),
        [pod] => ("WaitForPodScheduled", format!("waiting for pod {pod} to be scheduled")),
        pods => {
            ("WaitForPodScheduled", format!("waiting for pods {} to be scheduled", pods.join(",")))
        }
    };
    Note::normal(claim, REPORTER, reason, message)
}

/// Tells the provisioner of the class that a volume is wanted.
fn ask_for_volume(plan: &mut Plan, claim: &PersistentVolumeClaim, class: &StorageClass) {
    let provisioner = class.provisioner.as_str();
    if provisioner.starts_with("kubernetes.io/") {
        // None of those that were built in is here.
        let message = format!("no volume plugin matched name: {provisioner}");
        plan.note(Note::warning(claim, REPORTER, "ProvisioningFailed", message));
        return;
    }
    let is_asked =
        PROVISIONER.iter().all(|key| annotation(&claim.metadata, key) == Some(provisioner));
    if is_asked {
        return;
    }
    let annotations: Map<String, Value> =
        PROVISIONER.iter().map(|key| ((*key).to_owned(), json!(provisioner))).collect();
    let message = format!(
        "Waiting for a volume to be created either by the external provisioner '{provisioner}' or \
         manually by the system administrator. If volume creation is delayed, please verify that \
         the provisioner is running and correctly registered."
    );
    plan.call_noting(
        guarded(claim, json!({"metadata": {"annotations": annotations}})),
        Note::normal(claim, REPORTER, "ExternalProvisioning", message),
    );
}

/// Whoever made the claim, or the scheduler's choice, names a volume.
fn take_named(plan: &mut Plan, view: View<'_>, claim: &PersistentVolumeClaim) {
    let name = volume_name(claim);
    let Some(volume) = view.world.volumes.get(&Key::new("", name)) else { return };
    if is_for(volume, claim) {
        return bind(plan, volume, claim, view.now);
    }
    if claim_ref(volume).is_some() {
        let message = format!("volume \"{name}\" already bound to a different claim.");
        plan.note(Note::warning(claim, REPORTER, "FailedBinding", message));
        return;
    }
    match matching::mismatch(volume, claim) {
        Some(why) => {
            let message = format!("Cannot bind to requested volume \"{name}\": {why}");
            plan.note(Note::warning(claim, REPORTER, "VolumeMismatch", message));
        }
        None => bind(plan, volume, claim, view.now),
    }
}

/// Writes what is missing of a binding: volume, its phase, claim, its phase.
fn bind(plan: &mut Plan, volume: &PersistentVolume, claim: &PersistentVolumeClaim, now: Timestamp) {
    let known = claim_ref(volume).and_then(|reference| reference.uid.as_deref());
    if known != Some(uid(&claim.metadata)) {
        let mut metadata = json!({"resourceVersion": volume.metadata.resource_version});
        if claim_ref(volume).is_none() {
            metadata["annotations"] = json!({BOUND_BY_CONTROLLER: "yes"});
        }
        let patch = json!({"metadata": metadata, "spec": {"claimRef": reference_to(claim)}});
        plan.call(Call::patch(volume, Part::Main, patch));
    }
    if !has_phase(volume, "Bound") {
        plan.call(phase_patch(volume, "Bound", None, now));
    }
    let mut annotations = Map::new();
    let mut patch = json!({});
    if volume_name(claim).is_empty() {
        patch["spec"] = json!({"volumeName": volume.metadata.name});
        annotations.insert(BOUND_BY_CONTROLLER.to_owned(), json!("yes"));
    }
    if is_unbound(claim) {
        annotations.insert(BIND_COMPLETED.to_owned(), json!("yes"));
    }
    if !annotations.is_empty() {
        patch["metadata"] = json!({"annotations": annotations});
        plan.call(guarded(claim, patch));
    }
    let spec = volume.spec.as_ref();
    let bound = json!({
        "phase": "Bound",
        "accessModes": spec.and_then(|spec| spec.access_modes.as_ref()),
        "capacity": spec.and_then(|spec| spec.capacity.as_ref()),
    });
    if let Some(call) = status(claim, &bound) {
        plan.call(call);
    }
}

/// A reference by which a volume is bound to a claim.
pub(super) fn reference_to(claim: &PersistentVolumeClaim) -> Value {
    let metadata = &claim.metadata;
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": metadata.namespace,
        "name": metadata.name,
        "uid": metadata.uid,
        "resourceVersion": metadata.resource_version,
    })
}

/// A patch that is refused when the claim has changed meanwhile.
pub(super) fn guarded(claim: &PersistentVolumeClaim, mut patch: Value) -> Call {
    patch["metadata"]["resourceVersion"] = json!(claim.metadata.resource_version);
    Call::patch(claim, Part::Main, patch)
}

/// The call that sets phase, modes and capacity; none when they are so. What
/// is not given goes, conditions and the rest stay.
fn status(claim: &PersistentVolumeClaim, wanted: &Value) -> Option<Call> {
    let now = claim.status.clone().unwrap_or_default();
    let mut old = json!({"phase": now.phase});
    if let Some(modes) = now.access_modes {
        old["accessModes"] = json!(modes);
    }
    if let Some(capacity) = now.capacity {
        old["capacity"] = json!(capacity);
    }
    let patch = merge_diff(&old, wanted)?;
    // The claim itself may have been written just before this.
    let patch = json!({"metadata": {"uid": claim.metadata.uid}, "status": patch});
    Some(Call::patch(claim, Part::Status, patch))
}

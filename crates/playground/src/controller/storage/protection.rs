//! Keeps claims that pods use and volumes that claims use from being deleted.

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use serde_json::json;

use super::{claims_of, phase};
use crate::cluster::{Change, Key, Seen, Watched, World, controller_of, uid};
use crate::engine::plan::{Call, Part, Plan, View};
use crate::workload::has_ended;

const CLAIM: &str = "kubernetes.io/pvc-protection";
const VOLUME: &str = "kubernetes.io/pv-protection";

pub(in super::super) fn wake_claim(_: &World, seen: &Seen, wake: &mut dyn FnMut(Key)) {
    match seen {
        Seen::Claim(Change { new: Some(claim), .. }) => wake(Key::of(&claim.metadata)),
        Seen::Pod(change) => {
            let pod = change.object();
            let uses = change.new.is_some() && pod.node().is_some();
            if !uses || has_ended(pod) || is_shut_down(pod) {
                let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
                claims_of(pod).for_each(|(name, _)| wake(Key::new(namespace, name)));
            }
        }
        _ => {}
    }
}

pub(in super::super) fn wake_volume(_: &World, seen: &Seen, wake: &mut dyn FnMut(Key)) {
    if let Seen::Volume(Change { new: Some(volume), .. }) = seen {
        wake(Key::of(&volume.metadata));
    }
}

/// Lets a claim go that is being deleted when no pod uses it any more.
pub(in super::super) fn plan_claim(view: View<'_>, key: &Key) -> Plan {
    let mut plan = Plan::default();
    let Some(claim) = view.world.claims.get(key) else { return plan };
    let mut pods = view.world.pods.in_namespace(&key.namespace);
    protect(&mut plan, &**claim, CLAIM, || pods.any(|pod| uses(pod, claim)));
    plan
}

/// Lets a volume go that is being deleted when no claim is bound to it any more.
pub(in super::super) fn plan_volume(view: View<'_>, key: &Key) -> Plan {
    let mut plan = Plan::default();
    let Some(volume) = view.world.volumes.get(key) else { return plan };
    protect(&mut plan, &**volume, VOLUME, || phase(volume) == "Bound");
    plan
}

fn protect<K: Watched>(
    plan: &mut Plan,
    object: &K,
    finalizer: &str,
    is_used: impl FnOnce() -> bool,
) {
    let metadata = object.metadata();
    let mut finalizers = metadata.finalizers.clone().unwrap_or_default();
    let is_protected = finalizers.iter().any(|known| known == finalizer);
    let is_going = metadata.deletion_timestamp.is_some();
    match (is_going, is_protected) {
        (false, false) => finalizers.push(finalizer.to_owned()),
        (true, true) if !is_used() => finalizers.retain(|known| known != finalizer),
        _ => return,
    }
    // The list is replaced as a whole, so it must still be as it was read.
    let patch = json!({"metadata": {
        "resourceVersion": metadata.resource_version,
        "finalizers": finalizers,
    }});
    plan.call(Call::patch(object, Part::Main, patch));
}

/// Pods without a node count for nothing: no node starts a pod whose claim is
/// going.
fn uses(pod: &Pod, claim: &PersistentVolumeClaim) -> bool {
    let name = claim.metadata.name.as_deref().unwrap_or_default();
    let owner = controller_of(&claim.metadata).map(|owner| owner.uid.as_str());
    pod.node().is_some()
        && claims_of(pod).any(|(used, is_ephemeral)| {
            let own = !is_shut_down(pod) && owner == Some(uid(&pod.metadata));
            used == name && (!is_ephemeral || own)
        })
}

/// Whether the pod's node is done with it, and only finalizers keep it. Its own
/// claims may be what they wait for.
fn is_shut_down(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
        && pod.metadata.deletion_grace_period_seconds == Some(0)
}

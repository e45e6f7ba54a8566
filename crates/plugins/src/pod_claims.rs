//! What the volume plugins share about the claims that a pod uses.

use steersman_api::key::ObjectKey;
use steersman_api::persistent_volume_claim::PersistentVolumeClaim;
use steersman_api::pod::{PodInfo, PodVolume};
use steersman_framework::cluster::Stores;
use steersman_framework::signature::{Signable, SignatureBuilder};

/// What is said about a claim that does not exist.
pub(crate) fn not_found(key: &ObjectKey) -> String {
    format!("persistentvolumeclaim {:?} not found", key.name)
}

/// Whether a claim was made for an ephemeral volume of `pod`, and not by chance
/// has the name that such a claim would have.
pub(crate) fn is_made_for(claim: &PersistentVolumeClaim, pod: &PodInfo) -> bool {
    claim.controller_uid.as_deref() == Some(&*pod.uid.0)
}

/// What is said about a claim that has the name of one for an ephemeral volume
/// and belongs to somebody else.
pub(crate) fn not_made_for(key: &ObjectKey, pod: &PodInfo) -> String {
    format!("PVC {key} was not created for pod {} (pod is not owner)", pod.key)
}

/// Whether `pod` uses the claim of that key.
pub(crate) fn uses(pod: &PodInfo, claim: &ObjectKey) -> bool {
    pod.key.namespace == claim.namespace && pod.claims().any(|used| used.key == *claim)
}

/// The claims of `pod` that exist and have no volume yet.
pub(crate) fn unbound<'a>(
    pod: &'a PodInfo,
    stores: &'a Stores,
) -> impl Iterator<Item = &'a PersistentVolumeClaim> {
    let claims = pod.claims().filter_map(|used| stores.get::<PersistentVolumeClaim>(&used.key));
    claims.filter(|claim| !claim.is_fully_bound())
}

/// Adds what of a pod's volumes the plugins read. Claims of ephemeral volumes
/// are the pod's own: no other pod gets its answers.
pub(crate) fn sign(pod: &PodInfo, signature: &mut SignatureBuilder) -> Signable {
    if pod.volumes.is_empty() {
        return Signable::Yes;
    }
    if pod.volumes.iter().any(|volume| matches!(volume, PodVolume::Ephemeral(_))) {
        return Signable::No;
    }
    signature.part("namespace", &pod.key.namespace);
    signature.part("volumes", &pod.volumes);
    Signable::Yes
}

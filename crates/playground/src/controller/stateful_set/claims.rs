//! The claims of one number of a stateful set: which there should be, and whom
//! they go with.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetSpec};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use crate::cluster::{Key, World, controller_of, uid};
use crate::engine::plan::Plan;
use crate::workload::{owner_reference, owners_patch};

/// Whether the number of the pod is one that the set wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// It is.
    Wanted,
    /// The set has been scaled down below it.
    Surplus,
}

/// The name of the claim of a volume of a pod.
pub(super) fn claim_name(volume: &str, pod: &str) -> String {
    format!("{volume}-{pod}")
}

/// The claims that the number should have and has not.
pub(super) fn missing(
    world: &World,
    set: &StatefulSet,
    spec: &StatefulSetSpec,
    number: i32,
) -> Vec<PersistentVolumeClaim> {
    let namespace = set.metadata.namespace.clone().unwrap_or_default();
    let pod = pod_name(set, number);
    let selected = spec.selector.match_labels.clone().unwrap_or_default();
    let templates = spec.volume_claim_templates.as_deref().unwrap_or_default();
    let claims = templates.iter().filter_map(|template| {
        let volume = template.metadata.name.as_deref().unwrap_or_default();
        let name = claim_name(volume, &pod);
        if world.claims.get(&Key::new(namespace.clone(), name.clone())).is_some() {
            return None;
        }
        let mut labels: BTreeMap<String, String> =
            template.metadata.labels.clone().unwrap_or_default();
        labels.extend(selected.clone());
        Some(PersistentVolumeClaim {
            metadata: ObjectMeta {
                name: Some(name),
                namespace: Some(namespace.clone()),
                labels: Some(labels),
                annotations: template.metadata.annotations.clone(),
                owner_references: goes_with_set(spec).then(|| vec![owner_reference(set)]),
                ..Default::default()
            },
            spec: template.spec.clone(),
            status: None,
        })
    });
    claims.collect()
}

/// Gives the claims of a pod the owners that the set's policy wants: the claims
/// go with the set, with a pod that goes because the set has been scaled down,
/// or with neither.
pub(super) fn assign(
    plan: &mut Plan,
    world: &World,
    set: &StatefulSet,
    spec: &StatefulSetSpec,
    pod: &Pod,
    place: Place,
) {
    let with_pod = place == Place::Surplus && goes_when_scaled(spec);
    let with_set = !with_pod && goes_with_set(spec);
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    for claim in present(world, set, spec, name) {
        let mine = |owner: &OwnerReference| {
            [uid(&set.metadata), uid(&pod.metadata)].contains(&owner.uid.as_str())
        };
        if controller_of(&claim.metadata).is_some_and(|owner| !mine(owner)) {
            // It goes with somebody else.
            continue;
        }
        let known = claim.metadata.owner_references.clone().unwrap_or_default();
        let mut owners = known.clone();
        owners.retain(|owner| !mine(owner));
        owners.extend(with_set.then(|| owner_reference(set)));
        owners.extend(with_pod.then(|| owner_reference(pod)));
        let uids = |owners: &[OwnerReference]| -> Vec<String> {
            owners.iter().map(|owner| owner.uid.clone()).collect()
        };
        if uids(&owners) != uids(&known) {
            plan.call(owners_patch(&**claim, &owners));
        }
    }
}

/// Whether a claim of the number still goes with a pod that is gone. A new pod
/// would lose it.
pub(super) fn are_leaving(
    world: &World,
    set: &StatefulSet,
    spec: &StatefulSetSpec,
    number: i32,
) -> bool {
    let name = pod_name(set, number);
    present(world, set, spec, &name).any(|claim| {
        let owner = controller_of(&claim.metadata);
        owner.is_some_and(|owner| owner.kind == "Pod" && owner.name == name)
            || claim.metadata.deletion_timestamp.is_some()
    })
}

/// Whether the claim has a name that the set would give.
pub(super) fn is_of(set: &StatefulSet, claim: &PersistentVolumeClaim) -> bool {
    let name = claim.metadata.name.as_deref().unwrap_or_default();
    let base = set.metadata.name.as_deref().unwrap_or_default();
    let templates = set.spec.iter().flat_map(|spec| spec.volume_claim_templates.iter().flatten());
    templates.filter_map(|template| template.metadata.name.as_deref()).any(|volume| {
        let pod = name.strip_prefix(volume).and_then(|rest| rest.strip_prefix('-'));
        pod.is_some_and(|pod| super::identity::number(base, pod).is_some())
    })
}

fn present<'w>(
    world: &'w World,
    set: &StatefulSet,
    spec: &StatefulSetSpec,
    pod: &str,
) -> impl Iterator<Item = &'w Arc<PersistentVolumeClaim>> {
    let namespace = set.metadata.namespace.clone().unwrap_or_default();
    let templates = spec.volume_claim_templates.as_deref().unwrap_or_default();
    templates.iter().filter_map(move |template| {
        let volume = template.metadata.name.as_deref().unwrap_or_default();
        world.claims.get(&Key::new(namespace.clone(), claim_name(volume, pod)))
    })
}

fn pod_name(set: &StatefulSet, number: i32) -> String {
    format!("{}-{number}", set.metadata.name.as_deref().unwrap_or_default())
}

fn goes_with_set(spec: &StatefulSetSpec) -> bool {
    let policy = spec.persistent_volume_claim_retention_policy.as_ref();
    policy.and_then(|policy| policy.when_deleted.as_deref()) == Some("Delete")
}

fn goes_when_scaled(spec: &StatefulSetSpec) -> bool {
    let policy = spec.persistent_volume_claim_retention_policy.as_ref();
    policy.and_then(|policy| policy.when_scaled.as_deref()) == Some("Delete")
}

//! Which objects belong to a controller, and how that changes.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta, OwnerReference};
use serde_json::json;

use super::template::selects;
use crate::cluster::{Store, Watched, uid};
use crate::engine::plan::{Call, Part, Plan};

/// The objects of a controller.
pub(crate) struct Claimed<K> {
    /// Those that are its own now.
    pub(crate) owned: Vec<Arc<K>>,
    /// Whether some have to be adopted first. They count as soon as they are;
    /// deciding before that could make one too many.
    pub(crate) adopting: bool,
}

/// The objects that the owner controls. Orphans that its selector matches are
/// adopted and those that it does not match any more are released: by actions
/// added to the plan.
pub(crate) fn claim<O: Watched, K: Watched>(
    plan: &mut Plan,
    store: &Store<K>,
    owner: &O,
    selector: &LabelSelector,
) -> Claimed<K> {
    let metadata = owner.metadata();
    let namespace = metadata.namespace.as_deref().unwrap_or_default();
    let (mut owned, mut adopting) = (Vec::new(), false);
    for object in store.owned_by(uid(metadata)) {
        if selects(selector, object.metadata()) {
            owned.push(Arc::clone(object));
        } else if object.metadata().deletion_timestamp.is_none() {
            plan.call(release(&**object, uid(metadata)));
        }
    }
    if metadata.deletion_timestamp.is_none() {
        for orphan in store.orphans(namespace) {
            let wanted = orphan.metadata().deletion_timestamp.is_none()
                && selects(selector, orphan.metadata());
            if wanted {
                adopting = true;
                plan.call(adopt(&**orphan, owner_reference(owner)));
            }
        }
    }
    Claimed { owned, adopting }
}

/// A reference to the controller of an object.
pub(crate) fn owner_reference<O: Watched>(owner: &O) -> OwnerReference {
    let metadata = owner.metadata();
    OwnerReference {
        api_version: O::WHICH.api_version().to_owned(),
        kind: O::WHICH.name().to_owned(),
        name: metadata.name.clone().unwrap_or_default(),
        uid: uid(metadata).to_owned(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

fn adopt<K: Watched>(object: &K, owner: OwnerReference) -> Call {
    let mut owners = object.metadata().owner_references.clone().unwrap_or_default();
    owners.push(owner);
    owners_patch(object, &owners)
}

fn release<K: Watched>(object: &K, owner_uid: &str) -> Call {
    let mut owners = object.metadata().owner_references.clone().unwrap_or_default();
    owners.retain(|owner| owner.uid != owner_uid);
    owners_patch(object, &owners)
}

/// Gives an object those owners. The list is replaced as a whole, so it must
/// still be as it was read.
pub(crate) fn owners_patch<K: Watched>(object: &K, owners: &[OwnerReference]) -> Call {
    let ObjectMeta { uid, resource_version, .. } = object.metadata();
    let patch = json!({ "metadata": {
        "uid": uid,
        "resourceVersion": resource_version,
        "ownerReferences": owners,
    }});
    Call::patch(object, Part::Main, patch)
}

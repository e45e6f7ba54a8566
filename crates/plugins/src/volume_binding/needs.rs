//! What a pod's claims need, before a node is looked at.

use std::collections::BTreeSet;
use std::sync::Arc;

use steersman_api::csi_driver::CsiDriver;
use steersman_api::csi_storage_capacity::CsiStorageCapacity;
use steersman_api::key::ObjectKey;
use steersman_api::persistent_volume::{PersistentVolume, Suits};
use steersman_api::persistent_volume_claim::PersistentVolumeClaim;
use steersman_api::pod::PodInfo;
use steersman_api::selector::NodeSelector;
use steersman_api::storage_class::StorageClass;
use steersman_framework::cluster::Stores;

use super::Aside;
use crate::csi_migration::translated_affinity;
use crate::pod_claims;

/// Volumes and claims as they are, and as they will be.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) stores: &'a Stores,
    pub(super) aside: &'a Aside,
}

/// See the module documentation.
pub(super) struct Needs {
    /// Volumes of claims that have one.
    pub(super) bound: Vec<Bound>,
    /// Claims that get a volume with the pod's node.
    pub(super) unbound: Vec<Unbound>,
}

/// The volume of a claim.
pub(super) enum Bound {
    /// It is there.
    Volume(BoundVolume),
    /// It does not exist.
    Gone,
}

/// A volume that the pod must be able to reach.
pub(super) struct BoundVolume {
    pub(super) volume: Arc<PersistentVolume>,
    /// How its node affinity reads on nodes where a CSI driver serves the
    /// volume in the name of an in-tree plugin.
    pub(super) translated: Option<NodeSelector>,
}

/// A claim that gets a volume with the pod's node.
pub(super) struct Unbound {
    pub(super) claim: Arc<PersistentVolumeClaim>,
    pub(super) existing: Existing,
    pub(super) provisioning: Provisioning,
}

/// The volumes that suit a claim, on nodes that can reach them.
pub(super) enum Existing {
    /// This one is kept for the claim: it or none.
    Kept(Arc<PersistentVolume>),
    /// Any of these, the smallest first.
    Any(Vec<Arc<PersistentVolume>>),
}

/// Whether a volume can be made.
pub(super) enum Provisioning {
    /// Not by this class.
    Never,
    /// On nodes that the class allows.
    By {
        class: Arc<StorageClass>,
        /// Where enough storage is left; `None`: nobody counts.
        capacities: Option<Vec<Arc<CsiStorageCapacity>>>,
    },
}

/// Says what is wrong with the claims of a pod.
pub(super) fn check_claims(pod: &PodInfo, stores: &Stores) -> Result<(), String> {
    for used in pod.claims() {
        let name = &used.key.name;
        let Some(claim) = stores.get::<PersistentVolumeClaim>(&used.key) else {
            return Err(match used.ephemeral {
                true => format!(
                    "waiting for ephemeral volume controller to create the persistentvolumeclaim \
                     {name:?}"
                ),
                false => pod_claims::not_found(&used.key),
            });
        };
        if claim.lost {
            let volume = &claim.volume_name;
            return Err(format!(
                "persistentvolumeclaim {name:?} bound to non-existent persistentvolume {volume:?}"
            ));
        }
        if claim.terminating {
            return Err(format!("persistentvolumeclaim {name:?} is being deleted"));
        }
        if used.ephemeral && !pod_claims::is_made_for(claim, pod) {
            return Err(pod_claims::not_made_for(&used.key, pod));
        }
    }
    Ok(())
}

/// The class of a claim that waits for a pod; `None` for other claims.
pub(super) fn waiting_class<'a>(
    claim: &PersistentVolumeClaim,
    stores: &'a Stores,
) -> Option<&'a StorageClass> {
    let waits = !claim.is_fully_bound() && claim.volume_name.is_empty();
    let class: &StorageClass = stores.get(&ObjectKey::cluster(&claim.class))?;
    (waits && class.waits_for_consumer).then_some(class)
}

impl Needs {
    /// What the claims of `pod` need. All of them exist. `None` when one should
    /// have a volume by now and has none.
    pub(super) fn of(pod: &PodInfo, view: View<'_>) -> Option<Self> {
        let mut needs = Self { bound: Vec::new(), unbound: Vec::new() };
        let mut seen = BTreeSet::new();
        for used in pod.claims() {
            let Some(claim) = view.aside.claims.get(view.stores, &used.key) else { continue };
            if !seen.insert(used.key) {
                continue;
            }
            if claim.is_fully_bound() {
                needs.bound.push(bound(&claim, view));
                continue;
            }
            waiting_class(&claim, view.stores)?;
            needs.unbound.push(Unbound {
                existing: existing(&claim, view),
                provisioning: provisioning(&claim, view.stores),
                claim,
            });
        }
        // Small claims choose first, so that large volumes are left for large
        // ones; what waits for its provisioner chooses nothing.
        needs.unbound.sort_by_key(|unbound| match unbound.claim.selected_node {
            Some(_) => None,
            None => Some(unbound.claim.request.unwrap_or_default()),
        });
        Some(needs)
    }
}

fn bound(claim: &PersistentVolumeClaim, view: View<'_>) -> Bound {
    let key = ObjectKey::cluster(&claim.volume_name);
    match view.aside.volumes.get(view.stores, &key) {
        Some(volume) => {
            let translated = translated_affinity(&volume);
            Bound::Volume(BoundVolume { volume, translated })
        }
        None => Bound::Gone,
    }
}

fn existing(claim: &PersistentVolumeClaim, view: View<'_>) -> Existing {
    if claim.selected_node.is_some() {
        return Existing::Any(Vec::new());
    }
    let mut suitable = Vec::new();
    let volumes = view.aside.volumes.list(view.stores);
    for volume in volumes.filter(|volume| volume.class == claim.class) {
        match volume.suits(claim) {
            Suits::Kept => return Existing::Kept(volume),
            Suits::Yes => suitable.push(volume),
            Suits::No => {}
        }
    }
    // They come by name; the sort keeps that among equals.
    suitable.sort_by_key(|volume| volume.capacity);
    Existing::Any(suitable)
}

fn provisioning(claim: &PersistentVolumeClaim, stores: &Stores) -> Provisioning {
    let class = stores.shared::<StorageClass>(&ObjectKey::cluster(&claim.class));
    let Some(class) = class.filter(|class| class.can_provision()) else {
        return Provisioning::Never;
    };
    let driver = stores.get::<CsiDriver>(&ObjectKey::cluster(&class.provisioner));
    let counted = driver.is_some_and(|driver| driver.publishes_capacity);
    let capacities = claim.request.filter(|_| counted).map(|size| {
        let enough = |capacity: &Arc<CsiStorageCapacity>| {
            capacity.class == claim.class
                && capacity.limit().is_some_and(|limit| limit >= size.value())
        };
        stores.list_shared::<CsiStorageCapacity>().filter(enough).collect()
    });
    Provisioning::By { class, capacities }
}

//! Which CSI volumes a pod brings to a node.

use std::collections::{BTreeMap, BTreeSet};

use steersman_api::csi_node::CsiNode;
use steersman_api::disk::Disk;
use steersman_api::key::ObjectKey;
use steersman_api::labels::Labels;
use steersman_api::name::Name;
use steersman_api::persistent_volume::{PersistentVolume, VolumeSource};
use steersman_api::persistent_volume_claim::PersistentVolumeClaim;
use steersman_api::pod::{PodInfo, PodVolume, UsedClaim};
use steersman_api::storage_class::StorageClass;
use steersman_api::volume_attachment::VolumeAttachment;
use steersman_framework::cluster::Stores;

use crate::csi_migration::{System, volume_handle};
use crate::pod_claims;

/// A volume of a CSI driver.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Volume {
    pub(super) driver: Name,
    id: VolumeId,
}

/// What tells volumes of one driver apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum VolumeId {
    /// What the driver calls it.
    Handle(Box<str>),
    /// It does not exist yet: the claim that it will be made for.
    MadeFor(ObjectKey),
}

/// Why the volumes of a pod that looks for a node cannot be counted.
pub(super) enum Uncountable {
    /// A claim does not exist.
    NoClaim(String),
    /// Something is wrong with a volume.
    Broken(String),
}

/// Whether a pod uses anything that is counted.
pub(super) fn may_count(pod: &PodInfo) -> bool {
    pod.volumes.iter().any(|volume| match volume {
        PodVolume::Claim(_) | PodVolume::Ephemeral(_) => true,
        PodVolume::Disk(disk) => System::of_disk(disk).is_some(),
    })
}

/// What is attached where, as far as persistent volumes of CSI drivers go.
pub(super) fn attached_volumes(stores: &Stores) -> BTreeMap<Name, BTreeSet<Volume>> {
    let mut attached: BTreeMap<Name, BTreeSet<Volume>> = BTreeMap::new();
    for attachment in stores.list::<VolumeAttachment>() {
        if let Some(volume) = attached_volume(attachment, stores) {
            attached.entry(attachment.node.clone()).or_default().insert(volume);
        }
    }
    attached
}

fn attached_volume(attachment: &VolumeAttachment, stores: &Stores) -> Option<Volume> {
    let volume: &PersistentVolume = stores.get(&ObjectKey::cluster(attachment.volume.as_ref()?))?;
    let VolumeSource::Csi { handle, .. } = &volume.source else { return None };
    (!attachment.attacher.is_empty()).then(|| Volume {
        driver: attachment.attacher.clone(),
        id: VolumeId::Handle(handle.clone()),
    })
}

/// Counts volumes on one node.
#[derive(Clone, Copy)]
pub(super) struct Counter<'a> {
    pub(super) stores: &'a Stores,
    /// What the drivers of the node say.
    pub(super) csi_node: Option<&'a CsiNode>,
}

impl Counter<'_> {
    /// The volumes of a pod that looks for a node.
    pub(super) fn volumes_of_new(&self, pod: &PodInfo) -> Result<BTreeSet<Volume>, Uncountable> {
        let mut volumes = BTreeSet::new();
        for used in pod.claims() {
            let UsedClaim { key, ephemeral } = used;
            let Some(claim) = self.stores.get::<PersistentVolumeClaim>(&key) else {
                let missing = pod_claims::not_found(&key);
                return Err(Uncountable::NoClaim(format!("looking up PVC {key}: {missing}")));
            };
            if ephemeral && !pod_claims::is_made_for(claim, pod) {
                return Err(Uncountable::Broken(pod_claims::not_made_for(&key, pod)));
            }
            volumes.extend(self.volume_of_claim(claim));
        }
        for disk in pod.disks() {
            volumes.extend(self.volume_of_disk(disk).map_err(Uncountable::Broken)?);
        }
        Ok(volumes)
    }

    /// The volumes of a pod that is on the node. What cannot be counted is left
    /// out: who knows whether it is there.
    pub(super) fn volumes_of(&self, pod: &PodInfo) -> BTreeSet<Volume> {
        if pod.volumes.is_empty() {
            return BTreeSet::new();
        }
        let claims = pod.claims().filter_map(|used| {
            let claim = self.stores.get::<PersistentVolumeClaim>(&used.key)?;
            (!used.ephemeral || pod_claims::is_made_for(claim, pod)).then_some(claim)
        });
        let claimed = claims.filter_map(|claim| self.volume_of_claim(claim));
        let named = pod.disks().filter_map(|disk| self.volume_of_disk(disk).ok().flatten());
        claimed.chain(named).collect()
    }

    fn volume_of_claim(&self, claim: &PersistentVolumeClaim) -> Option<Volume> {
        let key = ObjectKey::cluster(&claim.volume_name);
        match self.stores.get::<PersistentVolume>(&key) {
            Some(volume) => self.persistent_volume(volume),
            None => self.volume_to_be_made(claim),
        }
    }

    fn persistent_volume(&self, volume: &PersistentVolume) -> Option<Volume> {
        let disk = match &volume.source {
            VolumeSource::Csi { driver, handle } => {
                let id = VolumeId::Handle(handle.clone());
                let named = !driver.is_empty() && !handle.is_empty();
                return named.then(|| Volume { driver: driver.clone(), id });
            }
            VolumeSource::Disk(disk) => disk,
            VolumeSource::Other => return None,
        };
        self.disk(disk, &volume.labels).ok().flatten()
    }

    /// The volume that the class of a claim will make.
    fn volume_to_be_made(&self, claim: &PersistentVolumeClaim) -> Option<Volume> {
        let class: &StorageClass = self.stores.get(&ObjectKey::cluster(&claim.class))?;
        let driver = match System::of_provisioner(&class.provisioner) {
            Some(system) if system.is_counted_on(self.csi_node) => system.driver.into(),
            Some(_) => return None,
            None => class.provisioner.clone(),
        };
        (!driver.is_empty()).then(|| Volume { driver, id: VolumeId::MadeFor(claim.key.clone()) })
    }

    fn volume_of_disk(&self, disk: &Disk) -> Result<Option<Volume>, String> {
        self.disk(disk, &Labels::default())
    }

    fn disk(&self, disk: &Disk, labels: &Labels) -> Result<Option<Volume>, String> {
        let system = System::of_disk(disk).filter(|system| system.is_counted_on(self.csi_node));
        let Some(system) = system else { return Ok(None) };
        let id = VolumeId::Handle(volume_handle(disk, labels)?);
        Ok(Some(Volume { driver: system.driver.into(), id }))
    }
}

//! The volumes of a pod that scheduling reads.

use k8s_openapi::api::core::v1 as core_v1;

use crate::disk::Disk;
use crate::key::ObjectKey;
use crate::name::Name;

/// A volume that ties its pod to nodes or keeps it from other pods. Volumes of
/// other sorts (configuration, scratch space) are left out.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PodVolume {
    /// A persistent volume claim of that name.
    Claim(Name),
    /// A generic ephemeral volume of that name, for which a claim is made that
    /// lives as long as the pod.
    Ephemeral(Name),
    /// A disk, named outright.
    Disk(Disk),
}

/// A claim that a pod uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsedClaim {
    /// Its namespace and name.
    pub key: ObjectKey,
    /// Whether it was made for this pod's ephemeral volume.
    pub ephemeral: bool,
}

/// The volumes of a pod in the order of its spec.
pub(super) fn volumes(spec: &core_v1::PodSpec) -> Box<[PodVolume]> {
    spec.volumes.iter().flatten().filter_map(volume).collect()
}

fn volume(volume: &core_v1::Volume) -> Option<PodVolume> {
    if let Some(claim) = &volume.persistent_volume_claim {
        return Some(PodVolume::Claim(claim.claim_name.as_str().into()));
    }
    if volume.ephemeral.is_some() {
        return Some(PodVolume::Ephemeral(volume.name.as_str().into()));
    }
    Disk::of_pod_volume(volume).map(PodVolume::Disk)
}

impl super::PodInfo {
    /// The claims that the pod uses, in the order of its volumes.
    pub fn claims(&self) -> impl Iterator<Item = UsedClaim> {
        self.volumes.iter().filter_map(|volume| match volume {
            PodVolume::Claim(name) => Some(UsedClaim {
                key: ObjectKey::namespaced(self.key.namespace.clone(), name),
                ephemeral: false,
            }),
            PodVolume::Ephemeral(volume) => {
                let name = format!("{}-{volume}", self.key.name);
                let key = ObjectKey::namespaced(self.key.namespace.clone(), &name);
                Some(UsedClaim { key, ephemeral: true })
            }
            PodVolume::Disk(_) => None,
        })
    }

    /// The disks that the pod names outright, in the order of its volumes.
    pub fn disks(&self) -> impl Iterator<Item = &Disk> {
        self.volumes.iter().filter_map(|volume| match volume {
            PodVolume::Disk(disk) => Some(disk),
            PodVolume::Claim(_) | PodVolume::Ephemeral(_) => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::PodInfo;

    #[test]
    fn claims_and_disks_are_told_from_other_volumes() {
        let json = json!({"metadata": {"namespace": "ns", "name": "p"}, "spec": {
            "containers": [{"name": "c"}],
            "volumes": [
                {"name": "config", "configMap": {"name": "x"}},
                {"name": "data", "persistentVolumeClaim": {"claimName": "claim"}},
                {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
                {"name": "old", "cinder": {"volumeID": "v"}}]}});
        let pod = serde_json::from_value(json).expect("a pod");
        let pod = PodInfo::from_k8s(&pod, &mut Vec::new());
        let claims: Vec<_> = pod.claims().map(|c| (c.key.to_string(), c.ephemeral)).collect();
        assert_eq!(claims, [("ns/claim".into(), false), ("ns/p-scratch".into(), true)]);
        assert_eq!(pod.disks().count(), 1);
        assert_eq!(pod.volumes.len(), 3);
    }
}

//! Disks that pods and volumes name by the storage system they come from,
//! without a CSI driver. Most of these systems have moved to CSI drivers, which
//! serve such disks in the name of the old plugins.

use k8s_openapi::api::core::v1 as core_v1;

use crate::name::Name;

/// A disk, as far as scheduling tells one from another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Disk {
    /// A persistent disk of Google Compute Engine.
    GcePd {
        /// Its name.
        name: Name,
        /// Whether it is attached for reading only.
        read_only: bool,
    },
    /// A volume of Amazon's Elastic Block Store.
    AwsEbs {
        /// Its ID: `vol-…`, or an `aws://` address that ends so.
        id: Name,
    },
    /// A disk of Azure.
    AzureDisk {
        /// Its address.
        uri: Name,
    },
    /// A volume of OpenStack Cinder.
    Cinder {
        /// Its ID.
        id: Name,
    },
    /// A volume of Portworx.
    Portworx {
        /// Its ID.
        id: Name,
    },
    /// An iSCSI target.
    Iscsi {
        /// The target's qualified name.
        iqn: Name,
        /// Whether it is attached for reading only.
        read_only: bool,
    },
    /// An image in a Ceph cluster.
    Rbd {
        /// The cluster's monitors.
        monitors: Box<[Name]>,
        /// The pool.
        pool: Name,
        /// The image.
        image: Name,
        /// Whether it is attached for reading only.
        read_only: bool,
    },
}

/// The pool of an RBD image that names none; an API server fills it in.
const DEFAULT_RBD_POOL: &str = "rbd";

impl Disk {
    /// The disk that a pod's volume names; `None` for volumes of other sorts.
    pub fn of_pod_volume(volume: &core_v1::Volume) -> Option<Self> {
        if let Some(disk) = &volume.gce_persistent_disk {
            return Some(Self::gce(disk));
        }
        if let Some(disk) = &volume.aws_elastic_block_store {
            return Some(Self::AwsEbs { id: disk.volume_id.as_str().into() });
        }
        if let Some(disk) = &volume.azure_disk {
            return Some(Self::AzureDisk { uri: disk.disk_uri.as_str().into() });
        }
        if let Some(disk) = &volume.cinder {
            return Some(Self::Cinder { id: disk.volume_id.as_str().into() });
        }
        if let Some(disk) = &volume.portworx_volume {
            return Some(Self::Portworx { id: disk.volume_id.as_str().into() });
        }
        if let Some(target) = &volume.iscsi {
            let read_only = target.read_only.unwrap_or(false);
            return Some(Self::Iscsi { iqn: target.iqn.as_str().into(), read_only });
        }
        let image = volume.rbd.as_ref()?;
        Some(Self::Rbd {
            monitors: image.monitors.iter().map(|monitor| monitor.as_str().into()).collect(),
            pool: image.pool.as_deref().unwrap_or(DEFAULT_RBD_POOL).into(),
            image: image.image.as_str().into(),
            read_only: image.read_only.unwrap_or(false),
        })
    }

    /// The disk behind a persistent volume, when it is of a system that has
    /// moved to CSI; `None` for the others, which scheduling does not tell
    /// apart.
    pub fn of_persistent_volume(spec: &core_v1::PersistentVolumeSpec) -> Option<Self> {
        if let Some(disk) = &spec.gce_persistent_disk {
            return Some(Self::gce(disk));
        }
        if let Some(disk) = &spec.aws_elastic_block_store {
            return Some(Self::AwsEbs { id: disk.volume_id.as_str().into() });
        }
        if let Some(disk) = &spec.azure_disk {
            return Some(Self::AzureDisk { uri: disk.disk_uri.as_str().into() });
        }
        if let Some(disk) = &spec.cinder {
            return Some(Self::Cinder { id: disk.volume_id.as_str().into() });
        }
        let disk = spec.portworx_volume.as_ref()?;
        Some(Self::Portworx { id: disk.volume_id.as_str().into() })
    }

    fn gce(disk: &core_v1::GCEPersistentDiskVolumeSource) -> Self {
        let read_only = disk.read_only.unwrap_or(false);
        Self::GcePd { name: disk.pd_name.as_str().into(), read_only }
    }

    /// Whether two pods on one node cannot use `self` and `other` because both
    /// are the same disk. EBS volumes are never shared; the others are as long
    /// as all read only. Azure, Cinder and Portworx look after it themselves.
    pub fn conflicts_with(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::GcePd { name, read_only },
                Self::GcePd { name: other_name, read_only: other_read_only },
            ) => name == other_name && !(*read_only && *other_read_only),
            (Self::AwsEbs { id }, Self::AwsEbs { id: other_id }) => id == other_id,
            (
                Self::Iscsi { iqn, read_only },
                Self::Iscsi { iqn: other_iqn, read_only: other_read_only },
            ) => iqn == other_iqn && !(*read_only && *other_read_only),
            (
                Self::Rbd { monitors, pool, image, read_only },
                Self::Rbd {
                    monitors: other_monitors,
                    pool: other_pool,
                    image: other_image,
                    read_only: other_read_only,
                },
            ) => {
                pool == other_pool
                    && image == other_image
                    && monitors.iter().any(|monitor| other_monitors.contains(monitor))
                    && !(*read_only && *other_read_only)
            }
            _ => false,
        }
    }

    /// Whether disks of this sort can be in conflict at all.
    pub const fn can_conflict(&self) -> bool {
        matches!(
            self,
            Self::GcePd { .. } | Self::AwsEbs { .. } | Self::Iscsi { .. } | Self::Rbd { .. }
        )
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn disk(volume: &Value) -> Option<Disk> {
        let volume: core_v1::Volume = serde_json::from_value(volume.clone()).expect("a volume");
        Disk::of_pod_volume(&volume)
    }

    #[track_caller]
    fn check(one: Value, other: Value, expected: bool) {
        let [a, b] = [&one, &other].map(|volume| disk(volume).expect("a disk"));
        assert_eq!(a.conflicts_with(&b), expected, "{one} {other}");
        assert_eq!(b.conflicts_with(&a), expected, "{other} {one}");
        assert!(!expected || a.can_conflict());
    }

    #[test]
    fn disks_are_shared_by_readers_only() {
        let gce = |name: &str, read_only: bool| json!({"name": "v", "gcePersistentDisk": {"pdName": name, "readOnly": read_only}});
        check(gce("a", false), gce("a", false), true);
        check(gce("a", false), gce("a", true), true);
        check(gce("a", true), gce("a", true), false);
        check(gce("a", false), gce("b", false), false);
        let iscsi = |iqn: &str, read_only: bool| {
            json!({"name": "v", "iscsi": {"iqn": iqn, "lun": 0, "targetPortal": "t",
                "readOnly": read_only}})
        };
        check(iscsi("a", false), iscsi("a", true), true);
        check(iscsi("a", true), iscsi("a", true), false);
        check(iscsi("a", false), iscsi("b", false), false);
        check(iscsi("a", false), gce("a", false), false);
    }

    #[test]
    fn ebs_volumes_are_never_shared() {
        let ebs = |id: &str| json!({"name": "v", "awsElasticBlockStore": {"volumeID": id, "readOnly": true}});
        check(ebs("a"), ebs("a"), true);
        check(ebs("a"), ebs("b"), false);
    }

    #[test]
    fn rbd_images_are_the_same_in_one_pool_of_one_cluster() {
        let rbd = |monitors: &[&str], pool: Option<&str>, read_only: bool| {
            json!({"name": "v", "rbd": {"monitors": monitors, "pool": pool, "image": "i",
                "readOnly": read_only}})
        };
        check(rbd(&["a", "b"], None, false), rbd(&["b", "c"], Some("rbd"), true), true);
        check(rbd(&["a", "b"], None, true), rbd(&["b", "c"], None, true), false);
        check(rbd(&["a"], None, false), rbd(&["b"], None, false), false);
        check(rbd(&["a"], None, false), rbd(&["a"], Some("p"), false), false);
    }

    #[test]
    fn other_systems_look_after_their_disks_themselves() {
        let azure = json!({"name": "v", "azureDisk": {"diskName": "d", "diskURI": "u"}});
        check(azure.clone(), azure, false);
        assert_eq!(disk(&json!({"name": "v", "emptyDir": {}})), None);
    }
}

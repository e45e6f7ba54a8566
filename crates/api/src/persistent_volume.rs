//! Persistent volumes.

use k8s_openapi::api::core::v1 as core_v1;

use crate::disk::Disk;
use crate::key::ObjectKey;
use crate::labels::Labels;
use crate::name::Name;
use crate::node::read_amount;
use crate::object::StoredObject;
use crate::persistent_volume_claim::PersistentVolumeClaim;
use crate::problem::{FieldPath, Problem};
use crate::quantity::Quantity;
use crate::selector::NodeSelector;

/// One version of a `PersistentVolume`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PersistentVolume {
    /// Its name.
    pub key: ObjectKey,
    /// `metadata.resourceVersion`; empty for objects that no API server has
    /// seen.
    pub version: Box<str>,
    /// Its labels.
    pub labels: Labels,
    /// The storage class that it belongs to; empty when it belongs to none.
    pub class: Name,
    /// `spec.capacity.storage`.
    pub capacity: Quantity,
    /// `spec.accessModes`.
    pub access_modes: Box<[Name]>,
    /// Whether it is a raw block device rather than a file system.
    pub block: bool,
    /// `spec.volumeAttributesClassName`; empty when it has none.
    pub attributes_class: Name,
    /// The claim that it is bound to or kept for.
    pub claim: Option<ClaimRef>,
    /// Whether the claim was chosen by a controller or a scheduler, and not by
    /// the user.
    pub bound_by_controller: bool,
    /// Which nodes can reach it; `None`: all.
    pub node_affinity: Option<NodeSelector>,
    /// What it is on.
    pub source: VolumeSource,
    /// Whether `status.phase` is `Available`; manifests of volumes that nobody
    /// has, without a status, count as well.
    pub available: bool,
    /// Whether `metadata.deletionTimestamp` is set.
    pub terminating: bool,
}

/// A volume's reference to a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimRef {
    /// Namespace and name.
    pub key: ObjectKey,
    /// The claim's UID; empty while any claim of that name will do.
    pub uid: Box<str>,
}

/// Whether a volume suits a claim of its class, wherever it can be reached from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suits {
    /// It is bound to the claim or kept for it: no other will do.
    Kept,
    /// It does.
    Yes,
    /// It does not.
    No,
}

/// What a persistent volume is on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VolumeSource {
    /// A volume of a CSI driver.
    Csi {
        /// The driver.
        driver: Name,
        /// The driver's name of the volume.
        handle: Box<str>,
    },
    /// A disk of a system that has moved to CSI.
    Disk(Disk),
    /// Anything else: a directory, an NFS share and so on.
    Other,
}

/// The annotation of volumes (and claims) whose binding a controller chose.
pub const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
/// The annotation that named the storage class before there was a field. It
/// comes first still.
pub(crate) const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";

impl StoredObject for PersistentVolume {
    const RESOURCE: &'static str = "PersistentVolume";

    fn key(&self) -> &ObjectKey {
        &self.key
    }
}

impl PersistentVolume {
    /// Reads a volume. A node affinity that cannot be read lets no node in.
    pub fn from_k8s(volume: &core_v1::PersistentVolume, problems: &mut Vec<Problem>) -> Self {
        let meta = &volume.metadata;
        let annotation =
            |name: &str| meta.annotations.as_ref().and_then(|a| a.get(name)).map(String::as_str);
        let at = FieldPath::from("spec");
        let phase = volume.status.as_ref().and_then(|status| status.phase.as_deref());
        let spec = volume.spec.clone().unwrap_or_default();
        let required = spec.node_affinity.as_ref().and_then(|a| a.required.as_ref());
        let class = annotation(CLASS_ANNOTATION).or(spec.storage_class_name.as_deref());
        Self {
            key: ObjectKey::cluster(meta.name.as_deref().unwrap_or_default()),
            version: meta.resource_version.as_deref().unwrap_or_default().into(),
            labels: meta.labels.as_ref().into(),
            class: class.unwrap_or_default().into(),
            capacity: storage(spec.capacity.as_ref(), &at.field("capacity"), problems)
                .unwrap_or_default(),
            access_modes: names(spec.access_modes.as_deref()),
            block: is_block(spec.volume_mode.as_deref()),
            attributes_class: spec
                .volume_attributes_class_name
                .as_deref()
                .unwrap_or_default()
                .into(),
            claim: spec.claim_ref.as_ref().map(claim_ref),
            bound_by_controller: annotation(BOUND_BY_CONTROLLER).is_some(),
            node_affinity: required.map(|selector| {
                let at = at.field("nodeAffinity").field("required");
                NodeSelector::from_k8s(selector, &at, problems)
            }),
            source: source(&spec),
            available: phase.is_none_or(|phase| phase.is_empty() || phase == "Available"),
            terminating: meta.deletion_timestamp.is_some(),
        }
    }

    /// Whether the volume suits a claim. Classes are not compared.
    pub fn suits(&self, claim: &PersistentVolumeClaim) -> Suits {
        let is_kept = self.is_for(claim);
        let fits = (self.claim.is_none() || is_kept)
            && self.capacity >= claim.request.unwrap_or(Quantity::ZERO)
            && self.block == claim.block
            && self.attributes_class == claim.attributes_class
            && !self.terminating;
        if !fits {
            return Suits::No;
        }
        if is_kept {
            return Suits::Kept;
        }
        let offers = |mode| self.access_modes.contains(mode);
        let suits = self.available
            && claim.selector.as_ref().is_none_or(|selector| selector.matches(&self.labels))
            && claim.access_modes.iter().all(offers);
        if suits { Suits::Yes } else { Suits::No }
    }

    /// Whether the volume is bound to the claim or kept for it.
    pub fn is_for(&self, claim: &PersistentVolumeClaim) -> bool {
        self.claim.as_ref().is_some_and(|reference| {
            reference.key == claim.key && (reference.uid.is_empty() || reference.uid == claim.uid)
        })
    }

    /// Whether a node of those labels can reach the volume. A volume says so by
    /// labels alone; conditions on a node's name are never met.
    pub fn is_reachable_from(&self, node_labels: &Labels) -> bool {
        self.node_affinity.as_ref().is_none_or(|affinity| affinity.matches("", node_labels))
    }
}

fn claim_ref(reference: &core_v1::ObjectReference) -> ClaimRef {
    let namespace = reference.namespace.as_deref().unwrap_or_default();
    ClaimRef {
        key: ObjectKey::namespaced(namespace, reference.name.as_deref().unwrap_or_default()),
        uid: reference.uid.as_deref().unwrap_or_default().into(),
    }
}

fn source(spec: &core_v1::PersistentVolumeSpec) -> VolumeSource {
    if let Some(csi) = &spec.csi {
        return VolumeSource::Csi {
            driver: csi.driver.as_str().into(),
            handle: csi.volume_handle.as_str().into(),
        };
    }
    Disk::of_persistent_volume(spec).map_or(VolumeSource::Other, VolumeSource::Disk)
}

/// The amount of `storage` in a list of resources.
pub(crate) fn storage(
    list: Option<
        &std::collections::BTreeMap<
            String,
            k8s_openapi::apimachinery::pkg::api::resource::Quantity,
        >,
    >,
    at: &FieldPath,
    problems: &mut Vec<Problem>,
) -> Option<Quantity> {
    let amount = list?.get("storage")?;
    read_amount(&amount.0, &at.key("storage")).map_err(|problem| problems.push(problem)).ok()
}

/// Names from a list that may be absent.
pub(crate) fn names(list: Option<&[String]>) -> Box<[Name]> {
    list.unwrap_or_default().iter().map(|name| name.as_str().into()).collect()
}

/// Whether a `volumeMode` means a raw block device; an absent one does not.
pub(crate) fn is_block(mode: Option<&str>) -> bool {
    mode == Some("Block")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::decode::{Decoded, decode};
    use crate::object::ClusterObject;

    fn read(metadata: &Value, spec: &Value) -> (PersistentVolume, Vec<String>) {
        let json = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata,
            "spec": spec, "status": {"phase": "Available"}});
        let Decoded { object, problems } = decode(json).expect("a volume");
        let ClusterObject::Other(object) = object else { panic!("not a stored object") };
        let volume = object.get::<PersistentVolume>().expect("a volume").clone();
        (volume, problems.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn reads_a_full_volume() {
        let (volume, problems) = read(
            &json!({"name": "pv", "resourceVersion": "7", "labels": {"a": "b"},
                "annotations": {BOUND_BY_CONTROLLER: "yes"}}),
            &json!({"capacity": {"storage": "5Gi"}, "accessModes": ["ReadWriteOnce"],
                "volumeMode": "Block", "storageClassName": "fast",
                "volumeAttributesClassName": "gold",
                "claimRef": {"namespace": "ns", "name": "c", "uid": "u"},
                "csi": {"driver": "d", "volumeHandle": "h"},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
                    {"key": "zone", "operator": "In", "values": ["z1"]}]}]}}}),
        );
        assert_eq!(problems, [""; 0]);
        assert!(volume.is_reachable_from(&Labels::from_pairs([("zone", "z1")])));
        assert!(!volume.is_reachable_from(&Labels::default()));
        assert_eq!(
            PersistentVolume { node_affinity: None, ..volume },
            PersistentVolume {
                key: ObjectKey::cluster("pv"),
                version: "7".into(),
                labels: Labels::from_pairs([("a", "b")]),
                class: "fast".into(),
                capacity: Quantity::units(5 << 30),
                access_modes: ["ReadWriteOnce".into()].into(),
                block: true,
                attributes_class: "gold".into(),
                claim: Some(ClaimRef { key: ObjectKey::namespaced("ns", "c"), uid: "u".into() }),
                bound_by_controller: true,
                node_affinity: None,
                source: VolumeSource::Csi { driver: "d".into(), handle: "h".into() },
                available: true,
                terminating: false,
            }
        );
    }

    #[test]
    fn minimal_volume_is_reachable_from_everywhere() {
        let (volume, problems) = read(&json!({"name": "pv"}), &json!({"hostPath": {"path": "/"}}));
        assert_eq!(problems, [""; 0]);
        assert!(volume.is_reachable_from(&Labels::default()));
        assert_eq!((volume.class.as_str(), volume.source), ("", VolumeSource::Other));
        let gce = json!({"gcePersistentDisk": {"pdName": "d"}});
        let disk = Disk::GcePd { name: "d".into(), read_only: false };
        assert_eq!(read(&json!({"name": "pv"}), &gce).0.source, VolumeSource::Disk(disk));
    }

    #[test]
    fn annotation_names_the_class_first() {
        let annotated = json!({"name": "pv", "annotations": {CLASS_ANNOTATION: "old"}});
        assert_eq!(read(&annotated, &json!({"storageClassName": "new"})).0.class, "old");
    }

    #[test]
    fn what_cannot_be_read_is_reported_and_lets_no_node_in() {
        let (volume, problems) = read(
            &json!({"name": "pv"}),
            &json!({"capacity": {"storage": "much"}, "nodeAffinity": {"required": {
                "nodeSelectorTerms": [{"matchExpressions": [
                    {"key": "zone", "operator": "Near", "values": ["z1"]}]}]}}}),
        );
        assert!(!volume.is_reachable_from(&Labels::from_pairs([("zone", "z1")])));
        assert_eq!(volume.capacity, Quantity::ZERO);
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(problems[0].starts_with("spec.capacity[\"storage\"]: "), "{problems:?}");
        assert!(problems[1].starts_with("spec.nodeAffinity.required.nodeSelectorTerms[0]"));
    }
}

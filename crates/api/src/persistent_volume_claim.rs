//! Persistent volume claims.

use k8s_openapi::api::core::v1 as core_v1;

use crate::key::ObjectKey;
use crate::name::Name;
use crate::object::StoredObject;
use crate::persistent_volume::{CLASS_ANNOTATION, is_block, names, storage};
use crate::problem::{FieldPath, Problem};
use crate::quantity::Quantity;
use crate::selector::Selector;

/// One version of a `PersistentVolumeClaim`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PersistentVolumeClaim {
    /// Namespace and name.
    pub key: ObjectKey,
    /// `metadata.uid`.
    pub uid: Box<str>,
    /// `metadata.resourceVersion`; empty for objects that no API server has
    /// seen.
    pub version: Box<str>,
    /// The storage class that it asks for; empty when it asks for none.
    pub class: Name,
    /// How much storage it asks for.
    pub request: Option<Quantity>,
    /// `spec.accessModes`.
    pub access_modes: Box<[Name]>,
    /// Whether it asks for a raw block device rather than a file system.
    pub block: bool,
    /// `spec.volumeAttributesClassName`; empty when it asks for none.
    pub attributes_class: Name,
    /// The labels that its volume must have; `None`: any.
    pub selector: Option<Selector>,
    /// `spec.volumeName`: the volume that it is bound to or wants; empty when
    /// there is none yet.
    pub volume_name: Name,
    /// Whether the binding to that volume is complete.
    pub bind_completed: bool,
    /// The node that a scheduler chose, for which a volume is to be made.
    pub selected_node: Option<Name>,
    /// Whether its volume is gone (`status.phase` is `Lost`).
    pub lost: bool,
    /// Whether `metadata.deletionTimestamp` is set.
    pub terminating: bool,
    /// The UID of its controller: of the pod whose ephemeral volume it is.
    pub controller_uid: Option<Box<str>>,
}

/// The annotation of claims whose binding is complete.
pub const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
/// The annotation that names the node for which a volume is to be made.
pub const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

impl StoredObject for PersistentVolumeClaim {
    const RESOURCE: &'static str = "PersistentVolumeClaim";

    fn key(&self) -> &ObjectKey {
        &self.key
    }
}

impl PersistentVolumeClaim {
    /// Reads a claim. A selector that cannot be read matches no volume.
    pub fn from_k8s(claim: &core_v1::PersistentVolumeClaim, problems: &mut Vec<Problem>) -> Self {
        let meta = &claim.metadata;
        let annotation =
            |name: &str| meta.annotations.as_ref().and_then(|a| a.get(name)).map(String::as_str);
        let at = FieldPath::from("spec");
        let namespace = meta.namespace.as_deref().unwrap_or_default();
        let phase = claim.status.as_ref().and_then(|status| status.phase.as_deref());
        let spec = claim.spec.clone().unwrap_or_default();
        let requests = spec.resources.as_ref().and_then(|resources| resources.requests.as_ref());
        let requests_at = at.field("resources").field("requests");
        let class = annotation(CLASS_ANNOTATION).or(spec.storage_class_name.as_deref());
        let mut owners = meta.owner_references.iter().flatten();
        let controller = owners.find(|owner| owner.controller == Some(true));
        Self {
            key: ObjectKey::namespaced(namespace, meta.name.as_deref().unwrap_or_default()),
            uid: meta.uid.as_deref().unwrap_or_default().into(),
            version: meta.resource_version.as_deref().unwrap_or_default().into(),
            class: class.unwrap_or_default().into(),
            request: storage(requests, &requests_at, problems),
            access_modes: names(spec.access_modes.as_deref()),
            block: is_block(spec.volume_mode.as_deref()),
            attributes_class: spec
                .volume_attributes_class_name
                .as_deref()
                .unwrap_or_default()
                .into(),
            selector: spec.selector.as_ref().map(|selector| {
                Selector::from_k8s(Some(selector), &at.field("selector"), problems)
            }),
            volume_name: spec.volume_name.as_deref().unwrap_or_default().into(),
            bind_completed: annotation(BIND_COMPLETED).is_some(),
            selected_node: annotation(SELECTED_NODE).map(Name::new),
            lost: phase == Some("Lost"),
            terminating: meta.deletion_timestamp.is_some(),
            controller_uid: controller.map(|owner| owner.uid.as_str().into()),
        }
    }

    /// Whether it has a volume and nothing about that is left to do.
    pub fn is_fully_bound(&self) -> bool {
        self.bind_completed && !self.volume_name.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::decode::{Decoded, decode};
    use crate::object::ClusterObject;

    fn read(metadata: &Value, spec: &Value) -> (PersistentVolumeClaim, Vec<String>) {
        let json = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": metadata, "spec": spec});
        let Decoded { object, problems } = decode(json).expect("a claim");
        let ClusterObject::Other(object) = object else { panic!("not a stored object") };
        let claim = object.get::<PersistentVolumeClaim>().expect("a claim").clone();
        (claim, problems.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn reads_a_full_claim() {
        let (claim, problems) = read(
            &json!({"namespace": "ns", "name": "c", "uid": "u", "resourceVersion": "7",
                "annotations": {BIND_COMPLETED: "yes", SELECTED_NODE: "n1"},
                "ownerReferences": [
                    {"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "x-uid"},
                    {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "p-uid",
                        "controller": true}]}),
            &json!({"resources": {"requests": {"storage": "5Gi"}}, "accessModes": ["ReadWriteOnce"],
                "volumeMode": "Block", "storageClassName": "fast", "volumeName": "pv",
                "volumeAttributesClassName": "gold", "selector": {"matchLabels": {}}}),
        );
        assert_eq!(problems, [""; 0]);
        assert!(claim.is_fully_bound());
        assert_eq!(
            claim,
            PersistentVolumeClaim {
                key: ObjectKey::namespaced("ns", "c"),
                uid: "u".into(),
                version: "7".into(),
                class: "fast".into(),
                request: Some(Quantity::units(5 << 30)),
                access_modes: ["ReadWriteOnce".into()].into(),
                block: true,
                attributes_class: "gold".into(),
                selector: Some(Selector::everything()),
                volume_name: "pv".into(),
                bind_completed: true,
                selected_node: Some("n1".into()),
                lost: false,
                terminating: false,
                controller_uid: Some("p-uid".into()),
            }
        );
    }

    #[test]
    fn claim_without_a_volume_or_without_the_last_step_is_not_bound() {
        let meta = |annotations: Value| json!({"name": "c", "annotations": annotations});
        let named = json!({"volumeName": "pv"});
        assert!(!read(&meta(json!({})), &named).0.is_fully_bound());
        assert!(!read(&meta(json!({BIND_COMPLETED: "yes"})), &json!({})).0.is_fully_bound());
        assert!(read(&meta(json!({BIND_COMPLETED: "yes"})), &named).0.is_fully_bound());
    }

    #[test]
    fn selector_that_cannot_be_read_is_reported_and_matches_nothing() {
        let (claim, problems) = read(
            &json!({"name": "c"}),
            &json!({"selector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}),
        );
        assert_eq!(claim.selector, Some(Selector::Nothing));
        assert_eq!(problems.len(), 1);
        assert!(problems[0].starts_with("spec.selector.matchExpressions[0].operator: "));
    }
}

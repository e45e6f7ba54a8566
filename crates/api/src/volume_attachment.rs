//! Volumes that are attached to nodes, or about to be.

use k8s_openapi::api::storage::v1 as storage_v1;

use crate::key::ObjectKey;
use crate::name::Name;
use crate::object::StoredObject;
use crate::problem::Problem;

/// A `VolumeAttachment`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeAttachment {
    /// Its name.
    pub key: ObjectKey,
    /// The node.
    pub node: Name,
    /// The driver that attaches.
    pub attacher: Name,
    /// The persistent volume; `None` for a volume that a pod names itself.
    pub volume: Option<Name>,
}

impl StoredObject for VolumeAttachment {
    const RESOURCE: &'static str = "storage.k8s.io/VolumeAttachment";

    fn key(&self) -> &ObjectKey {
        &self.key
    }
}

impl VolumeAttachment {
    /// Reads an attachment.
    pub fn from_k8s(attachment: &storage_v1::VolumeAttachment, _: &mut Vec<Problem>) -> Self {
        let spec = &attachment.spec;
        let volume = spec.source.persistent_volume_name.as_deref();
        Self {
            key: ObjectKey::cluster(attachment.metadata.name.as_deref().unwrap_or_default()),
            node: spec.node_name.as_str().into(),
            attacher: spec.attacher.as_str().into(),
            volume: volume.map(Name::new),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn volume_is_named_or_inline() {
        let volume = |source: Value| {
            let json = json!({"metadata": {"name": "a"},
                "spec": {"nodeName": "n1", "attacher": "d", "source": source}});
            let wire = serde_json::from_value(json).expect("an attachment");
            VolumeAttachment::from_k8s(&wire, &mut Vec::new()).volume
        };
        assert_eq!(volume(json!({"persistentVolumeName": "pv"})), Some("pv".into()));
        assert_eq!(volume(json!({"inlineVolumeSpec": {}})), None);
    }
}

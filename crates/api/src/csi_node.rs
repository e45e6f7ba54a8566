//! What CSI drivers say about the nodes they run on.

use k8s_openapi::api::storage::v1 as storage_v1;

use crate::key::ObjectKey;
use crate::name::Name;
use crate::object::StoredObject;
use crate::problem::Problem;

/// A `CSINode`; it has the name of its node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsiNode {
    /// The node's name.
    pub key: ObjectKey,
    /// The drivers on the node, each with the number of volumes that can be
    /// attached there; `None`: not limited.
    pub drivers: Box<[(Name, Option<i64>)]>,
    /// The old in-tree plugins whose work a CSI driver does on the node.
    pub migrated_plugins: Box<[Name]>,
}

const MIGRATED_PLUGINS: &str = "storage.alpha.kubernetes.io/migrated-plugins";

impl StoredObject for CsiNode {
    const RESOURCE: &'static str = "storage.k8s.io/CSINode";

    fn key(&self) -> &ObjectKey {
        &self.key
    }
}

impl CsiNode {
    /// Reads an object.
    pub fn from_k8s(node: &storage_v1::CSINode, _: &mut Vec<Problem>) -> Self {
        let meta = &node.metadata;
        let migrated = meta.annotations.as_ref().and_then(|a| a.get(MIGRATED_PLUGINS));
        let drivers = node.spec.drivers.iter().map(|driver| {
            let count = driver.allocatable.as_ref().and_then(|resources| resources.count);
            (driver.name.as_str().into(), count.map(i64::from))
        });
        Self {
            key: ObjectKey::cluster(meta.name.as_deref().unwrap_or_default()),
            drivers: drivers.collect(),
            migrated_plugins: migrated
                .map(|list| list.split(',').filter(|name| !name.is_empty()))
                .into_iter()
                .flatten()
                .map(Name::new)
                .collect(),
        }
    }

    /// How many volumes of the driver can be attached; `None`: any number.
    pub fn limit(&self, driver: &Name) -> Option<i64> {
        self.drivers.iter().find(|(name, _)| name == driver)?.1
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(json: serde_json::Value) -> CsiNode {
        CsiNode::from_k8s(&serde_json::from_value(json).expect("a CSINode"), &mut Vec::new())
    }

    #[test]
    fn reads_limits_and_migrated_plugins() {
        let node = read(json!({
            "metadata": {"name": "n1", "annotations": {MIGRATED_PLUGINS: "a,b"}},
            "spec": {"drivers": [
                {"name": "x", "nodeID": "i", "allocatable": {"count": 2}},
                {"name": "y", "nodeID": "i"}]}}));
        assert_eq!(node.limit(&"x".into()), Some(2));
        assert_eq!(node.limit(&"y".into()), None);
        assert_eq!(node.limit(&"z".into()), None);
        assert_eq!(*node.migrated_plugins, ["a", "b"]);
        let minimal = read(json!({"metadata": {"name": "n1"}, "spec": {"drivers": []}}));
        assert_eq!((minimal.drivers.len(), minimal.migrated_plugins.len()), (0, 0));
    }
}

//! How much storage is left where.

use k8s_openapi::api::storage::v1 as storage_v1;

use crate::key::ObjectKey;
use crate::name::Name;
use crate::node::read_amount;
use crate::object::StoredObject;
use crate::problem::{FieldPath, Problem};
use crate::quantity::Quantity;
use crate::selector::Selector;

/// A `CSIStorageCapacity`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsiStorageCapacity {
    /// Namespace and name.
    pub key: ObjectKey,
    /// The storage class that it is about.
    pub class: Name,
    /// The nodes that it is about.
    pub nodes: Selector,
    /// `capacity`: how much is left; `None`: not known.
    pub capacity: Option<Quantity>,
    /// `maximumVolumeSize`: the largest volume that can be made.
    pub largest_volume: Option<Quantity>,
}

impl StoredObject for CsiStorageCapacity {
    const RESOURCE: &'static str = "storage.k8s.io/CSIStorageCapacity";

    fn key(&self) -> &ObjectKey {
        &self.key
    }
}

impl CsiStorageCapacity {
    /// Reads an object. An absent or unreadable `nodeTopology` means no node.
    pub fn from_k8s(
        capacity: &storage_v1::CSIStorageCapacity,
        problems: &mut Vec<Problem>,
    ) -> Self {
        let meta = &capacity.metadata;
        let root = FieldPath::root();
        let mut amount =
            |found: &Option<k8s_openapi::apimachinery::pkg::api::resource::Quantity>, field| {
                let read = read_amount(&found.as_ref()?.0, &root.field(field));
                read.map_err(|problem| problems.push(problem)).ok()
            };
        let left = amount(&capacity.capacity, "capacity");
        let largest = amount(&capacity.maximum_volume_size, "maximumVolumeSize");
        Self {
            key: ObjectKey::namespaced(
                meta.namespace.as_deref().unwrap_or_default(),
                meta.name.as_deref().unwrap_or_default(),
            ),
            class: capacity.storage_class_name.as_str().into(),
            nodes: Selector::from_k8s(
                capacity.node_topology.as_ref(),
                &root.field("nodeTopology"),
                problems,
            ),
            capacity: left,
            largest_volume: largest,
        }
    }

    /// The size in bytes up to which a volume can be made: the largest volume
    /// where that is told, otherwise what is left.
    pub fn limit(&self) -> Option<i64> {
        self.largest_volume.or(self.capacity).map(Quantity::value)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::labels::Labels;

    fn read(mut json: Value) -> (CsiStorageCapacity, usize) {
        json["metadata"] = json!({"namespace": "ns", "name": "c"});
        json["storageClassName"] = "fast".into();
        let mut problems = Vec::new();
        let wire = serde_json::from_value(json).expect("a capacity");
        (CsiStorageCapacity::from_k8s(&wire, &mut problems), problems.len())
    }

    #[test]
    fn largest_volume_counts_before_what_is_left() {
        let limit = |json: Value| read(json).0.limit();
        assert_eq!(limit(json!({"capacity": "10", "maximumVolumeSize": "3"})), Some(3));
        assert_eq!(limit(json!({"capacity": "10"})), Some(10));
        assert_eq!(limit(json!({})), None);
    }

    #[test]
    fn absent_topology_means_no_node_and_an_empty_one_all() {
        let everywhere = |json: Value| read(json).0.nodes.matches(&Labels::default());
        assert!(!everywhere(json!({})));
        assert!(everywhere(json!({"nodeTopology": {}})));
        assert!(!everywhere(json!({"nodeTopology": {"matchLabels": {"zone": "z1"}}})));
    }

    #[test]
    fn amount_that_cannot_be_read_is_reported() {
        assert_eq!(read(json!({"capacity": "much"})).1, 1);
    }
}

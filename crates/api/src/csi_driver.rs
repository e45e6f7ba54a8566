//! CSI drivers.

use k8s_openapi::api::storage::v1 as storage_v1;

use crate::key::ObjectKey;
use crate::object::StoredObject;
use crate::problem::Problem;

/// A `CSIDriver`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsiDriver {
    /// Its name.
    pub key: ObjectKey,
    /// Whether it publishes how much storage is left, so that pods wait for
    /// enough of it.
    pub publishes_capacity: bool,
}

impl StoredObject for CsiDriver {
    const RESOURCE: &'static str = "storage.k8s.io/CSIDriver";

    fn key(&self) -> &ObjectKey {
        &self.key
    }
}

impl CsiDriver {
    /// Reads a driver.
    pub fn from_k8s(driver: &storage_v1::CSIDriver, _: &mut Vec<Problem>) -> Self {
        Self {
            key: ObjectKey::cluster(driver.metadata.name.as_deref().unwrap_or_default()),
            publishes_capacity: driver.spec.storage_capacity.unwrap_or(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn capacity_is_published_when_the_driver_says_so() {
        let publishes = |spec: Value| {
            let json = json!({"metadata": {"name": "d"}, "spec": spec});
            let driver = serde_json::from_value(json).expect("a driver");
            CsiDriver::from_k8s(&driver, &mut Vec::new()).publishes_capacity
        };
        assert!(publishes(json!({"storageCapacity": true})));
        assert!(!publishes(json!({"storageCapacity": false})));
        assert!(!publishes(json!({})));
    }
}

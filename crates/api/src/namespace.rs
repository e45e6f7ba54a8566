//! Namespaces: their labels, for selectors over namespaces.

use k8s_openapi::api::core::v1 as core_v1;

use crate::key::ObjectKey;
use crate::labels::Labels;
use crate::object::StoredObject;
use crate::problem::Problem;

/// A namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespace {
    /// Its name.
    pub key: ObjectKey,
    /// Its labels.
    pub labels: Labels,
}

impl StoredObject for Namespace {
    const RESOURCE: &'static str = "Namespace";

    fn key(&self) -> &ObjectKey {
        &self.key
    }
}

impl Namespace {
    /// Reads a namespace.
    pub fn from_k8s(namespace: &core_v1::Namespace, _: &mut Vec<Problem>) -> Self {
        Self {
            key: ObjectKey::cluster(namespace.metadata.name.as_deref().unwrap_or_default()),
            labels: namespace.metadata.labels.as_ref().into(),
        }
    }
}

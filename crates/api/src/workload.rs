//! Objects that select pods: services and the controllers of pods. Default
//! topology spreading asks them which pods belong together.

use k8s_openapi::api::{apps::v1 as apps_v1, core::v1 as core_v1};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::key::ObjectKey;
use crate::labels::Labels;
use crate::object::StoredObject;
use crate::problem::{FieldPath, Problem};
use crate::selector::Selector;

/// The key of a namespaced object of that metadata.
fn key_of(meta: &ObjectMeta) -> ObjectKey {
    ObjectKey::namespaced(
        meta.namespace.as_deref().unwrap_or_default(),
        meta.name.as_deref().unwrap_or_default(),
    )
}

/// A service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// Namespace and name.
    pub key: ObjectKey,
    /// Labels of the pods behind it; `None` when it selects none by itself.
    pub selector: Option<Labels>,
}

/// A `ReplicationController`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicationController {
    /// Namespace and name.
    pub key: ObjectKey,
    /// Labels of its pods.
    pub selector: Labels,
}

/// A `ReplicaSet`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaSet {
    /// Namespace and name.
    pub key: ObjectKey,
    /// Its pods.
    pub selector: Selector,
}

/// A `StatefulSet`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatefulSet {
    /// Namespace and name.
    pub key: ObjectKey,
    /// Its pods.
    pub selector: Selector,
}

impl StoredObject for Service {
    const RESOURCE: &'static str = "Service";

    fn key(&self) -> &ObjectKey {
        &self.key
    }
}

impl StoredObject for ReplicationController {
    const RESOURCE: &'static str = "ReplicationController";

    fn key(&self) -> &ObjectKey {
        &self.key
    }
}

impl StoredObject for ReplicaSet {
    const RESOURCE: &'static str = "apps/ReplicaSet";

    fn key(&self) -> &ObjectKey {
        &self.key
    }
}

impl StoredObject for StatefulSet {
    const RESOURCE: &'static str = "apps/StatefulSet";

    fn key(&self) -> &ObjectKey {
        &self.key
    }
}

impl Service {
    /// Reads a service.
    pub fn from_k8s(service: &core_v1::Service, _: &mut Vec<Problem>) -> Self {
        let selector = service.spec.as_ref().and_then(|s| s.selector.as_ref());
        Self { key: key_of(&service.metadata), selector: selector.map(Labels::from) }
    }
}

impl ReplicationController {
    /// Reads a replication controller.
    pub fn from_k8s(controller: &core_v1::ReplicationController, _: &mut Vec<Problem>) -> Self {
        let selector = controller.spec.as_ref().and_then(|s| s.selector.as_ref());
        Self { key: key_of(&controller.metadata), selector: selector.into() }
    }
}

impl ReplicaSet {
    /// Reads a replica set.
    pub fn from_k8s(set: &apps_v1::ReplicaSet, problems: &mut Vec<Problem>) -> Self {
        let selector = set.spec.as_ref().map(|s| &s.selector);
        Self { key: key_of(&set.metadata), selector: selector_of(selector, problems) }
    }
}

impl StatefulSet {
    /// Reads a stateful set.
    pub fn from_k8s(set: &apps_v1::StatefulSet, problems: &mut Vec<Problem>) -> Self {
        let selector = set.spec.as_ref().map(|s| &s.selector);
        Self { key: key_of(&set.metadata), selector: selector_of(selector, problems) }
    }
}

fn selector_of(
    selector: Option<&k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector>,
    problems: &mut Vec<Problem>,
) -> Selector {
    Selector::from_k8s(selector, &FieldPath::from("spec.selector"), problems)
}

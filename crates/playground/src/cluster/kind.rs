//! The kinds that nodes and controllers look at and write.

use std::fmt::Debug;

use k8s_openapi::Metadata;
use k8s_openapi::api::{apps::v1 as apps_v1, batch::v1 as batch_v1, coordination::v1 as lease_v1};
use k8s_openapi::api::{core::v1 as core_v1, policy::v1 as policy_v1, storage::v1 as storage_v1};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;
use serde_json::Value;
use steersman_api::problem::{FieldPath, Problem, ProblemKind};
use steersman_api::wire::WireObject;

use super::store::{Key, Store};
use super::world::World;

/// One kind of object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// `v1 Pod`
    Pod,
    /// `v1 Node`
    Node,
    /// `coordination.k8s.io/v1 Lease`
    Lease,
    /// `v1 Namespace`
    Namespace,
    /// `v1 ServiceAccount`
    ServiceAccount,
    /// `apps/v1 Deployment`
    Deployment,
    /// `apps/v1 ReplicaSet`
    ReplicaSet,
    /// `apps/v1 DaemonSet`
    DaemonSet,
    /// `apps/v1 StatefulSet`
    StatefulSet,
    /// `apps/v1 ControllerRevision`
    Revision,
    /// `batch/v1 Job`
    Job,
    /// `v1 PersistentVolumeClaim`
    Claim,
    /// `v1 PersistentVolume`
    Volume,
    /// `storage.k8s.io/v1 StorageClass`
    StorageClass,
    /// `policy/v1 PodDisruptionBudget`
    Budget,
    /// `v1 Event`; written only.
    Event,
}

impl Kind {
    /// Group and version, the kind's name, its plural, and whether its objects
    /// have a namespace.
    fn row(self) -> (&'static str, &'static str, &'static str, bool) {
        match self {
            Self::Pod => ("v1", "Pod", "pods", true),
            Self::Node => ("v1", "Node", "nodes", false),
            Self::Lease => ("coordination.k8s.io/v1", "Lease", "leases", true),
            Self::Namespace => ("v1", "Namespace", "namespaces", false),
            Self::ServiceAccount => ("v1", "ServiceAccount", "serviceaccounts", true),
            Self::Deployment => ("apps/v1", "Deployment", "deployments", true),
            Self::ReplicaSet => ("apps/v1", "ReplicaSet", "replicasets", true),
            Self::DaemonSet => ("apps/v1", "DaemonSet", "daemonsets", true),
            Self::StatefulSet => ("apps/v1", "StatefulSet", "statefulsets", true),
            Self::Revision => ("apps/v1", "ControllerRevision", "controllerrevisions", true),
            Self::Job => ("batch/v1", "Job", "jobs", true),
            Self::Claim => ("v1", "PersistentVolumeClaim", "persistentvolumeclaims", true),
            Self::Volume => ("v1", "PersistentVolume", "persistentvolumes", false),
            Self::StorageClass => ("storage.k8s.io/v1", "StorageClass", "storageclasses", false),
            Self::Budget => ("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets", true),
            Self::Event => ("v1", "Event", "events", true),
        }
    }

    /// `apps/v1`
    pub fn api_version(self) -> &'static str {
        self.row().0
    }

    /// `Deployment`
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// The path of all objects of the kind.
    pub(crate) fn path(self) -> String {
        let (api_version, _, plural, _) = self.row();
        let root = if api_version.contains('/') { "apis" } else { "api" };
        format!("/{root}/{api_version}/{plural}")
    }

    /// The path of the collection that an object of the namespace is in.
    pub(crate) fn collection(self, namespace: &str) -> String {
        let (api_version, _, plural, namespaced) = self.row();
        let root = if api_version.contains('/') { "apis" } else { "api" };
        if namespaced {
            format!("/{root}/{api_version}/namespaces/{namespace}/{plural}")
        } else {
            self.path()
        }
    }

    /// The path of one object.
    pub(crate) fn object(self, key: &Key) -> String {
        format!("{}/{}", self.collection(&key.namespace), key.name)
    }
}

/// Reads a typed object. Fields that the type does not have are no mistake:
/// newer API servers send some.
///
/// # Errors
/// The first value that is not of the type's form.
pub(crate) fn read<K: WireObject>(value: &Value) -> Result<K, Problem> {
    let mut problems = Vec::new();
    let object = K::from_json(value, &mut problems);
    problems.retain(|problem| problem.kind != ProblemKind::UnknownField);
    match (problems.into_iter().next(), object) {
        (None, Some(object)) => Ok(object),
        (Some(problem), _) => Err(problem),
        (None, None) => Err(Problem::new(&FieldPath::root(), "cannot be read")),
    }
}

/// A kind of which a copy is held.
pub trait Watched:
    Metadata<Ty = ObjectMeta>
    + Clone
    + Debug
    + PartialEq
    + Serialize
    + WireObject
    + Send
    + Sync
    + 'static
{
    /// Which one.
    const WHICH: Kind;

    /// Its store.
    fn store(world: &World) -> &Store<Self>;

    /// Its store, to change.
    fn store_mut(world: &mut World) -> &mut Store<Self>;

    /// The node that the object is on; the store can be asked for all of one.
    fn node(&self) -> Option<&str> {
        None
    }
}

macro_rules! watched {
    ($($type:ty => $kind:ident, $field:ident;)*) => {$(
        impl Watched for $type {
            const WHICH: Kind = Kind::$kind;

            fn store(world: &World) -> &Store<Self> {
                &world.$field
            }

            fn store_mut(world: &mut World) -> &mut Store<Self> {
                &mut world.$field
            }
        }
    )*};
}

watched! {
    core_v1::Node => Node, nodes;
    lease_v1::Lease => Lease, leases;
    core_v1::Namespace => Namespace, namespaces;
    core_v1::ServiceAccount => ServiceAccount, service_accounts;
    apps_v1::Deployment => Deployment, deployments;
    apps_v1::ReplicaSet => ReplicaSet, replica_sets;
    apps_v1::DaemonSet => DaemonSet, daemon_sets;
    apps_v1::StatefulSet => StatefulSet, stateful_sets;
    apps_v1::ControllerRevision => Revision, revisions;
    batch_v1::Job => Job, jobs;
    core_v1::PersistentVolumeClaim => Claim, claims;
    core_v1::PersistentVolume => Volume, volumes;
    storage_v1::StorageClass => StorageClass, storage_classes;
    policy_v1::PodDisruptionBudget => Budget, budgets;
}

impl Watched for core_v1::Pod {
    const WHICH: Kind = Kind::Pod;

    fn store(world: &World) -> &Store<Self> {
        &world.pods
    }

    fn store_mut(world: &mut World) -> &mut Store<Self> {
        &mut world.pods
    }

    fn node(&self) -> Option<&str> {
        self.spec.as_ref()?.node_name.as_deref().filter(|name| !name.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unknown_fields_are_read_over_and_wrong_values_are_named() {
        let cases = [
            (json!({"metadata": {"name": "a", "new": 1}, "later": {}}), Ok("a")),
            (json!({"spec": {"nodeName": 3}}), Err("spec.nodeName: found 3, allowed: a string")),
            (json!("a"), Err("found \"a\", allowed: an object")),
        ];
        for (value, expected) in cases {
            let name = |pod: core_v1::Pod| pod.metadata.name.unwrap_or_default();
            let read = read(&value).map(name).map_err(|problem| problem.to_string());
            assert_eq!(read.as_deref().map_err(String::as_str), expected, "{value}");
        }
    }
}

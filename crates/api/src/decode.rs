//! From JSON, as API servers and manifests have it, to [`ClusterObject`]s.
//! One row a kind: adding a kind means one file and one row.

use std::sync::Arc;

use k8s_openapi::api::core::v1 as core_v1;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;
use thiserror::Error;

use crate::csi_driver::CsiDriver;
use crate::csi_node::CsiNode;
use crate::csi_storage_capacity::CsiStorageCapacity;
use crate::disruption::PodDisruptionBudget;
use crate::key::ObjectKey;
use crate::namespace::Namespace;
use crate::node::Node;
use crate::object::{AnyObject, ClusterObject, StoredObject};
use crate::persistent_volume::PersistentVolume;
use crate::persistent_volume_claim::PersistentVolumeClaim;
use crate::pod::PodInfo;
use crate::problem::{FieldPath, Problem, ProblemKind};
use crate::storage_class::StorageClass;
use crate::strict::append_independent;
use crate::volume_attachment::VolumeAttachment;
use crate::wire::WireObject;
use crate::workload::{ReplicaSet, ReplicationController, Service, StatefulSet};

/// How objects of one kind are read.
#[derive(Clone, Copy, Debug)]
pub struct KindRow {
    /// `v1`, `apps/v1` and so on.
    pub api_version: &'static str,
    /// `Pod` and so on.
    pub kind: &'static str,
    /// `pods` and so on: the name in paths of the API.
    pub plural: &'static str,
    /// What cluster events call the kind: [`StoredObject::RESOURCE`], or `Pod`
    /// and `Node`.
    pub resource: &'static str,
    /// Whether objects of the kind belong to a namespace.
    pub namespaced: bool,
    read: fn(&Value) -> Result<Decoded, Problem>,
}

/// An object, and what of it could not be read.
#[derive(Clone, Debug)]
pub struct Decoded {
    /// The object.
    pub object: ClusterObject,
    /// What could not be read, and took a harmless meaning instead.
    pub problems: Vec<Problem>,
}

/// Why an object could not be read at all.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// The kind is none of [`KINDS`].
    #[error("no scheduling rule reads objects of kind {kind:?} in {api_version:?}")]
    UnknownKind {
        /// What stands under `apiVersion`.
        api_version: String,
        /// What stands under `kind`.
        kind: String,
    },
    /// Nothing can be made of the object.
    #[error("{0}")]
    Malformed(Problem),
}

/// The kinds that the in-tree plugins read.
pub const KINDS: &[KindRow] = &[
    KindRow {
        api_version: "v1",
        kind: "Pod",
        plural: "pods",
        resource: "Pod",
        namespaced: true,
        read: |json| {
            with(json, |pod, problems| {
                ClusterObject::Pod(Arc::new(PodInfo::from_k8s(pod, problems)))
            })
        },
    },
    KindRow {
        api_version: "v1",
        kind: "Node",
        plural: "nodes",
        resource: "Node",
        namespaced: false,
        read: |json| {
            with(json, |node, problems| {
                ClusterObject::Node(Arc::new(Node::from_k8s(node, problems)))
            })
        },
    },
    KindRow {
        api_version: "v1",
        kind: "Namespace",
        plural: "namespaces",
        resource: Namespace::RESOURCE,
        namespaced: false,
        read: |json| stored(json, Namespace::from_k8s),
    },
    KindRow {
        api_version: "v1",
        kind: "Service",
        plural: "services",
        resource: Service::RESOURCE,
        namespaced: true,
        read: |json| stored(json, Service::from_k8s),
    },
    KindRow {
        api_version: "v1",
        kind: "ReplicationController",
        plural: "replicationcontrollers",
        resource: ReplicationController::RESOURCE,
        namespaced: true,
        read: |json| stored(json, ReplicationController::from_k8s),
    },
    KindRow {
        api_version: "apps/v1",
        kind: "ReplicaSet",
        plural: "replicasets",
        resource: ReplicaSet::RESOURCE,
        namespaced: true,
        read: |json| stored(json, ReplicaSet::from_k8s),
    },
    KindRow {
        api_version: "apps/v1",
        kind: "StatefulSet",
        plural: "statefulsets",
        resource: StatefulSet::RESOURCE,
        namespaced: true,
        read: |json| stored(json, StatefulSet::from_k8s),
    },
    KindRow {
        api_version: "policy/v1",
        kind: "PodDisruptionBudget",
        plural: "poddisruptionbudgets",
        resource: PodDisruptionBudget::RESOURCE,
        namespaced: true,
        read: |json| stored(json, PodDisruptionBudget::from_k8s),
    },
    KindRow {
        api_version: "v1",
        kind: "PersistentVolume",
        plural: "persistentvolumes",
        resource: PersistentVolume::RESOURCE,
        namespaced: false,
        read: |json| stored(json, PersistentVolume::from_k8s),
    },
    KindRow {
        api_version: "v1",
        kind: "PersistentVolumeClaim",
        plural: "persistentvolumeclaims",
        resource: PersistentVolumeClaim::RESOURCE,
        namespaced: true,
        read: |json| stored(json, PersistentVolumeClaim::from_k8s),
    },
    KindRow {
        api_version: "storage.k8s.io/v1",
        kind: "StorageClass",
        plural: "storageclasses",
        resource: StorageClass::RESOURCE,
        namespaced: false,
        read: |json| stored(json, StorageClass::from_k8s),
    },
    KindRow {
        api_version: "storage.k8s.io/v1",
        kind: "CSINode",
        plural: "csinodes",
        resource: CsiNode::RESOURCE,
        namespaced: false,
        read: |json| stored(json, CsiNode::from_k8s),
    },
    KindRow {
        api_version: "storage.k8s.io/v1",
        kind: "CSIDriver",
        plural: "csidrivers",
        resource: CsiDriver::RESOURCE,
        namespaced: false,
        read: |json| stored(json, CsiDriver::from_k8s),
    },
    KindRow {
        api_version: "storage.k8s.io/v1",
        kind: "CSIStorageCapacity",
        plural: "csistoragecapacities",
        resource: CsiStorageCapacity::RESOURCE,
        namespaced: true,
        read: |json| stored(json, CsiStorageCapacity::from_k8s),
    },
    KindRow {
        api_version: "storage.k8s.io/v1",
        kind: "VolumeAttachment",
        plural: "volumeattachments",
        resource: VolumeAttachment::RESOURCE,
        namespaced: false,
        read: |json| stored(json, VolumeAttachment::from_k8s),
    },
];

impl Decoded {
    /// Keeps the whole object beside what scheduling reads of it, for those who
    /// want more of a pod or a node. Other kinds stay as they are.
    #[must_use]
    pub fn with_whole(mut self, json: &Value) -> Self {
        // What cannot be read was a problem before.
        match &mut self.object {
            ClusterObject::Pod(pod) => {
                let whole = core_v1::Pod::from_json(json, &mut Vec::new());
                Arc::make_mut(pod).object = whole.map(Arc::new);
            }
            ClusterObject::Node(node) => {
                let whole = core_v1::Node::from_json(json, &mut Vec::new());
                Arc::make_mut(node).object = whole.map(Arc::new);
            }
            ClusterObject::Other(_) => {}
        }
        self
    }

    /// Keeps of a whole pod no more than its annotations, for those who want to
    /// know when they change.
    #[must_use]
    pub fn with_annotations(mut self, json: &Value) -> Self {
        if let ClusterObject::Pod(pod) = &mut self.object {
            let annotations = json["metadata"].get("annotations").and_then(Value::as_object);
            let text =
                |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.into()));
            let annotations = annotations.into_iter().flatten().filter_map(text).collect();
            let metadata = ObjectMeta { annotations: Some(annotations), ..ObjectMeta::default() };
            let whole = core_v1::Pod { metadata, ..core_v1::Pod::default() };
            Arc::make_mut(pod).object = Some(Arc::new(whole));
        }
        self
    }
}

impl KindRow {
    /// Reads an object that is known to be of this kind, whether it says so or
    /// not: objects in lists do not.
    ///
    /// # Errors
    /// When nothing can be made of the JSON.
    pub fn decode(&self, json: &Value) -> Result<Decoded, Problem> {
        (self.read)(json)
    }

    /// Where the API serves all objects of the kind: `/api/v1/pods`.
    pub fn path(&self) -> String {
        let root = if self.api_version.contains('/') { "apis" } else { "api" };
        format!("/{root}/{}/{}", self.api_version, self.plural)
    }

    /// Where it serves one of them.
    pub fn object_path(&self, key: &ObjectKey) -> String {
        let root = if self.api_version.contains('/') { "apis" } else { "api" };
        let Self { api_version, plural, .. } = self;
        match self.namespaced {
            true => {
                format!("/{root}/{api_version}/namespaces/{}/{plural}/{}", key.namespace, key.name)
            }
            false => format!("/{root}/{api_version}/{plural}/{}", key.name),
        }
    }
}

/// The row of a kind.
pub fn kind_row(api_version: &str, kind: &str) -> Option<&'static KindRow> {
    KINDS.iter().find(|row| row.api_version == api_version && row.kind == kind)
}

/// Reads an object of any of [`KINDS`].
///
/// # Errors
/// When the kind is another one, or nothing can be made of the JSON. A value
/// of a wrong type or without a meaning (an unknown operator, a negative
/// amount) is no error but one of [`Decoded::problems`].
pub fn decode(json: Value) -> Result<Decoded, DecodeError> {
    let text = |field: &str| json.get(field).and_then(Value::as_str).unwrap_or_default();
    let Some(row) = kind_row(text("apiVersion"), text("kind")) else {
        return Err(DecodeError::UnknownKind {
            api_version: text("apiVersion").to_owned(),
            kind: text("kind").to_owned(),
        });
    };
    row.decode(&json).map_err(DecodeError::Malformed)
}

/// Reads an object and converts it. Fields that the type does not have are no
/// problem: newer API servers send some.
fn with<T: WireObject>(
    json: &Value,
    convert: impl Fn(&T, &mut Vec<Problem>) -> ClusterObject,
) -> Result<Decoded, Problem> {
    let mut problems = Vec::new();
    let read = T::from_json(json, &mut problems);
    problems.retain(|problem| problem.kind != ProblemKind::UnknownField);
    let Some(wire) = read else {
        let unreadable = || Problem::new(&FieldPath::root(), "cannot be read");
        return Err(problems.into_iter().next().unwrap_or_else(unreadable));
    };
    let mut more = Vec::new();
    let object = convert(&wire, &mut more);
    append_independent(&mut problems, more);
    Ok(Decoded { object, problems })
}

fn stored<T: WireObject, S: StoredObject>(
    json: &Value,
    convert: fn(&T, &mut Vec<Problem>) -> S,
) -> Result<Decoded, Problem> {
    with(json, |wire: &T, problems| ClusterObject::Other(AnyObject::new(convert(wire, problems))))
}

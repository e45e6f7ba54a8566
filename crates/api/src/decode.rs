//! From JSON, as API servers and manifests have it, to [`ClusterObject`]s.
//! One row a kind: adding a kind means one file and one row.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::Value;
use thiserror::Error;

use crate::namespace::Namespace;
use crate::node::Node;
use crate::object::{AnyObject, ClusterObject, StoredObject};
use crate::pod::PodInfo;
use crate::problem::{FieldPath, Problem};
use crate::workload::{ReplicaSet, ReplicationController, Service, StatefulSet};

/// How objects of one kind are read.
#[derive(Clone, Copy, Debug)]
pub struct KindRow {
    /// `v1`, `apps/v1` and so on.
    pub api_version: &'static str,
    /// `Pod` and so on.
    pub kind: &'static str,
    /// Whether objects of the kind belong to a namespace.
    pub namespaced: bool,
    read: fn(Value) -> Result<Decoded, Problem>,
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
    /// A field has a wrong type, or a field that must be there is missing.
    #[error("{0}")]
    Malformed(Problem),
}

/// The kinds that the in-tree plugins read.
pub const KINDS: &[KindRow] = &[
    row("v1", "Pod", true, |json| {
        with(json, |pod, problems| ClusterObject::Pod(Arc::new(PodInfo::from_k8s(&pod, problems))))
    }),
    row("v1", "Node", false, |json| {
        with(json, |node, problems| ClusterObject::Node(Arc::new(Node::from_k8s(&node, problems))))
    }),
    row("v1", "Namespace", false, |json| stored(json, Namespace::from_k8s)),
    row("v1", "Service", true, |json| stored(json, Service::from_k8s)),
    row("v1", "ReplicationController", true, |json| stored(json, ReplicationController::from_k8s)),
    row("apps/v1", "ReplicaSet", true, |json| stored(json, ReplicaSet::from_k8s)),
    row("apps/v1", "StatefulSet", true, |json| stored(json, StatefulSet::from_k8s)),
];

const fn row(
    api_version: &'static str,
    kind: &'static str,
    namespaced: bool,
    read: fn(Value) -> Result<Decoded, Problem>,
) -> KindRow {
    KindRow { api_version, kind, namespaced, read }
}

/// The row of a kind.
pub fn kind_row(api_version: &str, kind: &str) -> Option<&'static KindRow> {
    KINDS.iter().find(|row| row.api_version == api_version && row.kind == kind)
}

/// Reads an object of any of [`KINDS`].
///
/// # Errors
/// When the kind is another one, or the JSON has not the kind's shape. A value
/// that has the right type and no meaning (an unknown operator, a negative
/// amount) is no error but one of [`Decoded::problems`].
pub fn decode(json: Value) -> Result<Decoded, DecodeError> {
    let text = |field: &str| json.get(field).and_then(Value::as_str).unwrap_or_default();
    let Some(row) = kind_row(text("apiVersion"), text("kind")) else {
        return Err(DecodeError::UnknownKind {
            api_version: text("apiVersion").to_owned(),
            kind: text("kind").to_owned(),
        });
    };
    (row.read)(json).map_err(DecodeError::Malformed)
}

/// Reads JSON as any type that serde knows; an error names the path.
///
/// # Errors
/// When the JSON has not the type's shape.
pub fn read_as<T: DeserializeOwned>(json: Value) -> Result<T, Problem> {
    serde_path_to_error::deserialize(json).map_err(|error| json_problem(&FieldPath::root(), &error))
}

/// Turns an error of reading JSON into a problem below `at`.
pub fn json_problem(
    at: &FieldPath,
    error: &serde_path_to_error::Error<serde_json::Error>,
) -> Problem {
    use serde_path_to_error::Segment;
    let path = error.path().iter().fold(at.clone(), |path, segment| match segment {
        Segment::Seq { index } => path.index(*index),
        Segment::Map { key } => path.field(key),
        Segment::Enum { variant } => path.field(variant),
        Segment::Unknown => path,
    });
    Problem::new(&path, error.inner().to_string())
}

fn with<T: DeserializeOwned>(
    json: Value,
    convert: impl Fn(T, &mut Vec<Problem>) -> ClusterObject,
) -> Result<Decoded, Problem> {
    let mut problems = Vec::new();
    let object = convert(read_as(json)?, &mut problems);
    Ok(Decoded { object, problems })
}

fn stored<T: DeserializeOwned, S: StoredObject>(
    json: Value,
    convert: fn(&T, &mut Vec<Problem>) -> S,
) -> Result<Decoded, Problem> {
    with(json, |wire: T, problems| ClusterObject::Other(AnyObject::new(convert(&wire, problems))))
}

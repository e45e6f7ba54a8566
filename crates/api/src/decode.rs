//! From JSON, as API servers and manifests have it, to [`ClusterObject`]s.
//! One row a kind: adding a kind means one file and one row.

use std::sync::Arc;

use serde_json::Value;
use thiserror::Error;

use crate::namespace::Namespace;
use crate::node::Node;
use crate::object::{AnyObject, ClusterObject, StoredObject};
use crate::pod::PodInfo;
use crate::problem::{FieldPath, Problem, ProblemKind};
use crate::strict::append_independent;
use crate::wire::WireObject;
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
    row("v1", "Pod", true, |json| {
        with(json, |pod, problems| ClusterObject::Pod(Arc::new(PodInfo::from_k8s(pod, problems))))
    }),
    row("v1", "Node", false, |json| {
        with(json, |node, problems| ClusterObject::Node(Arc::new(Node::from_k8s(node, problems))))
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
    read: fn(&Value) -> Result<Decoded, Problem>,
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
    (row.read)(&json).map_err(DecodeError::Malformed)
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

//! Which kinds are read, and how. A kind more means one row more.

use k8s_openapi::Metadata;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;
use steersman_api::decode::{self, DecodeError};
use steersman_api::key::ObjectKey;
use steersman_api::problem::{FieldPath, Problem, ProblemKind};
use steersman_api::wire::WireObject;

use super::source::Source;
use super::{Manifests, Sourced};
use crate::expand::names;

/// The namespace of objects that name none.
const DEFAULT_NAMESPACE: &str = "default";
/// The longest name of an object (RFC 1123 subdomain).
const MAX_NAME: usize = 253;
/// The longest name of a namespace (RFC 1123 label).
const MAX_NAMESPACE: usize = 63;

/// What is to be done with an object.
pub(super) enum Kind {
    /// It holds other objects.
    List,
    /// It is read.
    Known(&'static KindRow),
    /// No scheduling rule reads it; the name to count it under.
    Skipped(String),
}

/// How objects of one kind are read.
pub(super) struct KindRow {
    pub(super) api_version: &'static str,
    pub(super) kind: &'static str,
    pub(super) namespaced: bool,
    pub(super) read: fn(&mut Manifests, &Reading<'_>, &mut Vec<Problem>),
}

/// An object that is being read.
pub(super) struct Reading<'a> {
    pub(super) value: &'a Value,
    pub(super) key: &'a ObjectKey,
    pub(super) source: &'a Source,
    pub(super) order: usize,
}

/// The kinds that have a list of their own in [`Manifests`].
const KINDS: &[KindRow] = &[
    row("v1", "Pod", true, |all, reading, problems| reading.push(&mut all.pods, problems)),
    row("v1", "Node", false, |all, reading, problems| reading.push(&mut all.nodes, problems)),
    row("v1", "Namespace", false, |all, reading, problems| {
        reading.push(&mut all.namespaces, problems);
    }),
    row("v1", "Service", true, |all, reading, problems| reading.push(&mut all.services, problems)),
    row("v1", "ReplicationController", true, |all, reading, problems| {
        reading.push(&mut all.replication_controllers, problems);
    }),
    row("apps/v1", "ReplicaSet", true, |all, reading, problems| {
        reading.push(&mut all.replica_sets, problems);
    }),
    row("apps/v1", "Deployment", true, |all, reading, problems| {
        reading.push(&mut all.deployments, problems);
    }),
    row("apps/v1", "StatefulSet", true, |all, reading, problems| {
        reading.push(&mut all.stateful_sets, problems);
    }),
    row("apps/v1", "DaemonSet", true, |all, reading, problems| {
        reading.push(&mut all.daemon_sets, problems);
    }),
    row("batch/v1", "Job", true, |all, reading, problems| reading.push(&mut all.jobs, problems)),
    row("batch/v1", "CronJob", true, |all, reading, problems| {
        reading.push(&mut all.cron_jobs, problems);
    }),
    row("scheduling.k8s.io/v1", "PriorityClass", false, |all, reading, problems| {
        reading.push(&mut all.priority_classes, problems);
    }),
    row("v1", "PersistentVolumeClaim", true, |all, reading, problems| {
        reading.push(&mut all.persistent_volume_claims, problems);
    }),
    row("storage.k8s.io/v1", "StorageClass", false, |all, reading, problems| {
        reading.push(&mut all.storage_classes, problems);
    }),
];

/// Every other kind that the scheduling view knows, by the name in its row.
const fn other(api_version: &'static str, kind: &'static str, namespaced: bool) -> KindRow {
    row(api_version, kind, namespaced, |all, reading, problems| reading.push_other(all, problems))
}

const fn row(
    api_version: &'static str,
    kind: &'static str,
    namespaced: bool,
    read: fn(&mut Manifests, &Reading<'_>, &mut Vec<Problem>),
) -> KindRow {
    KindRow { api_version, kind, namespaced, read }
}

/// The rows of [`KINDS`], and one for each kind that only the scheduling view
/// has.
fn rows() -> &'static [KindRow] {
    use std::sync::OnceLock;
    static ROWS: OnceLock<Vec<KindRow>> = OnceLock::new();
    ROWS.get_or_init(|| {
        let known = |kind: &str| KINDS.iter().any(|row| row.kind == kind);
        let others = decode::KINDS.iter().filter(|row| !known(row.kind));
        KINDS
            .iter()
            .map(|r| row(r.api_version, r.kind, r.namespaced, r.read))
            .chain(others.map(|r| other(r.api_version, r.kind, r.namespaced)))
            .collect()
    })
}

/// Finds out what an object of that type is for.
pub(super) fn classify(api_version: &str, kind: &str, has_items: bool) -> Result<Kind, Problem> {
    if let Some(row) = rows().iter().find(|r| r.kind == kind && r.api_version == api_version) {
        return Ok(Kind::Known(row));
    }
    if kind == "List" || (kind.ends_with("List") && has_items) {
        return Ok(Kind::List);
    }
    // Kinds of Kubernetes itself; elsewhere the same word may mean anything.
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let built_in = !group.contains('.') || group.ends_with(".k8s.io");
    let allowed = rows().iter().filter(|r| r.kind.eq_ignore_ascii_case(kind));
    let Some(row) = allowed.into_iter().next().filter(|_| built_in) else {
        let name = if built_in { kind.to_owned() } else { format!("{kind}.{group}") };
        return Ok(Kind::Skipped(name));
    };
    let root = FieldPath::root();
    Err(if row.kind == kind {
        let at = root.field("apiVersion");
        Problem::invalid(
            &at,
            format_args!("{api_version:?}"),
            format_args!("{:?}", row.api_version),
        )
    } else {
        let allowed = format_args!("{:?} of {:?}", row.kind, row.api_version);
        Problem::invalid(&root.field("kind"), format_args!("{kind:?}"), allowed)
    })
}

/// Namespace and name of an object. An object with `generateName` alone gets
/// the rest of its name from its place in the input.
pub(super) fn key_of(
    row: &KindRow,
    value: &Value,
    order: usize,
    problems: &mut Vec<Problem>,
) -> Option<ObjectKey> {
    let at = FieldPath::from("metadata");
    let found_before = problems.len();
    let mut text = |field: &str| match value.get("metadata").and_then(|m| m.get(field)) {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(text.as_str()).filter(|text| !text.is_empty()),
        Some(found) => {
            problems.push(Problem::invalid(&at.field(field), shape(found), "a string"));
            None
        }
    };
    let (name, prefix, namespace) = (text("name"), text("generateName"), text("namespace"));
    let namespace = if row.namespaced { namespace.unwrap_or(DEFAULT_NAMESPACE) } else { "" };
    let name = match (name, prefix) {
        (Some(name), _) => name.to_owned(),
        (None, Some(prefix)) => {
            let seed = names::hash(&[row.kind, namespace, prefix, &order.to_string()]);
            names::with_suffix(prefix, seed)
        }
        (None, None) => {
            if problems.len() == found_before {
                problems.push(Problem::required(&at.field("name"), "the object's name"));
            }
            return None;
        }
    };
    check_name(&name, &at.field("name"), MAX_NAME, problems);
    if row.namespaced {
        check_name(namespace, &at.field("namespace"), MAX_NAMESPACE, problems);
    }
    let at_fault = problems.len() > found_before;
    (!at_fault).then(|| ObjectKey::namespaced(namespace, &name))
}

fn check_name(name: &str, at: &FieldPath, max: usize, problems: &mut Vec<Problem>) {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let good = name.len() <= max
        && name.split('.').all(|part| {
            part.bytes().all(|b| inner(b) || b == b'-')
                && part.bytes().next().is_some_and(inner)
                && part.bytes().last().is_some_and(inner)
        });
    if !good {
        let shown: String = name.chars().take(max).collect();
        let allowed = format!(
            "up to {max} lowercase letters, digits, '-' and '.', starting and ending with a \
             letter or digit"
        );
        problems.push(Problem::invalid(at, format_args!("{shown:?}"), allowed));
    }
}

impl Reading<'_> {
    /// Reads the object as a `T` and keeps it when nothing is wrong but fields
    /// that are not known.
    fn push<T>(&self, list: &mut Vec<Sourced<T>>, problems: &mut Vec<Problem>)
    where
        T: WireObject + Metadata<Ty = ObjectMeta>,
    {
        let Some(mut object) = T::from_json(self.value, problems) else { return };
        if problems.iter().all(|problem| problem.kind == ProblemKind::UnknownField) {
            let metadata = object.metadata_mut();
            metadata.name = Some(self.key.name.to_string());
            let namespace = self.key.namespace.as_str();
            metadata.namespace = Some(namespace.to_owned()).filter(|n| !n.is_empty());
            list.push(self.sourced(object));
        }
    }

    /// Reads an object of which only the scheduling view knows the kind.
    fn push_other(&self, all: &mut Manifests, problems: &mut Vec<Problem>) {
        let mut value = self.value.clone();
        if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("name".to_owned(), (&*self.key.name).into());
            if !self.key.namespace.is_empty() {
                metadata.insert("namespace".to_owned(), self.key.namespace.as_str().into());
            }
        }
        match decode::decode(value) {
            Ok(decoded) => {
                problems.extend(decoded.problems);
                if problems.is_empty() {
                    all.others.push(self.sourced(decoded.object));
                }
            }
            Err(DecodeError::Malformed(problem)) => problems.push(problem),
            Err(error) => problems.push(Problem::new(&FieldPath::root(), error.to_string())),
        }
    }

    fn sourced<T>(&self, object: T) -> Sourced<T> {
        Sourced { object, source: self.source.clone(), order: self.order }
    }
}

/// An object in a message: its kind, and its name when it has one.
pub(super) fn described(kind: &str, value: &Value) -> String {
    let text = |field: &str| value.get("metadata")?.get(field)?.as_str();
    match (text("namespace"), text("name")) {
        (Some(namespace), Some(name)) => format!("{kind} {namespace}/{name}"),
        (None, Some(name)) => format!("{kind} {name}"),
        (_, None) => format!("{kind} without a name"),
    }
}

/// A value of the wrong kind in a message.
pub(super) fn shape(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => format!("{:?}", text.chars().take(60).collect::<String>()),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

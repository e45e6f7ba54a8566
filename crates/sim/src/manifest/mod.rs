//! Reading manifests: files of YAML or JSON documents, lists included, into
//! Kubernetes objects that remember where they come from.
//!
//! Nothing stops at the first mistake: [`Manifests`] holds every good object,
//! and the problems say what is wrong with the others.

mod files;
mod json;
mod kinds;
mod list;
mod source;
mod text;

use std::collections::{BTreeMap, HashMap};

use k8s_openapi::api::{
    apps::v1 as apps_v1, batch::v1 as batch_v1, core::v1 as core_v1,
    scheduling::v1 as scheduling_v1, storage::v1 as storage_v1,
};
use serde_json::Value;
use steersman_api::key::ObjectKey;
use steersman_api::object::ClusterObject;
use steersman_api::problem::{FieldPath, Problem, ProblemKind};

pub use files::{InputFile, STDIN, read_paths};
use kinds::Kind;
pub use source::{InputProblem, Place, Source};

/// An object and its origin.
#[derive(Clone, Debug)]
pub struct Sourced<T> {
    /// The object, as its author wrote it, with a name and (unless its kind
    /// belongs to none) a namespace.
    pub object: T,
    /// Where it was read.
    pub source: Source,
    /// Grows from object to object in the order in which they were read.
    pub order: usize,
}

/// The objects of all files, by kind and in order.
#[derive(Debug, Default)]
pub struct Manifests {
    /// Pods.
    pub pods: Vec<Sourced<core_v1::Pod>>,
    /// Nodes.
    pub nodes: Vec<Sourced<core_v1::Node>>,
    /// Namespaces.
    pub namespaces: Vec<Sourced<core_v1::Namespace>>,
    /// Services.
    pub services: Vec<Sourced<core_v1::Service>>,
    /// Replication controllers.
    pub replication_controllers: Vec<Sourced<core_v1::ReplicationController>>,
    /// Replica sets.
    pub replica_sets: Vec<Sourced<apps_v1::ReplicaSet>>,
    /// Deployments.
    pub deployments: Vec<Sourced<apps_v1::Deployment>>,
    /// Stateful sets.
    pub stateful_sets: Vec<Sourced<apps_v1::StatefulSet>>,
    /// Daemon sets.
    pub daemon_sets: Vec<Sourced<apps_v1::DaemonSet>>,
    /// Jobs.
    pub jobs: Vec<Sourced<batch_v1::Job>>,
    /// Cron jobs.
    pub cron_jobs: Vec<Sourced<batch_v1::CronJob>>,
    /// Priority classes.
    pub priority_classes: Vec<Sourced<scheduling_v1::PriorityClass>>,
    /// Claims of persistent volumes.
    pub persistent_volume_claims: Vec<Sourced<core_v1::PersistentVolumeClaim>>,
    /// Storage classes.
    pub storage_classes: Vec<Sourced<storage_v1::StorageClass>>,
    /// Objects of other kinds that scheduling reads, in their final form.
    pub others: Vec<Sourced<ClusterObject>>,
    /// Every namespace that an object is in, and the first such object.
    pub used_namespaces: BTreeMap<String, Source>,
    /// How many objects of kinds that scheduling does not read were left out.
    pub skipped: BTreeMap<String, usize>,
    /// Fields that the kinds do not have, by kind and path without positions,
    /// and how many objects have them.
    pub unknown_fields: BTreeMap<(&'static str, String), UnknownField>,
    seen: HashMap<(&'static str, ObjectKey), Source>,
    next_order: usize,
}

/// A field that a kind does not have. It is ignored: dumps of newer clusters
/// have such fields. Yet it may be a slip of the pen, so the user hears of it.
#[derive(Clone, Debug)]
pub struct UnknownField {
    /// The first place where it stands.
    pub first: InputProblem,
    /// How many times it stands anywhere.
    pub count: usize,
}

impl Manifests {
    /// Reads every document of `file`.
    pub fn read(&mut self, file: InputFile, problems: &mut Vec<InputProblem>) {
        let source = Source::file(file.name.as_str());
        let text = match std::str::from_utf8(&file.bytes) {
            Ok(text) => text.strip_prefix('\u{feff}').unwrap_or(text),
            Err(error) => {
                let message = format!(
                    "not UTF-8 at byte {}; allowed: YAML or JSON text in UTF-8",
                    error.valid_up_to()
                );
                return problems.push(InputProblem::at(source, message));
            }
        };
        let documents = text::documents(text, file.name.ends_with(".json"));
        if documents.is_empty() {
            let message = "the file is empty, allowed: at least one Kubernetes object";
            return problems.push(InputProblem::at(source, message));
        }
        for (n, document) in documents.into_iter().enumerate() {
            let source = source.document(n + 1, document.line);
            match (document.value, document.items) {
                (Ok(value), None) => self.take(value, source, problems),
                (Ok(list), Some(items)) => self.take_list(&list, items, source, problems),
                (Err(message), _) => problems.push(InputProblem::at(source, message)),
            }
        }
    }

    /// Takes in an object or a list of objects.
    fn take(&mut self, value: Value, source: Source, problems: &mut Vec<InputProblem>) {
        let (api_version, kind) = match type_of(&value) {
            Ok(found) => found,
            Err(problem) => return problems.push(InputProblem { source, object: None, problem }),
        };
        match kinds::classify(api_version, kind, value.get("items").is_some()) {
            Ok(Kind::List) => self.take_items(value, &source, problems),
            Ok(Kind::Known(row)) => self.take_known(row, &value, source, problems),
            Ok(Kind::Skipped(name)) => *self.skipped.entry(name).or_default() += 1,
            Err(problem) => {
                let object = Some(kinds::described(kind, &value));
                problems.push(InputProblem { source, object, problem });
            }
        }
    }

    fn take_items(&mut self, mut list: Value, source: &Source, problems: &mut Vec<InputProblem>) {
        match list.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) => {
                for (n, item) in items.into_iter().enumerate() {
                    self.take_item(&list, item, source.item(n, None), problems);
                }
            }
            None | Some(Value::Null) => {}
            Some(other) => {
                let found = kinds::shape(&other);
                let problem =
                    Problem::invalid(&FieldPath::from("items"), found, "a list of objects");
                problems.push(InputProblem { source: source.clone(), object: None, problem });
            }
        }
    }

    /// Takes in a document with `items` that were read one by one.
    fn take_list(
        &mut self,
        list: &Value,
        items: Vec<text::Document>,
        source: Source,
        problems: &mut Vec<InputProblem>,
    ) {
        let kind = type_of(list).and_then(|(version, kind)| kinds::classify(version, kind, true));
        match kind {
            Ok(Kind::List) => {
                for (n, item) in items.into_iter().enumerate() {
                    let source = source.item(n, Some(item.line));
                    match item.value {
                        Ok(value) => self.take_item(list, value, source, problems),
                        Err(message) => problems.push(InputProblem::at(source, message)),
                    }
                }
            }
            // Something else that has a field of that name.
            _ => self.take(list.clone(), source, problems),
        }
    }

    /// Takes in an item. The kinds of typed lists (`PodList`) go without saying
    /// in their items.
    fn take_item(
        &mut self,
        list: &Value,
        mut item: Value,
        source: Source,
        problems: &mut Vec<InputProblem>,
    ) {
        if let Ok((version, kind)) = type_of(list)
            && let Some(kind) = kind.strip_suffix("List").filter(|kind| !kind.is_empty())
            && let Some(fields) = item.as_object_mut()
        {
            fields.entry("apiVersion").or_insert_with(|| version.into());
            fields.entry("kind").or_insert_with(|| kind.into());
        }
        self.take(item, source, problems);
    }

    fn take_known(
        &mut self,
        row: &'static kinds::KindRow,
        value: &Value,
        source: Source,
        problems: &mut Vec<InputProblem>,
    ) {
        let mut found = Vec::new();
        let taken = self.read_object(row, value, &source, &mut found);
        let object = || match &taken {
            Some(key) => format!("{} {key}", row.kind),
            None => kinds::described(row.kind, value),
        };
        problems.extend(found.into_iter().map(|problem| InputProblem {
            source: source.clone(),
            object: Some(object()),
            problem,
        }));
    }

    /// Reads an object and keeps it unless there is something wrong with it.
    /// Its key, when that much is right.
    fn read_object(
        &mut self,
        row: &'static kinds::KindRow,
        value: &Value,
        source: &Source,
        problems: &mut Vec<Problem>,
    ) -> Option<ObjectKey> {
        let order = self.next_order;
        self.next_order += 1;
        let key = kinds::key_of(row, value, order, problems)?;
        match self.seen.get(&(row.kind, key.clone())) {
            Some(first) => {
                let message = format!("duplicate: the same object stands in {first}");
                problems.push(Problem::new(&FieldPath::root(), message));
            }
            None => drop(self.seen.insert((row.kind, key.clone()), source.clone())),
        }
        let object = kinds::Reading { value, key: &key, source, order };
        (row.read)(self, &object, problems);
        self.set_unknown_fields_aside(row.kind, &key, source, problems);
        if row.namespaced {
            let namespace = key.namespace.as_str();
            if !self.used_namespaces.contains_key(namespace) {
                self.used_namespaces.insert(namespace.to_owned(), source.clone());
            }
        }
        Some(key)
    }

    /// Takes the unknown fields out of the problems of an object.
    fn set_unknown_fields_aside(
        &mut self,
        kind: &'static str,
        key: &ObjectKey,
        source: &Source,
        problems: &mut Vec<Problem>,
    ) {
        for problem in problems.extract_if(.., |p| p.kind == ProblemKind::UnknownField) {
            let place = (kind, without_positions(problem.path.as_str()));
            let unknown = self.unknown_fields.entry(place).or_insert_with(|| UnknownField {
                first: InputProblem {
                    source: source.clone(),
                    object: Some(format!("{kind} {key}")),
                    problem,
                },
                count: 0,
            });
            unknown.count += 1;
        }
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.next_order
    }

    /// Whether there is no object at all, good or bad.
    pub fn is_empty(&self) -> bool {
        self.next_order == 0
    }
}

/// `spec.containers[3].image` as `spec.containers[].image`.
fn without_positions(path: &str) -> String {
    path.chars().filter(|c| !c.is_ascii_digit()).collect()
}

/// `apiVersion` and `kind`.
fn type_of(value: &Value) -> Result<(&str, &str), Problem> {
    let root = FieldPath::root();
    let Some(fields) = value.as_object() else {
        let allowed = "an object with apiVersion and kind";
        return Err(Problem::invalid(&root, kinds::shape(value), allowed));
    };
    let text = |field: &str, example: &str| match fields.get(field) {
        Some(Value::String(text)) if !text.is_empty() => Ok(text.as_str()),
        None | Some(Value::Null | Value::String(_)) => {
            Err(Problem::required(&root.field(field), format_args!("for example {example}")))
        }
        Some(other) => Err(Problem::invalid(&root.field(field), kinds::shape(other), "a string")),
    };
    let missing_both = !fields.contains_key("apiVersion") && !fields.contains_key("kind");
    if missing_both {
        return Err(Problem::required(&root, "apiVersion and kind; is this a Kubernetes object?"));
    }
    Ok((text("apiVersion", "v1 or apps/v1")?, text("kind", "Pod or Deployment")?))
}

#[cfg(test)]
mod tests;

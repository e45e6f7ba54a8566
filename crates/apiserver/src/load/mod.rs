//! Saving the cluster as manifests, and loading it again.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use steersman_apimachinery::error::ApiError;
use steersman_apimachinery::rules::{Part, View};

use crate::auth::User;
use crate::meta;
use crate::registry::Entry;
use crate::rest::body::{self, Document, Expected, FieldValidation};
use crate::server::ApiServer;
use crate::store::{TableId, Write, key};
use crate::writes::Writer;

/// Which object has a uid.
type Owners = BTreeMap<String, String>;

/// Kinds that others need to be there before them.
const FIRST: [&str; 3] = ["Namespace", "PriorityClass", "StorageClass"];

impl ApiServer {
    /// Puts objects into the cluster, `status` included; `List`s are taken
    /// apart. An object with a `uid` comes from a cluster: it is taken as it is,
    /// and replaces one of its name. Others are admitted as if somebody had
    /// created them. Answers in the order of the objects, once they are taken
    /// apart.
    pub fn load(&self, objects: Vec<Value>) -> Vec<Result<Value, ApiError>> {
        let objects: Vec<Value> = objects.into_iter().flat_map(flatten).collect();
        let _nobody_collects = self.inner.housekeeping.lock();
        let mut order: Vec<usize> = (0..objects.len()).collect();
        order.sort_by_key(|index| {
            let kind = objects[*index].get("kind").and_then(Value::as_str).unwrap_or("");
            FIRST.iter().position(|first| *first == kind).unwrap_or(FIRST.len())
        });
        let mut answers: Vec<_> = objects.iter().map(|_| None).collect();
        let mut owners = self.owners_of_uids();
        for index in order {
            answers[index] = Some(self.load_one(objects[index].clone(), &mut owners));
        }
        answers.into_iter().flatten().collect()
    }

    /// All objects, each as [`Self::load`] takes it.
    pub fn dump(&self) -> Vec<Value> {
        let (tables, _) = self.inner.store.snapshot_all();
        let mut objects: Vec<Value> = Vec::new();
        for table in tables {
            objects.extend(table.values().map(|object| object.full()));
        }
        for object in &mut objects {
            meta::set(object, "resourceVersion", Value::Null);
        }
        objects.sort_by_key(|object| {
            let kind = object.get("kind").and_then(Value::as_str).unwrap_or("");
            FIRST.iter().position(|first| *first == kind).unwrap_or(FIRST.len())
        });
        objects
    }

    fn owners_of_uids(&self) -> Owners {
        let (tables, _) = self.inner.store.snapshot_all();
        let mut owners = Owners::new();
        for (index, table) in tables.iter().enumerate() {
            let entry = self.inner.registry.owner(TableId(index));
            owners.extend(table.values().map(|object| {
                (meta::uid(&object.value).to_owned(), described(entry, &object.value))
            }));
        }
        owners
    }

    fn load_one(&self, object: Value, owners: &mut Owners) -> Result<Value, ApiError> {
        let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or("");
        let (api_version, kind) = (text("apiVersion").to_owned(), text("kind").to_owned());
        let entry = self.entry(&api_version, &kind).ok_or_else(|| {
            let message = format!("no matches for kind {kind:?} in version {api_version:?}");
            ApiError::new(404, "NotFound", message)
        })?;
        let mut object = conform(entry, &api_version, object)?;
        meta::set(&mut object, "resourceVersion", Value::Null);
        if entry.resource.namespaced && meta::namespace(&object).is_empty() {
            meta::set(&mut object, "namespace", json!("default"));
        }
        let user = User::admin();
        let writer = Writer {
            server: &self.inner,
            entry,
            user: &user,
            now: self.inner.now(),
            dry_run: false,
            manager: "steersman",
        };
        if meta::uid(&object).is_empty() {
            create(&writer, object)
        } else {
            self.restore(entry, object, owners)
        }
    }

    /// The resource of a kind, in exactly this version.
    fn entry(&self, api_version: &str, kind: &str) -> Option<&Entry> {
        let registry = &self.inner.registry;
        let plural = registry.of_kind(api_version, kind)?.resource.plural;
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        registry.find(group, version, plural)
    }

    /// Puts an object back as it was.
    fn restore(
        &self,
        entry: &Entry,
        object: Value,
        owners: &mut Owners,
    ) -> Result<Value, ApiError> {
        let table = entry.table.ok_or_else(crate::rest::method_not_allowed)?;
        let mut object = entry.resource.rules.to_storage(object);
        entry.storage.rules.default(&mut object);
        let mut errors = meta::check_create(entry.resource, &object);
        errors.extend(entry.storage.rules.validate(&object, None, Part::Main));
        if !errors.is_empty() {
            return Err(ApiError::invalid(entry.resource, meta::name(&object), &errors));
        }
        let namespace = meta::namespace(&object);
        if entry.resource.namespaced {
            self.check_namespace(namespace)?;
        }
        let (uid, place) = (meta::uid(&object).to_owned(), described(entry, &object));
        if let Some(owner) = owners.get(&uid).filter(|owner| **owner != place) {
            let why = format!("the uid {uid} of {place} is that of {owner} already");
            return Err(ApiError::conflict(entry.resource, meta::name(&object), &why));
        }
        let key = key(namespace, meta::name(&object));
        loop {
            let found = self.inner.store.get(table, &key);
            let revision = found.as_ref().map(|found| found.revision);
            let write = Write::Put(object.clone());
            if let Ok(written) = self.inner.store.commit(table, &key, revision, write) {
                if let Some(replaced) = found {
                    owners.remove(meta::uid(&replaced.value));
                }
                owners.insert(uid, place);
                return Ok(written.full());
            }
        }
    }
}

impl ApiServer {
    /// Objects come back into namespaces that are there, going or not.
    fn check_namespace(&self, namespace: &str) -> Result<(), ApiError> {
        match self.inner.registry.find("", "v1", "namespaces") {
            Some(entry) if self.inner.get("", "namespaces", "", namespace).is_none() => {
                Err(ApiError::not_found(entry.resource, namespace))
            }
            _ => Ok(()),
        }
    }
}

/// An object of the shape that its kind has, checked as a strict request would
/// be: nothing unknown, nothing of another type.
fn conform(entry: &Entry, api_version: &str, object: Value) -> Result<Value, ApiError> {
    let place = described(entry, &object);
    let expected =
        Expected { api_version, kind: entry.resource.kind, schema: entry.resource.schema };
    let document = Document { value: object, duplicates: Vec::new() };
    let conformed = body::conform(document, expected, FieldValidation::Strict, &mut Vec::new());
    conformed.map_err(|mut error| {
        error.message = format!("{place}: {}", error.message);
        error
    })
}

/// The object as messages name it: `deployments.apps "default/web"`.
fn described(entry: &Entry, object: &Value) -> String {
    let resource = entry.storage;
    let dot = if resource.group.is_empty() { "" } else { "." };
    let slash = if meta::namespace(object).is_empty() { "" } else { "/" };
    format!(
        "{}{dot}{} \"{}{slash}{}\"",
        resource.plural,
        resource.group,
        meta::namespace(object),
        meta::name(object)
    )
}

/// Creates an object, and gives it the status that it came with.
fn create(writer: &Writer<'_>, object: Value) -> Result<Value, ApiError> {
    let status = object.get("status").cloned();
    let namespace = meta::namespace(&object).to_owned();
    let written = writer.create(&namespace, object)?;
    let name = meta::name(&written.value).to_owned();
    if let Some(Value::Object(given)) = status {
        writer.modify(&namespace, &name, &mut |object| {
            if !object["status"].is_object() {
                object["status"] = json!({});
            }
            for (field, value) in &given {
                object["status"][field.as_str()] = value.clone();
            }
            Ok(())
        })?;
    }
    writer.get(&namespace, &name).map(|stored| stored.full())
}

fn flatten(object: Value) -> Vec<Value> {
    let is_list = object.get("kind").and_then(Value::as_str).is_some_and(|k| k.ends_with("List"));
    match object {
        Value::Object(mut fields) if is_list && fields.contains_key("items") => {
            match fields.remove("items") {
                Some(Value::Array(items)) => items.into_iter().flat_map(flatten).collect(),
                _ => Vec::new(),
            }
        }
        object => vec![object],
    }
}

#[cfg(test)]
mod tests;

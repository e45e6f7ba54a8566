//! Saving the cluster as manifests, and loading it again.

use serde_json::{Value, json};
use steersman_apimachinery::error::ApiError;
use steersman_apimachinery::rules::View;

use crate::auth::User;
use crate::meta;
use crate::registry::Entry;
use crate::server::ApiServer;
use crate::store::{Write, key};
use crate::writes::Writer;

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
        for index in order {
            answers[index] = Some(self.load_one(objects[index].clone()));
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

    fn load_one(&self, mut object: Value) -> Result<Value, ApiError> {
        let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or("");
        let (api_version, kind) = (text("apiVersion").to_owned(), text("kind").to_owned());
        let entry = self.inner.registry.of_kind(&api_version, &kind).ok_or_else(|| {
            let message = format!("no matches for kind {kind:?} in version {api_version:?}");
            ApiError::new(404, "NotFound", message)
        })?;
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
            self.restore(entry, object)
        }
    }

    /// Puts an object back as it was.
    fn restore(&self, entry: &Entry, object: Value) -> Result<Value, ApiError> {
        let table = entry.table.ok_or_else(crate::rest::method_not_allowed)?;
        let mut object = entry.resource.rules.to_storage(object);
        entry.storage.rules.default(&mut object);
        let errors = meta::check_create(entry.resource, &object);
        if !errors.is_empty() {
            return Err(ApiError::invalid(entry.resource, meta::name(&object), &errors));
        }
        let namespace = meta::namespace(&object);
        if entry.resource.namespaced {
            self.check_namespace(namespace)?;
        }
        let key = key(namespace, meta::name(&object));
        loop {
            let found = self.inner.store.get(table, &key).map(|found| found.revision);
            let write = Write::Put(object.clone());
            if let Ok(written) = self.inner.store.commit(table, &key, found, write) {
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

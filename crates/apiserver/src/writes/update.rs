//! Changed objects.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;
use steersman_apimachinery::error::{ApiError, FieldError};
use steersman_apimachinery::rules::Part;

use super::managed::is_same;
use super::{Writer, namespaces};
use crate::access::escalation;
use crate::meta;
use crate::store::{Stored, Write, key};

/// What the request makes of an object, in the version that is written.
pub(crate) struct Proposal {
    /// The object.
    pub(crate) object: Value,
    /// Whether its `managedFields` already say who owns what (server-side
    /// apply).
    pub(crate) is_managed: bool,
    /// Whether a request that names no `resourceVersion` may overwrite any.
    pub(crate) needs_revision: bool,
}

impl Proposal {
    /// The object as somebody wants it, who need not have seen the newest
    /// version.
    pub(crate) fn plain(object: Value) -> Self {
        Self { object, is_managed: false, needs_revision: false }
    }
}

pub(crate) const MODIFIED: &str =
    "the object has been modified; please apply your changes to the latest version and try again";

/// Metadata that no request changes.
const SYSTEM_METADATA: [&str; 6] = [
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "selfLink",
];

impl Writer<'_> {
    /// Changes an object: `propose` is given the newest version, as often as it
    /// takes.
    pub(crate) fn update(
        &self,
        namespace: &str,
        name: &str,
        part: Part,
        propose: &mut dyn FnMut(&Value) -> Result<Proposal, ApiError>,
    ) -> Result<Arc<Stored>, ApiError> {
        loop {
            let found = self.get(namespace, name)?;
            let old = found.full();
            let proposal = if std::ptr::eq(self.entry.resource, self.entry.storage) {
                propose(&old)?
            } else {
                propose(&self.view(&old))?
            };
            let new = self.prepare_changed(proposal, &old, part)?;
            if is_same(&new, &old) {
                return Ok(found);
            }
            if let Some(written) = self.put(&found, namespace, name, new, None)? {
                return Ok(written);
            }
        }
    }

    /// Changes an object in storage form, without admission and validation:
    /// for what the server itself does to it. Who owns which field is not seen
    /// and stays as it is.
    pub(crate) fn modify<T>(
        &self,
        namespace: &str,
        name: &str,
        change: &mut dyn FnMut(&mut Value) -> Result<T, ApiError>,
    ) -> Result<T, ApiError> {
        loop {
            let found = self.get(namespace, name)?;
            let mut new = (*found.value).clone();
            let answer = change(&mut new)?;
            if new == *found.value {
                return Ok(answer);
            }
            let managed = found.managed_fields();
            if self.put(&found, namespace, name, new, managed)?.is_some() {
                return Ok(answer);
            }
        }
    }

    /// Stores what became of `found`; `None` if somebody was faster. An object
    /// that only waited for this change goes.
    fn put(
        &self,
        found: &Stored,
        namespace: &str,
        name: &str,
        new: Value,
        managed: Option<Bytes>,
    ) -> Result<Option<Arc<Stored>>, ApiError> {
        if self.dry_run {
            return Ok(Some(Stored::unstored(new)));
        }
        let write = if is_finished(self, &new) { Write::Remove(new) } else { Write::Put(new) };
        let key = key(namespace, name);
        let (store, known) = (&self.server.store, Some(found.revision));
        Ok(store.commit_keeping(self.table()?, &key, known, write, managed).ok())
    }

    fn prepare_changed(
        &self,
        proposal: Proposal,
        old: &Value,
        part: Part,
    ) -> Result<Value, ApiError> {
        let (resource, rules) = (self.entry.resource, self.entry.storage.rules);
        let Proposal { object, is_managed, needs_revision } = proposal;
        self.check_identity(&object, old, needs_revision)?;
        let mut new = resource.rules.to_storage(object);
        separate(&mut new, old, part, self.entry.storage.has_status);
        rules.default(&mut new);
        for field in SYSTEM_METADATA {
            meta::keep(&mut new, old, field);
        }
        meta::keep(&mut new, old, "resourceVersion");
        rules.prepare_update(&mut new, old, part, &self.request())?;
        escalation::check(self.server, self.user, self.entry.storage, &new, Some(old))?;
        let mut errors = meta::check_update(&new, old);
        errors.extend(rules.validate(&new, Some(old), part));
        if !errors.is_empty() {
            return Err(ApiError::invalid(resource, meta::name(old), &errors));
        }
        if part != Part::Status && self.keeps_generation() && differs_in_content(&new, old) {
            let generation = old.pointer("/metadata/generation").and_then(Value::as_i64);
            meta::set(&mut new, "generation", Value::from(generation.unwrap_or(0) + 1));
        }
        if !is_managed {
            self.own_changes(&mut new, Some(old), part);
        }
        Ok(new)
    }

    /// Refuses a change of another object than the one that is there.
    fn check_identity(
        &self,
        new: &Value,
        old: &Value,
        needs_revision: bool,
    ) -> Result<(), ApiError> {
        let resource = self.entry.resource;
        let (given, have) = (meta::uid(new), meta::uid(old));
        if !given.is_empty() && given != have {
            let why = format!(
                "Precondition failed: UID in precondition: {given}, UID in object meta: {have}"
            );
            return Err(ApiError::conflict(resource, meta::name(old), &why));
        }
        let given = meta::text(new, "resourceVersion");
        if given.is_empty() && needs_revision {
            let error = FieldError::invalid(
                "metadata.resourceVersion",
                0,
                "must be specified for an update",
            );
            return Err(ApiError::invalid(resource, meta::name(old), &[error]));
        }
        if !given.is_empty() && given != meta::text(old, "resourceVersion") {
            return Err(ApiError::conflict(resource, meta::name(old), MODIFIED));
        }
        Ok(())
    }
}

/// Whether an object that is being deleted has nothing more to wait for.
fn is_finished(writer: &Writer<'_>, object: &Value) -> bool {
    let grace = object.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64);
    meta::is_terminating(object)
        && meta::finalizers(object).is_empty()
        && grace.unwrap_or(0) == 0
        && !(namespaces::are_namespaces(writer.entry.storage)
            && namespaces::awaits_emptying(object))
}

/// Takes from the old object what a request to this part cannot write.
fn separate(new: &mut Value, old: &Value, part: Part, has_status: bool) {
    let Some(fields) = new.as_object_mut() else { return };
    match part {
        Part::Main if has_status => match old.get("status") {
            Some(status) => drop(fields.insert("status".to_owned(), status.clone())),
            None => drop(fields.remove("status")),
        },
        Part::Status => {
            let written = |key: &str| matches!(key, "status" | "metadata");
            fields.retain(|key, _| written(key));
            for (key, value) in old.as_object().into_iter().flatten() {
                if !written(key) {
                    fields.insert(key.clone(), value.clone());
                }
            }
            meta::keep(new, old, "ownerReferences");
        }
        Part::Main | Part::Subresource(_) => {}
    }
}

/// Whether anything but metadata and status differs.
fn differs_in_content(new: &Value, old: &Value) -> bool {
    fn content(object: &Value) -> impl Iterator<Item = (&String, &Value)> {
        let fields = object.as_object().into_iter().flatten();
        fields.filter(|(key, _)| !matches!(key.as_str(), "metadata" | "status"))
    }
    !content(new).eq(content(old))
}

//! Deleted objects, and those that only wait to be.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use steersman_apimachinery::error::ApiError;
use steersman_apimachinery::resource::Resource;

use super::{FOREGROUND, ORPHAN, Writer, is_immortal, namespaces};
use crate::clock::rfc3339;
use crate::meta;
use crate::store::{Stored, Write, key};

/// How an object is to be deleted.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeleteOptions {
    /// How long it may take to end, in seconds.
    pub(crate) grace: Option<i64>,
    /// What becomes of its dependents.
    pub(crate) propagation: Option<Propagation>,
    /// Only the object with this uid.
    pub(crate) uid: Option<String>,
    /// Only this version.
    pub(crate) resource_version: Option<String>,
}

/// What becomes of the dependents of a deleted object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Propagation {
    /// They stay, without it as an owner.
    Orphan,
    /// They are deleted after it.
    Background,
    /// They are deleted before it.
    Foreground,
}

/// What became of the object.
pub(crate) enum Deleted {
    /// It is gone; this was its last state.
    Gone(Arc<Stored>),
    /// It waits: for its grace period, its finalizers, its contents.
    Waiting(Arc<Stored>),
}

/// Classes of pods without which a cluster does not work. Pods name them, so
/// kube-apiserver does not let them go.
const SYSTEM_PRIORITY_CLASSES: [&str; 2] = ["system-cluster-critical", "system-node-critical"];

/// Why nobody may delete the object of this name, in the words of kube-apiserver;
/// or `None` if it is like others.
fn why_it_stays(resource: &Resource, name: &str) -> Option<&'static str> {
    if namespaces::are_namespaces(resource) && is_immortal(name) {
        return Some("this namespace may not be deleted");
    }
    let is_class = (resource.group, resource.plural) == ("scheduling.k8s.io", "priorityclasses");
    let stays = is_class && SYSTEM_PRIORITY_CLASSES.contains(&name);
    stays.then_some("this is a system priority class and cannot be deleted")
}

impl Writer<'_> {
    /// Deletes an object, or begins to.
    pub(crate) fn delete(
        &self,
        namespace: &str,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<Deleted, ApiError> {
        let (resource, table) = (self.entry.resource, self.table()?);
        if let Some(why) = why_it_stays(resource, name) {
            return Err(ApiError::forbidden(resource, name, why));
        }
        loop {
            let found = self.get(namespace, name)?;
            self.check_preconditions(&found.value, options)?;
            let old = found.full();
            let (write, goes) = match self.after_deletion(&old, options) {
                Some(waiting) if waiting == old => return Ok(Deleted::Waiting(found)),
                Some(waiting) => (Write::Put(waiting), false),
                None => (Write::Remove(old), true),
            };
            let written = if self.dry_run {
                let (Write::Put(object) | Write::Remove(object)) = write;
                Ok(Stored::unstored(object))
            } else {
                let key = key(namespace, name);
                self.server.store.commit(table, &key, Some(found.revision), write)
            };
            if let Ok(written) = written {
                return Ok(if goes { Deleted::Gone(written) } else { Deleted::Waiting(written) });
            }
        }
    }

    fn check_preconditions(&self, object: &Value, options: &DeleteOptions) -> Result<(), ApiError> {
        let checks = [
            ("UID", &options.uid, meta::uid(object)),
            ("ResourceVersion", &options.resource_version, meta::text(object, "resourceVersion")),
        ];
        for (what, wanted, have) in checks {
            if let Some(wanted) = wanted
                && wanted != have
            {
                let why = format!(
                    "Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {have}"
                );
                return Err(ApiError::conflict(self.entry.resource, meta::name(object), &why));
            }
        }
        Ok(())
    }

    /// The object as it waits to be removed, or `None` if nothing is in the way.
    fn after_deletion(&self, old: &Value, options: &DeleteOptions) -> Option<Value> {
        let mut new = old.clone();
        let finalizers = finalizers_after(old, options.propagation);
        meta::set_finalizers(&mut new, &finalizers);
        let is_namespace = namespaces::are_namespaces(self.entry.storage);
        let awaits_emptying = is_namespace && namespaces::awaits_emptying(old);
        let grace = self.entry.storage.rules.grace_period(old, options.grace).max(0);
        if grace == 0 && finalizers.is_empty() && !awaits_emptying {
            return None;
        }
        self.mark(&mut new, old, grace, options.grace.is_some());
        if awaits_emptying && let Some(fields) = new.as_object_mut() {
            let status = fields.entry("status").or_insert_with(|| serde_json::json!({}));
            if status.is_object() {
                status["phase"] = Value::from("Terminating");
            }
        }
        Some(new)
    }

    /// Sets when the object has to be gone. A second request can only make it
    /// sooner.
    fn mark(&self, new: &mut Value, old: &Value, grace: i64, is_asked: bool) {
        let until = if meta::is_terminating(old) {
            let before = old.pointer("/metadata/deletionGracePeriodSeconds");
            let before = before.and_then(Value::as_i64).unwrap_or(0);
            if !is_asked || grace >= before {
                return;
            }
            let until = meta::text(old, "deletionTimestamp").parse().unwrap_or(self.now);
            let sooner = SignedDuration::from_secs(before - grace);
            // The end of all time does not tell when the object was deleted.
            let is_told = until.as_second() < Timestamp::MAX.as_second();
            let sooner = until.checked_sub(sooner).ok().filter(|_| is_told);
            sooner.unwrap_or_else(|| later(self.now, grace))
        } else {
            if let Some(generation) = old.pointer("/metadata/generation").and_then(Value::as_i64) {
                meta::set(new, "generation", Value::from(generation.saturating_add(1)));
            }
            later(self.now, grace)
        };
        meta::set(new, "deletionTimestamp", Value::from(rfc3339(until)));
        meta::set(new, "deletionGracePeriodSeconds", Value::from(grace));
    }
}

/// So many seconds after a time. It may be meant to take longer than any clock
/// can show; the end of all time has to do then.
fn later(at: Timestamp, seconds: i64) -> Timestamp {
    at.checked_add(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX)
}

/// The finalizers that stand for the wanted propagation, beside the others.
fn finalizers_after(object: &Value, propagation: Option<Propagation>) -> Vec<String> {
    let mut finalizers: Vec<String> =
        meta::finalizers(object).into_iter().map(str::to_owned).collect();
    let Some(propagation) = propagation else { return finalizers };
    finalizers.retain(|name| name != ORPHAN && name != FOREGROUND);
    match propagation {
        Propagation::Orphan => finalizers.push(ORPHAN.to_owned()),
        Propagation::Foreground => finalizers.push(FOREGROUND.to_owned()),
        Propagation::Background => {}
    }
    finalizers
}

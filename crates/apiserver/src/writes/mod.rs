//! Changing the cluster: what happens to an object between a request and the
//! store, whoever asks.
//!
//! A write is computed from the newest version and committed if that is still
//! the newest; otherwise it is computed again. Admission sees other objects as
//! they are at that moment, not in one transaction with the write.

mod create;
mod delete;
mod managed;
mod namespaces;
mod update;

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;
use steersman_apimachinery::error::ApiError;
use steersman_apimachinery::rules::Request;

pub(crate) use self::delete::{DeleteOptions, Deleted, Propagation};
pub(crate) use self::namespaces::is_immortal;
pub(crate) use self::update::{MODIFIED, Proposal};
use crate::auth::User;
use crate::registry::Entry;
use crate::server::Inner;
use crate::store::{Stored, TableId};

/// Finalizer under which dependents are kept when their owner goes.
pub(crate) const ORPHAN: &str = "orphan";
/// Finalizer under which an owner waits for its dependents to go.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";

/// Writes objects of one resource in somebody's name.
#[derive(Clone, Copy)]
pub(crate) struct Writer<'a> {
    pub(crate) server: &'a Inner,
    pub(crate) entry: &'a Entry,
    pub(crate) user: &'a User,
    pub(crate) now: Timestamp,
    /// Compute, check, answer, but do not store.
    pub(crate) dry_run: bool,
    /// Who owns the fields that are written.
    pub(crate) manager: &'a str,
}

impl Writer<'_> {
    /// One object, as it is stored.
    pub(crate) fn get(&self, namespace: &str, name: &str) -> Result<Arc<Stored>, ApiError> {
        let key = crate::store::key(namespace, name);
        let found = self.server.store.get(self.table()?, &key);
        found.ok_or_else(|| ApiError::not_found(self.entry.resource, name))
    }

    fn table(&self) -> Result<TableId, ApiError> {
        self.entry.table.ok_or_else(crate::rest::method_not_allowed)
    }

    fn request(&self) -> Request<'_> {
        Request {
            resource: self.entry.resource,
            user: &self.user.name,
            groups: &self.user.groups,
            now: self.now,
            view: self.server,
            random: self.server.random(),
        }
    }

    /// A stored object in the form of the version that is written.
    fn view(&self, stored: &Value) -> Value {
        self.entry.resource.rules.from_storage(stored)
    }

    /// Whether generations are kept for this resource.
    fn keeps_generation(&self) -> bool {
        self.entry.storage.has_status && self.entry.storage.rules.keeps_generation()
    }
}

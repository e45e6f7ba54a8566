//! Namespaces that are being deleted are emptied, then let go.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use steersman_apimachinery::error::ApiError;

use super::{Collector, settled, split};
use crate::meta;
use crate::server::Inner;
use crate::store::{TableId, range};
use crate::writes::DeleteOptions;

/// Namespaces under way.
pub(super) struct Emptying {
    table: Option<TableId>,
    /// Those that are being deleted, and whether everything in them has been
    /// told to go.
    terminating: BTreeMap<String, Swept>,
    /// Those to look at.
    dirty: BTreeSet<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Swept {
    Yes,
    No,
}

impl Emptying {
    pub(super) fn new(table: Option<TableId>) -> Self {
        Self { table, terminating: BTreeMap::new(), dirty: BTreeSet::new() }
    }

    /// An object is new or changed.
    pub(super) fn see(&mut self, server: &Inner, table: TableId, object: &Value) {
        let Some(namespaces) = self.table else { return };
        if table == namespaces {
            if meta::is_terminating(object) {
                let name = meta::name(object).to_owned();
                self.terminating.entry(name.clone()).or_insert(Swept::No);
                self.dirty.insert(name);
            }
            return;
        }
        // It was let in just before its namespace began to go, or went.
        let namespace = meta::namespace(object);
        if namespace.is_empty() || meta::is_terminating(object) {
            return;
        }
        let is_orphaned = || server.store.get(namespaces, namespace).is_none();
        if self.terminating.contains_key(namespace) || is_orphaned() {
            self.terminating.insert(namespace.to_owned(), Swept::No);
            self.dirty.insert(namespace.to_owned());
        }
    }

    /// An object is gone.
    pub(super) fn gone(&mut self, table: TableId, object: &Value) {
        if Some(table) == self.table {
            self.terminating.remove(meta::name(object));
        } else if self.terminating.contains_key(meta::namespace(object)) {
            self.dirty.insert(meta::namespace(object).to_owned());
        }
    }

    /// Everything unfinished is looked at again: what could not be emptied, and
    /// what was empty but could not be let go.
    pub(super) fn retry(&mut self) {
        self.dirty.extend(self.terminating.keys().cloned());
    }
}

impl Collector {
    /// Goes on with namespaces that are being deleted; `false` if there are
    /// none to go on with.
    pub(super) fn empty_namespaces(&mut self) -> bool {
        let Some(name) = self.emptying.dirty.pop_first() else { return false };
        if self.emptying.terminating.get(&name) == Some(&Swept::No) {
            match self.sweep(&name) {
                Ok(()) => {
                    self.emptying.terminating.insert(name.clone(), Swept::Yes);
                }
                Err(error) => {
                    tracing::warn!(namespace = name, %error, "cannot empty a namespace");
                    return true;
                }
            }
        }
        if self.is_empty(&name)
            && let Err(error) = self.release(&name)
        {
            tracing::warn!(namespace = name, %error, "cannot remove an empty namespace");
        }
        true
    }

    /// Tells everything in a namespace to go.
    fn sweep(&self, namespace: &str) -> Result<(), ApiError> {
        for table in self.local_tables() {
            let objects = self.server.inner.store.snapshot(table).objects;
            for (key, object) in range(&objects, Some(namespace), None) {
                if meta::is_terminating(&object.value) {
                    continue;
                }
                let (namespace, name) = split(key);
                let options = DeleteOptions {
                    uid: Some(meta::uid(&object.value).to_owned()),
                    ..DeleteOptions::default()
                };
                settled(self.writer(table).delete(namespace, name, &options).map(drop))?;
            }
        }
        Ok(())
    }

    fn is_empty(&self, namespace: &str) -> bool {
        self.local_tables().all(|table| {
            let objects = self.server.inner.store.snapshot(table).objects;
            range(&objects, Some(namespace), None).next().is_none()
        })
    }

    /// Removes what the namespace itself still waits for.
    fn release(&mut self, namespace: &str) -> Result<(), ApiError> {
        let Some(table) = self.emptying.table else { return Ok(()) };
        let released = self.writer(table).modify("", namespace, &mut |object| {
            if meta::is_terminating(object)
                && let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut)
            {
                spec.remove("finalizers");
            }
            Ok(())
        });
        if released.as_ref().is_err_and(|error| error.code == 404) {
            self.emptying.terminating.remove(namespace);
        }
        settled(released)
    }

    fn local_tables(&self) -> impl Iterator<Item = TableId> {
        let registry = &self.server.inner.registry;
        (0..registry.tables())
            .map(TableId)
            .filter(|table| registry.owner(*table).resource.namespaced)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::harness::Harness;
    use crate::store::Write;

    /// Swept and empty, but letting it go came to nothing.
    #[tokio::test]
    async fn an_empty_namespace_that_could_not_be_let_go_is_taken_up_again() {
        let harness = Harness::new();
        let inner = &harness.server.inner;
        let table = inner.registry.table("", "namespaces").unwrap();
        let stuck = json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {
                "name": "stuck", "uid": "u", "deletionTimestamp": "2024-01-01T00:00:00Z",
            },
            "spec": { "finalizers": ["kubernetes"] },
        });
        let key = crate::store::key("", "stuck");
        inner.store.commit(table, &key, None, Write::Put(stuck)).unwrap();
        let mut collector = Collector::new(harness.server.clone());
        assert_eq!(collector.emptying.dirty.pop_first().as_deref(), Some("stuck"));
        collector.emptying.terminating.insert("stuck".to_owned(), Swept::Yes);
        assert!(!collector.empty_namespaces());
        assert!(inner.store.get(table, &key).is_some());
        collector.retry();
        assert!(collector.empty_namespaces());
        assert!(inner.store.get(table, &key).is_none());
    }
}

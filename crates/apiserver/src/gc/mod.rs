//! Garbage collection: what follows from the deletion of something else.
//!
//! Three things end objects without a request: their owners are gone, their
//! namespace is going, or they are events that have outlived their time. One
//! task sees to all three. It reads the logs of all tables, like any watch, and
//! looks at an object again only when something about it, its owners or its
//! dependents has changed.

mod events;
mod graph;
mod namespaces;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use steersman_apimachinery::error::ApiError;
use tokio::task::yield_now;
use tokio::time::sleep;

use self::events::Expiry;
use self::graph::{Graph, Verdict};
use self::namespaces::Emptying;
use crate::auth::User;
use crate::meta;
use crate::server::ApiServer;
use crate::store::{Change, ChangeKind, Stored, TableId};
use crate::writes::{DeleteOptions, FOREGROUND, ORPHAN, Propagation, Writer};

/// How much is done before others get their turn.
const BATCH: usize = 32;
/// When something that failed is tried again.
const RETRY: Duration = Duration::from_secs(1);
/// How long to sleep at most while events wait for their end.
const LONGEST_SLEEP: Duration = Duration::from_secs(30);

/// A uid.
type Uid = Arc<str>;

/// Collects garbage for as long as it is polled.
pub(crate) async fn run(server: ApiServer) {
    let mut wake = server.inner.store.subscribe_all();
    let mut collector = {
        let inner = server.inner.clone();
        let _nobody_loads = inner.housekeeping.lock();
        Collector::new(server)
    };
    loop {
        wake.mark_unchanged();
        while collector.step() {
            yield_now().await;
        }
        let pause = collector.pause();
        tokio::select! {
            changed = wake.changed() => {
                if changed.is_err() {
                    return;
                }
            }
            () = sleep(pause) => collector.retry(),
        }
    }
}

struct Collector {
    server: ApiServer,
    user: User,
    cursors: Vec<u64>,
    graph: Graph,
    emptying: Emptying,
    expiry: Expiry,
    /// Objects to look at.
    dirty: BTreeSet<Uid>,
    /// Objects whose collection failed.
    failed: BTreeSet<Uid>,
}

impl Collector {
    fn new(server: ApiServer) -> Self {
        let registry = &server.inner.registry;
        let expiry = Expiry::new(registry.table("", "events"), server.inner.event_ttl_seconds);
        let emptying = Emptying::new(registry.table("", "namespaces"));
        let mut collector = Self {
            server,
            user: User::new(
                "system:serviceaccount:kube-system:generic-garbage-collector",
                ["system:masters"],
            ),
            cursors: Vec::new(),
            graph: Graph::default(),
            emptying,
            expiry,
            dirty: BTreeSet::new(),
            failed: BTreeSet::new(),
        };
        collector.start_again();
        collector
    }

    /// Learns what has happened and does some of what follows; `false` if nothing
    /// follows.
    fn step(&mut self) -> bool {
        let inner = self.server.inner.clone();
        let _nobody_loads = inner.housekeeping.lock();
        self.catch_up();
        self.work()
    }

    /// Learns everything from what is there now.
    fn start_again(&mut self) {
        let (tables, cursors) = self.server.inner.store.snapshot_all();
        self.cursors = cursors;
        self.graph = Graph::default();
        for (index, objects) in tables.iter().enumerate() {
            for (key, object) in objects {
                guarded("seeing an object", || self.see(TableId(index), key, object));
            }
        }
    }

    /// Learns what has happened.
    fn catch_up(&mut self) {
        let changes = self.server.inner.store.read_all(&mut self.cursors);
        match changes {
            Ok(changes) => {
                for (table, change) in changes {
                    guarded("learning of a change", || self.learn(table, &change));
                }
            }
            Err(_) => self.start_again(),
        }
    }

    fn learn(&mut self, table: TableId, change: &Change) {
        if change.kind == ChangeKind::Deleted {
            self.expiry.forget(table, &change.key);
            self.emptying.gone(table, &change.object.value);
            self.dirty.extend(self.graph.remove(meta::uid(&change.object.value)));
        } else {
            self.see(table, &change.key, &change.object);
        }
    }

    fn see(&mut self, table: TableId, key: &Arc<str>, object: &Stored) {
        let value = &object.value;
        self.expiry.see(table, key, self.server.inner.now());
        self.emptying.see(&self.server.inner, table, value);
        self.dirty.extend(self.graph.see(&self.server.inner.registry, table, key, value));
    }

    /// Does some of what there is to do; `false` if there is nothing.
    fn work(&mut self) -> bool {
        let mut done = false;
        for _ in 0..BATCH {
            let Some(uid) = self.dirty.pop_first() else { break };
            done = true;
            let collected = guarded("collecting an object", || self.collect(&uid));
            if let Some(Err(error)) = collected {
                tracing::warn!(uid = &*uid, %error, "cannot collect an object");
                self.failed.insert(uid);
            }
        }
        let expired = self.expiry.take_expired(self.server.inner.now(), BATCH);
        for (table, key) in expired {
            done = true;
            guarded("deleting an event", || self.delete_event(table, &key));
        }
        // What it panicked over has been taken from what there is to do.
        guarded("emptying a namespace", || self.empty_namespaces()).unwrap_or(true) || done
    }

    fn pause(&self) -> Duration {
        if !self.failed.is_empty() {
            return RETRY;
        }
        match self.expiry.next() {
            Some(at) => {
                let left = at.duration_since(self.server.inner.now());
                Duration::try_from(left).unwrap_or_default().clamp(RETRY, LONGEST_SLEEP)
            }
            None => LONGEST_SLEEP,
        }
    }

    fn retry(&mut self) {
        self.dirty.append(&mut self.failed);
        self.emptying.retry();
    }

    fn writer(&self, table: TableId) -> Writer<'_> {
        Writer {
            server: &self.server.inner,
            entry: self.server.inner.registry.owner(table),
            user: &self.user,
            now: self.server.inner.now(),
            dry_run: false,
            manager: "garbage-collector",
        }
    }

    /// Does what the graph says about one object.
    fn collect(&mut self, uid: &Uid) -> Result<(), ApiError> {
        let Some((table, key)) = self.graph.place(uid) else { return Ok(()) };
        let (namespace, name) = split(&key);
        match self.graph.verdict(uid) {
            Verdict::Keep => Ok(()),
            Verdict::Delete(propagation) => {
                let options = DeleteOptions {
                    propagation,
                    uid: Some(uid.to_string()),
                    ..DeleteOptions::default()
                };
                settled(self.writer(table).delete(namespace, name, &options).map(drop))
            }
            Verdict::Unblock => self.unblock(uid),
            Verdict::Disown(owners) => self.disown(uid, &owners),
            Verdict::Finish => self.remove_finalizer(uid, FOREGROUND),
            Verdict::Release(dependents) => {
                let owner = [uid.clone()];
                for dependent in dependents {
                    self.disown(&dependent, &owner)?;
                }
                self.remove_finalizer(uid, ORPHAN)
            }
            Verdict::Wait(dependents) => {
                self.dirty.extend(dependents);
                Ok(())
            }
        }
    }

    /// Takes owners away from an object.
    fn disown(&self, uid: &Uid, owners: &[Uid]) -> Result<(), ApiError> {
        self.change(uid, &mut |object| {
            let mut references = meta::owner_references(object).to_vec();
            references.retain(|reference| {
                let owner = reference.get("uid").and_then(Value::as_str).unwrap_or("");
                !owners.iter().any(|gone| **gone == *owner)
            });
            let left = if references.is_empty() { Value::Null } else { Value::from(references) };
            meta::set(object, "ownerReferences", left);
        })
    }

    /// Lets an object's owners go before it.
    fn unblock(&self, uid: &Uid) -> Result<(), ApiError> {
        self.change(uid, &mut |object| {
            let mut references = meta::owner_references(object).to_vec();
            for reference in references.iter_mut().filter(|reference| reference.is_object()) {
                reference["blockOwnerDeletion"] = Value::Bool(false);
            }
            meta::set(object, "ownerReferences", Value::from(references));
        })
    }

    fn remove_finalizer(&self, uid: &Uid, finalizer: &str) -> Result<(), ApiError> {
        self.change(uid, &mut |object| {
            let mut finalizers: Vec<String> =
                meta::finalizers(object).into_iter().map(str::to_owned).collect();
            finalizers.retain(|name| name != finalizer);
            meta::set_finalizers(object, &finalizers);
        })
    }

    /// Changes an object, if it is still the one with this uid.
    fn change(&self, uid: &Uid, change: &mut dyn FnMut(&mut Value)) -> Result<(), ApiError> {
        let Some((table, key)) = self.graph.place(uid) else { return Ok(()) };
        let (namespace, name) = split(&key);
        let changed = self.writer(table).modify(namespace, name, &mut |object| {
            if meta::uid(object) == &**uid {
                change(object);
            }
            Ok(())
        });
        settled(changed)
    }

    fn delete_event(&self, table: TableId, key: &str) {
        let (namespace, name) = split(key);
        let deleted = self.writer(table).delete(namespace, name, &DeleteOptions::default());
        if let Err(error) = settled(deleted.map(drop)) {
            tracing::warn!(event = key, %error, "cannot delete an event that is too old");
        }
    }
}

/// Does one thing. Should it panic, that is told and the collector goes on with
/// the next: garbage of others must not stay because of one broken object.
/// Nothing is left half done: a write is one call of the store.
fn guarded<T>(what: &str, work: impl FnOnce() -> T) -> Option<T> {
    let done = catch_unwind(AssertUnwindSafe(work));
    if done.is_err() {
        tracing::error!("{what} caused a panic");
    }
    done.ok()
}

/// Namespace and name of a key.
fn split(key: &str) -> (&str, &str) {
    key.split_once('/').unwrap_or(("", key))
}

/// That an object is gone, or another one, is as good as done.
fn settled(outcome: Result<(), ApiError>) -> Result<(), ApiError> {
    match outcome {
        Err(error) if error.code == 404 || error.code == 409 => Ok(()),
        outcome => outcome,
    }
}

/// How dependents are deleted: what has dependents of its own goes after them.
fn propagation(has_dependents: bool) -> Option<Propagation> {
    Some(if has_dependents { Propagation::Foreground } else { Propagation::Background })
}

#[cfg(test)]
mod tests;

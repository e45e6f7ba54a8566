//! The objects of one resource and what happened to them.

use std::sync::Arc;

use tokio::sync::watch;

use super::log::{Change, ChangeKind, Log};
use super::object::Draft;
use super::{Objects, Stored};

/// What is stored now, and what the log forgot.
pub(super) type Written = (Arc<Stored>, Option<Arc<Change>>);

pub(super) struct Table {
    objects: Objects,
    log: Log,
    end: watch::Sender<u64>,
}

impl Table {
    pub(super) fn new(window: usize, revision: u64) -> Self {
        Self {
            objects: Objects::new(),
            log: Log::new(window, revision),
            end: watch::Sender::new(0),
        }
    }

    pub(super) fn objects(&self) -> &Objects {
        &self.objects
    }

    pub(super) fn log(&self) -> &Log {
        &self.log
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<u64> {
        self.end.subscribe()
    }

    /// Adds or replaces an object and tells those who wait. Beside it comes
    /// what the log forgets for it, which takes its time to be dropped.
    pub(super) fn put(&mut self, key: &str, revision: u64, draft: Draft) -> Written {
        let (key, previous) = self.known(key);
        let stored = draft.stamp(revision);
        self.objects.insert(key.clone(), stored.clone());
        let kind = if previous.is_none() { ChangeKind::Added } else { ChangeKind::Modified };
        self.note(Change { revision, kind, key, object: stored, previous })
    }

    /// Removes an object, likewise; the draft is how it was last.
    pub(super) fn remove(&mut self, key: &str, revision: u64, draft: Draft) -> Written {
        let (key, previous) = self.known(key);
        self.objects.remove(&key);
        let (object, kind) = (draft.stamp(revision), ChangeKind::Deleted);
        self.note(Change { revision, kind, key, object, previous })
    }

    fn known(&self, key: &str) -> (Arc<str>, Option<Arc<Stored>>) {
        match self.objects.get_key_value(key) {
            Some((key, object)) => (key.clone(), Some(object.clone())),
            None => (Arc::from(key), None),
        }
    }

    fn note(&mut self, change: Change) -> Written {
        let stored = change.object.clone();
        let forgotten = self.log.push(change);
        self.end.send_replace(self.log.end());
        (stored, forgotten)
    }
}

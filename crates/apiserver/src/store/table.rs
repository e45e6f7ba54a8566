//! The objects of one resource and what happened to them.

use std::sync::Arc;

use tokio::sync::watch;

use super::log::{Change, ChangeKind, Log};
use super::{Objects, Stored, Write};

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

    /// Carries out a write and tells those who wait.
    pub(super) fn write(&mut self, key: &str, revision: u64, write: Write) -> Arc<Stored> {
        let previous = self.objects.get_key_value(key);
        let previous = previous.map(|(key, object)| (key.clone(), object.clone()));
        let (key, previous) = match previous {
            Some((key, object)) => (key, Some(object)),
            None => (Arc::from(key), None),
        };
        let (kind, stored) = match write {
            Write::Put(object) => {
                let stored = Stored::new(object, revision);
                self.objects.insert(key.clone(), stored.clone());
                let is_new = previous.is_none();
                (if is_new { ChangeKind::Added } else { ChangeKind::Modified }, stored)
            }
            Write::Remove(object) => {
                self.objects.remove(&key);
                (ChangeKind::Deleted, Stored::new(object, revision))
            }
        };
        self.log.push(Change { revision, kind, key, object: stored.clone(), previous });
        self.end.send_replace(self.log.end());
        stored
    }
}

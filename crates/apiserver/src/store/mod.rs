//! The cluster's objects in memory.
//!
//! One counter gives every write its `resourceVersion`; one lock guards all
//! tables and is held only to look something up or to swap one object for
//! another. Deciding what to write happens outside of it: a write names the
//! version that it was computed from and fails when that is no longer the
//! newest, so that its caller computes it again.
//!
//! Tables are persistent maps: a reader takes one in constant time and then
//! sees one state for as long as it likes. What happened lately is in a
//! bounded log per table ([`log::Log`]); an older state is the present one
//! with the log undone.

mod log;
mod object;
mod table;

use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use imbl::OrdMap;
use parking_lot::RwLock;
use serde_json::Value;
use tokio::sync::watch;

pub(crate) use self::log::{Behind, Change, ChangeKind};
use self::object::Draft;
pub(crate) use self::object::{Stored, key};
use self::table::Table;

/// Objects of one resource by key.
pub(crate) type Objects = OrdMap<Arc<str>, Arc<Stored>>;

/// Where a table stands in [`Store`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TableId(pub(crate) usize);

/// All tables.
pub(crate) struct Store {
    state: RwLock<State>,
    /// The newest revision, for those who wait for any change.
    revision: watch::Sender<u64>,
}

struct State {
    revision: u64,
    tables: Vec<Table>,
}

/// A state of one table.
pub(crate) struct Snapshot {
    pub(crate) objects: Objects,
    pub(crate) revision: u64,
}

/// Somebody else wrote the object first.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Raced;

/// Why a table cannot be shown as it was.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unavailable {
    /// The log no longer reaches back so far.
    TooOld {
        /// The oldest revision that can be shown.
        oldest: u64,
    },
    /// It has not happened yet.
    TooLarge {
        /// The newest revision.
        current: u64,
    },
}

/// What a write leaves behind.
pub(crate) enum Write {
    /// This object.
    Put(Value),
    /// Nothing; this is how the object was last seen.
    Remove(Value),
}

impl Store {
    /// `tables` empty tables whose logs keep `window` changes each. The first
    /// write gets the revision after `revision`.
    pub(crate) fn new(tables: usize, window: usize, revision: u64) -> Self {
        let tables = (0..tables).map(|_| Table::new(window, revision)).collect();
        Self {
            state: RwLock::new(State { revision, tables }),
            revision: watch::Sender::new(revision),
        }
    }

    /// The newest version of one object.
    pub(crate) fn get(&self, table: TableId, key: &str) -> Option<Arc<Stored>> {
        self.state.read().tables[table.0].objects().get(key).cloned()
    }

    /// The table as it is.
    pub(crate) fn snapshot(&self, table: TableId) -> Snapshot {
        let state = self.state.read();
        Snapshot { objects: state.tables[table.0].objects().clone(), revision: state.revision }
    }

    /// The newest revision.
    pub(crate) fn revision(&self) -> u64 {
        self.state.read().revision
    }

    /// The table as it was at a revision.
    pub(crate) fn at(&self, table: TableId, revision: u64) -> Result<Snapshot, Unavailable> {
        let state = self.state.read();
        if revision > state.revision {
            return Err(Unavailable::TooLarge { current: state.revision });
        }
        let table = &state.tables[table.0];
        // Undoing is linear in what happened since: outside of the lock.
        let (mut objects, undone) = (table.objects().clone(), table.log().since(revision));
        drop(state);
        let undone = undone.map_err(|behind| Unavailable::TooOld { oldest: behind.oldest })?;
        for change in undone.iter().rev() {
            match &change.previous {
                Some(previous) => objects.insert(change.key.clone(), previous.clone()),
                None => objects.remove(&change.key),
            };
        }
        Ok(Snapshot { objects, revision })
    }

    /// Writes an object if its newest version is `expected` (`None`: if there
    /// is none).
    pub(crate) fn commit(
        &self,
        table: TableId,
        key: &str,
        expected: Option<u64>,
        write: Write,
    ) -> Result<Arc<Stored>, Raced> {
        self.commit_keeping(table, key, expected, write, None)
    }

    /// The same for an object whose `managedFields`, in JSON, stand beside it.
    pub(crate) fn commit_keeping(
        &self,
        table: TableId,
        key: &str,
        expected: Option<u64>,
        write: Write,
        managed: Option<Bytes>,
    ) -> Result<Arc<Stored>, Raced> {
        let (draft, stays) = match write {
            Write::Put(object) => (Draft::new(object, managed), true),
            Write::Remove(object) => (Draft::new(object, managed), false),
        };
        let mut state = self.state.write();
        let State { revision, tables } = &mut *state;
        let table = &mut tables[table.0];
        if table.objects().get(key).map(|found| found.revision) != expected {
            return Err(Raced);
        }
        *revision += 1;
        let newest = *revision;
        let (stored, forgotten) = match stays {
            true => table.put(key, newest, draft),
            false => table.remove(key, newest, draft),
        };
        drop(state);
        drop(forgotten);
        self.revision.send_modify(|known| *known = newest.max(*known));
        Ok(stored)
    }

    /// Where somebody starts to read the log who knows everything up to
    /// `revision`.
    pub(crate) fn cursor(&self, table: TableId, revision: u64) -> Result<u64, Unavailable> {
        let state = self.state.read();
        if revision > state.revision {
            return Err(Unavailable::TooLarge { current: state.revision });
        }
        let cursor = state.tables[table.0].log().position_after(revision);
        cursor.map_err(|behind| Unavailable::TooOld { oldest: behind.oldest })
    }

    /// The present state and where the log goes on after it.
    pub(crate) fn snapshot_and_cursor(&self, table: TableId) -> (Snapshot, u64) {
        let state = self.state.read();
        let found = &state.tables[table.0];
        let snapshot = Snapshot { objects: found.objects().clone(), revision: state.revision };
        (snapshot, found.log().end())
    }

    /// Up to `limit` changes from the cursor on, and the revision up to which
    /// the reader then knows everything that concerns this table.
    pub(crate) fn read(
        &self,
        table: TableId,
        cursor: u64,
        limit: usize,
    ) -> Result<(Vec<Arc<Change>>, u64), Behind> {
        let state = self.state.read();
        let log = state.tables[table.0].log();
        let changes = log.read(cursor, limit)?;
        let known = match changes.last() {
            Some(last) if cursor + (changes.len() as u64) < log.end() => last.revision,
            _ => state.revision,
        };
        Ok((changes, known))
    }

    /// Whether nothing has happened in these tables since their logs ended where
    /// the cursors are.
    pub(crate) fn is_at(&self, tables: impl Iterator<Item = TableId>, cursors: &[u64]) -> bool {
        let state = self.state.read();
        tables.zip(cursors).all(|(table, cursor)| state.tables[table.0].log().end() == *cursor)
    }

    /// Told of each change of one table: the number is its log's end.
    pub(crate) fn subscribe(&self, table: TableId) -> watch::Receiver<u64> {
        self.state.read().tables[table.0].subscribe()
    }

    /// Told of each change of any table: the number is the newest revision.
    pub(crate) fn subscribe_all(&self) -> watch::Receiver<u64> {
        self.revision.subscribe()
    }

    /// What happened in all tables from these cursors on (one per table), which
    /// are moved on; one consistent state.
    pub(crate) fn read_all(
        &self,
        cursors: &mut [u64],
    ) -> Result<Vec<(TableId, Arc<Change>)>, Behind> {
        let state = self.state.read();
        let mut all = Vec::new();
        for (index, (table, cursor)) in state.tables.iter().zip(cursors.iter_mut()).enumerate() {
            let log = table.log();
            if *cursor == log.end() {
                continue;
            }
            let changes = log.read(*cursor, usize::MAX)?;
            *cursor = log.end();
            all.extend(changes.into_iter().map(|change| (TableId(index), change)));
        }
        drop(state);
        all.sort_by_key(|(_, change)| change.revision);
        Ok(all)
    }

    /// All tables as they are, with cursors that go on from there.
    pub(crate) fn snapshot_all(&self) -> (Vec<Objects>, Vec<u64>) {
        let state = self.state.read();
        state.tables.iter().map(|table| (table.objects().clone(), table.log().end())).unzip()
    }
}

/// The part of a table that is one namespace, or all of it.
pub(crate) fn range<'a>(
    objects: &'a Objects,
    namespace: Option<&str>,
    after: Option<&str>,
) -> impl Iterator<Item = (&'a Arc<str>, &'a Arc<Stored>)> {
    let (first, end) = match namespace {
        // A key is `namespace/name`; `0` is what follows `/`.
        Some(namespace) => (format!("{namespace}/"), Some(format!("{namespace}0"))),
        None => (String::new(), None),
    };
    let start: Bound<Arc<str>> = match after {
        Some(after) if *after >= *first => Bound::Excluded(Arc::from(after)),
        _ => Bound::Included(Arc::from(first)),
    };
    let rest = objects.range((start, Bound::Unbounded));
    rest.take_while(move |(key, _)| end.as_deref().is_none_or(|end| ***key < *end))
}

#[cfg(test)]
mod tests;

//! What happened to the objects of one table, as far back as is kept.

use std::collections::VecDeque;
use std::sync::Arc;

use super::Stored;

/// One write.
pub(crate) struct Change {
    /// Its revision.
    pub(crate) revision: u64,
    /// What it did.
    pub(crate) kind: ChangeKind,
    /// The object's key.
    pub(crate) key: Arc<str>,
    /// The object after it; of a deleted one, how it was last.
    pub(crate) object: Arc<Stored>,
    /// The object before it.
    pub(crate) previous: Option<Arc<Stored>>,
}

/// What a write did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangeKind {
    /// The object is new.
    Added,
    /// It was there before.
    Modified,
    /// It is gone.
    Deleted,
}

/// The log begins after what was asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Behind {
    /// The oldest revision from which on everything is known.
    pub(crate) oldest: u64,
}

/// A bounded log. Entries are counted from the beginning of time, so a reader's
/// position stays good when older entries go.
pub(super) struct Log {
    window: usize,
    changes: VecDeque<Arc<Change>>,
    /// How many entries have gone.
    dropped: u64,
    /// The revision of the newest entry that has gone.
    oldest: u64,
}

impl Log {
    pub(super) fn new(window: usize, revision: u64) -> Self {
        Self { window: window.max(1), changes: VecDeque::new(), dropped: 0, oldest: revision }
    }

    /// Adds an entry; the oldest one comes back if there is no room for both.
    pub(super) fn push(&mut self, change: Change) -> Option<Arc<Change>> {
        let full = self.changes.len() == self.window;
        let gone = if full { self.changes.pop_front() } else { None };
        if let Some(gone) = &gone {
            self.dropped += 1;
            self.oldest = gone.revision;
        }
        self.changes.push_back(Arc::new(change));
        gone
    }

    /// The position behind the newest entry.
    pub(super) fn end(&self) -> u64 {
        self.dropped + self.changes.len() as u64
    }

    /// The position of the first entry that is newer than `revision`.
    pub(super) fn position_after(&self, revision: u64) -> Result<u64, Behind> {
        if revision < self.oldest {
            return Err(Behind { oldest: self.oldest });
        }
        let older = self.changes.partition_point(|change| change.revision <= revision);
        Ok(self.dropped + older as u64)
    }

    /// Up to `limit` entries from a position on.
    pub(super) fn read(&self, position: u64, limit: usize) -> Result<Vec<Arc<Change>>, Behind> {
        let Some(skip) = position.checked_sub(self.dropped) else {
            return Err(Behind { oldest: self.oldest });
        };
        let skip = usize::try_from(skip).unwrap_or(usize::MAX);
        Ok(self.changes.iter().skip(skip).take(limit).cloned().collect())
    }

    /// All entries newer than `revision`.
    pub(super) fn since(&self, revision: u64) -> Result<Vec<Arc<Change>>, Behind> {
        self.read(self.position_after(revision)?, usize::MAX)
    }
}

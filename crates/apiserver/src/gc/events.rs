//! Events do not stay.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use crate::store::TableId;

/// When which event has to go.
pub(super) struct Expiry {
    table: Option<TableId>,
    ttl: SignedDuration,
    ends: BTreeSet<(Timestamp, Arc<str>)>,
    by_key: BTreeMap<Arc<str>, Timestamp>,
}

impl Expiry {
    pub(super) fn new(table: Option<TableId>, ttl_seconds: i64) -> Self {
        Self {
            table,
            ttl: SignedDuration::from_secs(ttl_seconds),
            ends: BTreeSet::new(),
            by_key: BTreeMap::new(),
        }
    }

    /// An event is written: its time begins anew.
    pub(super) fn see(&mut self, table: TableId, key: &Arc<str>, now: Timestamp) {
        if self.table == Some(table) {
            self.forget(table, key);
            let end = now.checked_add(self.ttl).unwrap_or(Timestamp::MAX);
            self.by_key.insert(key.clone(), end);
            self.ends.insert((end, key.clone()));
        }
    }

    pub(super) fn forget(&mut self, table: TableId, key: &Arc<str>) {
        if self.table == Some(table)
            && let Some(end) = self.by_key.remove(key)
        {
            self.ends.remove(&(end, key.clone()));
        }
    }

    /// Up to `limit` events whose time is over.
    pub(super) fn take_expired(
        &mut self,
        now: Timestamp,
        limit: usize,
    ) -> Vec<(TableId, Arc<str>)> {
        let mut expired = Vec::new();
        let Some(table) = self.table else { return expired };
        while expired.len() < limit
            && self.next().is_some_and(|end| end <= now)
            && let Some((_, key)) = self.ends.pop_first()
        {
            self.by_key.remove(&key);
            expired.push((table, key));
        }
        expired
    }

    /// When the next one's is.
    pub(super) fn next(&self) -> Option<Timestamp> {
        self.ends.first().map(|(end, _)| *end)
    }
}

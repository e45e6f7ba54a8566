//! What the queue counts: how often pods came into which part of it, and why.

use std::collections::BTreeMap;

/// A part of the queue that pods come into. Gated pods count as unschedulable
/// ones here, as in the reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Door {
    Active,
    Backoff,
    Unschedulable,
}

impl Door {
    fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Backoff => "backoff",
            Self::Unschedulable => "unschedulable",
        }
    }
}

/// Why a pod came, when no change of the cluster brought it: the reference's
/// labels.
pub(crate) mod cause {
    pub(crate) const ADDED: &str = "UnscheduledPodAdd";
    pub(crate) const UPDATED: &str = "UnscheduledPodUpdate";
    pub(crate) const ATTEMPT_FAILED: &str = "ScheduleAttemptFailure";
    pub(crate) const BACKOFF_COMPLETE: &str = "BackoffComplete";
    pub(crate) const POP_FROM_BACKOFF: &str = "PopFromBackoffQ";
    pub(crate) const TIMEOUT: &str = "UnschedulableTimeout";
    pub(crate) const FORCED: &str = "ForceActivate";
}

/// How many pods came into a part of the queue for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incoming {
    /// `active`, `backoff` or `unschedulable`.
    pub queue: &'static str,
    /// The event's label, as in metrics.
    pub event: String,
    /// How many so far.
    pub count: u64,
}

/// The counts. Only ever grow.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally(BTreeMap<Door, BTreeMap<Box<str>, u64>>);

impl Tally {
    pub(super) fn came(&mut self, door: Door, event: &str) {
        let by_event = self.0.entry(door).or_default();
        // Nearly always there already: no copy of the label then.
        match by_event.get_mut(event) {
            Some(count) => *count += 1,
            None => drop(by_event.insert(event.into(), 1)),
        }
    }

    /// All of them, sorted.
    pub(crate) fn counts(&self) -> Vec<Incoming> {
        let counts = self.0.iter().flat_map(|(door, by_event)| {
            let queue = door.name();
            by_event.iter().map(move |(event, count)| Incoming {
                queue,
                event: event.to_string(),
                count: *count,
            })
        });
        counts.collect()
    }
}

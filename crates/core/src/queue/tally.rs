//! What the queue counts: how often pods came into which part of it, and why.

use std::collections::BTreeMap;
use std::fmt;

use steersman_framework::events::ClusterEvent;

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

/// What brought a pod to where it is. Shown as the label that the reference's
/// metrics have for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// A change of the cluster.
    Change(ClusterEvent),
    /// Something else; its label.
    Other(&'static str),
}

impl Cause {
    pub(crate) const ADDED: Self = Self::Other("UnscheduledPodAdd");
    pub(crate) const UPDATED: Self = Self::Other("UnscheduledPodUpdate");
    pub(crate) const ATTEMPT_FAILED: Self = Self::Other("ScheduleAttemptFailure");
    pub(crate) const BACKOFF_COMPLETE: Self = Self::Other("BackoffComplete");
    pub(crate) const POP_FROM_BACKOFF: Self = Self::Other("PopFromBackoffQ");
    pub(crate) const TIMEOUT: Self = Self::Other("UnschedulableTimeout");
    pub(crate) const FORCED: Self = Self::Other("ForceActivate");
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Change(event) => event.fmt(f),
            Self::Other(label) => f.write_str(label),
        }
    }
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
pub(crate) struct Tally(BTreeMap<(Door, Cause), u64>);

impl Tally {
    pub(super) fn came(&mut self, door: Door, cause: Cause) {
        *self.0.entry((door, cause)).or_default() += 1;
    }

    /// All of them, sorted; causes that share a label are one.
    pub(crate) fn counts(&self) -> Vec<Incoming> {
        let mut by_label: BTreeMap<(Door, String), u64> = BTreeMap::new();
        for ((door, cause), count) in &self.0 {
            *by_label.entry((*door, cause.to_string())).or_default() += count;
        }
        let incoming = |((door, event), count): ((Door, String), u64)| Incoming {
            queue: door.name(),
            event,
            count,
        };
        by_label.into_iter().map(incoming).collect()
    }
}

//! Changes that happen while pods are being scheduled. A pod that fails looks
//! back at them: one may have removed the obstacle it met.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use steersman_api::key::PodUid;
use steersman_api::pod::PodInfo;
use steersman_framework::events::{Change, ClusterEvent};

/// A change and its event.
#[derive(Clone, Debug)]
pub(crate) struct Happened {
    pub(crate) event: ClusterEvent,
    pub(crate) change: Arc<Change>,
    /// Pods of higher priority cannot be helped by it.
    highest_priority: i32,
}

impl Happened {
    /// Nothing, when nothing that scheduling reads has changed.
    pub(crate) fn new(change: Change) -> Option<Self> {
        let event = change.event()?;
        Some(Self { event, change: Arc::new(change), highest_priority: i32::MAX })
    }

    /// The same, and pods of higher priority cannot be helped by it.
    pub(crate) fn up_to_priority(self, highest_priority: i32) -> Self {
        Self { highest_priority, ..self }
    }

    /// Whether `pod` could be helped at all: not by taking or leaving its own
    /// node, nor by hearing of itself as if it were another pod.
    pub(crate) fn may_concern(&self, pod: &PodInfo) -> bool {
        let (Change::AssignedPod { old, new } | Change::UnscheduledPod { old, new }) =
            &*self.change
        else {
            return true;
        };
        let is_own = new.as_ref().or(old.as_ref()).is_some_and(|other| other.uid == pod.uid);
        !is_own && pod.spec.priority <= self.highest_priority
    }
}

/// Pods that were popped and have neither failed nor been bound yet, and the
/// changes since the oldest of them was popped.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    started: HashMap<PodUid, u64>,
    starts: BTreeMap<u64, PodUid>,
    changes: VecDeque<Recorded>,
    clock: u64,
}

#[derive(Debug)]
struct Recorded {
    at: u64,
    /// The one pod that it concerns; `None`: all.
    only: Option<PodUid>,
    happened: Happened,
}

impl InFlight {
    pub(super) fn len(&self) -> usize {
        self.started.len()
    }

    pub(super) fn contains(&self, uid: &PodUid) -> bool {
        self.started.contains_key(uid)
    }

    /// The pods, the oldest flight first.
    pub(super) fn in_order(&self) -> impl Iterator<Item = &PodUid> {
        self.starts.values()
    }

    /// How many changes are remembered, by the event's label; the pods in
    /// flight as `PodPopped`.
    pub(super) fn remembered(&self) -> BTreeMap<String, usize> {
        let mut by_event: BTreeMap<ClusterEvent, usize> = BTreeMap::new();
        for recorded in &self.changes {
            *by_event.entry(recorded.happened.event).or_default() += 1;
        }
        let changes = by_event.into_iter().map(|(event, n)| (event.to_string(), n));
        changes.chain([("PodPopped".to_owned(), self.started.len())]).collect()
    }

    pub(super) fn start(&mut self, uid: PodUid) {
        self.clock += 1;
        self.starts.insert(self.clock, uid.clone());
        self.started.insert(uid, self.clock);
    }

    /// Remembers a change, if some pod is in flight.
    pub(super) fn record(&mut self, happened: &Happened) {
        self.push(None, happened);
    }

    /// Remembers a change that concerns one pod only.
    pub(super) fn record_for(&mut self, uid: &PodUid, happened: &Happened) {
        self.push(Some(uid.clone()), happened);
    }

    fn push(&mut self, only: Option<PodUid>, happened: &Happened) {
        if self.started.is_empty() {
            return;
        }
        self.clock += 1;
        self.changes.push_back(Recorded { at: self.clock, only, happened: happened.clone() });
    }

    /// Ends a pod's flight: the changes since its start. Empty when it was not
    /// in flight.
    pub(super) fn finish(&mut self, uid: &PodUid) -> Vec<Happened> {
        let Some(start) = self.started.remove(uid) else { return Vec::new() };
        let concerns = |r: &&Recorded| r.at > start && r.only.as_ref().is_none_or(|o| o == uid);
        let since = self.changes.iter().filter(concerns).map(|r| r.happened.clone()).collect();
        self.forget(start);
        since
    }

    /// As [`InFlight::finish`], when nobody asks for the changes.
    pub(super) fn drop_pod(&mut self, uid: &PodUid) {
        if let Some(start) = self.started.remove(uid) {
            self.forget(start);
        }
    }

    fn forget(&mut self, start: u64) {
        self.starts.remove(&start);
        // Changes older than every start concern nobody any more.
        let oldest = self.starts.keys().next().copied().unwrap_or(u64::MAX);
        while self.changes.front().is_some_and(|r| r.at < oldest) {
            self.changes.pop_front();
        }
    }
}

//! The scheduling queue: every pod that waits for a node stands in exactly one
//! place of it.
//!
//! ```text
//!            add                        pop
//!   (new) ───────► activeQ ───────────────────────► in flight ──► bound
//!     │               ▲  ▲                              │
//!     │ PreEnqueue    │  │ backoff over,                │ no node fits / error
//!     ▼               │  │ or activeQ empty             ▼
//!   gated ────────────┘  └────── backoffQ ◄──── unschedulable pods
//!         gate gone                     ▲   event that may help │
//!                                       └───────────────────────┘
//! ```
//!
//! Owner: [`crate::Scheduler`]. The queue asks no plugin but PreEnqueue and the
//! queueing hints, and knows no node.

mod aside;
mod backoff;
mod entry;
mod heap;
mod in_flight;
mod nominations;
mod places;
mod tally;
mod wake;

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use steersman_api::key::PodUid;
use steersman_api::name::Name;
use steersman_api::pod::PodInfo;
use steersman_api::time::Time;
use steersman_framework::cluster::Cluster;
use steersman_framework::extensions::QueueSort;
use steersman_framework::observer::QueueObserver;

use aside::Aside;
pub(crate) use backoff::Backoff;
pub use entry::Place;
pub(crate) use entry::{Entry, WakeReason};
use heap::IndexedHeap;
pub(crate) use in_flight::Happened;
use in_flight::InFlight;
pub(crate) use nominations::{Nomination, Nominations};
pub use places::QueueCounts;
pub use tally::{Cause, Incoming};
use tally::{Door, Tally};
pub(crate) use wake::WakeStats;

use crate::profile::{PluginSet, Profile};
use crate::runner::{Gate, pre_enqueue};

/// The profiles by scheduler name.
pub(crate) type Profiles = BTreeMap<Name, Arc<Profile>>;

/// How long a pod stays unschedulable at the longest, unless told otherwise: a
/// last resort against lost events. The reference's
/// `podMaxInUnschedulablePodsDuration`.
pub(crate) const MAX_UNSCHEDULABLE: Duration = Duration::from_secs(5 * 60);

/// See the module documentation.
pub(crate) struct SchedulingQueue {
    profiles: Profiles,
    sort: Arc<dyn QueueSort>,
    backoff: Backoff,
    /// Whether pods that back off are popped when the activeQ is empty.
    pops_backing_off: bool,
    max_unschedulable: Duration,
    active: IndexedHeap<Entry>,
    /// Pods whose last attempt failed because no node fits.
    backing_off: IndexedHeap<Entry>,
    /// Pods whose last attempt ended in an error: they wait their full time,
    /// also when nothing else is to do.
    backing_off_after_error: IndexedHeap<Entry>,
    unschedulable: Aside,
    gated: Aside,
    in_flight: InFlight,
    /// Entries of pods in flight, to go on from when they fail.
    flying: HashMap<PodUid, Entry>,
    nominations: Nominations,
    arrivals: u64,
    wake_stats: WakeStats,
    tally: Tally,
    observers: Vec<Arc<dyn QueueObserver>>,
}

/// A pod's attempt, from pop to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flight {
    /// Which attempt it is, from 1.
    pub(crate) attempts: u32,
    /// When it was popped.
    pub(crate) started: Time,
    /// When the pod could be tried for the first time.
    pub(crate) first_active: Time,
    /// Whether only the last-resort flush brought the pod back.
    pub(crate) after_flush: bool,
}

/// Why an attempt failed.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// Plugins rejected the pod.
    Rejected(PluginSet),
    /// Something went wrong.
    Error,
}

impl SchedulingQueue {
    pub(crate) fn new(profiles: Profiles, sort: Arc<dyn QueueSort>, backoff: Backoff) -> Self {
        Self {
            profiles,
            sort,
            backoff,
            pops_backing_off: true,
            max_unschedulable: MAX_UNSCHEDULABLE,
            active: IndexedHeap::default(),
            backing_off: IndexedHeap::default(),
            backing_off_after_error: IndexedHeap::default(),
            unschedulable: Aside::default(),
            gated: Aside::default(),
            in_flight: InFlight::default(),
            flying: HashMap::new(),
            nominations: Nominations::default(),
            arrivals: 0,
            wake_stats: WakeStats::default(),
            tally: Tally::default(),
            observers: Vec::new(),
        }
    }

    /// Has one more observer told of the plugins that the queue asks.
    pub(crate) fn watch(&mut self, observer: Arc<dyn QueueObserver>) {
        self.observers.push(observer);
    }

    pub(crate) fn tally(&self) -> &Tally {
        &self.tally
    }

    /// The same queue, in which pods that back off wait their full time or not:
    /// the feature `SchedulerPopFromBackoffQ`.
    #[must_use]
    pub(crate) fn popping_backing_off(mut self, pops: bool) -> Self {
        self.pops_backing_off = pops;
        self
    }

    /// The same queue, in which pods stay unschedulable for so long at the
    /// longest.
    #[must_use]
    pub(crate) fn flushing_after(mut self, max_unschedulable: Duration) -> Self {
        self.max_unschedulable = max_unschedulable;
        self
    }

    /// The pods nominated to nodes.
    pub(crate) fn nominations(&self) -> &Nominations {
        &self.nominations
    }

    pub(crate) fn nominate(&mut self, pod: Arc<PodInfo>, node: Name) {
        self.nominations.set(pod, node);
    }

    pub(crate) fn end_nomination(&mut self, uid: &PodUid) {
        self.nominations.remove(uid);
    }

    pub(crate) fn wake_stats(&self) -> &WakeStats {
        &self.wake_stats
    }

    /// Takes in a pod that was not here before.
    pub(crate) fn add(&mut self, pod: Arc<PodInfo>, cluster: &Cluster, now: Time) {
        self.arrivals += 1;
        self.nominations.adopt_status(&pod);
        let entry = Entry::new(pod, self.arrivals, now);
        self.enqueue(entry, Cause::ADDED, cluster, now);
    }

    /// Puts a pod into the activeQ or, while it backs off, into the backoffQ;
    /// unless a PreEnqueue plugin keeps it out.
    fn enqueue(&mut self, entry: Entry, event: Cause, cluster: &Cluster, now: Time) {
        let door = self.put(entry, cluster, now);
        self.tally.came(door, event);
    }

    /// The same for a pod that was in the queue: it counts as one that came
    /// only when it changes its place.
    fn enqueue_again(
        &mut self,
        entry: Entry,
        from: Door,
        event: Cause,
        cluster: &Cluster,
        now: Time,
    ) {
        let door = self.put(entry, cluster, now);
        if door != from {
            self.tally.came(door, event);
        }
    }

    fn put(&mut self, mut entry: Entry, cluster: &Cluster, now: Time) -> Door {
        entry.gated_because = None;
        match self.gate(entry.pod(), cluster) {
            Some(gate) => {
                self.keep_out(entry, gate);
                Door::Unschedulable
            }
            None if entry.backoff_until > now => {
                self.back_off(entry);
                Door::Backoff
            }
            None => {
                entry.first_active.get_or_insert(now);
                let order = active_order(self.sort.as_ref());
                self.active.push(entry, order);
                Door::Active
            }
        }
    }

    fn gate(&self, pod: &PodInfo, cluster: &Cluster) -> Option<Gate> {
        let profile = self.profiles.get(&pod.spec.scheduler_name)?;
        self.observers.iter().for_each(|observer| observer.gate_begins());
        let gate = pre_enqueue(profile, pod, cluster);
        let by = gate.as_ref().and_then(|gate| profile.name(gate.plugin));
        self.observers.iter().for_each(|observer| observer.gated(pod, by));
        gate
    }

    fn keep_out(&mut self, mut entry: Entry, gate: Gate) {
        entry.gated_because = Some(gate.reason);
        let mut plugin = PluginSet::default();
        plugin.insert(gate.plugin);
        self.gated.insert(entry, plugin);
    }

    fn back_off(&mut self, entry: Entry) {
        let heap = if entry.last_was_error {
            &mut self.backing_off_after_error
        } else {
            &mut self.backing_off
        };
        heap.push(entry, backoff_order(self.sort.as_ref()));
    }

    /// The next pod to try; it is in flight from now on. When the activeQ is
    /// empty a pod that still backs off is taken, unless it does so after an
    /// error or the feature is off: there is nothing better to do.
    pub(crate) fn pop(&mut self, now: Time) -> Option<Entry> {
        let sort = self.sort.as_ref();
        let mut entry = match self.active.pop(active_order(sort)) {
            Some(entry) => entry,
            None => {
                if !self.pops_backing_off {
                    return None;
                }
                let entry = self.backing_off.pop(backoff_order(sort))?;
                self.tally.came(Door::Active, Cause::POP_FROM_BACKOFF);
                entry
            }
        };
        entry.queued.attempts += 1;
        entry.popped_at = now;
        entry.first_active.get_or_insert(now);
        let uid = entry.pod().uid.clone();
        self.in_flight.start(uid.clone());
        self.flying.insert(uid, entry.clone());
        Some(entry)
    }

    /// The attempt that a pod in flight is in.
    pub(crate) fn flight(&self, uid: &PodUid) -> Option<Flight> {
        let entry = self.flying.get(uid)?;
        Some(Flight {
            attempts: entry.queued.attempts,
            started: entry.popped_at,
            first_active: entry.first_active.unwrap_or(entry.popped_at),
            after_flush: entry.woken_by.is_some_and(|reason| reason.event == Cause::TIMEOUT),
        })
    }

    /// A pod in flight is bound, or gone.
    pub(crate) fn done(&mut self, uid: &PodUid) {
        if let Some(entry) = self.flying.remove(uid) {
            self.wake_stats.settle(entry.woken_by, true);
        }
        self.in_flight.drop_pod(uid);
        self.nominations.remove(uid);
    }

    /// A pod in flight could not be scheduled or bound: it waits out its
    /// backoff if an event since may have helped it, and for such an event
    /// otherwise.
    pub(crate) fn fail(&mut self, uid: &PodUid, failure: Failure, cluster: &Cluster, now: Time) {
        let missed = self.in_flight.finish(uid);
        let Some(mut entry) = self.flying.remove(uid) else { return };
        self.nominations.adopt_status(&entry.queued.pod);
        self.wake_stats.settle(entry.woken_by.take(), false);
        entry.queued.queued_at = now;
        entry.rejected_by = PluginSet::default();
        let plugins = match failure {
            Failure::Rejected(plugins) if !plugins.is_empty() => plugins,
            Failure::Rejected(_) | Failure::Error => {
                entry.consecutive_errors += 1;
                entry.last_was_error = true;
                entry.backoff_until = self.backoff.until(now, entry.consecutive_errors);
                self.enqueue(entry, Cause::ATTEMPT_FAILED, cluster, now);
                return;
            }
        };
        entry.last_was_error = false;
        entry.consecutive_errors = 0;
        entry.unschedulable_count += 1;
        entry.rejected_by = plugins;
        entry.backoff_until = self.backoff.until(now, entry.unschedulable_count);
        let woken = missed.iter().find_map(|h| self.wake_reason(&entry, h, cluster));
        match woken {
            Some(reason) => {
                entry.woken_by = Some(reason);
                self.enqueue(entry, Cause::ATTEMPT_FAILED, cluster, now);
            }
            None => {
                self.tally.came(Door::Unschedulable, Cause::ATTEMPT_FAILED);
                self.set_aside(entry);
            }
        }
    }

    fn set_aside(&mut self, entry: Entry) {
        let plugins = entry.rejected_by;
        self.unschedulable.insert(entry, plugins);
    }

    /// Moves pods whose time has come: backoffs that are over, and pods that
    /// have been unschedulable for too long.
    pub(crate) fn advance(&mut self, cluster: &Cluster, now: Time) {
        for after_error in [false, true] {
            while let Some(entry) = self.pop_backed_off(after_error, now) {
                self.enqueue(entry, Cause::BACKOFF_COMPLETE, cluster, now);
            }
        }
        let overdue = match now.before(self.max_unschedulable) {
            Some(limit) => self.unschedulable.queued_by(limit),
            None => Vec::new(),
        };
        for uid in overdue {
            self.wake_stats.flushed += 1;
            let reason = WakeReason { event: Cause::TIMEOUT, plugin: "" };
            self.wake_up(&uid, reason, cluster, now);
        }
    }

    fn pop_backed_off(&mut self, after_error: bool, now: Time) -> Option<Entry> {
        let sort = self.sort.as_ref();
        let heap =
            if after_error { &mut self.backing_off_after_error } else { &mut self.backing_off };
        if heap.peek()?.backoff_until > now {
            return None;
        }
        heap.pop(backoff_order(sort))
    }

    /// When [`SchedulingQueue::advance`] has something to do next.
    pub(crate) fn next_timer(&self) -> Option<Time> {
        let backoffs = [&self.backing_off, &self.backing_off_after_error];
        let backoff = backoffs.into_iter().filter_map(|h| h.peek()).map(|e| e.backoff_until).min();
        let max = self.max_unschedulable;
        let flush = self.unschedulable.oldest().map(|oldest| oldest.after(max));
        backoff.into_iter().chain(flush).min()
    }
}

/// The order of the activeQ: what the QueueSort plugin says, then arrival.
fn active_order(sort: &dyn QueueSort) -> impl Fn(&Entry, &Entry) -> Ordering {
    move |a, b| sort.compare(&a.queued, &b.queued).then(a.arrival.cmp(&b.arrival))
}

/// The order of the backoffQ: the end of the wait, then as the activeQ.
fn backoff_order(sort: &dyn QueueSort) -> impl Fn(&Entry, &Entry) -> Ordering {
    let active = active_order(sort);
    move |a, b| a.backoff_until.cmp(&b.backoff_until).then_with(|| active(a, b))
}

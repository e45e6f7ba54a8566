//! Writes what the scheduler thinks of pending pods into their status: the
//! condition `PodScheduled` and `nominatedNodeName`.
//!
//! The [`StatusBoard`] knows for each pending pod what its status says, as the
//! watch shows it, and what it should say. Only differences are written, one
//! write a pod at a time; what is wanted while one is under way replaces what
//! was wanted before, so the newest state wins.
//!
//! ```text
//!           want              next              nothing is left
//!   (idle) ─────► queued ──────────► busy ────────────────────────► (idle)
//!                                    │  ▲
//!                    it may work later  │ next, when its time has come
//!                                    ▼  │
//!                                  put off
//! ```
//!
//! A write that is put off holds nobody up and costs one entry. It is repeated
//! until it succeeds, is refused for good, or the pod is gone or has a node.

mod patch;
mod writer;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;
use steersman_api::key::{ObjectKey, PodUid};
use steersman_api::name::Name;
use steersman_api::pod::PodInfo;
use steersman_core::FailureReason;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use crate::chance::Backoff;

pub(crate) use patch::{Condition, Write};
pub(crate) use writer::StatusWriter;

/// See the module documentation.
#[derive(Default)]
pub(crate) struct StatusBoard {
    pods: Mutex<Pods>,
    /// There is something to write.
    work: Notify,
    /// Something was written, or is wanted no more.
    settled: Notify,
}

#[derive(Default)]
struct Pods {
    entries: BTreeMap<PodUid, Entry>,
    /// Pods with something to write that nobody writes yet, oldest first. Those
    /// that are [`Stage::Queued`], and some that are gone.
    queue: VecDeque<PodUid>,
    /// Those that are [`Stage::PutOff`], and until when.
    put_off: BTreeSet<(Instant, PodUid)>,
}

/// One pending pod.
struct Entry {
    key: ObjectKey,
    generation: Option<i64>,
    /// What its status says, as far as is known.
    current: Shown,
    /// `None`: whatever it says.
    condition: Option<Condition>,
    /// `None`: whatever it says.
    nominated: Option<Option<Name>>,
    /// The condition of the last failure, if it will never be written.
    refused: Option<Condition>,
    stage: Stage,
    /// Writes have failed since the last that did not.
    trouble: Option<Trouble>,
}

/// How far a pod's write is; see the module documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Idle,
    Queued,
    Busy,
    PutOff(Instant),
}

/// Failed writes of one pod, one after the other.
struct Trouble {
    n_failed: u32,
    backoff: Backoff,
}

/// What a pod's status says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Shown {
    /// `None` when there is no condition, or it is not False.
    condition: Option<Condition>,
    nominated: Option<Name>,
}

/// The reason of the condition that the API server itself gives pods with
/// scheduling gates: nobody tried to schedule them.
const GATED: &str = "SchedulingGated";
/// How long a binding waits for what is being written to its pod's status.
const SETTLING: Duration = Duration::from_secs(5);

impl StatusBoard {
    /// A version of a pod. Pods on nodes are of no interest: the API server
    /// itself writes their condition.
    pub(crate) fn saw(&self, pod: &PodInfo, json: &Value) {
        if pod.node_name.is_some() {
            return self.forget(&pod.uid);
        }
        let current = Shown {
            condition: Condition::read(&json["status"]),
            nominated: pod.nominated_node.clone(),
        };
        let generation = json["metadata"]["generation"].as_i64();
        let mut pods = self.pods.lock();
        if let Some(entry) = pods.entries.get_mut(&pod.uid) {
            entry.current = current;
            entry.generation = generation;
            return;
        }
        let entry = Entry {
            key: pod.key.clone(),
            generation,
            current,
            condition: None,
            nominated: None,
            refused: None,
            stage: Stage::Idle,
            trouble: None,
        };
        pods.entries.insert(pod.uid.clone(), entry);
    }

    /// A pod is gone, or has a node.
    pub(crate) fn forget(&self, uid: &PodUid) {
        let mut pods = self.pods.lock();
        let Some(entry) = pods.entries.remove(uid) else { return };
        if let Stage::PutOff(until) = entry.stage {
            pods.put_off.remove(&(until, uid.clone()));
        }
        drop(pods);
        self.settled.notify_waiters();
    }

    /// The pod's condition should say that an attempt failed.
    pub(crate) fn failed(&self, uid: &PodUid, reason: FailureReason, message: &str) {
        self.want(uid, |entry| {
            let condition = Condition { reason: reason.name().to_owned(), message: message.into() };
            entry.condition = Some(condition);
            entry.refused = None;
        });
    }

    /// Why a pending pod was not scheduled the last time, as far as is known:
    /// also when that is not in its status yet, or never will be, or is there
    /// from before this scheduler ran. Costs a look-up and a copy of the text.
    pub(crate) fn last_failure(&self, uid: &PodUid) -> Option<String> {
        let pods = self.pods.lock();
        let Entry { condition, refused, current, .. } = pods.entries.get(uid)?;
        let last = condition.as_ref().or(refused.as_ref()).or(current.condition.as_ref())?;
        (last.reason != GATED).then(|| last.message.clone())
    }

    /// The pod's nominated node should be this one, or none.
    pub(crate) fn nominate(&self, uid: &PodUid, node: Option<Name>) {
        self.want(uid, |entry| entry.nominated = Some(node));
    }

    fn want(&self, uid: &PodUid, change: impl FnOnce(&mut Entry)) {
        let mut pods = self.pods.lock();
        let Pods { entries, queue, .. } = &mut *pods;
        // Whoever is not here is gone or has a node by now.
        let Some(entry) = entries.get_mut(uid) else { return };
        change(entry);
        if entry.stage != Stage::Idle {
            // Whoever writes will look again at what is wanted.
            return;
        }
        if entry.difference().is_none() {
            entry.condition = None;
            entry.nominated = None;
        } else {
            entry.stage = Stage::Queued;
            queue.push_back(uid.clone());
            drop(pods);
            self.work.notify_one();
        }
    }

    /// The pod is about to be bound: nobody needs to know any more why it could
    /// not be, and a write that is under way should not come after the binding.
    /// Waits for it, for a while.
    pub(crate) async fn settle(&self, uid: &PodUid) {
        let deadline = Instant::now() + SETTLING;
        loop {
            let settled = self.settled.notified();
            {
                let mut pods = self.pods.lock();
                let Some(entry) = pods.entries.get_mut(uid) else { return };
                entry.condition = None;
                // Whoever takes it finds nothing to write.
                if entry.stage != Stage::Busy && entry.difference().is_none() {
                    return;
                }
            }
            if timeout_at(deadline, settled).await.is_err() {
                return;
            }
        }
    }

    /// Waits for a pod to write, and takes it.
    async fn next(&self) -> PodUid {
        loop {
            // Registered before looking, lest a notification is missed.
            let work = self.work.notified();
            let alarm = {
                let mut pods = self.pods.lock();
                if let Some(uid) = pods.take(Instant::now()) {
                    // Others may sleep although there is more.
                    if !pods.queue.is_empty() || !pods.put_off.is_empty() {
                        self.work.notify_one();
                    }
                    return uid;
                }
                pods.put_off.first().map(|(until, _)| *until)
            };
            match alarm {
                // Either may come first; both mean to look again.
                Some(alarm) => {
                    let _ = timeout_at(alarm, work).await;
                }
                None => work.await,
            }
        }
    }

    /// What is to be written to a taken pod now; `None`, which gives the pod
    /// back, when there is nothing.
    fn write(&self, uid: &PodUid) -> Option<Write> {
        let mut pods = self.pods.lock();
        let entry = pods.entries.get_mut(uid)?;
        let write = entry.difference().map(|(condition, nominated)| Write {
            key: entry.key.clone(),
            uid: uid.clone(),
            is_transition: entry.current.condition.is_none(),
            generation: entry.generation,
            condition,
            nominated,
        });
        if write.is_none() {
            entry.stage = Stage::Idle;
            entry.trouble = None;
            entry.condition = None;
            entry.nominated = None;
            drop(pods);
            self.settled.notify_waiters();
        }
        write
    }

    /// A write succeeded.
    fn written(&self, write: &Write) {
        let mut pods = self.pods.lock();
        let Some(entry) = pods.entries.get_mut(&write.uid) else { return };
        entry.trouble = None;
        if let Some(condition) = &write.condition {
            entry.current.condition = Some(condition.clone());
        }
        if let Some(nominated) = &write.nominated {
            entry.current.nominated.clone_from(nominated);
        }
    }

    /// A write of a taken pod failed and may succeed later: gives the pod back,
    /// until the time that the server `asked` for, or until its backoff says, of
    /// which `fresh` is a new one. Returns how many have failed in a row.
    fn put_off(
        &self,
        uid: &PodUid,
        asked: Option<Duration>,
        fresh: impl FnOnce() -> Backoff,
    ) -> u32 {
        let mut pods = self.pods.lock();
        let Pods { entries, put_off, .. } = &mut *pods;
        // It is gone or has a node: nobody wants it any more. And it may be there
        // again meanwhile, as if nobody had ever taken it.
        let Some(entry) = entries.get_mut(uid).filter(|entry| entry.stage == Stage::Busy) else {
            return 0;
        };
        let trouble = entry.trouble.get_or_insert_with(|| {
            let backoff = fresh();
            Trouble { n_failed: 0, backoff }
        });
        trouble.n_failed = trouble.n_failed.saturating_add(1);
        let n_failed = trouble.n_failed;
        let until = Instant::now() + asked.unwrap_or_else(|| trouble.backoff.wait());
        entry.stage = Stage::PutOff(until);
        put_off.insert((until, uid.clone()));
        drop(pods);
        // Somebody who is idle should know when to look again, and a binding
        // that the write may have been withdrawn for need not wait.
        self.work.notify_one();
        self.settled.notify_waiters();
        n_failed
    }

    /// A write will not succeed: what it wanted is wanted no more.
    fn gave_up(&self, write: &Write) {
        let mut pods = self.pods.lock();
        let Some(entry) = pods.entries.get_mut(&write.uid) else { return };
        if entry.condition == write.condition
            && let Some(condition) = entry.condition.take()
        {
            entry.refused = Some(condition);
        }
        if entry.nominated == write.nominated {
            entry.nominated = None;
        }
    }
}

impl Pods {
    /// Takes a pod with something to write, new ones first.
    fn take(&mut self, now: Instant) -> Option<PodUid> {
        while let Some(uid) = self.queue.pop_front() {
            if let Some(entry) = self.entries.get_mut(&uid)
                && entry.stage == Stage::Queued
            {
                entry.stage = Stage::Busy;
                return Some(uid);
            }
        }
        while self.put_off.first().is_some_and(|(until, _)| *until <= now) {
            let (until, uid) = self.put_off.pop_first()?;
            if let Some(entry) = self.entries.get_mut(&uid)
                && entry.stage == Stage::PutOff(until)
            {
                entry.stage = Stage::Busy;
                return Some(uid);
            }
        }
        None
    }
}

impl Entry {
    /// What of the wanted state the status does not show.
    fn difference(&self) -> Option<(Option<Condition>, Option<Option<Name>>)> {
        let condition = self.condition.clone();
        let condition = condition.filter(|c| self.current.condition.as_ref() != Some(c));
        let nominated = self.nominated.clone().filter(|n| *n != self.current.nominated);
        (condition.is_some() || nominated.is_some()).then_some((condition, nominated))
    }
}

#[cfg(test)]
mod tests;

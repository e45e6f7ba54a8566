//! Writes what the scheduler thinks of pending pods into their status: the
//! condition `PodScheduled` and `nominatedNodeName`.
//!
//! The [`StatusBoard`] knows for each pending pod what its status says, as the
//! watch shows it, and what it should say. Only differences are written, one
//! write a pod at a time; what is wanted while one is under way replaces what
//! was wanted before, so the newest state wins.

mod patch;
mod writer;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;
use steersman_api::key::{ObjectKey, PodUid};
use steersman_api::name::Name;
use steersman_api::pod::PodInfo;
use steersman_core::FailureReason;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

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
    /// Pods with something to write that nobody writes yet, oldest first.
    queue: VecDeque<PodUid>,
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
    queued: bool,
    busy: bool,
}

/// What a pod's status says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Shown {
    /// `None` when there is no condition, or it is not False.
    condition: Option<Condition>,
    nominated: Option<Name>,
}

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
            queued: false,
            busy: false,
        };
        pods.entries.insert(pod.uid.clone(), entry);
    }

    /// A pod is gone, or has a node.
    pub(crate) fn forget(&self, uid: &PodUid) {
        if self.pods.lock().entries.remove(uid).is_some() {
            self.settled.notify_waiters();
        }
    }

    /// The pod's condition should say that an attempt failed.
    pub(crate) fn failed(&self, uid: &PodUid, reason: FailureReason, message: &str) {
        self.want(uid, |entry| {
            let condition = Condition { reason: reason.name().to_owned(), message: message.into() };
            entry.condition = Some(condition);
        });
    }

    /// The pod's nominated node should be this one, or none.
    pub(crate) fn nominate(&self, uid: &PodUid, node: Option<Name>) {
        self.want(uid, |entry| entry.nominated = Some(node));
    }

    fn want(&self, uid: &PodUid, change: impl FnOnce(&mut Entry)) {
        let mut pods = self.pods.lock();
        let Pods { entries, queue } = &mut *pods;
        // Whoever is not here is gone or has a node by now.
        let Some(entry) = entries.get_mut(uid) else { return };
        change(entry);
        if entry.busy || entry.queued {
            // Whoever writes will look again at what is wanted.
            return;
        }
        if entry.difference().is_none() {
            entry.condition = None;
            entry.nominated = None;
        } else {
            entry.queued = true;
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
                if !entry.busy && !entry.queued {
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
            {
                let mut pods = self.pods.lock();
                let Pods { entries, queue } = &mut *pods;
                if let Some(uid) = queue.pop_front() {
                    // Others may sleep although there is more.
                    if !queue.is_empty() {
                        self.work.notify_one();
                    }
                    if let Some(entry) = entries.get_mut(&uid) {
                        entry.queued = false;
                        entry.busy = true;
                        return uid;
                    }
                    continue;
                }
            }
            work.await;
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
            entry.busy = false;
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
        if let Some(condition) = &write.condition {
            entry.current.condition = Some(condition.clone());
        }
        if let Some(nominated) = &write.nominated {
            entry.current.nominated.clone_from(nominated);
        }
    }

    /// A write will not succeed: what it wanted is wanted no more.
    fn gave_up(&self, write: &Write) {
        let mut pods = self.pods.lock();
        let Some(entry) = pods.entries.get_mut(&write.uid) else { return };
        if entry.condition == write.condition {
            entry.condition = None;
        }
        if entry.nominated == write.nominated {
            entry.nominated = None;
        }
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

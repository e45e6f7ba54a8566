//! What the queue knows of a pod.

use std::sync::Arc;

use steersman_api::key::PodUid;
use steersman_api::pod::PodInfo;
use steersman_api::time::Time;
use steersman_framework::extensions::QueuedPod;

use super::Cause;
use super::heap::Item;
use crate::profile::PluginSet;

/// A pod of the queue, wherever it stands.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// The pod, when it was queued, and how often it was tried.
    pub(crate) queued: QueuedPod,
    /// The order of arrival: decides among pods that the queue order holds
    /// equal.
    pub(super) arrival: u64,
    /// When the pod was first seen.
    pub(crate) first_seen: Time,
    /// When it could be tried for the first time: not while it was gated.
    pub(super) first_active: Option<Time>,
    /// When it was popped the last time.
    pub(super) popped_at: Time,
    /// How many attempts ended because no node fits.
    pub(super) unschedulable_count: u32,
    /// How many attempts in a row ended in an error.
    pub(super) consecutive_errors: u32,
    /// Whether the last attempt ended in an error: such pods wait their full
    /// time.
    pub(super) last_was_error: bool,
    /// The plugins that rejected it the last time.
    pub(crate) rejected_by: PluginSet,
    /// What it was woken by since, for counting wake-ups in vain.
    pub(crate) woken_by: Option<WakeReason>,
    /// What the PreEnqueue plugin says that keeps it out, while one does.
    pub(crate) gated_because: Option<String>,
    /// When its backoff ends.
    pub(crate) backoff_until: Time,
}

/// What brought a pod back from the unschedulable ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WakeReason {
    /// The event.
    pub(crate) event: Cause,
    /// The plugin whose hint said so; empty for the flush.
    pub(crate) plugin: &'static str,
}

/// Where a pod stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the activeQ.
    Active,
    /// Waiting out its backoff.
    Backoff,
    /// Waiting for an event that may help.
    Unschedulable,
    /// Kept out by a PreEnqueue plugin.
    Gated,
    /// Being scheduled or bound.
    InFlight,
}

impl Entry {
    pub(super) fn new(pod: Arc<PodInfo>, arrival: u64, now: Time) -> Self {
        Self {
            queued: QueuedPod { pod, queued_at: now, attempts: 0 },
            arrival,
            first_seen: now,
            first_active: None,
            popped_at: now,
            unschedulable_count: 0,
            consecutive_errors: 0,
            last_was_error: false,
            rejected_by: PluginSet::default(),
            woken_by: None,
            gated_because: None,
            backoff_until: now,
        }
    }

    /// The pod.
    pub(crate) fn pod(&self) -> &Arc<PodInfo> {
        &self.queued.pod
    }
}

impl Item for Entry {
    fn uid(&self) -> &PodUid {
        &self.queued.pod.uid
    }
}

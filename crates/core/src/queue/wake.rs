//! Waking: which pods a change may help.

use std::collections::BTreeMap;
use std::sync::Arc;

use steersman_api::key::PodUid;
use steersman_api::name::Name;
use steersman_api::pod::PodInfo;
use steersman_api::time::Time;
use steersman_framework::cluster::Cluster;
use steersman_framework::events::{Change, Hint, HintCtx};
use steersman_framework::observer::QueueObserver;

use super::entry::Entry;
use super::{Cause, Door, Happened, Nomination, SchedulingQueue, WakeReason};
use crate::profile::{PluginSet, Profile, WakeSlot};
use crate::runner::guarded;

/// How often pods were woken, and how often in vain.
#[derive(Clone, Debug, Default)]
pub(crate) struct WakeStats {
    /// By reason: wake-ups after which the pod found a node, and others.
    pub(crate) by_reason: BTreeMap<WakeReason, (u64, u64)>,
    /// Pods that the last-resort flush had to bring back.
    pub(crate) flushed: u64,
}

impl WakeStats {
    pub(super) fn settle(&mut self, reason: Option<WakeReason>, helped: bool) {
        let Some(reason) = reason else { return };
        let (useful, vain) = self.by_reason.entry(reason).or_default();
        *(if helped { useful } else { vain }) += 1;
    }
}

impl SchedulingQueue {
    /// Something changed: wakes the unschedulable pods that it may help, and
    /// remembers it for those in flight. The cluster is in the state after the
    /// change.
    pub(crate) fn happened(&mut self, change: Change, cluster: &Cluster, now: Time) {
        if let Some(happened) = Happened::new(change) {
            self.take_in(&happened, cluster, now);
        }
    }

    /// As [`SchedulingQueue::happened`], when a nomination ended or its pod
    /// changed: pods of higher priority never counted it.
    pub(crate) fn nomination_changed(&mut self, before: &Nomination, cluster: &Cluster, now: Time) {
        let after = self.nominations.get(&before.pod.uid).filter(|after| after.node == before.node);
        if after.as_ref().is_some_and(|after| Arc::ptr_eq(&after.pod, &before.pod)) {
            return;
        }
        let new = after.map(|after| after.as_placed());
        let change = Change::AssignedPod { old: Some(before.as_placed()), new };
        if let Some(happened) = Happened::new(change) {
            let happened = happened.up_to_priority(before.pod.spec.priority);
            self.take_in(&happened, cluster, now);
        }
    }

    fn take_in(&mut self, happened: &Happened, cluster: &Cluster, now: Time) {
        self.in_flight.record(happened);
        for (uid, reason) in self.helped(happened, cluster) {
            self.wake_up(&uid, reason, cluster, now);
        }
        self.try_gated(happened, cluster, now);
    }

    fn helped(&self, happened: &Happened, cluster: &Cluster) -> Vec<(PodUid, WakeReason)> {
        let mut helped = Vec::new();
        for (scheduler, plugins, entries) in self.unschedulable.groups() {
            if !self.concerns(scheduler, plugins, happened) {
                continue;
            }
            for entry in entries {
                if let Some(reason) = self.wake_reason(entry, happened, cluster) {
                    helped.push((entry.pod().uid.clone(), reason));
                }
            }
        }
        helped
    }

    /// Whether any of `plugins` wants to hear of what happened.
    fn concerns(&self, scheduler: &Name, plugins: PluginSet, happened: &Happened) -> bool {
        let Some(profile) = self.profiles.get(scheduler) else { return true };
        listening(profile, plugins, happened).next().is_some()
    }

    /// Why a change may help a pod; `None` when every plugin that rejected it
    /// says it does not.
    pub(super) fn wake_reason(
        &self,
        entry: &Entry,
        happened: &Happened,
        cluster: &Cluster,
    ) -> Option<WakeReason> {
        let pod = entry.pod();
        if !happened.may_concern(pod) {
            return None;
        }
        let profile = self.profiles.get(&pod.spec.scheduler_name)?;
        let ctx = HintCtx { pod, cluster };
        let woken = listening(profile, entry.rejected_by, happened).find(|wake| {
            let Some((_, hints)) = &wake.hints else { return true };
            // A hint that fails must not leave the pod behind.
            self.observers.iter().for_each(|observer| observer.hint_begins());
            let hint = guarded(|| hints.hint(&ctx, &happened.change)).ok();
            let told = |o: &Arc<dyn QueueObserver>| o.hinted(wake.name, &happened.event, hint);
            self.observers.iter().for_each(told);
            hint != Some(Hint::Skip)
        })?;
        Some(WakeReason { event: Cause::Change(happened.event), plugin: woken.name })
    }

    /// Brings an unschedulable pod back.
    pub(super) fn wake_up(
        &mut self,
        uid: &PodUid,
        reason: WakeReason,
        cluster: &Cluster,
        now: Time,
    ) {
        let Some(mut entry) = self.unschedulable.take(uid) else { return };
        entry.woken_by = Some(reason);
        self.enqueue(entry, reason.event, cluster, now);
    }

    /// Brings a pod back that was set aside, for a reason that is not among the
    /// hints.
    pub(crate) fn bring_back(
        &mut self,
        uid: &PodUid,
        reason: WakeReason,
        cluster: &Cluster,
        now: Time,
    ) {
        match self.gated.take(uid) {
            Some(entry) => {
                self.enqueue_again(entry, Door::Unschedulable, reason.event, cluster, now);
            }
            None => self.wake_up(uid, reason, cluster, now),
        }
    }

    /// Asks the PreEnqueue plugins again about a pod, if they keep it out.
    pub(crate) fn try_gate(&mut self, uid: &PodUid, cluster: &Cluster, now: Time) {
        if let Some(entry) = self.gated.take(uid) {
            self.enqueue_again(entry, Door::Unschedulable, Cause::FORCED, cluster, now);
        }
    }

    /// What was done for a pod that was set aside has failed: it is tried again
    /// after a while, as after an error.
    pub(crate) fn retry_after_error(&mut self, uid: &PodUid, cluster: &Cluster, now: Time) {
        let Some(mut entry) = self.unschedulable.take(uid).or_else(|| self.gated.take(uid)) else {
            return;
        };
        entry.consecutive_errors += 1;
        entry.last_was_error = true;
        entry.backoff_until = self.backoff.until(now, entry.consecutive_errors);
        self.enqueue(entry, Cause::ATTEMPT_FAILED, cluster, now);
    }

    /// Asks the PreEnqueue plugins again about pods they keep out, when the
    /// change is one that the plugin in the way waits for.
    fn try_gated(&mut self, happened: &Happened, cluster: &Cluster, now: Time) {
        let mut concerned = Vec::new();
        for (scheduler, plugins, entries) in self.gated.groups() {
            if self.concerns(scheduler, plugins, happened) {
                concerned.extend(entries.map(|entry| entry.pod().uid.clone()));
            }
        }
        let event = Cause::Change(happened.event);
        for uid in concerned {
            if let Some(entry) = self.gated.take(&uid) {
                self.enqueue_again(entry, Door::Unschedulable, event, cluster, now);
            }
        }
    }

    /// Takes in a newer version of a pod that is somewhere in the queue.
    pub(crate) fn update(&mut self, new: Arc<PodInfo>, cluster: &Cluster, now: Time) {
        let uid = new.uid.clone();
        // A pod in flight takes room on its node; what its status says of a
        // nomination counts again when it fails.
        if let Some(old) = self.flying.get(&uid).map(|entry| entry.pod().clone()) {
            if let Some(entry) = self.flying.get_mut(&uid) {
                entry.queued.pod = new.clone();
            }
            // Only this pod may look back at it; the others see an update of
            // another pod, which the caller tells of.
            if let Some(happened) = Happened::new(Change::TargetPod { old, new }) {
                self.in_flight.record_for(&uid, &happened);
            }
            return;
        }
        if let Some(old) = self.pod(&uid).cloned() {
            self.nominations.update(&old, &new);
        }
        let from = if self.active.contains(&uid) { Door::Active } else { Door::Backoff };
        if let Some(mut entry) = self.take_waiting(&uid) {
            entry.queued.pod = new;
            self.enqueue_again(entry, from, Cause::UPDATED, cluster, now);
            return;
        }
        if let Some(mut entry) = self.gated.take(&uid) {
            entry.queued.pod = new;
            self.enqueue_again(entry, Door::Unschedulable, Cause::UPDATED, cluster, now);
            return;
        }
        let Some(mut entry) = self.unschedulable.take(&uid) else { return };
        let old = std::mem::replace(&mut entry.queued.pod, new.clone());
        let reason = Happened::new(Change::TargetPod { old, new })
            .and_then(|happened| self.wake_reason(&entry, &happened, cluster));
        match reason {
            Some(reason) => {
                entry.woken_by = Some(reason);
                self.enqueue(entry, reason.event, cluster, now);
            }
            None => self.set_aside(entry),
        }
    }
}

/// Those of `plugins` that want to hear of what happened.
fn listening<'a>(
    profile: &'a Profile,
    plugins: PluginSet,
    happened: &'a Happened,
) -> impl Iterator<Item = &'a WakeSlot> {
    profile.wake.iter().filter(move |wake| {
        plugins.contains(wake.idx)
            && wake
                .hints
                .as_ref()
                .is_none_or(|(events, _)| events.iter().any(|e| e.covers(&happened.event)))
    })
}

//! Events about pods.

use std::sync::Arc;

use steersman_api::key::PodUid;
use steersman_api::name::Name;
use steersman_api::pod::PodInfo;
use steersman_api::time::Time;
use steersman_framework::events::Change;

use super::Scheduler;
use super::bindings::Fate;
use crate::pods::PlacedState;
use crate::queue::Nomination;

impl Scheduler {
    /// A pod as the API server has it now.
    pub(super) fn pod_seen(&mut self, pod: Arc<PodInfo>, now: Time) {
        // Another pod of the same name: the deletion of the first was missed.
        if let Some(earlier) = self.pods.uid_of(&pod.key).filter(|uid| **uid != pod.uid).cloned() {
            self.pod_deleted(&earlier, now);
        }
        if pod.phase.is_terminal() {
            self.pod_deleted(&pod.uid, now);
            return;
        }
        match pod.node_name.clone() {
            Some(node) => self.bound_pod_seen(pod, node, now),
            None => self.pending_pod_seen(pod, now),
        }
    }

    fn bound_pod_seen(&mut self, pod: Arc<PodInfo>, node: Name, now: Time) {
        self.pods.remember_name(&pod);
        self.settle_binding(&pod.uid, &node);
        self.cluster.preemptions.end(&pod.uid);
        // Bound by this scheduler or by another one: it needs no node any more.
        let nomination = self.queue.nominations().get(&pod.uid);
        if self.queue.pod(&pod.uid).is_some() {
            self.queue.done(&pod.uid);
            self.queue.remove(&pod.uid);
        }
        let old = self.pods.place(&mut self.cluster, pod.clone(), node.clone(), PlacedState::Bound);
        let change = match old {
            // It was assumed elsewhere: that node is free again.
            Some(old) if old.node != node => {
                self.happened(Change::AssignedPod { old: Some(old.pod), new: None }, now);
                Change::AssignedPod { old: None, new: Some(pod) }
            }
            Some(old) => Change::AssignedPod { old: Some(old.pod), new: Some(pod) },
            None => Change::AssignedPod { old: None, new: Some(pod) },
        };
        self.happened(change, now);
        self.nomination_changed(nomination.filter(|before| before.node != node), now);
    }

    fn pending_pod_seen(&mut self, pod: Arc<PodInfo>, now: Time) {
        if !self.profiles.contains_key(&pod.spec.scheduler_name) {
            return;
        }
        // Seen bound already: this is an older version, late.
        if self.pods.get(&pod.uid).is_some_and(|placed| placed.state == PlacedState::Bound) {
            return;
        }
        // A pod that is being deleted needs no node any more; only a binding
        // that runs already is waited for.
        let is_accepted = self
            .pods
            .get(&pod.uid)
            .is_some_and(|placed| matches!(placed.state, PlacedState::Accepted { .. }));
        if pod.terminating && !is_accepted && !self.is_being_bound(&pod.uid) {
            self.pod_deleted(&pod.uid, now);
            return;
        }
        self.pods.remember_name(&pod);
        if let Some(binding) = self.bindings.get_mut(&pod.uid) {
            binding.latest = Some(pod.clone());
        }
        let nomination = self.queue.nominations().get(&pod.uid);
        let old = self.queue.pod(&pod.uid).cloned();
        match &old {
            Some(_) => self.queue.update(pod.clone(), &self.cluster, now),
            // A pod whose binding was accepted is in neither queue.
            None if self.pods.get(&pod.uid).is_some() => {
                self.pods.remember_latest(&pod);
                return;
            }
            None => self.queue.add(pod.clone(), &self.cluster, now),
        }
        self.happened(Change::UnscheduledPod { old, new: Some(pod) }, now);
        self.nomination_changed(nomination, now);
    }

    /// Those that counted a nominated pod hear that it is nominated there no
    /// more, or is another one. Nothing happens when neither is the case.
    pub(super) fn nomination_changed(&mut self, before: Option<Nomination>, now: Time) {
        if let Some(before) = before {
            self.queue.nomination_changed(&before, &self.cluster, now);
        }
    }

    /// A pod is gone, or has ended.
    pub(super) fn pod_deleted(&mut self, uid: &PodUid, now: Time) {
        self.abandon_binding(uid, Fate::Deleted);
        self.cluster.preemptions.end(uid);
        let nomination = self.queue.nominations().get(uid);
        if let Some(pending) = self.queue.pod(uid).cloned() {
            self.pods.forget_name(&pending.key, uid);
            self.queue.remove(uid);
            if self.pods.get(uid).is_none() {
                self.happened(Change::UnscheduledPod { old: Some(pending), new: None }, now);
            }
        }
        self.nomination_changed(nomination, now);
        if let Some(placed) = self.pods.remove(&mut self.cluster, uid) {
            self.pods.forget_name(&placed.pod.key, uid);
            self.happened(Change::AssignedPod { old: Some(placed.pod), new: None }, now);
        }
    }
}

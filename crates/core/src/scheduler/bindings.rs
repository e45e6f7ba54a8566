//! Pods with a chosen node, until their binding has ended: waiting at Permit,
//! then binding.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use steersman_api::duration::GoDuration;
use steersman_api::key::PodUid;
use steersman_api::name::Name;
use steersman_api::pod::PodInfo;
use steersman_api::time::Time;
use steersman_framework::events::Change;
use steersman_framework::state::CycleState;
use steersman_framework::verdict::{Reason, Rejection};

use super::Scheduler;
use crate::binding::{BindingCycle, BindingReport, Recall};
use crate::event::{Effect, FailureReason};
use crate::profile::{PluginSet, Profile};
use crate::queue::{Failure, Flight};
use crate::record::Record;
use crate::runner::{BindOutcome, Rejected, unreserve};

/// A pod on its way.
pub(super) struct Binding {
    pub(super) pod: Arc<PodInfo>,
    pub(super) profile: Arc<Profile>,
    pub(super) node: Name,
    pub(super) state: Arc<CycleState>,
    pub(super) ticket: u64,
    pub(super) recall: Arc<Recall>,
    pub(super) stage: Stage,
    /// The latest version seen since.
    pub(super) latest: Option<Arc<PodInfo>>,
    /// What the watch said of the pod meanwhile.
    pub(super) fate: Option<Fate>,
    /// The attempt it belongs to, if that will be recorded.
    pub(super) flight: Option<Flight>,
}

/// How far it is.
pub(super) enum Stage {
    /// Held by Permit plugins.
    Waiting(BTreeMap<&'static str, Wait>),
    /// The binding cycle runs.
    Running,
}

/// A Permit plugin's hold.
pub(super) struct Wait {
    pub(super) timeout: Duration,
    since: Time,
    pub(super) until: Time,
}

/// What overtook a binding cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// The pod was seen on the chosen node: bound by this cycle, or by another
    /// client.
    Confirmed,
    /// The pod was seen on another node.
    BoundElsewhere,
    /// The pod is gone.
    Deleted,
}

/// A Permit plugin holds a pod no longer than this, whatever it says. The
/// reference's `maxTimeout`.
const LONGEST_WAIT: Duration = Duration::from_secs(15 * 60);

impl Stage {
    pub(super) fn waiting(waits: BTreeMap<&'static str, Duration>, now: Time) -> Self {
        let wait = |timeout: Duration| {
            let timeout = timeout.min(LONGEST_WAIT);
            Wait { timeout, since: now, until: now.after(timeout) }
        };
        Self::Waiting(waits.into_iter().map(|(plugin, t)| (plugin, wait(t))).collect())
    }
}

/// All of them. Looking for the next deadline costs nothing for those that
/// wait for nobody, of which there can be thousands.
#[derive(Default)]
pub(super) struct Bindings {
    all: BTreeMap<PodUid, Binding>,
    /// Whoever had to wait at Permit; some may be past it by now.
    waited: BTreeSet<PodUid>,
}

impl Bindings {
    pub(super) fn insert(&mut self, uid: PodUid, binding: Binding) {
        if matches!(binding.stage, Stage::Waiting(_)) {
            self.waited.insert(uid.clone());
        }
        self.all.insert(uid, binding);
    }

    pub(super) fn remove(&mut self, uid: &PodUid) -> Option<Binding> {
        self.waited.remove(uid);
        self.all.remove(uid)
    }

    pub(super) fn get(&self, uid: &PodUid) -> Option<&Binding> {
        self.all.get(uid)
    }

    pub(super) fn get_mut(&mut self, uid: &PodUid) -> Option<&mut Binding> {
        self.all.get_mut(uid)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&PodUid, &Binding)> {
        self.all.iter()
    }

    /// When the first wait at Permit runs out.
    pub(super) fn next_deadline(&self) -> Option<Time> {
        self.waiting().filter_map(Binding::next_deadline).min()
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn waiting(&self) -> impl Iterator<Item = &Binding> {
        self.waited.iter().filter_map(|uid| self.all.get(uid))
    }
}

impl Binding {
    pub(super) fn next_deadline(&self) -> Option<Time> {
        match &self.stage {
            Stage::Waiting(waits) => waits.values().map(|wait| wait.until).min(),
            Stage::Running => None,
        }
    }

    pub(super) fn cycle(&self) -> BindingCycle {
        BindingCycle {
            pod: self.pod.clone(),
            node: self.node.clone(),
            profile: self.profile.clone(),
            state: self.state.clone(),
            ticket: self.ticket,
            recall: self.recall.clone(),
        }
    }
}

impl Scheduler {
    pub(super) fn permit_allowed(&mut self, uid: &PodUid, plugin: &'static str, now: Time) {
        let Some(binding) = self.bindings.get_mut(uid) else { return };
        let Stage::Waiting(waits) = &mut binding.stage else { return };
        let Some(wait) = waits.remove(plugin) else { return };
        if waits.is_empty() {
            let waited = now.since(wait.since);
            self.records.push(Record::PermitWaited { allowed: true, waited });
            binding.stage = Stage::Running;
            let cycle = binding.cycle();
            self.effects.push(Effect::StartBinding(cycle));
        }
    }

    pub(super) fn permit_rejected(
        &mut self,
        uid: &PodUid,
        plugin: &'static str,
        reason: Reason,
        now: Time,
    ) {
        let waiting = |binding: &Binding| matches!(binding.stage, Stage::Waiting(_));
        if !self.bindings.get(uid).is_some_and(waiting) {
            return;
        }
        let Some(binding) = self.bindings.remove(uid) else { return };
        if let Stage::Waiting(waits) = &binding.stage
            && let Some(wait) = waits.values().next()
        {
            let waited = now.since(wait.since);
            self.records.push(Record::PermitWaited { allowed: false, waited });
        }
        let rejected = Rejected { plugin, rejection: Rejection::unschedulable(reason) };
        self.binding_rejected(&binding, &rejected, now);
    }

    /// Rejects pods that have waited for too long.
    pub(super) fn expire_permits(&mut self, now: Time) {
        let overdue = |binding: &Binding| {
            let Stage::Waiting(waits) = &binding.stage else { return None };
            let (plugin, wait) = waits.iter().find(|(_, wait)| wait.until <= now)?;
            Some((binding.pod.uid.clone(), *plugin, wait.timeout))
        };
        let overdue: Vec<_> = self.bindings.waiting().filter_map(overdue).collect();
        for (uid, plugin, timeout) in overdue {
            let timeout = GoDuration::from(timeout);
            let reason =
                format!("rejected due to timeout after waiting {timeout} at plugin {plugin}");
            self.permit_rejected(&uid, plugin, reason.into(), now);
        }
    }

    /// Whether a binding cycle of the pod runs.
    pub(super) fn is_being_bound(&self, uid: &PodUid) -> bool {
        self.bindings.get(uid).is_some_and(|binding| matches!(binding.stage, Stage::Running))
    }

    /// The watch shows the pod on a node while its binding is under way.
    pub(super) fn settle_binding(&mut self, uid: &PodUid, node: &Name) {
        let Some(binding) = self.bindings.get(uid) else { return };
        let same = binding.node == *node;
        self.abandon_binding(uid, if same { Fate::Confirmed } else { Fate::BoundElsewhere });
    }

    /// The binding is not needed any more. One that only waits ends here; one
    /// that runs ends with its report.
    pub(super) fn abandon_binding(&mut self, uid: &PodUid, fate: Fate) {
        let Some(binding) = self.bindings.get_mut(uid) else { return };
        if matches!(binding.stage, Stage::Running) {
            binding.fate = Some(fate);
            return;
        }
        if let Some(binding) = self.bindings.remove(uid) {
            self.undo_reservations(&binding);
        }
    }

    fn undo_reservations(&mut self, binding: &Binding) {
        let Binding { profile, pod, state, node, .. } = binding;
        for failed in unreserve(profile, pod, &self.cluster, state, node) {
            self.note(format!("pod {}: undoing a reservation: {failed}", pod.key));
        }
    }

    /// Undoes what was reserved for a pod whose way has ended otherwise. Others
    /// heard of that when what it had reserved was still taken: they hear again.
    /// Only the queue: the pod itself may be on a node, where it does not leave.
    fn undo_late(&mut self, binding: &Binding, now: Time) {
        self.undo_reservations(binding);
        let placed = PodInfo { node_name: Some(binding.node.clone()), ..(*binding.pod).clone() };
        let change = Change::AssignedPod { old: Some(Arc::new(placed)), new: None };
        self.queue.happened(change, &self.cluster, now);
    }

    pub(super) fn binding_finished(&mut self, report: BindingReport, now: Time) {
        let BindingReport { pod: uid, ticket, outcome, notes } = report;
        for note in notes {
            self.note(note);
        }
        // A report of an earlier cycle says nothing about this one.
        if self.bindings.get(&uid).is_none_or(|binding| binding.ticket != ticket) {
            return;
        }
        let Some(binding) = self.bindings.remove(&uid) else { return };
        match (outcome, binding.fate) {
            (BindOutcome::Bound, fate) => {
                if fate.is_none() {
                    self.queue.done(&uid);
                    let expires = self.assumed_pod_ttl.map(|ttl| now.after(ttl));
                    self.pods.accept(&uid, binding.latest.clone(), expires);
                }
                self.binding_succeeded(binding);
            }
            // An error came back although the binding went through.
            (BindOutcome::Unsure(_), Some(Fate::Confirmed)) => self.binding_succeeded(binding),
            (outcome, Some(Fate::Confirmed | Fate::BoundElsewhere)) => {
                self.bound_by_another(&binding, &outcome, now);
            }
            (_, Some(Fate::Deleted)) => self.undo_late(&binding, now),
            (BindOutcome::Recalled, None) => self.binding_preempted(&binding, now),
            (BindOutcome::Rejected(rejected), None) => {
                self.binding_rejected(&binding, &rejected, now);
            }
            (BindOutcome::Failed(failed) | BindOutcome::Unsure(failed), None) => {
                let pod = binding.latest.as_ref().unwrap_or(&binding.pod).clone();
                let Binding { profile, state, node, .. } = &binding;
                let message = failed.to_string();
                self.unreserve_and_forget(&pod, profile, state, node, now, |scheduler| {
                    let reason = FailureReason::SchedulerError;
                    scheduler.failed(&pod, Failure::Error, reason, message, now);
                });
            }
        }
    }

    fn binding_succeeded(&mut self, binding: Binding) {
        self.record_success(&binding);
        let Binding { pod, node, .. } = binding;
        self.effects.push(Effect::Scheduled { pod, node });
    }

    /// The pod was seen on a node to which this scheduler did not bring it. Its
    /// room is counted there already; what was reserved for it here is given
    /// back, and the attempt has failed.
    fn bound_by_another(&mut self, binding: &Binding, outcome: &BindOutcome, now: Time) {
        let Binding { pod, node, .. } = binding;
        if *outcome == BindOutcome::Recalled && binding.fate == Some(Fate::Confirmed) {
            self.stays_after_all(&pod.uid, now);
        }
        self.undo_late(binding, now);
        let (reason, message) = match outcome {
            BindOutcome::Rejected(rejected) => {
                (FailureReason::Unschedulable, rejected.rejection.reasons.join(", "))
            }
            BindOutcome::Failed(failed) | BindOutcome::Unsure(failed) => {
                (FailureReason::SchedulerError, failed.to_string())
            }
            // It made room for another pod. One that was bound does not come here.
            BindOutcome::Recalled | BindOutcome::Bound => {
                (FailureReason::Unschedulable, "preempted".to_owned())
            }
        };
        self.record_failure(pod, reason, binding.flight);
        let bound_on = self.pods.get(&pod.uid).map_or_else(|| node.clone(), |it| it.node.clone());
        let (pod, bound_on) = (pod.clone(), Some(bound_on));
        self.effects.push(Effect::FailedScheduling { pod, reason, message, bound_on });
    }

    /// The room of a pod that was not bound yet is wanted for a more important
    /// one. It looks for another node soon.
    pub(super) fn binding_preempted(&mut self, binding: &Binding, now: Time) {
        let Binding { profile, state, node, .. } = binding;
        let pod = binding.latest.as_ref().unwrap_or(&binding.pod).clone();
        self.unreserve_and_forget(&pod, profile, state, node, now, |scheduler| {
            // No plugin's event would tell when it can go: it is tried again.
            let failure = Failure::Rejected(PluginSet::default());
            let reason = FailureReason::Unschedulable;
            scheduler.failed(&pod, failure, reason, "preempted".to_owned(), now);
        });
    }

    fn binding_rejected(&mut self, binding: &Binding, rejected: &Rejected, now: Time) {
        let Binding { profile, state, node, .. } = binding;
        let pod = binding.latest.as_ref().unwrap_or(&binding.pod).clone();
        let plugin = profile.plugin(rejected.plugin);
        self.unreserve_and_forget(&pod, profile, state, node, now, |scheduler| match plugin {
            Some(plugin) => scheduler.fail_rejected(&pod, plugin, rejected, now),
            None => {
                let message = rejected.rejection.reasons.join(", ");
                let reason = FailureReason::SchedulerError;
                scheduler.failed(&pod, Failure::Error, reason, message, now);
            }
        });
    }

    /// Gives up on bindings that the API server accepted and the watch never
    /// showed: the pods are tried again.
    pub(super) fn expire_assumed(&mut self, now: Time) {
        for uid in self.pods.overdue(now) {
            let Some(placed) = self.pods.remove(&mut self.cluster, &uid) else { continue };
            self.note(format!(
                "pod {}: its binding to {} was accepted and never seen; trying again",
                placed.pod.key, placed.node
            ));
            let pod = placed
                .latest
                .unwrap_or_else(|| Arc::new(PodInfo { node_name: None, ..(*placed.pod).clone() }));
            let change = Change::AssignedPod { old: Some(placed.pod), new: None };
            if pod.terminating {
                self.pods.forget_name(&pod.key, &uid);
            } else {
                self.queue.add(pod, &self.cluster, now);
            }
            self.happened(change, now);
        }
    }
}

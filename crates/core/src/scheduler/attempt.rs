//! One attempt to schedule a pod, up to the start of its binding.

use std::sync::Arc;

use steersman_api::name::Name;
use steersman_api::node_info::NodeIdx;
use steersman_api::pod::PodInfo;
use steersman_api::time::Time;
use steersman_framework::diagnosis::{Diagnosis, NodeRejection};
use steersman_framework::events::Change;
use steersman_framework::extensions::{CycleCtx, PrepareCtx};
use steersman_framework::observer::Observer;
use steersman_framework::state::CycleState;

use super::Scheduler;
use super::bindings::{Binding, Stage};
use crate::cycle::{Filtered, Inputs, Sampling, best, lot};
use crate::event::{Attempt, Effect, FailureReason, Outcome};
use crate::pods::PlacedState;
use crate::profile::{PluginIdx, PluginSet, Profile};
use crate::queue::{Entry, Failure};
use crate::runner::{AttemptError, Permitted, Rejected, Remedy, permit, reserve, score, unreserve};

/// What the judging half of the cycle came to.
enum Judged {
    Chosen(NodeIdx, CycleState),
    NoFit(Box<Filtered>, Box<Remedy>),
}

impl Scheduler {
    /// Tries the next pod of the queue. `None` when there is none to try now.
    pub fn schedule_next(
        &mut self,
        now: Time,
        observer: &mut dyn Observer,
    ) -> Option<(Attempt, Vec<Effect>)> {
        self.queue.advance(&self.cluster, now);
        let entry = self.queue.pop(now)?;
        self.cluster.refresh_order();
        observer.cycle_begins(entry.pod(), entry.queued.attempts);
        let attempt = self.attempt(&entry, now, observer);
        observer.cycle_ends(entry.pod());
        Some((attempt, std::mem::take(&mut self.effects)))
    }

    fn attempt(&mut self, entry: &Entry, now: Time, observer: &mut dyn Observer) -> Attempt {
        let pod = entry.pod().clone();
        let mut attempt = Attempt {
            pod: pod.clone(),
            number: entry.queued.attempts,
            n_evaluated: 0,
            n_feasible: 0,
            outcome: Outcome::Error(String::new()),
            preemption: None,
        };
        let Some(profile) = self.profiles.get(&pod.spec.scheduler_name).cloned() else {
            // Pods of other schedulers do not get into the queue.
            self.queue.remove(&pod.uid);
            attempt.outcome = Outcome::Error(format!(
                "no profile serves schedulerName {:?}",
                pod.spec.scheduler_name
            ));
            return attempt;
        };
        let judged = self.judge(&profile, &mut attempt, observer);
        observer.judged(&pod);
        attempt.outcome = match judged {
            Err(failed) => self.failed_with_error(&pod, &failed, now),
            Ok(Judged::NoFit(filtered, remedy)) => {
                attempt.preemption.clone_from(&remedy.preempt);
                let remedy = match self.only_tells_preemptions && remedy.preempt.is_some() {
                    true => Remedy::default(),
                    false => *remedy,
                };
                // Before the pod is back in the queue: there it may be held.
                let evictions = self.prepare_preemption(&pod, &remedy);
                let outcome = self.no_fit(&pod, *filtered, now);
                self.nominate_after_no_fit(&pod, &remedy, now);
                self.carry_out_preemption(&pod, &remedy, evictions, now);
                outcome
            }
            Ok(Judged::Chosen(node, state)) => {
                self.commit(&pod, &profile, node, state, now, observer)
            }
        };
        attempt
    }

    fn judge(
        &mut self,
        profile: &Profile,
        attempt: &mut Attempt,
        observer: &mut dyn Observer,
    ) -> Result<Judged, AttemptError> {
        let pod = &*attempt.pod;
        let lot = lot(self.seed, &pod.uid.0, attempt.number);
        let inputs = Inputs {
            profile,
            pod,
            cluster: &self.cluster,
            nominations: self.queue.nominations(),
            lot,
        };
        let n_nodes = self.cluster.nodes().len();
        let sampling = Sampling {
            start: if n_nodes == 0 { 0 } else { self.next_start % n_nodes },
            wanted: match profile.compares_nodes() {
                true => Sampling::wanted(profile.percentage_of_nodes_to_score, n_nodes),
                false => 1,
            },
        };
        let mut state = CycleState::new();
        let mut filtered = inputs.filter(&mut state, sampling, observer)?;
        attempt.n_evaluated = filtered.n_evaluated;
        attempt.n_feasible = filtered.feasible.len();
        self.next_start = sampling.start + filtered.n_evaluated;
        let mut notes = std::mem::take(&mut filtered.notes);
        let judged = match filtered.feasible.as_slice() {
            [] => {
                let mut remedy = inputs.remedy(&mut filtered, &state, observer);
                notes.append(&mut remedy.notes);
                Ok(Judged::NoFit(Box::new(filtered), Box::new(remedy)))
            }
            // With one node there is nothing to compare.
            [only] => Ok(Judged::Chosen(*only, state)),
            nodes => {
                let mut ctx = inputs.preparing(&mut state);
                let mut table = score(profile, &mut ctx, nodes, observer)?;
                for (_, scores) in inputs.asked().prioritize(nodes, &mut notes) {
                    table.add(&scores);
                }
                let node = best(&table.totals, lot).unwrap_or(nodes[0]);
                Ok(Judged::Chosen(node, state))
            }
        };
        self.effects.extend(notes.into_iter().map(Effect::Note));
        judged
    }

    fn nominate_after_no_fit(&mut self, pod: &Arc<PodInfo>, remedy: &Remedy, now: Time) {
        let Remedy { nominate, clear_nomination, .. } = remedy;
        let before = self.queue.nominations().get(&pod.uid);
        if let Some(node) = nominate {
            self.queue.nominate(pod.clone(), node.clone());
            self.effects.push(Effect::Nominate { pod: pod.clone(), node: Some(node.clone()) });
        } else if *clear_nomination && self.queue.nominations().node_of(&pod.uid).is_some() {
            self.queue.end_nomination(&pod.uid);
            self.effects.push(Effect::Nominate { pod: pod.clone(), node: None });
        }
        self.nomination_changed(before, now);
    }

    fn no_fit(&mut self, pod: &Arc<PodInfo>, filtered: Filtered, now: Time) -> Outcome {
        let message = filtered.diagnosis.full_message();
        let failure = Failure::Rejected(filtered.rejected_by);
        self.failed(pod, failure, FailureReason::Unschedulable, message, now);
        Outcome::Unschedulable(Box::new(filtered.diagnosis))
    }

    fn failed_with_error(
        &mut self,
        pod: &Arc<PodInfo>,
        failed: &AttemptError,
        now: Time,
    ) -> Outcome {
        let message = failed.to_string();
        let reason = FailureReason::SchedulerError;
        self.failed(pod, Failure::Error, reason, message.clone(), now);
        Outcome::Error(message)
    }

    /// Takes the node for the pod, and sends it on its way if nobody objects.
    fn commit(
        &mut self,
        pod: &Arc<PodInfo>,
        profile: &Arc<Profile>,
        idx: NodeIdx,
        mut state: CycleState,
        now: Time,
        observer: &mut dyn Observer,
    ) -> Outcome {
        let Some(node) = self.cluster.nodes().get(idx).map(|n| n.name().clone()) else {
            let error = format!("the chosen node {idx:?} does not exist");
            self.failed(pod, Failure::Error, FailureReason::SchedulerError, error.clone(), now);
            return Outcome::Error(error);
        };
        let assumed = Arc::new(PodInfo { node_name: Some(node.clone()), ..(**pod).clone() });
        let nomination = self.queue.nominations().get(&pod.uid);
        self.queue.end_nomination(&pod.uid);
        self.cluster.preemptions.end(&pod.uid);
        self.pods.place(&mut self.cluster, assumed.clone(), node.clone(), PlacedState::Assumed);
        self.happened(Change::AssignedPod { old: None, new: Some(assumed) }, now);
        self.nomination_changed(nomination.filter(|before| before.node != node), now);

        let mut ctx = PrepareCtx { pod, cluster: &self.cluster, state: &mut state };
        let permitted = match reserve(profile, &mut ctx, &node, observer) {
            Ok(None) => permit(profile, &mut ctx, &node, observer),
            Ok(Some((plugin, rejected))) => Ok(Permitted::Reject(plugin, rejected)),
            Err(failed) => Err(failed),
        };
        let stage = match permitted {
            Ok(Permitted::Allow) => Stage::Running,
            Ok(Permitted::Wait(waits)) => Stage::waiting(waits, now),
            Ok(Permitted::Reject(plugin, rejected)) => {
                self.unreserve_and_forget(pod, profile, &state, &node, now, |scheduler| {
                    scheduler.fail_rejected(pod, plugin, &rejected, now);
                });
                let message = rejected.rejection.reasons.join(", ");
                return Outcome::Rejected { node, plugin: rejected.plugin, message };
            }
            Err(failed) => {
                let message = failed.to_string();
                self.unreserve_and_forget(pod, profile, &state, &node, now, |scheduler| {
                    scheduler.failed_with_error(pod, &failed.into(), now);
                });
                return Outcome::Error(message);
            }
        };
        self.start(pod, profile, node, state, stage)
    }

    fn start(
        &mut self,
        pod: &Arc<PodInfo>,
        profile: &Arc<Profile>,
        node: Name,
        state: CycleState,
        stage: Stage,
    ) -> Outcome {
        let ctx = CycleCtx { pod, cluster: &self.cluster, state: &state };
        let takes_a_while = matches!(stage, Stage::Waiting(_))
            || profile.pre_bind.iter().any(|slot| slot.plugin.has_work(&ctx, &node));
        let is_told = pod.nominated_node.as_ref() == Some(&node);
        if self.tells_expected_nodes && takes_a_while && !is_told {
            // Others should know where the pod is expected.
            self.effects.push(Effect::Nominate { pod: pod.clone(), node: Some(node.clone()) });
        }
        self.tickets += 1;
        let binding = Binding {
            pod: pod.clone(),
            profile: profile.clone(),
            node: node.clone(),
            state: Arc::new(state),
            ticket: self.tickets,
            recall: Arc::default(),
            stage,
            latest: None,
            fate: None,
            flight: self.flight_to_record(&pod.uid),
        };
        let outcome = match &binding.stage {
            Stage::Waiting(waits) => {
                let plugins = waits.iter().map(|(plugin, wait)| (*plugin, wait.timeout)).collect();
                self.effects.push(Effect::Waiting { pod: pod.clone(), plugins });
                Outcome::Waiting(node)
            }
            Stage::Running => {
                self.effects.push(Effect::StartBinding(binding.cycle()));
                Outcome::Assumed(node)
            }
        };
        self.bindings.insert(pod.uid.clone(), binding);
        outcome
    }

    /// Gives back what an assumed pod took: its reservations in reverse order,
    /// then its room. `then` deals with the pod itself, before others hear that
    /// the room is free.
    pub(super) fn unreserve_and_forget(
        &mut self,
        pod: &Arc<PodInfo>,
        profile: &Profile,
        state: &CycleState,
        node: &Name,
        now: Time,
        then: impl FnOnce(&mut Self),
    ) {
        for failed in unreserve(profile, pod, &self.cluster, state, node) {
            self.note(format!("pod {}: undoing a reservation: {failed}", pod.key));
        }
        let forgotten = self.pods.remove(&mut self.cluster, &pod.uid);
        then(self);
        if let Some(forgotten) = forgotten {
            self.happened(Change::AssignedPod { old: Some(forgotten.pod), new: None }, now);
        }
    }

    /// A plugin said no after a node was chosen.
    pub(super) fn fail_rejected(
        &mut self,
        pod: &Arc<PodInfo>,
        plugin: PluginIdx,
        rejected: &Rejected,
        now: Time,
    ) {
        let mut plugins = PluginSet::default();
        plugins.insert(plugin);
        // The reference reports these as if the chosen node were the only one.
        let node = NodeRejection { plugin: rejected.plugin, rejection: rejected.rejection.clone() };
        let diagnosis =
            Diagnosis { n_nodes: 1, rejected: [(NodeIdx(0), node)].into(), ..Diagnosis::default() };
        let reason = FailureReason::Unschedulable;
        self.failed(pod, Failure::Rejected(plugins), reason, diagnosis.message(), now);
    }

    /// An attempt failed: back to the queue, and tell the user.
    pub(super) fn failed(
        &mut self,
        pod: &Arc<PodInfo>,
        failure: Failure,
        reason: FailureReason,
        message: String,
        now: Time,
    ) {
        self.record_failure(pod, reason, self.flight_to_record(&pod.uid));
        // Meanwhile somebody may have begun to delete it.
        if self.queue.pod(&pod.uid).is_some_and(|latest| latest.terminating) {
            self.pod_deleted(&pod.uid, now);
        } else {
            self.queue.fail(&pod.uid, failure, &self.cluster, now);
        }
        let (pod, bound_on) = (pod.clone(), None);
        self.effects.push(Effect::FailedScheduling { pod, reason, message, bound_on });
    }
}

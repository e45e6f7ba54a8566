//! Making room: evictions are asked for, and the pod that waits for the room
//! is tried again when it is there. The states are those of
//! [`steersman_framework::cluster::Preemptions`].

use std::collections::BTreeSet;
use std::sync::Arc;

use steersman_api::key::PodUid;
use steersman_api::name::Name;
use steersman_api::pod::PodInfo;
use steersman_api::time::Time;
use steersman_framework::cluster::{Departure, UnderWay};
use steersman_framework::events::Change;

use super::Scheduler;
use super::bindings::Stage;
use crate::event::Effect;
use crate::eviction::{Eviction, EvictionReport};
use crate::queue::{Cause, WakeReason};
use crate::runner::Remedy;

/// How the victims of a preemption have to be sent away.
#[derive(Debug, Default)]
pub(super) struct Evictions {
    ticket: u64,
    /// Through the API server.
    delete: Vec<Arc<PodInfo>>,
    /// They wait at Permit.
    reject: Vec<Arc<PodInfo>>,
    /// Their binding cycles were called off in time.
    recalled: Vec<Arc<PodInfo>>,
}

/// What a change means to pods that wait for room.
pub(super) enum News {
    Nothing,
    Leaves(PodUid),
    Terminates(PodUid),
    NodeChanged(Name),
    NodeGone(Name),
}

impl News {
    pub(super) fn of(change: &Change) -> Self {
        match change {
            Change::AssignedPod { old: Some(old), new: None } => Self::Leaves(old.uid.clone()),
            Change::AssignedPod { new: Some(new), .. } if new.terminating => {
                Self::Terminates(new.uid.clone())
            }
            Change::Node { old: Some(old), new: None } => Self::NodeGone(old.name.clone()),
            Change::Node { old: Some(old), .. } if change.event().is_some() => {
                Self::NodeChanged(old.name.clone())
            }
            _ => Self::Nothing,
        }
    }
}

impl Scheduler {
    /// Notes whom the pod waits for, from now on, and finds out how to send
    /// them away.
    pub(super) fn prepare_preemption(&mut self, pod: &Arc<PodInfo>, remedy: &Remedy) -> Evictions {
        let mut evictions = Evictions::default();
        if let Some(preemption) = &remedy.preempt {
            self.tickets += 1;
            evictions.ticket = self.tickets;
            for victim in preemption.victims.iter().filter(|victim| !victim.terminating) {
                self.sort_victim(victim, &mut evictions);
            }
            let it = UnderWay {
                node: preemption.node.clone(),
                victims: preemption.victims.iter().map(|victim| victim.uid.clone()).collect(),
                requested: evictions.delete.iter().map(|victim| victim.uid.clone()).collect(),
                ticket: evictions.ticket,
            };
            self.cluster.preemptions.begin(&pod.uid, it);
        } else if !remedy.wait_for.is_empty() {
            let nominated = self.queue.nominations().node_of(&pod.uid);
            let node = nominated.or(pod.nominated_node.as_ref()).cloned().unwrap_or_default();
            let victims = remedy.wait_for.iter().cloned().collect();
            let it = UnderWay { node, victims, requested: BTreeSet::new(), ticket: 0 };
            self.cluster.preemptions.begin(&pod.uid, it);
        } else if remedy.clear_nomination {
            self.cluster.preemptions.end(&pod.uid);
        }
        evictions
    }

    fn sort_victim(&self, victim: &Arc<PodInfo>, evictions: &mut Evictions) {
        let binding = self.bindings.get(&victim.uid).filter(|binding| binding.fate.is_none());
        let group = match binding {
            Some(binding) if matches!(binding.stage, Stage::Waiting(_)) => &mut evictions.reject,
            Some(binding) if binding.recall.recall() => &mut evictions.recalled,
            _ => &mut evictions.delete,
        };
        group.push(victim.clone());
    }

    /// Sends the victims away. The pod is back in the queue.
    pub(super) fn carry_out_preemption(
        &mut self,
        pod: &Arc<PodInfo>,
        remedy: &Remedy,
        evictions: Evictions,
        now: Time,
    ) {
        let Some(preemption) = &remedy.preempt else { return };
        let node = &preemption.node;
        self.clear_lower_nominations(pod, node, now);
        let Evictions { ticket, delete: victims, reject, recalled } = evictions;
        if !victims.is_empty() {
            let (preemptor, node) = (pod.clone(), node.clone());
            self.effects.push(Effect::Evict(Eviction { preemptor, node, victims, ticket }));
        }
        for victim in reject.iter().chain(&recalled) {
            let (preemptor, node) = (pod.clone(), node.clone());
            self.effects.push(Effect::Preempted { pod: victim.clone(), preemptor, node });
        }
        for victim in reject {
            if let Some(binding) = self.bindings.remove(&victim.uid) {
                self.binding_preempted(&binding, now);
            }
        }
    }

    /// Pods of lower priority that hoped for the node had better look for
    /// another one at once.
    fn clear_lower_nominations(&mut self, pod: &PodInfo, node: &Name, now: Time) {
        for lower in self.queue.nominations().below(node, pod.spec.priority) {
            let before = self.queue.nominations().get(&lower.uid);
            self.queue.end_nomination(&lower.uid);
            self.cluster.preemptions.end(&lower.uid);
            self.nomination_changed(before, now);
            self.bring_back(&lower.uid, "NominationCleared", now);
            self.effects.push(Effect::Nominate { pod: lower, node: None });
        }
    }

    pub(super) fn eviction_finished(&mut self, report: EvictionReport, now: Time) {
        let EvictionReport { preemptor, ticket, failed } = report;
        // The pod may have gone elsewhere, or be waiting for others by now.
        let known = self.cluster.preemptions.get(&preemptor);
        if known.is_none_or(|it| it.ticket != ticket) {
            return;
        }
        if let Some(error) = failed {
            self.cluster.preemptions.end(&preemptor);
            if let Some(pod) = self.queue.pod(&preemptor) {
                let note =
                    format!("pod {}: an eviction that it waits for failed: {error}", pod.key);
                self.note(note);
            }
            self.queue.retry_after_error(&preemptor, &self.cluster, now);
        } else if self.cluster.preemptions.requests_ended(&preemptor) {
            self.queue.try_gate(&preemptor, &self.cluster, now);
        }
    }

    /// A pod that was to give way is on its node for good: those who wait for
    /// it look for another way.
    pub(super) fn stays_after_all(&mut self, victim: &PodUid, now: Time) {
        let waits = |it: &UnderWay| it.victims.contains(victim);
        let waiting = self.cluster.preemptions.iter().filter(|(_, it)| waits(it));
        let waiting: Vec<PodUid> = waiting.map(|(preemptor, _)| preemptor.clone()).collect();
        for preemptor in waiting {
            self.cluster.preemptions.end(&preemptor);
            self.bring_back(&preemptor, "VictimStays", now);
        }
    }

    /// Those who wait for room hear what happened to it.
    pub(super) fn tell_preemptors(&mut self, news: News, now: Time) {
        let departures = match news {
            News::Nothing => return,
            News::Leaves(pod) => self.cluster.preemptions.leaves(&pod),
            News::Terminates(pod) => self.cluster.preemptions.terminates(&pod),
            News::NodeChanged(node) => {
                for preemptor in self.waiting_on(&node) {
                    self.bring_back(&preemptor, "NodeUpdate", now);
                }
                return;
            }
            News::NodeGone(node) => {
                for preemptor in self.waiting_on(&node) {
                    self.cluster.preemptions.end(&preemptor);
                    self.bring_back(&preemptor, "NodeDelete", now);
                }
                return;
            }
        };
        for departure in departures {
            match departure {
                Departure::Released(pod) => self.queue.try_gate(&pod, &self.cluster, now),
                Departure::AllGone(pod) => self.bring_back(&pod, "AssignedPodDelete", now),
            }
        }
    }

    fn waiting_on(&self, node: &Name) -> Vec<PodUid> {
        let there = self.cluster.preemptions.iter().filter(|(_, it)| it.node == *node);
        there.map(|(preemptor, _)| preemptor.clone()).collect()
    }

    fn bring_back(&mut self, pod: &PodUid, event: &'static str, now: Time) {
        let reason = WakeReason { event: Cause::Other(event), plugin: "preemption" };
        self.queue.bring_back(pod, reason, &self.cluster, now);
    }
}

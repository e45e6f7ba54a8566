//! What becomes of the scheduler's effects.

use steersman_api::key::PodUid;
use steersman_core::{Effect, Event, Eviction, Outcome};
use steersman_framework::extender::EXTENDERS;
use steersman_framework::observer::Unobserved;

use crate::api::node_of;
use crate::desk::Running;
use crate::plugins::{PANIC_MESSAGE, RESERVES};
use crate::run::Run;

impl Run {
    /// Hands an event to the scheduler and carries out what it wants.
    pub(crate) fn handle(&mut self, event: Event) -> Result<(), String> {
        self.touched = true;
        let effects = self.scheduler.handle(event, self.now);
        self.carry_out(effects)
    }

    /// Lets the scheduler try one pod; whether there was one.
    pub(crate) fn schedule_one(&mut self) -> Result<bool, String> {
        self.touched = true;
        let preemptions = &self.scheduler.cluster().preemptions;
        let held = preemptions.iter().map(|(pod, _)| pod).filter(|pod| preemptions.holds(pod));
        let held: Vec<PodUid> = held.cloned().collect();
        let Some((attempt, effects)) = self.scheduler.schedule_next(self.now, &mut Unobserved)
        else {
            return Ok(false);
        };
        let uid = attempt.pod.uid.to_string();
        self.record(format!(
            "{:?} {uid} try {}: {} of {} nodes: {:?}",
            self.now.since_start(),
            attempt.number,
            attempt.n_feasible,
            attempt.n_evaluated,
            attempt.outcome
        ));
        self.outcome.tally.attempts += 1;
        if held.contains(&attempt.pod.uid) {
            return Err(format!("{uid} was tried while evictions for it were being requested"));
        }
        if let Some(preemption) = &attempt.preemption {
            self.told.check_preemption(&uid, preemption)?;
            if self.checks {
                self.check_fits_without(&attempt.pod, preemption)?;
            }
        }
        match &attempt.outcome {
            Outcome::Assumed(node) | Outcome::Waiting(node) | Outcome::Rejected { node, .. } => {
                self.told.assume(&uid, node)?;
                self.outcome.tally.with_claims += u64::from(attempt.pod.claims().next().is_some());
            }
            Outcome::Error(message) if message.contains(PANIC_MESSAGE) => {
                self.outcome.tally.panics += 1;
            }
            Outcome::Unschedulable(diagnosis) => {
                let refused = diagnosis.unschedulable_plugins.contains(EXTENDERS);
                self.outcome.tally.refused += u64::from(refused);
            }
            Outcome::Error(_) => {}
        }
        self.carry_out(effects)?;
        Ok(true)
    }

    pub(crate) fn carry_out(&mut self, effects: Vec<Effect>) -> Result<(), String> {
        self.note_reservations()?;
        for effect in effects {
            self.record(format!("  {}", brief(&effect)));
            self.carry_out_one(effect)?;
        }
        Ok(())
    }

    fn carry_out_one(&mut self, effect: Effect) -> Result<(), String> {
        match effect {
            Effect::StartBinding(cycle) => {
                let uid = cycle.pod().uid.to_string();
                if self.is_being_bound(&uid) {
                    return Err(format!("{uid} is bound twice at the same time"));
                }
                self.waiting.remove(&uid);
                self.n_cycles += 1;
                self.claims_at_start.insert(self.n_cycles, self.api.n_claims);
                self.latest_cycles.insert(uid, self.n_cycles);
                self.cycles.push(Running::new(self.n_cycles, cycle));
            }
            Effect::Scheduled { pod, node } => {
                self.outcome.tally.bound += 1;
                let uid = pod.uid.to_string();
                let held = self.ledger.remove(&uid).unwrap_or_default();
                self.promises.end(&uid);
                if held.len() != RESERVES.len() {
                    return Err(format!("{uid} is bound with the reservations {held:?}"));
                }
                let there = self.api.pods.get(&uid).map(|pod| node_of(pod).map(str::to_owned));
                if there.is_some_and(|there| there.as_deref() != Some(&*node)) {
                    return Err(format!("{uid} is said to be on {node}"));
                }
            }
            Effect::FailedScheduling { pod, bound_on, .. } => {
                let uid = pod.uid.to_string();
                self.waiting.remove(&uid);
                match bound_on {
                    Some(node) => self.check_bound_by_another(&uid, &node)?,
                    None => self.told.forget(&uid),
                }
                if let Some(held) = self.ledger.get(&uid) {
                    return Err(format!("{uid} has failed with the reservations {held:?}"));
                }
            }
            Effect::Nominate { pod, node } => {
                // Sometimes the patch is lost.
                if self.rng.chance(60) {
                    self.api.change_pod(&pod.uid.to_string(), |pod| match node {
                        Some(node) => pod["status"]["nominatedNodeName"] = (*node).into(),
                        None => pod["status"]["nominatedNodeName"] = serde_json::Value::Null,
                    });
                }
            }
            Effect::Waiting { pod, plugins } => {
                self.waiting.insert(pod.uid.to_string(), plugins.into_keys().collect());
            }
            Effect::Evict(eviction) => {
                if let Some(late) = eviction.victims.iter().find(|victim| victim.terminating) {
                    return Err(format!("{} is evicted while being deleted", late.uid));
                }
                self.outcome.tally.evictions += 1;
                self.evictions.push(eviction);
            }
            Effect::Preempted { pod, preemptor, .. } => {
                if pod.spec.priority >= preemptor.spec.priority {
                    return Err(format!("{} gives way to {}", pod.uid, preemptor.uid));
                }
                self.outcome.tally.called_off += 1;
            }
            Effect::Note(note) => {
                self.outcome.tally.left_out += u64::from(note.contains("is left out"));
            }
        }
        Ok(())
    }

    /// The scheduler says that the pod's latest binding cycle did not bind it. An
    /// earlier one may have, if its answer was lost.
    fn check_bound_by_another(&mut self, uid: &str, node: &str) -> Result<(), String> {
        self.outcome.tally.overtaken += 1;
        let bound_by = self.bound_by.get(uid);
        if bound_by.is_some() && bound_by == self.latest_cycles.get(uid) {
            return Err(format!("{uid} was bound by the scheduler, not by another client"));
        }
        match self.api.pods.get(uid).map(|pod| node_of(pod)) {
            Some(there) if there != Some(node) => Err(format!("{uid} is said to be on {node}")),
            _ => Ok(()),
        }
    }

    /// Whether a binding cycle of the pod runs, or was not reported yet.
    pub(crate) fn is_being_bound(&self, uid: &str) -> bool {
        self.cycles.iter().any(|cycle| cycle.uid == uid)
            || self.reports.iter().any(|report| &*report.pod().0 == uid)
    }

    /// Reservations are made in order and undone in reverse.
    fn note_reservations(&mut self) -> Result<(), String> {
        while let Ok(news) = self.reservations.try_recv() {
            let uid = news.pod.to_string();
            let held = self.ledger.entry(uid.clone()).or_default();
            if !news.undone {
                if RESERVES.get(held.len()) != Some(&news.plugin) {
                    return Err(format!("{news:?} after {held:?}"));
                }
                held.push(news);
                continue;
            }
            // Plugins that were not asked are told as well.
            if let Some(at) = held.iter().position(|h| h.plugin == news.plugin) {
                if at + 1 != held.len() || held[at].node != news.node {
                    return Err(format!("{news:?} while {held:?}"));
                }
                held.pop();
            }
            if held.is_empty() {
                self.ledger.remove(&uid);
                self.promises.end(&uid);
            }
        }
        Ok(())
    }
}

/// An effect without the whole pod.
fn brief(effect: &Effect) -> String {
    match effect {
        Effect::StartBinding(cycle) => format!("{cycle:?}"),
        Effect::Scheduled { pod, node } => format!("{} is on {node}", pod.uid),
        Effect::FailedScheduling { pod, reason, message, bound_on } => {
            let bound_on = bound_on.as_ref().map(|node| format!(", bound to {node} by another"));
            format!("{}: {}: {message}{}", pod.uid, reason.name(), bound_on.unwrap_or_default())
        }
        Effect::Nominate { pod, node } => format!("{} hopes for {node:?}", pod.uid),
        Effect::Waiting { pod, plugins } => format!("{} waits for {plugins:?}", pod.uid),
        Effect::Evict(eviction) => {
            let victims: Vec<String> =
                eviction.victims.iter().map(|victim| victim.uid.to_string()).collect();
            let Eviction { preemptor, node, .. } = eviction;
            format!("{} evicts {} from {node}", preemptor.uid, victims.join(", "))
        }
        Effect::Preempted { pod, preemptor, node } => {
            format!("{} gives {node} up for {}", pod.uid, preemptor.uid)
        }
        Effect::Note(note) => note.clone(),
    }
}

//! What must be true at every moment.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use steersman_api::pod::PodInfo;
use steersman_core::{Evaluation, Event, Place};
use steersman_framework::observer::Unobserved;

use crate::api::{Stream, has_ended, is_terminating, node_of};
use crate::plugins::{PRE_BINDS, RESERVES, WAITS};
use crate::run::Run;
use crate::told::{State, is_ours};

impl Run {
    /// All checks; the dear ones if asked for.
    pub(crate) fn check(&mut self, dear: bool) -> Result<(), String> {
        let broken = self.scheduler.broken_invariants();
        if !broken.is_empty() {
            return Err(broken.join("; "));
        }
        self.told.compare(&self.scheduler)?;
        self.check_ledger()?;
        if dear {
            self.check_waking()?;
            if self.eyes.chance(25) {
                self.check_signatures()?;
            }
        }
        Ok(())
    }

    /// Only pods on their way hold reservations, and those hold all.
    fn check_ledger(&self) -> Result<(), String> {
        for (uid, held) in &self.ledger {
            let state = self.told.pods.get(uid).map(|told| &told.state);
            let assumed = matches!(state, Some(State::Assumed { .. }));
            if !assumed && !self.is_being_bound(uid) {
                return Err(format!("{uid} is {state:?} and holds {held:?}"));
            }
        }
        for (uid, told) in &self.told.pods {
            let held = self.ledger.get(uid).map_or(0, Vec::len);
            if matches!(told.state, State::Assumed { .. }) && held != RESERVES.len() {
                return Err(format!("{uid} is {:?} and holds {held} reservations", told.state));
            }
        }
        Ok(())
    }

    /// No pod that could run is left waiting for an event that has been.
    pub(crate) fn check_waking(&mut self) -> Result<(), String> {
        let after_the_choice =
            |plugin: &&str| RESERVES.contains(plugin) || [WAITS, PRE_BINDS].contains(plugin);
        let pending = self.scheduler.pending();
        let waiting = pending
            .iter()
            .filter(|pending| pending.place == Place::Unschedulable)
            .filter(|pending| !pending.because.iter().any(after_the_choice))
            .map(|pending| (pending.pod.clone(), pending.because.join(", ")));
        let waiting: Vec<(Arc<PodInfo>, String)> = waiting.collect();
        for (pod, because) in waiting {
            let Some(evaluation) = self.evaluate(&pod) else { continue };
            if !evaluation.feasible.is_empty() {
                let nodes: Vec<&str> = evaluation.feasible.keys().map(|n| &**n).collect();
                return Err(format!(
                    "{} ({}) waits because of {because}, and would fit on {nodes:?}",
                    pod.uid, pod.key
                ));
            }
        }
        Ok(())
    }

    fn evaluate(&mut self, pod: &PodInfo) -> Option<Evaluation> {
        self.outcome.tally.evaluated += 1;
        self.scheduler.evaluate(pod, &mut Unobserved).ok()
    }

    /// Pods of equal signature get equal answers.
    fn check_signatures(&mut self) -> Result<(), String> {
        let mut alike: BTreeMap<String, Vec<Arc<PodInfo>>> = BTreeMap::new();
        for uid in self.told.pods.keys() {
            let Some(pod) = self.scheduler.pending_pod(&uid.as_str().into()) else { continue };
            // Who is nominated where, and who gives way to whom, is the core's
            // business and in no signature.
            if pod.nominated_node.is_some()
                || self.scheduler.place_of(&pod.uid) == Some(Place::InFlight)
            {
                continue;
            }
            if let Some(signature) = self.scheduler.signature(pod) {
                let key = format!("{} {signature}", pod.spec.priority);
                alike.entry(key).or_default().push(pod.clone());
            }
        }
        // Copies of one template are alike for certain; others are worth more.
        let pairs = alike.values().flat_map(|pods| pods.iter().map(|pod| (&pods[0], pod)));
        let (copies, others): (Vec<_>, Vec<_>) = pairs
            .filter(|(one, other)| one.uid != other.uid)
            .partition(|(one, other)| one.spec == other.spec && one.labels == other.labels);
        let pair = self.eyes.pick_any(others).or_else(|| self.eyes.pick_any(copies));
        let Some((one, other)) = pair.map(|(one, other)| (one.clone(), other.clone())) else {
            return Ok(());
        };
        self.outcome.tally.equal_pairs += 1;
        let answers = [&one, &other].map(|pod| self.evaluate(pod).map(|e| format!("{e:?}")));
        if answers[0] != answers[1] {
            return Err(format!("{} and {} are alike, and get {answers:?}", one.uid, other.uid));
        }
        Ok(())
    }

    /// Lets everything come to its end, and looks for pods that were lost.
    pub(crate) fn finish(&mut self) -> Result<(), String> {
        self.resync()?;
        for _ in 0..50 {
            for stream in [Stream::Nodes, Stream::Others, Stream::Pods] {
                while let Some(event) = self.api.next(stream) {
                    self.tell(&event)?;
                }
            }
            while !self.cycles.is_empty() {
                self.run_cycle()?;
            }
            while !self.reports.is_empty() {
                self.report()?;
            }
            for (uid, plugins) in self.waiting.clone() {
                for plugin in plugins {
                    self.handle(Event::PermitAllowed { pod: uid.as_str().into(), plugin })?;
                }
            }
            // Pods that meet an error every time keep coming back.
            for _ in 0..100 {
                if !self.schedule_one()? {
                    break;
                }
            }
            self.check(true)?;
            self.advance(Duration::from_secs(11))?;
        }
        let lost: Vec<&String> = self
            .api
            .pods
            .iter()
            .filter(|(uid, pod)| {
                let alive = is_ours(pod) && !has_ended(pod) && !is_terminating(pod);
                let waits = self.scheduler.place_of(&uid.as_str().into()).is_some();
                alive && node_of(pod).is_none() && !waits
            })
            .map(|(uid, _)| uid)
            .collect();
        if lost.is_empty() { Ok(()) } else { Err(format!("nobody knows of {lost:?}")) }
    }
}

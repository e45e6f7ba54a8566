//! What must be true at every moment.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use steersman_api::name::Name;
use steersman_api::object::ClusterObject;
use steersman_api::pod::PodInfo;
use steersman_api::time::Time;
use steersman_core::{Evaluation, Event, Place, Scheduler, Setup};
use steersman_framework::diagnosis::Diagnosis;
use steersman_framework::extender::Extender;
use steersman_framework::observer::Unobserved;
use steersman_framework::verdict::Preemption;
use steersman_testing::decoded;

use crate::api::{Stream, has_ended, is_terminating, node_of};
use crate::plugins::{PRE_BINDS, RESERVES, WAITS, config, registry};
use crate::run::Run;
use crate::told::{State, is_ours};

impl Run {
    /// All checks, if asked for and if the scheduler had anything to do.
    pub(crate) fn check(&mut self) -> Result<(), String> {
        if !self.checks || !std::mem::take(&mut self.touched) {
            return Ok(());
        }
        let broken = self.scheduler.broken_invariants();
        if !broken.is_empty() {
            return Err(broken.join("; "));
        }
        self.told.compare(&self.scheduler)?;
        self.check_ledger()?;
        self.check_waking()?;
        if self.eyes.chance(25) {
            self.check_signatures()?;
        }
        if self.eyes.chance(10) {
            self.check_nothing_is_set_aside()?;
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
            let has_preempted = self.scheduler.cluster().preemptions.get(&pod.uid).is_some();
            if let Some(preemption) = &evaluation.preemption
                && !has_preempted
            {
                return Err(format!(
                    "{} ({}) waits because of {because}, and could preempt on {}",
                    pod.uid, pod.key, preemption.node
                ));
            }
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

    /// A scheduler that starts from a cluster without the victims lets the pod
    /// onto the node, as this one foretold.
    pub(crate) fn check_fits_without(
        &self,
        pod: &PodInfo,
        preemption: &Preemption,
    ) -> Result<(), String> {
        let gone: Vec<String> = preemption.victims.iter().map(|v| v.uid.to_string()).collect();
        // Extenders have a say only when the victims are gone.
        let mut other = self.newcomer(&gone, &[]);
        // A nominated node that fits would keep the others from being looked at.
        let pod = PodInfo { nominated_node: None, ..pod.clone() };
        let evaluation = other.evaluate(&pod, &mut Unobserved)?;
        if evaluation.feasible.contains_key(&preemption.node) {
            return Ok(());
        }
        let message = evaluation.diagnosis.message();
        Err(format!("without {gone:?}, {} does not fit on {}: {message}", pod.uid, preemption.node))
    }

    /// A scheduler that starts now, with the placed pods but for those `gone`.
    fn newcomer(&self, gone: &[String], extenders: &[Arc<dyn Extender>]) -> Scheduler {
        let (sender, _receiver) = channel();
        let registry = registry(&sender);
        let config = config(&registry);
        let setup = Setup { extenders, ..Setup::new(&config, &registry) };
        let (mut newcomer, _) = Scheduler::new(setup).expect("a scheduler");
        for object in self.told.as_list(gone) {
            newcomer.handle(Event::Upsert(decoded(object)), Time::ZERO);
        }
        newcomer
    }

    /// While no pod with claims is being bound, nothing is set aside for any:
    /// they get the answers of a scheduler that starts now.
    fn check_nothing_is_set_aside(&mut self) -> Result<(), String> {
        let is_under_way = |uid: &String| self.ledger.contains_key(uid) || self.is_being_bound(uid);
        let mut claimants =
            self.told.pods.iter().filter(|(_, told)| told.latest["spec"].get("volumes").is_some());
        let pods: Vec<Arc<PodInfo>> = self
            .told
            .pods
            .keys()
            .filter_map(|uid| self.scheduler.pending_pod(&uid.as_str().into()).cloned())
            .filter(|pod| pod.claims().next().is_some() && !self.is_nominated(pod))
            .collect();
        // A pod that is gone may have had claims while its cycle still runs.
        let is_gone = |uid: &String| !self.told.pods.contains_key(uid);
        let is_any_gone = self.ledger.keys().any(is_gone);
        if pods.is_empty() || is_any_gone || claimants.any(|(uid, _)| is_under_way(uid)) {
            return Ok(());
        }
        let mut newcomer = self.newcomer(&[], &self.extenders);
        // Who is nominated where matters, and no object is sure to tell.
        for uid in self.told.pods.keys() {
            let Some(pod) = self.scheduler.pending_pod(&uid.as_str().into()) else { continue };
            let Some(node) = self.scheduler.nominated_node(&pod.uid).cloned() else { continue };
            let nominated = PodInfo { nominated_node: Some(node), ..PodInfo::clone(pod) };
            newcomer.handle(Event::Upsert(ClusterObject::Pod(Arc::new(nominated))), Time::ZERO);
        }
        for pod in pods {
            self.outcome.tally.compared += 1;
            // Slots of nodes differ, so that the nodes are compared by name.
            let said = |e: Evaluation| {
                let feasible: Vec<Name> = e.feasible.into_keys().collect();
                format!("{feasible:?} {}", e.diagnosis.message())
            };
            let theirs = newcomer.evaluate(&pod, &mut Unobserved).ok().map(said);
            let ours = self.evaluate(&pod).map(said);
            if ours != theirs {
                return Err(format!("{}: {ours:?}, and afresh {theirs:?}", pod.uid));
            }
        }
        Ok(())
    }

    fn is_nominated(&self, pod: &PodInfo) -> bool {
        self.scheduler.nominated_node(&pod.uid).is_some() || pod.nominated_node.is_some()
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
                || self.scheduler.nominated_node(&pod.uid).is_some()
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
        let answers = [&one, &other].map(|pod| self.evaluate(pod).map(without_preemption));
        if answers[0] != answers[1] {
            return Err(format!("{} and {} are alike, and get {answers:?}", one.uid, other.uid));
        }
        Ok(())
    }

    /// Lets everything come to its end, and looks for pods that were lost.
    pub(crate) fn finish(&mut self) -> Result<(), String> {
        self.resync()?;
        self.patience = 30;
        for _ in 0..50 {
            self.control_ephemeral()?;
            for _ in 0..10 {
                self.control_volumes()?;
            }
            for stream in [Stream::Nodes, Stream::Others, Stream::Pods] {
                while let Some(event) = self.api.next(stream) {
                    self.tell(&event)?;
                }
            }
            for _ in 0..2 * self.cycles.len() {
                self.run_cycle()?;
            }
            while !self.reports.is_empty() {
                self.report()?;
            }
            while !self.evictions.is_empty() {
                self.run_eviction()?;
            }
            while !self.eviction_reports.is_empty() {
                self.report_eviction()?;
            }
            self.remove_terminating()?;
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
            self.check()?;
            self.advance(Duration::from_secs(11))?;
        }
        if !self.cycles.is_empty() {
            return Err(format!("{} binding cycles do not end", self.cycles.len()));
        }
        let waiting = self.scheduler.cluster().preemptions.iter();
        let in_vain = waiting.filter(|(_, it)| {
            !it.victims.iter().any(|victim| self.api.pods.contains_key(&*victim.0))
        });
        if let Some((pod, it)) = in_vain.into_iter().next() {
            return Err(format!("{pod} waits for {it:?}, and nobody is there"));
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

/// What is said of a pod's nodes. What preemption says depends on who is
/// nominated where.
fn without_preemption(evaluation: Evaluation) -> String {
    let Diagnosis { rejected, others, pre_filter_message, .. } = evaluation.diagnosis;
    format!("{:?} {rejected:?} {others:?} {pre_filter_message:?}", evaluation.feasible)
}

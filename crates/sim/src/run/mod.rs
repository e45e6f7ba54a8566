//! The offline driver: feeds objects to the core, lets it schedule everything
//! that waits, and carries out its effects on paper.

mod explain;
mod volumes;
mod world;

use std::collections::BTreeMap;
use std::sync::Arc;

use steersman_api::key::PodUid;
use steersman_api::name::Name;
use steersman_api::node_info::NodeIdx;
use steersman_api::object::ClusterObject;
use steersman_api::pod::PodInfo;
use steersman_api::time::Time;
use steersman_config::Config;
use steersman_core::{
    Attempt, BindingCycle, Effect, Evaluation, Event, Eviction, Outcome, Place, Scheduler, Setup,
    SetupError,
};
use steersman_framework::diagnosis::{Diagnosis, NodeRejection, OthersRejection};
use steersman_framework::observer::{Observer, Unobserved};
use steersman_framework::registry::Registry;
use steersman_framework::verdict::Reason;

use explain::DecisionRecorder;
pub use explain::{Decision, ScoredNode};

use crate::report::usage::NodeUsage;

/// What to simulate with.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// The scheduler's configuration.
    pub config: &'a Config,
    /// The plugins that exist.
    pub registry: &'a Registry,
    /// For drawing among equally good nodes.
    pub seed: u64,
    /// Whether to keep what led to each decision.
    pub explain: bool,
    /// What becomes of pods that are in the way of more important ones.
    pub preemption: Preemption,
}

/// What a simulation makes of preemption.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Preemption {
    /// It is not mentioned.
    Off,
    /// Nobody is evicted; for pods that fit nowhere it is told whose eviction
    /// would make room, for each pod by itself.
    #[default]
    Report,
    /// Victims are evicted and do not come back.
    Apply,
}

/// A pod that lost its node to a more important one.
#[derive(Clone, Debug)]
pub struct Evicted {
    /// The pod.
    pub pod: Arc<PodInfo>,
    /// The node.
    pub node: Name,
    /// Who it made room for.
    pub preemptor: Arc<PodInfo>,
}

/// How a simulation came out.
#[derive(Debug)]
pub struct Simulated {
    /// Every pod that was pending at the start, in the order of its arrival.
    pub pods: Vec<PodResult>,
    /// Every node, in the order of its arrival.
    pub nodes: Vec<NodeUsage>,
    /// Pods that were evicted, in that order. Those that had no node at the
    /// start are among [`Simulated::pods`] as well.
    pub evicted: Vec<Evicted>,
    /// What the scheduler did without, and what it noticed on the way.
    pub notices: Vec<String>,
}

/// How it came out for one pod.
#[derive(Debug)]
pub struct PodResult {
    /// The pod as it arrived.
    pub pod: Arc<PodInfo>,
    /// Where it went, or why nowhere.
    pub fate: Fate,
    /// What led to the last decision, if asked for.
    pub decision: Option<Decision>,
}

/// Where a pod went, or why nowhere.
#[derive(Debug)]
pub enum Fate {
    /// It was placed.
    Placed(Name),
    /// It was placed, and evicted for a more important pod.
    Evicted {
        /// From where.
        node: Name,
        /// For whom.
        preemptor: Arc<PodInfo>,
    },
    /// It fits on no node.
    Unschedulable(Box<NoFit>),
    /// Its gates hold it.
    Gated(String),
    /// It belongs to another scheduler.
    OtherScheduler,
    /// It is being deleted, so nobody looks for a node.
    Terminating,
    /// A plugin failed.
    Error(String),
}

/// Why a pod fits on no node.
#[derive(Clone, Debug)]
pub struct NoFit {
    /// The message that the event `FailedScheduling` would carry.
    pub message: String,
    /// The nodes that a Filter plugin rejected, by plugin and reasons.
    pub rejected: Vec<RejectedNodes>,
    /// How many nodes were rejected without being looked at one by one.
    pub n_others: usize,
    /// What stands for these.
    pub others: Option<OthersRejection>,
    /// Whose eviction would make room.
    pub preemption: Option<Victims>,
}

/// Whose eviction would make room for a pod, and where.
pub type Victims = steersman_framework::verdict::Preemption;

/// Nodes that one plugin rejected for the same reasons.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectedNodes {
    /// The plugin and its answer.
    pub by: NodeRejection,
    /// How many nodes.
    pub count: usize,
    /// Their names, sorted; only the first few unless the decisions are to be
    /// explained, since a report may have as many as pods times nodes.
    pub nodes: Vec<Name>,
}

impl Simulated {
    /// Whether every pod that is this scheduler's has a node.
    pub fn all_placed(&self) -> bool {
        self.pods
            .iter()
            .all(|p| matches!(p.fate, Fate::Placed(_) | Fate::OtherScheduler | Fate::Terminating))
    }
}

/// How many names of rejected nodes are kept for each reason.
const NODES_SHOWN: usize = 10;

/// Tries pods that failed with an error that many times in a row without any
/// other pod making progress.
const ERROR_ROUNDS: usize = 3;

/// Schedules all pending pods of `objects`, in queue order. `progress` is told
/// how many of how many pods have been dealt with.
///
/// # Errors
/// When a plugin refuses its arguments.
pub fn simulate(
    objects: Vec<ClusterObject>,
    options: Options<'_>,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Simulated, SetupError> {
    let setup = Setup { seed: options.seed, ..Setup::new(options.config, options.registry) };
    let (mut scheduler, notices) = Scheduler::new(setup)?;
    if options.preemption != Preemption::Apply {
        scheduler.only_tell_preemptions();
    }
    let mut run = Run {
        scheduler,
        now: Time::ZERO,
        explain: options.explain,
        preemption: options.preemption,
        evicted: Vec::new(),
        pending: Vec::new(),
        placed: BTreeMap::new(),
        errors: BTreeMap::new(),
        decisions: BTreeMap::new(),
        notices,
        provisioned: Vec::new(),
    };
    let node_names = run.feed(objects);
    run.bind_claims();
    let before = NodeUsage::snapshot(run.scheduler.cluster(), &node_names);
    run.schedule_all(progress);
    let after = NodeUsage::snapshot(run.scheduler.cluster(), &node_names);
    Ok(run.finish(NodeUsage::merge(before, after)))
}

struct Run {
    scheduler: Scheduler,
    now: Time,
    explain: bool,
    preemption: Preemption,
    evicted: Vec<Evicted>,
    /// Pods without a node at the start.
    pending: Vec<Arc<PodInfo>>,
    placed: BTreeMap<PodUid, Name>,
    /// The last error of pods that met one.
    errors: BTreeMap<PodUid, String>,
    decisions: BTreeMap<PodUid, Decision>,
    notices: Vec<String>,
    /// Claims that volumes were made for.
    provisioned: Vec<String>,
}

impl Run {
    /// Takes everything in; returns the nodes in order of arrival.
    fn feed(&mut self, objects: Vec<ClusterObject>) -> Vec<Name> {
        let mut nodes = Vec::new();
        for object in objects {
            match &object {
                ClusterObject::Node(node) => nodes.push(node.name.clone()),
                ClusterObject::Pod(pod) if !pod.is_bound() && !pod.phase.is_terminal() => {
                    self.pending.push(pod.clone());
                }
                ClusterObject::Pod(_) | ClusterObject::Other(_) => {}
            }
            let effects = self.scheduler.handle(Event::Upsert(object), self.now);
            self.carry_out(effects);
        }
        nodes
    }

    fn schedule_all(&mut self, progress: &mut dyn FnMut(usize, usize)) {
        let mut error_rounds = 0;
        let mut n_placed = self.placed.len();
        loop {
            while self.schedule_one() {
                progress(self.placed.len(), self.pending.len());
            }
            if self.placed.len() > n_placed {
                n_placed = self.placed.len();
                error_rounds = 0;
            }
            // Only pods that back off after an error are left to try.
            let waits = self.scheduler.queue_counts().backoff > 0 && error_rounds < ERROR_ROUNDS;
            match self.scheduler.next_timer() {
                Some(timer) if waits => self.now = self.now.max(timer),
                _ => return,
            }
            error_rounds += 1;
            let effects = self.scheduler.advance(self.now);
            self.carry_out(effects);
        }
    }

    fn schedule_one(&mut self) -> bool {
        let mut recorder = DecisionRecorder::new();
        let observer: &mut dyn Observer =
            if self.explain { &mut recorder } else { &mut Unobserved };
        let Some((attempt, effects)) = self.scheduler.schedule_next(self.now, observer) else {
            return false;
        };
        if self.explain {
            let decision = recorder.finish(&attempt, self.scheduler.cluster());
            self.decisions.insert(attempt.pod.uid.clone(), decision);
        }
        self.note_errors(&attempt);
        self.carry_out(effects);
        true
    }

    fn note_errors(&mut self, attempt: &Attempt) {
        let error = match &attempt.outcome {
            Outcome::Error(error) => Some(error.clone()),
            Outcome::Rejected { node, plugin, message } => {
                Some(format!("{plugin} rejected node {node}: {message}"))
            }
            Outcome::Waiting(node) => {
                Some(format!("waits on node {node} for a Permit plugin, forever in a simulation"))
            }
            Outcome::Assumed(_) | Outcome::Unschedulable(_) => None,
        };
        match error {
            Some(error) => drop(self.errors.insert(attempt.pod.uid.clone(), error)),
            None => drop(self.errors.remove(&attempt.pod.uid)),
        }
    }

    fn carry_out(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::StartBinding(cycle) => self.bind(cycle),
                Effect::Note(note) => self.notices.push(note),
                // On paper nobody reads events and conditions: the end of the
                // run tells where each pod stands.
                Effect::Scheduled { .. }
                | Effect::FailedScheduling { .. }
                | Effect::Nominate { .. }
                | Effect::Preempted { .. }
                | Effect::Waiting { .. } => {}
                Effect::Evict(eviction) => self.evict(&eviction),
            }
        }
    }

    /// Runs a binding cycle to its end and lets the core see the bound pod, as
    /// a watch would show it.
    fn bind(&mut self, cycle: BindingCycle) {
        let (pod, node) = (cycle.pod().clone(), cycle.node().clone());
        let paper = world::Paper::default();
        let report = world::run_to_end(cycle.run(&paper, &mut Unobserved));
        let bound = report.is_bound();
        self.settle_claims(paper.into_writes());
        let effects = self.scheduler.handle(Event::BindingFinished(report), self.now);
        self.carry_out(effects);
        if bound {
            self.placed.insert(pod.uid.clone(), node.clone());
            let seen = Arc::new(PodInfo { node_name: Some(node), ..(*pod).clone() });
            let event = Event::Upsert(ClusterObject::Pod(seen));
            let effects = self.scheduler.handle(event, self.now);
            self.carry_out(effects);
        }
    }

    /// Removes the victims at once, as if they needed no time to end.
    fn evict(&mut self, eviction: &Eviction) {
        let Eviction { preemptor, node, victims, .. } = eviction;
        for victim in victims {
            self.placed.remove(&victim.uid);
            self.evicted.push(Evicted {
                pod: victim.clone(),
                node: node.clone(),
                preemptor: preemptor.clone(),
            });
            let effects = self.scheduler.handle(Event::PodDeleted(victim.uid.clone()), self.now);
            self.carry_out(effects);
        }
        let effects = self.scheduler.handle(eviction.finished(Ok(())), self.now);
        self.carry_out(effects);
    }

    fn finish(mut self, nodes: Vec<NodeUsage>) -> Simulated {
        let gates: BTreeMap<PodUid, String> = self
            .scheduler
            .pending()
            .iter()
            .filter(|pending| pending.place == Place::Gated)
            .map(|pending| (pending.pod.uid.clone(), pending.because.join(", ")))
            .collect();
        let mut pods = Vec::with_capacity(self.pending.len());
        for pod in std::mem::take(&mut self.pending) {
            let fate = self.fate(&pod, &gates);
            let decision = self.decisions.remove(&pod.uid);
            pods.push(PodResult { pod, fate, decision });
        }
        let volumes = self.notice_of_volumes();
        self.notices.extend(volumes);
        Simulated { pods, nodes, evicted: self.evicted, notices: self.notices }
    }

    fn fate(&mut self, pod: &PodInfo, gates: &BTreeMap<PodUid, String>) -> Fate {
        if let Some(node) = self.placed.get(&pod.uid) {
            return Fate::Placed(node.clone());
        }
        if let Some(evicted) = self.evicted.iter().find(|evicted| evicted.pod.uid == pod.uid) {
            let (node, preemptor) = (evicted.node.clone(), evicted.preemptor.clone());
            return Fate::Evicted { node, preemptor };
        }
        if let Some(gate) = gates.get(&pod.uid) {
            return Fate::Gated(gate.clone());
        }
        if self.scheduler.place_of(&pod.uid).is_none() && !self.errors.contains_key(&pod.uid) {
            return if pod.terminating { Fate::Terminating } else { Fate::OtherScheduler };
        }
        if let Some(error) = self.errors.get(&pod.uid) {
            return Fate::Error(error.clone());
        }
        // Asked again at the end, so that all pods are told the same story.
        match self.scheduler.evaluate(pod, &mut Unobserved) {
            Ok(evaluation) => Fate::Unschedulable(Box::new(self.no_fit(&evaluation))),
            Err(error) => Fate::Error(error),
        }
    }

    fn no_fit(&self, evaluation: &Evaluation) -> NoFit {
        let Diagnosis { rejected, others, n_nodes, .. } = &evaluation.diagnosis;
        let is_off = self.preemption == Preemption::Off;
        let diagnosis = &evaluation.diagnosis;
        NoFit {
            message: if is_off { diagnosis.message() } else { diagnosis.full_message() },
            rejected: self.grouped(rejected),
            n_others: n_nodes - rejected.len(),
            others: others.clone(),
            preemption: evaluation.preemption.clone().filter(|_| !is_off),
        }
    }

    fn grouped(&self, rejected: &BTreeMap<NodeIdx, NodeRejection>) -> Vec<RejectedNodes> {
        let nodes = self.scheduler.cluster().nodes();
        let mut groups: BTreeMap<(&str, &[Reason]), RejectedNodes> = BTreeMap::new();
        for (idx, by) in rejected {
            let Some(node) = nodes.get(*idx) else { continue };
            let group = groups
                .entry((by.plugin, &by.rejection.reasons))
                .or_insert_with(|| RejectedNodes { by: by.clone(), count: 0, nodes: Vec::new() });
            group.count += 1;
            group.nodes.push(node.name().clone());
        }
        let shown = if self.explain { usize::MAX } else { NODES_SHOWN };
        let mut groups: Vec<RejectedNodes> = groups.into_values().collect();
        for RejectedNodes { nodes, .. } in &mut groups {
            nodes.sort();
            nodes.truncate(shown);
            nodes.shrink_to_fit();
        }
        groups
    }
}

#[cfg(test)]
mod tests;

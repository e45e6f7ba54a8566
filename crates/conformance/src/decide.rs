//! Puts a scenario to the scheduler.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;
use steersman_api::decode::{DecodeError, decode};
use steersman_api::object::ClusterObject;
use steersman_api::pod::PodInfo;
use steersman_api::time::Time;
use steersman_config::Config;
use steersman_core::{Effect, Evaluation, Event, Scheduler, Setup};
use steersman_framework::observer::{Call, Observer, Outcome};
use steersman_framework::point::ExtensionPoint;
use steersman_framework::registry::Registry;
use steersman_framework::verdict::{Preemption, RejectKind, Rejection};

use crate::scenario::{Nomination, Rejected, Scenario, Scores};

/// What this scheduler says about a scenario.
#[derive(Debug)]
pub(crate) enum Actual {
    /// The cycle failed.
    Error(String),
    /// It decided.
    Decision(Box<Decision>),
}

/// A decision.
#[derive(Debug, Default)]
pub(crate) struct Decision {
    /// All nodes there are.
    pub(crate) nodes: BTreeSet<String>,
    /// Feasible nodes and their scores.
    pub(crate) scores: Scores,
    /// Feasible nodes and their scores' sums.
    pub(crate) totals: BTreeMap<String, i64>,
    pub(crate) rejected: BTreeMap<String, Rejected>,
    /// Stands for nodes that are neither feasible nor rejected.
    pub(crate) rejected_others: Option<Rejected>,
    pub(crate) unschedulable_plugins: BTreeSet<String>,
    /// When nothing is feasible.
    pub(crate) unschedulable: Option<Unschedulable>,
}

/// What is said when nothing is feasible.
#[derive(Debug)]
pub(crate) struct Unschedulable {
    pub(crate) message: String,
    pub(crate) full_message: String,
    /// The code that PostFilter ends with.
    pub(crate) code: &'static str,
    /// What its plugins said.
    pub(crate) post_filter_message: String,
    /// What came of it.
    pub(crate) nomination: Option<Nomination>,
}

/// What is worth knowing beside the result.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    /// Objects that no scheduling rule reads, by kind.
    pub(crate) ignored_objects: BTreeMap<String, usize>,
    /// What the scheduler says about itself.
    pub(crate) notices: BTreeSet<String>,
}

/// What every scenario starts from.
pub(crate) struct Start {
    pub(crate) registry: Registry,
    pub(crate) default_config: Config,
}

impl Scenario {
    /// Puts the scenario to a fresh scheduler; takes its objects. An error says
    /// what of the scenario cannot be used.
    pub(crate) fn decide(&mut self, start: &Start, notes: &mut Notes) -> Result<Actual, String> {
        let own_config = self.config.as_ref().map(|document| {
            steersman_config::load(&document.to_string(), &start.registry)
                .map_err(|errors| format!("config: {errors}"))
        });
        let own_config = own_config.transpose()?.map(|loaded| loaded.config);
        let config = own_config.as_ref().unwrap_or(&start.default_config);
        let setup = Setup::new(config, &start.registry);
        let (mut scheduler, notices) =
            Scheduler::new(setup).map_err(|error| format!("config: {error}"))?;
        notes.notices.extend(notices);
        for (i, json) in std::mem::take(&mut self.objects).into_iter().enumerate() {
            if let Some(object) = read(json, &format!("objects[{i}]"), notes)? {
                take_in(&mut scheduler, object, notes);
            }
        }
        let pod = read_pod(self.pod.take(), notes)?;
        take_in(&mut scheduler, ClusterObject::Pod(pod.clone()), notes);

        let mut code = PostFilterCode("Unschedulable");
        Ok(match scheduler.evaluate(&pod, &mut code) {
            Ok(evaluation) => {
                Actual::Decision(Box::new(Decision::new(&evaluation, &scheduler, code.0)))
            }
            Err(error) => Actual::Error(error),
        })
    }
}

fn take_in(scheduler: &mut Scheduler, object: ClusterObject, notes: &mut Notes) {
    for effect in scheduler.handle(Event::Upsert(object), Time::ZERO) {
        if let Effect::Note(text) = effect {
            notes.notices.insert(text);
        }
    }
}

/// `None` for a kind that no scheduling rule reads.
fn read(json: Value, at: &str, notes: &mut Notes) -> Result<Option<ClusterObject>, String> {
    let name = json["metadata"]["name"].as_str().unwrap_or("without a name").to_owned();
    let kind = json["kind"].as_str().unwrap_or("object").to_owned();
    let wrong = |what: String| Err(format!("{at} ({kind} {name}): {what}"));
    match decode(json) {
        Ok(decoded) if decoded.problems.is_empty() => Ok(Some(decoded.object)),
        Ok(decoded) => {
            let problems: Vec<String> = decoded.problems.iter().map(ToString::to_string).collect();
            wrong(problems.join("; "))
        }
        Err(DecodeError::UnknownKind { api_version, kind }) => {
            if api_version.is_empty() || kind.is_empty() {
                return wrong("apiVersion and kind are required".to_owned());
            }
            *notes.ignored_objects.entry(format!("{api_version} {kind}")).or_default() += 1;
            Ok(None)
        }
        Err(error) => wrong(error.to_string()),
    }
}

fn read_pod(json: Value, notes: &mut Notes) -> Result<Arc<PodInfo>, String> {
    match read(json, "pod", notes)? {
        Some(ClusterObject::Pod(pod)) => Ok(pod),
        _ => Err("pod: is no v1 Pod".to_owned()),
    }
}

impl Decision {
    fn new(evaluation: &Evaluation, scheduler: &Scheduler, code: &'static str) -> Self {
        let diagnosis = &evaluation.diagnosis;
        let table = scheduler.cluster().nodes();
        let mut decision = Self {
            nodes: table.iter().map(|node| node.name().to_string()).collect(),
            unschedulable_plugins: diagnosis
                .unschedulable_plugins
                .iter()
                .map(|plugin| (*plugin).to_owned())
                .collect(),
            ..Self::default()
        };
        for (node, scored) in &evaluation.feasible {
            let scores = scored.scores.iter().map(|(plugin, score)| ((*plugin).to_owned(), *score));
            decision.scores.insert(node.to_string(), scores.collect());
            decision.totals.insert(node.to_string(), scored.total);
        }
        for (idx, rejection) in &diagnosis.rejected {
            if let Some(node) = table.get(*idx) {
                let rejected = rejected(Some(rejection.plugin), &rejection.rejection);
                decision.rejected.insert(node.name().to_string(), rejected);
            }
        }
        let known = |node: &String| {
            decision.scores.contains_key(node) || decision.rejected.contains_key(node)
        };
        if !decision.nodes.iter().all(known) {
            decision.rejected_others = Some(match &diagnosis.others {
                Some(others) => rejected(others.plugin, &others.rejection),
                None => unseen(),
            });
        }
        if evaluation.feasible.is_empty() {
            decision.unschedulable = Some(Unschedulable {
                message: diagnosis.message(),
                full_message: diagnosis.full_message(),
                code,
                post_filter_message: diagnosis.post_filter_message.clone(),
                nomination: evaluation.preemption.as_ref().map(nomination),
            });
        }
        decision
    }
}

/// Victims that are being deleted already are not deleted again.
fn nomination(preemption: &Preemption) -> Nomination {
    let deleted = preemption.victims.iter().filter(|victim| !victim.terminating);
    Nomination {
        nominated_node: preemption.node.to_string(),
        victims: deleted.map(|victim| victim.key.to_string()).collect(),
    }
}

fn rejected(plugin: Option<&str>, rejection: &Rejection) -> Rejected {
    Rejected {
        code: rejection.kind.name().to_owned(),
        plugin: plugin.map(str::to_owned),
        reasons: rejection.reasons.iter().map(|reason| reason.clone().into_owned()).collect(),
    }
    .sorted()
}

/// What the reference's diagnosis says of a node that nobody looked at.
fn unseen() -> Rejected {
    let code = RejectKind::UnschedulableAndUnresolvable.name().to_owned();
    Rejected { code, plugin: None, reasons: Vec::new() }
}

/// Learns with which code PostFilter ends.
struct PostFilterCode(&'static str);

impl Observer for PostFilterCode {
    fn after(&mut self, call: Call<'_>, outcome: Outcome<'_>) {
        if call.point == ExtensionPoint::PostFilter {
            // The last plugin that is asked settles it: one that helps or
            // fails ends the asking.
            self.0 = match outcome {
                Outcome::Success => "Success",
                Outcome::Error(_) => "Error",
                _ => "Unschedulable",
            };
        }
    }
}

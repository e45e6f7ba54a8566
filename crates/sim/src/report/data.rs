//! The report for machines: JSON and YAML.

use std::collections::BTreeMap;

use serde::Serialize;
use steersman_api::resources::Resources;

use super::usage::{NodeUsage, Use};
use crate::run::{Decision, Evicted, Fate, PodResult, Simulated, Victims};

/// The whole report. Field names are part of the interface: add, do not change.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportData {
    summary: Summary,
    pods: Vec<Pod>,
    nodes: Vec<Node>,
    /// Pods that lost their node to a more important one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    evicted: Vec<EvictedData>,
    /// What was left out, made up or done without.
    notices: Vec<String>,
    /// What is wrong with the input; the rest of the report is without it.
    problems: Vec<String>,
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Summary {
    pods: usize,
    placed: usize,
    #[serde(skip_serializing_if = "is_zero")]
    evicted: usize,
    unschedulable: usize,
    gated: usize,
    other_scheduler: usize,
    terminating: usize,
    failed: usize,
    nodes: usize,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Pod {
    namespace: String,
    name: String,
    priority: i32,
    requests: Amounts,
    /// `Kind/name` of the controller.
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<String>,
    /// The message that the event `FailedScheduling` would carry.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rejected_nodes: Vec<Rejected>,
    /// Whose eviction would make room.
    #[serde(skip_serializing_if = "Option::is_none")]
    preemption: Option<PreemptionData>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<DecisionData>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct PreemptionData {
    node: String,
    /// `namespace/name`, the most important first.
    victims: Vec<String>,
    /// How many of them a disruption budget protects.
    budgets_violated: usize,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct EvictedData {
    namespace: String,
    name: String,
    node: String,
    /// `namespace/name` of the pod that it made room for.
    preemptor: String,
}

/// Nodes that were rejected for the same reasons.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Rejected {
    plugin: &'static str,
    code: &'static str,
    reasons: Vec<String>,
    count: usize,
    /// The first few of them; all with `--explain`.
    nodes: Vec<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct DecisionData {
    evaluated_nodes: usize,
    feasible_nodes: usize,
    best: Vec<ScoredNodeData>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ScoredNodeData {
    node: String,
    chosen: bool,
    total: i64,
    scores: BTreeMap<&'static str, i64>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Node {
    name: String,
    zone: String,
    allocatable: Amounts,
    before: Amounts,
    after: Amounts,
}

/// CPU in milli-CPU, memory and ephemeral storage in bytes, others in units.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Amounts {
    pods: i64,
    milli_cpu: i64,
    memory: i64,
    ephemeral_storage: i64,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    scalars: BTreeMap<String, i64>,
}

impl ReportData {
    /// The report of a simulation, and what was found out about its input.
    pub fn new(simulated: &Simulated, notices: Vec<String>, problems: Vec<String>) -> Self {
        let mut summary = Summary {
            pods: simulated.pods.len(),
            nodes: simulated.nodes.len(),
            ..Summary::default()
        };
        for pod in &simulated.pods {
            *match pod.fate {
                Fate::Placed(_) => &mut summary.placed,
                Fate::Evicted { .. } => &mut summary.evicted,
                Fate::Unschedulable(_) => &mut summary.unschedulable,
                Fate::Gated(_) => &mut summary.gated,
                Fate::OtherScheduler => &mut summary.other_scheduler,
                Fate::Terminating => &mut summary.terminating,
                Fate::Error(_) => &mut summary.failed,
            } += 1;
        }
        Self {
            summary,
            pods: simulated.pods.iter().map(pod).collect(),
            nodes: simulated.nodes.iter().map(node).collect(),
            evicted: simulated.evicted.iter().map(evicted).collect(),
            notices,
            problems,
        }
    }
}

fn pod(result: &PodResult) -> Pod {
    let (status, node, message) = match &result.fate {
        Fate::Placed(node) => ("placed", Some(node.to_string()), None),
        Fate::Evicted { preemptor, .. } => {
            ("evicted", None, Some(format!("evicted for {}", preemptor.key)))
        }
        Fate::Unschedulable(e) => ("unschedulable", None, Some(e.message.clone())),
        Fate::Gated(reason) => ("gated", None, Some(reason.clone())),
        Fate::OtherScheduler => {
            let name = &result.pod.spec.scheduler_name;
            ("otherScheduler", None, Some(format!("schedulerName is {name}")))
        }
        Fate::Terminating => ("terminating", None, None),
        Fate::Error(error) => ("failed", None, Some(error.clone())),
    };
    Pod {
        namespace: result.pod.key.namespace.to_string(),
        name: result.pod.key.name.to_string(),
        priority: result.pod.spec.priority,
        requests: amounts(1, &result.pod.resources.requests),
        owner: result.pod.controller.as_ref().map(|o| format!("{}/{}", o.kind, o.name)),
        status,
        node,
        message,
        rejected_nodes: rejected_nodes(&result.fate),
        preemption: preemption(&result.fate),
        decision: result.decision.as_ref().map(decision),
    }
}

fn preemption(fate: &Fate) -> Option<PreemptionData> {
    let Fate::Unschedulable(no_fit) = fate else { return None };
    let Victims { node, victims, budgets_violated } = no_fit.preemption.as_ref()?;
    Some(PreemptionData {
        node: node.to_string(),
        victims: victims.iter().map(|victim| victim.key.to_string()).collect(),
        budgets_violated: *budgets_violated,
    })
}

fn evicted(evicted: &Evicted) -> EvictedData {
    EvictedData {
        namespace: evicted.pod.key.namespace.to_string(),
        name: evicted.pod.key.name.to_string(),
        node: evicted.node.to_string(),
        preemptor: evicted.preemptor.key.to_string(),
    }
}

fn rejected_nodes(fate: &Fate) -> Vec<Rejected> {
    let Fate::Unschedulable(no_fit) = fate else { return Vec::new() };
    let rejected = no_fit.rejected.iter().map(|group| Rejected {
        plugin: group.by.plugin,
        code: group.by.rejection.kind.name(),
        reasons: group.by.rejection.reasons.iter().map(ToString::to_string).collect(),
        count: group.count,
        nodes: group.nodes.iter().map(ToString::to_string).collect(),
    });
    rejected.collect()
}

fn decision(decision: &Decision) -> DecisionData {
    let best = decision.best.iter().map(|scored| ScoredNodeData {
        node: scored.node.to_string(),
        chosen: scored.chosen,
        total: scored.total,
        scores: scored.scores.iter().copied().collect(),
    });
    DecisionData {
        evaluated_nodes: decision.n_evaluated,
        feasible_nodes: decision.n_feasible,
        best: best.collect(),
    }
}

fn node(usage: &NodeUsage) -> Node {
    Node {
        name: usage.node.to_string(),
        zone: usage.zone.to_string(),
        allocatable: amounts(usage.allowed_pods, &usage.allocatable),
        before: used(&usage.before),
        after: used(&usage.after),
    }
}

fn used(usage: &Use) -> Amounts {
    amounts(i64::try_from(usage.pods).unwrap_or(i64::MAX), &usage.requested)
}

fn amounts(pods: i64, resources: &Resources) -> Amounts {
    Amounts {
        pods,
        milli_cpu: resources.milli_cpu,
        memory: resources.memory,
        ephemeral_storage: resources.ephemeral_storage,
        scalars: resources.scalars().map(|(name, amount)| (name.to_string(), amount)).collect(),
    }
}

/// For serde, which hands in a reference.
fn is_zero(n: &usize) -> bool {
    *n == 0
}

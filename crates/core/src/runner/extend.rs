//! The one place from which extenders are called: whom to ask when, and what
//! to make of the answers.
//!
//! An extender that may be ignored and fails is left out with a note; the
//! failure of another one ends the attempt. A panic counts as a failure.
//!
//! Source of the rules: kube-scheduler's `findNodesThatPassExtenders`,
//! `prioritizeNodes`, `callExtenders` and `extendersBinding`.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use steersman_api::name::Name;
use steersman_api::node_info::{NodeIdx, NodeInfo};
use steersman_api::pod::PodInfo;
use steersman_framework::cluster::Cluster;
use steersman_framework::diagnosis::{Diagnosis, NodeRejection};
use steersman_framework::extender::{
    EXTENDERS, Extender, ExtenderError, Filtered, MAX_EXTENDER_PRIORITY, NodeVictims, Priority,
    Roles,
};
use steersman_framework::verdict::{
    MAX_NODE_SCORE, PluginError, Preemption, RejectKind, Rejection,
};

use super::{Failed, panic_error};

/// The extenders of a scheduler, in the order in which they are asked.
#[derive(Clone, Default)]
pub(crate) struct Extenders(Arc<[Arc<dyn Extender>]>);

/// Why an attempt or a binding failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AttemptError {
    /// A plugin did.
    #[error(transparent)]
    Plugin(#[from] Failed),
    /// An extender did; it names itself.
    #[error(transparent)]
    Extender(#[from] ExtenderError),
}

/// What is wrong with an extender or its answer.
#[derive(Debug)]
pub(super) enum Fault {
    /// It said so itself.
    Told(ExtenderError),
    /// The core found it.
    Found {
        /// As users read it who know of no extender yet.
        whole: String,
        /// What follows the extender's name.
        does: String,
    },
}

impl Fault {
    fn found(extender: &dyn Extender, does: String) -> Self {
        Self::Found { whole: format!("extender {:?} {does}", extender.name()), does }
    }

    /// The failure of an extender that panicked.
    pub(super) fn panicked(extender: &dyn Extender, panic: &PluginError) -> Self {
        let name = catch_unwind(AssertUnwindSafe(|| extender.name())).unwrap_or("?");
        let does = panic.to_string();
        Self::Found { whole: format!("extender {name:?} {does}"), does }
    }

    /// The note that `extender` is left out.
    pub(super) fn left_out(&self, pod: &PodInfo, extender: &dyn Extender) -> String {
        let (pod, name) = (&pod.key, extender.name());
        match self {
            Self::Told(error) => {
                format!("pod {pod}: extender {name:?} is left out, as it failed: {error}")
            }
            Self::Found { does, .. } => {
                format!("pod {pod}: extender {name:?} is left out, as it {does}")
            }
        }
    }

    /// The note that there is no preemption.
    fn nobody_evicted(&self, pod: &PodInfo, extender: &dyn Extender) -> String {
        let pod = &pod.key;
        match self {
            // One that may not be ignored names itself.
            Self::Told(error) => {
                format!("pod {pod}: nobody is evicted, as an extender failed: {error}")
            }
            Self::Found { does, .. } => {
                format!("pod {pod}: nobody is evicted, as extender {:?} {does}", extender.name())
            }
        }
    }
}

impl From<Fault> for ExtenderError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Told(error) => error,
            Fault::Found { whole, .. } => Self(whole),
        }
    }
}

/// What extenders are asked about.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) extenders: &'a Extenders,
    pub(crate) pod: &'a PodInfo,
    pub(crate) cluster: &'a Cluster,
}

/// The scores of one extender, in the order of the nodes handed in.
pub(crate) type ExtenderScores = (String, Vec<i64>);

impl Extenders {
    /// Those that may be ignored come last, as in the reference.
    pub(crate) fn new(extenders: &[Arc<dyn Extender>]) -> Self {
        let mut extenders = extenders.to_vec();
        extenders.sort_by_key(|extender| extender.is_ignorable());
        Self(extenders.into())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether one of them can keep a pod from being scheduled.
    pub(crate) fn may_reject(&self) -> bool {
        self.any_has(Roles::FILTER | Roles::PREEMPT)
    }

    /// Whether one of them has any of these roles.
    pub(crate) fn any_has(&self, roles: Roles) -> bool {
        self.0.iter().any(|extender| extender.roles().intersects(roles))
    }

    /// Those that have a say about `pod` in that role.
    pub(super) fn interested<'a>(
        &'a self,
        role: Roles,
        pod: &'a PodInfo,
    ) -> impl Iterator<Item = &'a dyn Extender> {
        let all = self.0.iter().map(|extender| &**extender);
        all.filter(move |it| {
            it.roles().contains(role)
                // One that panics has failed; being asked in earnest shows it.
                && catch_unwind(AssertUnwindSafe(|| it.is_interested(pod))).unwrap_or(true)
        })
    }
}

impl<'a> Asked<'a> {
    fn nodes(&self, nodes: &[NodeIdx]) -> Vec<&'a NodeInfo> {
        nodes.iter().filter_map(|idx| self.cluster.nodes().get(*idx)).collect()
    }

    /// Asks one extender after the other which of the feasible nodes it
    /// accepts; each sees what those before it left. Returns whether any node
    /// was refused.
    pub(crate) fn narrow(
        &self,
        feasible: &mut Vec<NodeIdx>,
        diagnosis: &mut Diagnosis,
        notes: &mut Vec<String>,
    ) -> Result<bool, ExtenderError> {
        let n_before = feasible.len();
        for extender in self.extenders.interested(Roles::FILTER, self.pod) {
            if feasible.is_empty() {
                break;
            }
            let nodes = self.nodes(feasible);
            let answer = guarded(extender, || extender.filter(self.pod, &nodes))
                .and_then(|answer| check_passed(extender, &nodes, answer));
            let answer = match answer {
                Ok(answer) => answer,
                Err(fault) if extender.is_ignorable() => {
                    notes.push(fault.left_out(self.pod, extender));
                    continue;
                }
                Err(fault) => return Err(fault.into()),
            };
            let passed: BTreeSet<&Name> = answer.passed.iter().collect();
            feasible.retain(|idx| {
                self.cluster.nodes().get(*idx).is_some_and(|node| passed.contains(node.name()))
            });
            self.note_failed(extender, answer, diagnosis, notes);
            if feasible.is_empty() {
                diagnosis.emptied_by = Some(extender.name().to_owned());
            }
        }
        // What was held against a node by the way does not stand.
        for idx in &*feasible {
            diagnosis.rejected.remove(idx);
        }
        Ok(feasible.len() != n_before)
    }

    fn note_failed(
        &self,
        extender: &dyn Extender,
        answer: Filtered,
        diagnosis: &mut Diagnosis,
        notes: &mut Vec<String>,
    ) {
        let Filtered { failed, failed_for_good, .. } = answer;
        let for_now = RejectKind::Unschedulable;
        let for_good = RejectKind::UnschedulableAndUnresolvable;
        let mut unknown: Vec<Name> = Vec::new();
        for (kind, nodes) in [(for_now, failed), (for_good, failed_for_good)] {
            for (name, reason) in nodes {
                let Some(node) = self.cluster.nodes().by_name(&name) else {
                    unknown.push(name);
                    continue;
                };
                let rejection = Rejection { kind, reasons: vec![reason.into()] };
                let rejected = NodeRejection { plugin: EXTENDERS, rejection };
                diagnosis.rejected.insert(node.idx(), rejected);
            }
        }
        if let Some(first) = unknown.first() {
            let (name, n) = (extender.name(), unknown.len());
            notes.push(format!(
                "extender {name:?} refuses {n} nodes that do not exist, such as {:?}",
                &**first
            ));
        }
    }

    /// Asks all extenders at once how good the nodes are. Those that fail are
    /// left out with a note, whether they may be ignored or not.
    pub(crate) fn prioritize(
        &self,
        nodes: &[NodeIdx],
        notes: &mut Vec<String>,
    ) -> Vec<ExtenderScores> {
        let mut interested = self.extenders.interested(Roles::PRIORITIZE, self.pod).peekable();
        if interested.peek().is_none() {
            return Vec::new();
        }
        let nodes = self.nodes(nodes);
        let asked: Vec<_> = interested
            .map(|extender| {
                let pending = guarded(extender, || Ok(extender.prioritize(self.pod, &nodes)));
                (extender, pending)
            })
            .collect();
        let mut scores = Vec::with_capacity(asked.len());
        for (extender, pending) in asked {
            let answer = pending.and_then(|pending| guarded(extender, || pending.wait()));
            match answer {
                Ok(priorities) => {
                    notes.extend(out_of_range(extender, &priorities));
                    scores.push((
                        extender.name().to_owned(),
                        scaled(&priorities, extender.weight(), &nodes),
                    ));
                }
                Err(fault) => notes.push(fault.left_out(self.pod, extender)),
            }
        }
        scores
    }

    /// Asks one extender after the other what it makes of the ways to make room
    /// that were found; each sees what those before it left.
    pub(super) fn review(
        &self,
        mut candidates: Vec<Preemption>,
        notes: &mut Vec<String>,
    ) -> Result<Vec<Preemption>, ExtenderError> {
        for extender in self.extenders.interested(Roles::PREEMPT, self.pod) {
            if candidates.is_empty() {
                break;
            }
            let answer = guarded(extender, || extender.preempt(self.pod, &candidates))
                .and_then(|answer| self.preemptions(extender, answer))
                .and_then(|(accepted, pointless)| {
                    pass_over(self.pod, extender, &pointless, notes).map(|()| accepted)
                });
            match answer {
                Ok(accepted) => candidates = in_order_of(&candidates, accepted),
                Err(fault) if extender.is_ignorable() => {
                    notes.push(fault.left_out(self.pod, extender));
                }
                Err(fault) => {
                    // Otherwise the pod would be the only one to know: its attempt
                    // does not fail.
                    notes.push(fault.nobody_evicted(self.pod, extender));
                    return Err(fault.into());
                }
            }
        }
        Ok(candidates)
    }

    /// What an extender says as preemptions, by node, and the nodes on which it
    /// would evict nobody.
    fn preemptions(
        &self,
        extender: &dyn Extender,
        answer: Vec<NodeVictims>,
    ) -> Result<(BTreeMap<Name, Preemption>, Vec<Name>), Fault> {
        let (mut accepted, mut pointless) = (BTreeMap::new(), Vec::new());
        for NodeVictims { node, victims, budgets_violated } in answer {
            let Some(info) = self.cluster.nodes().by_name(&node) else {
                let does = format!("wants to preempt on node {:?}, which does not exist", &*node);
                return Err(Fault::found(extender, does));
            };
            let mut pods: Vec<Arc<PodInfo>> = Vec::with_capacity(victims.len());
            for uid in victims {
                let Some(pod) = info.pods().iter().find(|pod| pod.uid == uid) else {
                    let does = format!(
                        "claims to preempt pod (UID: {uid}) on node: {node}, but the pod is not \
                         found on that node"
                    );
                    let whole = format!("extender: {} {does}", extender.name());
                    return Err(Fault::Found { whole, does });
                };
                self.check_rank(extender, pod)?;
                if pods.iter().all(|other| other.uid != uid) {
                    pods.push(pod.clone());
                }
            }
            match pods.is_empty() {
                true => pointless.push(node),
                false => {
                    let it = Preemption { node: node.clone(), victims: pods, budgets_violated };
                    accepted.insert(node, it);
                }
            }
        }
        Ok((accepted, pointless))
    }

    /// No extender can have a pod evicted for one that does not outrank it.
    fn check_rank(&self, extender: &dyn Extender, victim: &PodInfo) -> Result<(), Fault> {
        let (theirs, ours) = (victim.spec.priority, self.pod.spec.priority);
        if theirs < ours {
            return Ok(());
        }
        let does = format!(
            "wants to evict pod {} of priority {theirs}, allowed: below {ours}",
            victim.key
        );
        Err(Fault::found(extender, does))
    }
}

/// Calls an extender; a panic becomes a fault.
fn guarded<T>(
    extender: &dyn Extender,
    call: impl FnOnce() -> Result<T, ExtenderError>,
) -> Result<T, Fault> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(answer) => answer.map_err(Fault::Told),
        Err(panic) => Err(Fault::panicked(extender, &panic_error(&*panic))),
    }
}

/// An extender can only accept nodes that it was asked about.
fn check_passed(
    extender: &dyn Extender,
    nodes: &[&NodeInfo],
    answer: Filtered,
) -> Result<Filtered, Fault> {
    let known: BTreeSet<&Name> = nodes.iter().map(|node| node.name()).collect();
    match answer.passed.iter().find(|name| !known.contains(name)) {
        None => Ok(answer),
        Some(unknown) => {
            let does = format!(
                "claims a filtered node {:?} which is not found in the input node list",
                &**unknown
            );
            Err(Fault::found(extender, does))
        }
    }
}

/// Nodes on which an extender would evict nobody: a note about each when it may
/// be ignored, else its fault.
fn pass_over(
    pod: &PodInfo,
    extender: &dyn Extender,
    pointless: &[Name],
    notes: &mut Vec<String>,
) -> Result<(), Fault> {
    for node in pointless {
        let does = format!("names no victim on node {node}");
        if !extender.is_ignorable() {
            let whole = format!("expected at least one victim pod on node {:?}", &**node);
            return Err(Fault::Found { whole, does });
        }
        notes.push(format!("pod {}: extender {:?} {does}, left out", pod.key, extender.name()));
    }
    Ok(())
}

/// A note about the first priority that is out of range.
fn out_of_range(extender: &dyn Extender, priorities: &[Priority]) -> Option<String> {
    let odd = priorities.iter().find(|it| !(0..=MAX_EXTENDER_PRIORITY).contains(&it.priority))?;
    Some(format!(
        "extender {:?} gives node {:?} the priority {}, expected 0 to {MAX_EXTENDER_PRIORITY}",
        extender.name(),
        &*odd.node,
        odd.priority
    ))
}

/// Priorities in the range of scores, times the weight. A node that is named
/// twice has the sum; one that is not named has 0.
fn scaled(priorities: &[Priority], weight: i64, nodes: &[&NodeInfo]) -> Vec<i64> {
    let mut by_name: BTreeMap<&Name, i64> = BTreeMap::new();
    for Priority { node, priority } in priorities {
        let factor = weight.saturating_mul(MAX_NODE_SCORE / MAX_EXTENDER_PRIORITY);
        let sum = by_name.entry(node).or_default();
        *sum = sum.saturating_add(priority.saturating_mul(factor));
    }
    nodes.iter().map(|node| by_name.get(node.name()).copied().unwrap_or_default()).collect()
}

/// The accepted preemptions in the order of the candidates; those on other
/// nodes come last, by name.
fn in_order_of(
    candidates: &[Preemption],
    mut accepted: BTreeMap<Name, Preemption>,
) -> Vec<Preemption> {
    let known = candidates.iter().filter_map(|candidate| accepted.remove(&candidate.node));
    let mut ordered: Vec<Preemption> = known.collect();
    ordered.extend(accepted.into_values());
    ordered
}

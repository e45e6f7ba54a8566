//! Which of the nodes found it is.

use std::cmp::Reverse;
use std::sync::Arc;

use steersman_api::key::PodUid;
use steersman_api::pod::PodInfo;
use steersman_api::time::WallTime;
use steersman_framework::verdict::Preemption;

/// When a pod was started; one that was not yet counts as the youngest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Start {
    At(WallTime),
    NotYet,
}

impl Start {
    pub(super) fn of(pod: &PodInfo) -> Self {
        pod.started.map_or(Self::NotYet, Self::At)
    }
}

/// Sorts by this bring the most important pod to the front: the one of the
/// highest priority, and among equals the one that runs longest.
pub(super) fn importance(pod: &Arc<PodInfo>) -> (Reverse<i32>, Start, PodUid) {
    (Reverse(pod.spec.priority), Start::of(pod), pod.uid.clone())
}

/// The same preemption, its most important victim first: extenders keep to no
/// order.
pub(super) fn sorted(mut preemption: Preemption) -> Preemption {
    preemption.victims.sort_by_cached_key(importance);
    preemption
}

/// The node whose victims are missed least; among equals the first. Victims
/// stand in order of importance and are at least one.
pub(super) fn best(candidates: Vec<Preemption>) -> Option<Preemption> {
    candidates.into_iter().min_by_key(loss)
}

/// What a preemption costs, the weightiest first.
fn loss(candidate: &Preemption) -> (usize, i32, i64, usize, Reverse<Start>) {
    let victims = &candidate.victims;
    let highest = victims.iter().map(|victim| victim.spec.priority).max().unwrap_or(i32::MIN);
    // Priorities are counted from the lowest that there is, so that one more
    // pod never makes the sum smaller.
    let sum = victims.iter().map(|victim| i64::from(victim.spec.priority) - i64::from(i32::MIN));
    let of_highest = victims.iter().filter(|victim| victim.spec.priority == highest);
    let earliest = of_highest.map(|victim| Start::of(victim)).min().unwrap_or(Start::NotYet);
    (candidate.budgets_violated, highest, sum.sum(), victims.len(), Reverse(earliest))
}

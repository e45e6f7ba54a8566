//! Scaling a deployment, also in the middle of a rollout.

use std::cmp::Reverse;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::ReplicaSet;

use super::{Rollout, annotations, created, n_available, size, sum};
use crate::engine::plan::Plan;

/// Gives all sets their share of the deployment's size: a rollout goes on from
/// the same relation of old and new.
pub(super) fn proportionally(rollout: &Rollout<'_>, plan: &mut Plan) {
    let mut active: Vec<&Arc<ReplicaSet>> = rollout.all().filter(|set| size(set) > 0).collect();
    if active.len() <= 1 {
        let latest = || rollout.current.as_ref().or(rollout.old.last());
        if let Some(set) = active.first().copied().or_else(latest) {
            rollout.resize(plan, set, rollout.replicas());
        }
        return;
    }
    if rollout.current.as_ref().is_some_and(|set| is_saturated(rollout, set)) {
        let old = rollout.old.iter().filter(|set| size(set) > 0);
        old.for_each(|set| rollout.resize(plan, set, 0));
        // The size it has been given is for the new number too.
        if let Some(set) = &rollout.current {
            rollout.resize(plan, set, rollout.replicas());
        }
        return;
    }
    if rollout.recreates() {
        // All sizes are marked as up to date; the strategy does the rest.
        active.iter().for_each(|set| rollout.resize(plan, set, size(set)));
        return;
    }
    let allowed = if rollout.replicas() > 0 { rollout.most() } else { 0 };
    let total = sum(active.iter().map(|set| size(set)));
    let to_add = allowed - total;
    // The largest first; among equals the one that should gain, or lose.
    if to_add >= 0 {
        active.sort_by_key(|set| (Reverse(size(set)), Reverse(created(&***set))));
    } else {
        active.sort_by_key(|set| (Reverse(size(set)), created(&***set)));
    }
    let mut added = 0;
    let mut shares = Vec::with_capacity(active.len());
    for set in &active {
        let share = share(rollout, set, to_add, added);
        added += share;
        shares.push(size(set) + share);
    }
    if let Some(first) = shares.first_mut() {
        *first = first.saturating_add(to_add - added).max(0);
    }
    for (set, wanted) in active.into_iter().zip(shares) {
        rollout.resize(plan, set, wanted);
    }
}

fn share(rollout: &Rollout<'_>, set: &ReplicaSet, to_add: i32, added: i32) -> i32 {
    if to_add == 0 {
        return 0;
    }
    let own = size(set);
    let fraction = if rollout.replicas() == 0 {
        -own
    } else {
        let most_now = i64::from(rollout.most());
        let most_then = annotations::max(set).map_or(most_now, i64::from).max(1);
        // Rounded to the nearest: twice the numerator plus the denominator,
        // over twice the denominator.
        let scaled = (2 * i64::from(own) * most_now + most_then) / (2 * most_then);
        i32::try_from(scaled).unwrap_or(i32::MAX) - own
    };
    let left = to_add - added;
    if to_add > 0 { fraction.min(left).max(0) } else { fraction.max(left).min(0) }
}

fn is_saturated(rollout: &Rollout<'_>, set: &ReplicaSet) -> bool {
    let desired = annotations::desired(set);
    size(set) == rollout.replicas()
        && desired == Some(rollout.replicas())
        && n_available(set) == rollout.replicas()
}

//! The two strategies.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::ReplicaSet;

use super::{Rollout, n_available, progress, size, sum};
use crate::cluster::uid;
use crate::engine::plan::Plan;
use crate::workload::has_ended;

/// First the old pods go, then the new ones come.
pub(super) fn recreate(rollout: &Rollout<'_>, plan: &mut Plan) {
    let mut any = false;
    for set in rollout.old.iter().filter(|set| size(set) > 0) {
        rollout.resize(plan, set, 0);
        any = true;
    }
    if any {
        return;
    }
    let pods = &rollout.view.world.pods;
    let old_runs = rollout
        .old
        .iter()
        .flat_map(|set| pods.owned_by(uid(&set.metadata)))
        .any(|pod| !has_ended(pod));
    if old_runs {
        return;
    }
    match &rollout.current {
        None => rollout.make_current(plan, rollout.replicas()),
        Some(set) => rollout.resize(plan, set, rollout.replicas()),
    }
    if progress::is_complete(rollout) {
        rollout.forget_history(plan);
    }
}

/// New pods come as far as the surge allows, old ones go as far as enough
/// remain available.
pub(super) fn roll(rollout: &Rollout<'_>, plan: &mut Plan) {
    let Some(current) = &rollout.current else {
        rollout.make_current(plan, room(rollout, 0));
        return;
    };
    let wanted = if size(current) > rollout.replicas() {
        rollout.replicas()
    } else {
        room(rollout, size(current))
    };
    if wanted != size(current) {
        rollout.resize(plan, current, wanted);
        return;
    }
    if shrink_old(rollout, current, plan) {
        return;
    }
    if progress::is_complete(rollout) {
        rollout.forget_history(plan);
    }
}

/// The size of the current set when as many pods as allowed are added.
fn room(rollout: &Rollout<'_>, current: i32) -> i32 {
    let most = rollout.most();
    let total = sum(rollout.all().map(|set| size(set)));
    let missing = rollout.replicas() - current;
    current + (most - total).min(missing).max(0)
}

/// Makes the old sets smaller; whether there was something to do.
fn shrink_old(rollout: &Rollout<'_>, current: &ReplicaSet, plan: &mut Plan) -> bool {
    let n_old = sum(rollout.old.iter().map(|set| size(set)));
    if n_old == 0 {
        return false;
    }
    let needed = rollout.replicas() - rollout.max_unavailable();
    let n_current_unavailable = (size(current) - n_available(current)).max(0);
    let removable = n_old.saturating_add(size(current)) - needed - n_current_unavailable;
    if removable <= 0 {
        return false;
    }
    let mut sizes: Vec<(&Arc<ReplicaSet>, i32)> =
        rollout.old.iter().map(|set| (set, size(set))).collect();
    // Pods that serve nobody go first: that costs no availability.
    let mut budget = removable;
    for (set, size) in &mut sizes {
        let idle = (*size - n_available(set)).max(0).min(budget);
        *size -= idle;
        budget -= idle;
    }
    let total_available = sum(rollout.all().map(|set| n_available(set)));
    let mut spare = (total_available - needed).max(0).min(budget);
    for (_, size) in &mut sizes {
        let gone = (*size).min(spare);
        *size -= gone;
        spare -= gone;
    }
    let mut any = false;
    for (set, wanted) in sizes {
        if wanted != size(set) {
            rollout.resize(plan, set, wanted);
            any = true;
        }
    }
    any
}

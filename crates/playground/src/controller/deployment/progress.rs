//! How far a rollout is: the status of a deployment.

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{
    Deployment, DeploymentCondition, DeploymentStatus, ReplicaSetStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{Rollout, size, sum};
use crate::cluster::Kind;
use crate::controller::replica_set::FAILURE;
use crate::engine::plan::{Call, Plan};
use crate::workload::{later, set_condition, status_patch};

const DONE: &str = "NewReplicaSetAvailable";
const TIMED_OUT: &str = "ProgressDeadlineExceeded";
const PAUSED: &str = "DeploymentPaused";
const RESUMED: &str = "DeploymentResumed";

/// Writes the status if it has changed, and looks again at the deadline.
pub(super) fn tell(rollout: &Rollout<'_>, plan: &mut Plan) {
    let mut status = counts(rollout);
    say_available(rollout, &mut status);
    say_progressing(rollout, &mut status, plan);
    say_failing(rollout, &mut status);
    let new = Deployment { status: Some(status), ..rollout.deployment.clone() };
    if let Some(call) = status_patch(rollout.deployment, &new, false) {
        plan.call(call);
    }
}

/// Whether all pods are of the current template and available.
pub(super) fn is_complete(rollout: &Rollout<'_>) -> bool {
    is_done(rollout, &counts(rollout))
}

fn is_done(rollout: &Rollout<'_>, status: &DeploymentStatus) -> bool {
    let wanted = Some(rollout.replicas());
    status.updated_replicas == wanted
        && status.replicas == wanted
        && status.available_replicas == wanted
        && status.observed_generation >= rollout.deployment.metadata.generation
}

fn counts(rollout: &Rollout<'_>) -> DeploymentStatus {
    let before = rollout.deployment.status.clone().unwrap_or_default();
    let total = |of: fn(&ReplicaSetStatus) -> i32| {
        sum(rollout.all().filter_map(|set| set.status.as_ref()).map(of))
    };
    let available = total(|s| s.available_replicas.unwrap_or_default());
    let asked = sum(rollout.all().map(|set| size(set)));
    let current = rollout.current.as_ref().and_then(|set| set.status.as_ref());
    DeploymentStatus {
        observed_generation: rollout.deployment.metadata.generation,
        replicas: Some(total(|s| s.replicas)),
        updated_replicas: Some(current.map(|s| s.replicas).unwrap_or_default()),
        ready_replicas: Some(total(|s| s.ready_replicas.unwrap_or_default())),
        available_replicas: Some(available),
        unavailable_replicas: Some((asked - available).max(0)),
        terminating_replicas: Some(total(|s| s.terminating_replicas.unwrap_or_default())),
        collision_count: before.collision_count,
        conditions: before.conditions,
    }
}

fn say_available(rollout: &Rollout<'_>, status: &mut DeploymentStatus) {
    let needed = rollout.replicas() - rollout.max_unavailable();
    let (value, reason, message) = if status.available_replicas.unwrap_or_default() >= needed {
        ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    } else {
        ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    };
    put(status, "Available", value, reason, message.to_owned(), rollout.view.now);
}

fn say_progressing(rollout: &Rollout<'_>, status: &mut DeploymentStatus, plan: &mut Plan) {
    let Some(deadline) = rollout.spec.progress_deadline_seconds.filter(|s| *s < i32::MAX) else {
        status.conditions.iter_mut().for_each(|all| all.retain(|c| c.type_ != "Progressing"));
        return;
    };
    let now = rollout.view.now;
    let known = progressing(status);
    let reason = known.as_ref().and_then(|c| c.reason.clone()).unwrap_or_default();
    let paused = rollout.spec.paused == Some(true);
    if paused && reason != TIMED_OUT {
        if reason != PAUSED {
            let message = "Deployment is paused".to_owned();
            put(status, "Progressing", "Unknown", PAUSED, message, now);
        }
        return;
    }
    if !paused && reason == PAUSED {
        let message = "Deployment is resumed".to_owned();
        put(status, "Progressing", "Unknown", RESUMED, message, now);
    }
    let name = rollout.current.as_ref().and_then(|set| set.metadata.name.clone());
    let own = rollout.deployment.metadata.name.clone().unwrap_or_default();
    let subject = name
        .as_ref()
        .map_or_else(|| format!("Deployment \"{own}\""), |name| format!("ReplicaSet \"{name}\""));
    let before = rollout.deployment.status.clone().unwrap_or_default();
    let settled = reason == DONE && status.replicas == status.updated_replicas;
    if settled && known.is_some() {
        // Pods that come and go later are not a rollout.
        return;
    }
    if let Some(made) = plan_makes(plan) {
        let message = format!("Created new replica set \"{made}\"");
        put(status, "Progressing", "True", "NewReplicaSetCreated", message, now);
    } else if is_done(rollout, status) {
        let message = format!("{subject} has successfully progressed.");
        put(status, "Progressing", "True", DONE, message, now);
    } else if let (None, Some(name)) = (&known, &name) {
        let message = format!("Found new replica set \"{name}\"");
        put(status, "Progressing", "True", "FoundNewReplicaSet", message, now);
    } else if moved(&before, status) {
        let message = format!("{subject} is progressing.");
        put(status, "Progressing", "True", "ReplicaSetUpdated", message, now);
    } else if reason != TIMED_OUT && reason != DONE {
        let since = known.and_then(|c| c.last_update_time).map_or(now, |time| time.0);
        let end = later(since, i64::from(deadline));
        if end < now {
            let message = format!("{subject} has timed out progressing.");
            put(status, "Progressing", "False", TIMED_OUT, message, now);
        } else {
            plan.wake_at(later(end, 1));
        }
        return;
    }
    if !is_done(rollout, status) {
        plan.wake_at(later(now, i64::from(deadline) + 1));
    }
}

/// Shows what keeps a replica set from making pods: the current one's trouble
/// first.
fn say_failing(rollout: &Rollout<'_>, status: &mut DeploymentStatus) {
    let trouble = rollout.current.iter().chain(&rollout.old).find_map(|set| {
        let mut conditions = set.status.iter().flat_map(|s| s.conditions.iter().flatten());
        conditions.find(|c| c.type_ == FAILURE)
    });
    let Some(trouble) = trouble else {
        status.conditions.iter_mut().for_each(|all| all.retain(|c| c.type_ != FAILURE));
        return;
    };
    let condition = DeploymentCondition {
        type_: FAILURE.to_owned(),
        status: trouble.status.clone(),
        reason: trouble.reason.clone(),
        message: trouble.message.clone(),
        last_update_time: trouble.last_transition_time.clone(),
        last_transition_time: trouble.last_transition_time.clone(),
    };
    set_condition(&mut status.conditions, condition, |c| c.type_ == FAILURE);
}

/// Whether the rollout came forward since the last status.
fn moved(before: &DeploymentStatus, now: &DeploymentStatus) -> bool {
    let old = |status: &DeploymentStatus| {
        status.replicas.unwrap_or_default() - status.updated_replicas.unwrap_or_default()
    };
    let more = |of: fn(&DeploymentStatus) -> Option<i32>| {
        of(now).unwrap_or_default() > of(before).unwrap_or_default()
    };
    more(|s| s.updated_replicas)
        || old(now) < old(before)
        || more(|s| s.ready_replicas)
        || more(|s| s.available_replicas)
}

fn progressing(status: &DeploymentStatus) -> Option<DeploymentCondition> {
    status.conditions.iter().flatten().find(|c| c.type_ == "Progressing").cloned()
}

/// The name of the replica set that this plan creates.
fn plan_makes(plan: &Plan) -> Option<String> {
    plan.actions.iter().find_map(|action| match &action.call {
        Call::Create { kind: Kind::ReplicaSet, object, .. } => {
            Some(object.pointer("/metadata/name")?.as_str()?.to_owned())
        }
        _ => None,
    })
}

/// Sets a condition; one that says the same with the same reason stays as it
/// is, except that progress is noted each time.
fn put(
    status: &mut DeploymentStatus,
    kind: &str,
    value: &str,
    reason: &str,
    message: String,
    now: Timestamp,
) {
    let known = status.conditions.iter().flatten().find(|c| c.type_ == kind);
    let same = known.filter(|c| c.status == value);
    let repeated = same.is_some_and(|c| c.reason.as_deref() == Some(reason));
    if repeated && reason != "ReplicaSetUpdated" {
        return;
    }
    let condition = DeploymentCondition {
        type_: kind.to_owned(),
        status: value.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message),
        last_update_time: Some(Time(now)),
        last_transition_time: same.and_then(|c| c.last_transition_time.clone()).or(Some(Time(now))),
    };
    set_condition(&mut status.conditions, condition, |c| c.type_ == kind);
}

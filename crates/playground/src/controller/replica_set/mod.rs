//! Keeps as many pods of a template as are asked for.

mod victims;

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::apps::v1::{ReplicaSet, ReplicaSetCondition, ReplicaSetStatus};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;

use super::{is_orphan, pod_owners};
use crate::cluster::{Key, Seen, World, controller_of, uid};
use crate::engine::plan::{Action, Call, Complaint, Note, Part, Plan, View};
use crate::workload::{
    Availability, availability, claim, is_active, is_ready, is_terminating, later_by, pod_of,
    selects, status_patch,
};

const REPORTER: &str = "replicaset-controller";
/// The condition that says that pods cannot be made; deployments show it too.
pub(super) const FAILURE: &str = "ReplicaFailure";
/// No more pods than this are made or deleted in one go, so that the status
/// keeps up with what there is.
const BURST: usize = 100;

pub(crate) fn wake(world: &World, seen: &Seen, wake: &mut dyn FnMut(Key)) {
    match seen {
        Seen::ReplicaSet(change) => wake(Key::of(&change.object().metadata)),
        Seen::Pod(change) => {
            pod_owners(change, "ReplicaSet").for_each(&mut *wake);
            if is_orphan(change) {
                let pod = &change.object().metadata;
                let namespace = pod.namespace.as_deref().unwrap_or_default();
                for set in world.replica_sets.in_namespace(namespace) {
                    if set.spec.as_ref().is_some_and(|spec| selects(&spec.selector, pod)) {
                        wake(Key::of(&set.metadata));
                    }
                }
            }
        }
        _ => {}
    }
}

/// Makes missing pods, deletes surplus ones, and counts.
pub(crate) fn plan(view: View<'_>, key: &Key) -> Plan {
    let mut plan = Plan::default();
    let Some(set) = view.world.replica_sets.get(key) else { return plan };
    let Some(spec) = &set.spec else { return plan };
    let pods = claim(&mut plan, &view.world.pods, &**set, &spec.selector);
    let active: Vec<Arc<Pod>> = pods.owned.iter().filter(|pod| is_active(pod)).cloned().collect();
    let wanted = usize::try_from(spec.replicas.unwrap_or(1)).unwrap_or_default();
    if set.metadata.deletion_timestamp.is_none() && !pods.adopting {
        if active.len() < wanted {
            make(&mut plan, set, (wanted - active.len()).min(BURST));
            plan.complaint = complaint(set, view.now);
        } else if active.len() > wanted {
            let n_surplus = (active.len() - wanted).min(BURST);
            let siblings = siblings(view.world, set);
            let victims = victims::choose(&active, &siblings, n_surplus, view.now);
            victims.iter().for_each(|pod| delete(&mut plan, set, pod));
        }
    }
    let n_terminating = pods.owned.iter().filter(|pod| is_terminating(pod)).count();
    let mut new = counted(&mut plan, view, set, &active, n_terminating);
    if active.len() >= wanted {
        withdraw_complaint(&mut new);
    }
    plan.actions.extend(status_patch(&**set, &new, false).map(quiet));
    plan
}

/// Says in the status that pods cannot be made, unless it says so already.
fn complaint(set: &ReplicaSet, now: Timestamp) -> Option<Complaint> {
    let known = set.status.iter().flat_map(|status| status.conditions.iter().flatten());
    if known.clone().any(|c| c.type_ == FAILURE && c.status == "True") {
        return None;
    }
    let mut conditions = vec![ReplicaSetCondition {
        type_: FAILURE.to_owned(),
        status: "True".to_owned(),
        reason: Some("FailedCreate".to_owned()),
        message: Some(String::new()),
        last_transition_time: Some(Time(now)),
    }];
    conditions.extend(known.filter(|c| c.type_ != FAILURE).cloned());
    let patch = json!({ "status": { "conditions": conditions } });
    Some(Complaint {
        call: Call::patch(set, Part::Status, patch),
        reason_at: "/status/conditions/0/message",
    })
}

fn withdraw_complaint(set: &mut ReplicaSet) {
    let conditions = set.status.as_mut().and_then(|status| status.conditions.as_mut());
    if let Some(conditions) = conditions {
        conditions.retain(|c| c.type_ != FAILURE);
    }
}

fn make(plan: &mut Plan, set: &ReplicaSet, n: usize) {
    let Some(template) = set.spec.as_ref().and_then(|spec| spec.template.as_ref()) else { return };
    let call = Call::create(&pod_of(template, set));
    let action = Action {
        call,
        on_success: Some(
            Note::normal(set, REPORTER, "SuccessfulCreate", "Created pod: ").with_name(),
        ),
        on_failure: Some(Note::warning(set, REPORTER, "FailedCreate", "Error creating: ")),
    };
    plan.actions.extend(std::iter::repeat_n(action, n));
}

fn delete(plan: &mut Plan, set: &ReplicaSet, pod: &Pod) {
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    plan.actions.push(Action {
        call: Call::delete(pod, None),
        on_success: Some(Note::normal(
            set,
            REPORTER,
            "SuccessfulDelete",
            format!("Deleted pod: {name}"),
        )),
        on_failure: Some(Note::warning(set, REPORTER, "FailedDelete", "Error deleting: ")),
    });
}

/// The set with the status that its pods give it.
fn counted(
    plan: &mut Plan,
    view: View<'_>,
    set: &ReplicaSet,
    active: &[Arc<Pod>],
    n_terminating: usize,
) -> ReplicaSet {
    let mut new = set.clone();
    let spec = set.spec.as_ref();
    let min_ready = spec.and_then(|spec| spec.min_ready_seconds).unwrap_or_default();
    let labels = spec.and_then(|spec| spec.template.as_ref()?.metadata.as_ref()?.labels.clone());
    let labels = labels.unwrap_or_default();
    let (mut labelled, mut ready, mut available) = (0, 0, 0);
    for pod in active {
        let own = pod.metadata.labels.as_ref();
        let full = labels.iter().all(|(key, value)| own.and_then(|l| l.get(key)) == Some(value));
        labelled += i32::from(full);
        ready += i32::from(is_ready(pod));
        match availability(pod, min_ready, view.now) {
            Availability::Available => available += 1,
            // One tick more, since times in objects have no fractions.
            Availability::At(at) => plan.wake_at(later_by(at, SignedDuration::from_millis(1))),
            Availability::No => {}
        }
    }
    let count = |n: usize| i32::try_from(n).unwrap_or(i32::MAX);
    let conditions = set.status.as_ref().and_then(|status| status.conditions.clone());
    new.status = Some(ReplicaSetStatus {
        replicas: count(active.len()),
        fully_labeled_replicas: Some(labelled),
        ready_replicas: Some(ready),
        available_replicas: Some(available),
        terminating_replicas: Some(count(n_terminating)),
        observed_generation: set.metadata.generation,
        conditions,
    });
    new
}

/// The pods of all sets of the same deployment: a node with many of them can
/// spare one sooner.
fn siblings(world: &World, set: &ReplicaSet) -> Vec<Arc<Pod>> {
    let uids: Vec<&str> = match controller_of(&set.metadata) {
        Some(owner) => {
            world.replica_sets.owned_by(&owner.uid).map(|set| uid(&set.metadata)).collect()
        }
        None => vec![uid(&set.metadata)],
    };
    let pods = uids.into_iter().flat_map(|uid| world.pods.owned_by(uid));
    pods.filter(|pod| is_active(pod)).cloned().collect()
}

fn quiet(call: Call) -> Action {
    Action { call, on_success: None, on_failure: None }
}

#[cfg(test)]
mod tests;

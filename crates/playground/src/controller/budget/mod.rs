//! Counts how many pods of a disruption budget may be disrupted.

mod scale;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector, Time};

use crate::cluster::{Key, Seen, World};
use crate::engine::plan::{Note, Plan, View};
use crate::workload::{
    has_ended, is_ready, is_terminating, later_by, selects, set_condition, status_patch,
};
use scale::{Scale, scale};

const REPORTER: &str = "controllermanager";
const CONDITION: &str = "DisruptionAllowed";
/// An eviction that was allowed is counted for so long, unless it happens.
const TIMEOUT: SignedDuration = SignedDuration::from_mins(2);

pub(crate) fn wake(world: &World, seen: &Seen, wake: &mut dyn FnMut(Key)) {
    let mut in_namespace = |namespace: Option<&String>| {
        let namespace = namespace.map(String::as_str).unwrap_or_default();
        let budgets = world.budgets.in_namespace(namespace);
        budgets.for_each(|budget| wake(Key::of(&budget.metadata)));
    };
    match seen {
        Seen::Budget(change) => wake(Key::of(&change.object().metadata)),
        Seen::Pod(change) => {
            let namespace = change.object().metadata.namespace.as_deref().unwrap_or_default();
            for budget in world.budgets.in_namespace(namespace) {
                let selector = budget.spec.as_ref().and_then(|spec| spec.selector.as_ref());
                let concerned =
                    selector.is_some_and(|s| change.both().any(|pod| selects(s, &pod.metadata)));
                if concerned {
                    wake(Key::of(&budget.metadata));
                }
            }
        }
        // The expected number may follow from the size of a controller.
        Seen::Deployment(change) => in_namespace(change.object().metadata.namespace.as_ref()),
        Seen::ReplicaSet(change) => in_namespace(change.object().metadata.namespace.as_ref()),
        Seen::StatefulSet(change) => in_namespace(change.object().metadata.namespace.as_ref()),
        _ => {}
    }
}

/// Brings a budget's status up to date.
pub(crate) fn plan(view: View<'_>, key: &Key) -> Plan {
    let mut plan = Plan::default();
    let Some(budget) = view.world.budgets.get(key) else { return plan };
    let Some(spec) = &budget.spec else { return plan };
    let pods = selected(view.world, &key.namespace, spec.selector.as_ref());
    let scale = match scale(view.world, spec, &pods) {
        Ok(scale) => scale,
        Err(message) => {
            fail(&mut plan, budget, message, view.now);
            return plan;
        }
    };
    let Scale { expected, desired, has_unmanaged } = scale;
    let disrupted = still_disrupted(&mut plan, budget, &pods, view.now);
    let healthy = pods.iter().filter(|pod| {
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        !is_terminating(pod) && !disrupted.contains_key(name) && is_ready(pod)
    });
    let healthy = count(healthy.count());
    let allowed = if expected > 0 { (healthy - desired).max(0) } else { 0 };
    let before = budget.status.clone().unwrap_or_default();
    let mut status = PodDisruptionBudgetStatus {
        observed_generation: budget.metadata.generation,
        current_healthy: Some(healthy),
        desired_healthy: Some(desired),
        expected_pods: Some(expected),
        disruptions_allowed: Some(allowed),
        disrupted_pods: (!disrupted.is_empty()).then_some(disrupted),
        conditions: before.conditions,
    };
    say(&mut status, allowed > 0, budget.metadata.generation, view.now);
    let new = PodDisruptionBudget { status: Some(status), ..PodDisruptionBudget::clone(budget) };
    // Evictions count themselves in the same status.
    if let Some(call) = status_patch(&**budget, &new, true) {
        if has_unmanaged {
            let message = "Some pods of this budget have no controller, so what it allows cannot \
                           be calculated; an integer in spec.minAvailable accounts for them";
            plan.call_noting(call, Note::warning(&**budget, REPORTER, "UnmanagedPods", message));
        } else {
            plan.call(call);
        }
    }
    plan
}

fn selected(world: &World, namespace: &str, selector: Option<&LabelSelector>) -> Vec<Arc<Pod>> {
    let Some(selector) = selector else { return Vec::new() };
    let pods = world.pods.in_namespace(namespace);
    pods.filter(|pod| selects(selector, &pod.metadata) && !has_ended(pod)).cloned().collect()
}

/// Allows nothing, since nobody knows how many pods there should be.
fn fail(plan: &mut Plan, budget: &PodDisruptionBudget, message: String, now: Timestamp) {
    let mut new = budget.clone();
    let status = new.status.get_or_insert_default();
    status.disruptions_allowed = Some(0);
    let known = status.conditions.iter().flatten().find(|c| c.type_ == CONDITION);
    let since = known.filter(|c| c.status == "False").map(|c| c.last_transition_time.clone());
    let condition = Condition {
        type_: CONDITION.to_owned(),
        status: "False".to_owned(),
        reason: "SyncFailed".to_owned(),
        message: message.clone(),
        observed_generation: status.observed_generation,
        last_transition_time: since.unwrap_or(Time(now)),
    };
    set_condition(&mut status.conditions, condition, |c| c.type_ == CONDITION);
    if let Some(call) = status_patch(budget, &new, true) {
        let message = format!("Failed to calculate the number of expected pods: {message}");
        let reason = "CalculateExpectedPodCountFailed";
        plan.call_noting(call, Note::warning(budget, REPORTER, reason, message));
    }
}

fn still_disrupted(
    plan: &mut Plan,
    budget: &PodDisruptionBudget,
    pods: &[Arc<Pod>],
    now: Timestamp,
) -> BTreeMap<String, Time> {
    let known = budget.status.as_ref().and_then(|status| status.disrupted_pods.clone());
    let mut disrupted = known.unwrap_or_default();
    disrupted.retain(|name, since| {
        let end = later_by(since.0, TIMEOUT);
        let alive =
            pods.iter().any(|pod| pod.metadata.name.as_ref() == Some(name) && !is_terminating(pod));
        if alive && end > now {
            plan.wake_at(end);
        }
        alive && end > now
    });
    disrupted
}

fn say(
    status: &mut PodDisruptionBudgetStatus,
    allowed: bool,
    generation: Option<i64>,
    now: Timestamp,
) {
    let (value, reason) =
        if allowed { ("True", "SufficientPods") } else { ("False", "InsufficientPods") };
    let known = status.conditions.iter().flatten().find(|c| c.type_ == CONDITION);
    let since = known.filter(|c| c.status == value).map(|c| c.last_transition_time.clone());
    let condition = Condition {
        type_: CONDITION.to_owned(),
        status: value.to_owned(),
        reason: reason.to_owned(),
        message: String::new(),
        observed_generation: generation,
        last_transition_time: since.unwrap_or(Time(now)),
    };
    set_condition(&mut status.conditions, condition, |c| c.type_ == CONDITION);
}

fn count(n: usize) -> i32 {
    i32::try_from(n).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests;

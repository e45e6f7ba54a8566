//! Counts how many pods of a disruption budget may be disrupted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector, Time};

use crate::cluster::{Key, Seen, World, controller_of};
use crate::engine::plan::{Plan, View};
use crate::workload::{
    Round, has_ended, is_ready, is_terminating, resolve, selects, set_condition, status_patch,
};

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
    let n_pods = count(pods.len());
    let (expected, desired) = if let Some(most) = &spec.max_unavailable {
        let expected = expected(view.world, &pods);
        let most = resolve(Some(most), expected, Round::Up).unwrap_or_default();
        (expected, (expected - most).max(0))
    } else {
        match &spec.min_available {
            Some(least @ k8s_openapi::apimachinery::pkg::util::intstr::IntOrString::Int(_)) => {
                (n_pods, resolve(Some(least), n_pods, Round::Up).unwrap_or_default())
            }
            Some(least) => {
                let expected = expected(view.world, &pods);
                (expected, resolve(Some(least), expected, Round::Up).unwrap_or_default())
            }
            None => (n_pods, 1.min(n_pods)),
        }
    };
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
        plan.call(call);
    }
    plan
}

fn selected(world: &World, namespace: &str, selector: Option<&LabelSelector>) -> Vec<Arc<Pod>> {
    let Some(selector) = selector else { return Vec::new() };
    let pods = world.pods.in_namespace(namespace);
    pods.filter(|pod| selects(selector, &pod.metadata) && !has_ended(pod)).cloned().collect()
}

/// How many pods the controllers of these pods are to have together.
fn expected(world: &World, pods: &[Arc<Pod>]) -> i32 {
    let mut seen = BTreeSet::new();
    let mut total = 0;
    for pod in pods {
        let Some(owner) = controller_of(&pod.metadata) else { continue };
        let namespace = pod.metadata.namespace.clone().unwrap_or_default();
        let key = Key::new(namespace.clone(), owner.name.clone());
        let (uid, size) = match owner.kind.as_str() {
            "ReplicaSet" => {
                let Some(set) = world.replica_sets.get(&key) else { continue };
                let outer = controller_of(&set.metadata).filter(|o| o.kind == "Deployment");
                let deployment = outer.and_then(|outer| {
                    let key = Key::new(namespace, outer.name.clone());
                    Some((outer, world.deployments.get(&key)?))
                });
                match deployment {
                    Some((outer, deployment)) => {
                        let size = deployment.spec.as_ref().and_then(|spec| spec.replicas);
                        (outer.uid.clone(), size.unwrap_or(1))
                    }
                    None => {
                        let size = set.spec.as_ref().and_then(|spec| spec.replicas);
                        (owner.uid.clone(), size.unwrap_or(1))
                    }
                }
            }
            "StatefulSet" => {
                let Some(set) = world.stateful_sets.get(&key) else { continue };
                let size = set.spec.as_ref().and_then(|spec| spec.replicas);
                (owner.uid.clone(), size.unwrap_or(1))
            }
            _ => continue,
        };
        if seen.insert(uid) {
            total += size;
        }
    }
    total
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
        let end = since.0 + TIMEOUT;
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

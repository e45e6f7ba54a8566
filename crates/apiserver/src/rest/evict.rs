//! Eviction: deletion of a pod if its disruption budgets allow it.
//!
//! A pod that does not serve anybody yet or any more (it has ended, waits for a
//! node, or is going) costs its budget nothing. For all others the budget is
//! charged first, and the pod is written down in `disruptedPods` until whoever
//! keeps the budget sees it go.

use http::Response;
use serde_json::{Value, json};
use steersman_apimachinery::error::ApiError;
use steersman_apimachinery::resource::Subresource;
use steersman_apimachinery::rules::View;
use steersman_apimachinery::selector;

use super::respond::Body;
use super::{Call, delete, subresource};
use crate::clock::rfc3339;
use crate::meta;
use crate::writes::{DeleteOptions, Writer};

/// As many evictions may wait for whoever keeps the budget.
const MOST_DISRUPTED: usize = 2_000;
/// How often a pod that changes meanwhile is looked at.
const TRIES: u32 = 5;

pub(super) fn answer(
    call: &Call<'_>,
    subresource: &Subresource,
) -> Result<Response<Body>, ApiError> {
    let mut document = call.document()?;
    // Older clients speak of it in the version that it had before.
    if let Some(version) = document.value.get_mut("apiVersion")
        && version == "policy/v1beta1"
    {
        *version = Value::from("policy/v1");
    }
    let eviction = subresource::body(call, subresource, document)?;
    let options = eviction.get("deleteOptions").cloned().unwrap_or_else(|| json!({}));
    let (options, dry_run) = delete::read_options(&options)?;
    let mut writer = call.writer()?;
    writer.dry_run |= dry_run;
    let (namespace, name) = (call.path.namespace.as_str(), call.path.name.as_str());
    remove(&writer, (namespace, name), &options, &mut |pod| match costs_budget(pod) {
        Some(true) => charge(call, &writer, pod),
        Some(false) => Ok(Cost::FreeAsSeen),
        None => Ok(Cost::Settled),
    })?;
    let done = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201,
    });
    Ok(call.respond_value(201, &done))
}

/// What an eviction costs the pod's budget.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cost {
    /// Whatever becomes of the pod, nothing more has to be asked.
    Settled,
    /// Nothing, as long as the pod is as it was seen: it may begin to serve.
    FreeAsSeen,
}

/// Deletes the pod for which `pay` was asked. One that goes for free must still
/// be in the state for which it does; otherwise the cost is found out again.
fn remove(
    writer: &Writer<'_>,
    (namespace, name): (&str, &str),
    options: &DeleteOptions,
    pay: &mut dyn FnMut(&Value) -> Result<Cost, ApiError>,
) -> Result<(), ApiError> {
    let mut tries = 1;
    loop {
        let pod = writer.get(namespace, name)?;
        let is_guarded = pay(&pod.value)? == Cost::FreeAsSeen && options.resource_version.is_none();
        let mut exact = options.clone();
        exact.uid.get_or_insert_with(|| meta::uid(&pod.value).to_owned());
        if is_guarded {
            exact.resource_version = Some(meta::text(&pod.value, "resourceVersion").to_owned());
        }
        match writer.delete(namespace, name, &exact) {
            Err(error) if error.code == 409 && is_guarded && tries < TRIES => tries += 1,
            answer => return answer.map(drop),
        }
    }
}

/// Whether the pod's budget has a say: not about a pod that does not serve
/// (yet). `None` for one that never will again.
fn costs_budget(pod: &Value) -> Option<bool> {
    let phase = pod.pointer("/status/phase").and_then(Value::as_str).unwrap_or("");
    if meta::is_terminating(pod) || matches!(phase, "Succeeded" | "Failed") {
        return None;
    }
    Some(phase != "Pending")
}

/// Takes the pod from the budget that it belongs to, if there is one.
fn charge(call: &Call<'_>, writer: &Writer<'_>, pod: &Value) -> Result<Cost, ApiError> {
    let namespace = meta::namespace(pod);
    let budgets = call.server.list("policy", "poddisruptionbudgets", Some(namespace));
    let covers = |budget: &Value| {
        let Some(wanted) = budget.pointer("/spec/selector") else { return false };
        selector::from_value(wanted).is_ok_and(|selector| selector.matches(meta::labels(pod)))
    };
    let covering: Vec<_> = budgets.iter().filter(|budget| covers(budget)).collect();
    let budget = match covering.as_slice() {
        [] => return Ok(Cost::Settled),
        [budget] => budget,
        _ => {
            return Err(ApiError::internal(
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
            ));
        }
    };
    if !is_ready(pod) && may_go_unready(budget) {
        return Ok(Cost::FreeAsSeen);
    }
    let Some(entry) = call.server.registry.find("policy", "v1", "poddisruptionbudgets") else {
        return Ok(Cost::Settled);
    };
    let budgets = Writer { entry, ..*writer };
    let mut disrupt = |budget: &mut Value| disrupt(call, budget, meta::name(pod));
    budgets.modify(namespace, meta::name(budget), &mut disrupt)?;
    Ok(Cost::Settled)
}

fn disrupt(call: &Call<'_>, budget: &mut Value, pod: &str) -> Result<(), ApiError> {
    let number = |path: &str| budget.pointer(path).and_then(Value::as_i64).unwrap_or(0);
    let name = meta::name(budget).to_owned();
    if number("/status/observedGeneration") < number("/metadata/generation") {
        let cause = format!("The disruption budget {name} is still being processed by the server.");
        return Err(too_many(&cause, 10));
    }
    let allowed = number("/status/disruptionsAllowed");
    let disrupted = budget.pointer("/status/disruptedPods").and_then(Value::as_object);
    if allowed < 0 {
        let why = "pdb disruptions allowed is negative";
        return Err(ApiError::forbidden(call.resource, pod, why));
    }
    if disrupted.is_some_and(|pods| pods.len() > MOST_DISRUPTED) {
        let why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller";
        return Err(ApiError::forbidden(call.resource, pod, why));
    }
    if allowed == 0 {
        let cause = format!(
            "The disruption budget {name} needs {} healthy pods and has {} currently",
            number("/status/desiredHealthy"),
            number("/status/currentHealthy"),
        );
        return Err(too_many(&cause, 0));
    }
    let status = &mut budget["status"];
    status["disruptionsAllowed"] = Value::from(allowed - 1);
    if !status["disruptedPods"].is_object() {
        status["disruptedPods"] = json!({});
    }
    status["disruptedPods"][pod] = Value::from(rfc3339(call.now));
    if allowed == 1 {
        insufficient(status, call);
    }
    Ok(())
}

/// The last allowed disruption is taken: says so in the budget's conditions.
fn insufficient(status: &mut Value, call: &Call<'_>) {
    let conditions = status.get_mut("conditions").and_then(Value::as_array_mut);
    let condition = conditions.and_then(|conditions| {
        conditions.iter_mut().find(|condition| condition["type"] == "DisruptionAllowed")
    });
    if let Some(condition) = condition
        && condition["status"] != "False"
    {
        condition["status"] = Value::from("False");
        condition["reason"] = Value::from("InsufficientPods");
        condition["lastTransitionTime"] = Value::from(rfc3339(call.now));
    }
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod.pointer("/status/conditions").and_then(Value::as_array);
    conditions
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

/// Whether a pod that is not ready may go without being charged.
fn may_go_unready(budget: &Value) -> bool {
    let policy = budget.pointer("/spec/unhealthyPodEvictionPolicy").and_then(Value::as_str);
    if policy == Some("AlwaysAllow") {
        return true;
    }
    let number = |path: &str| budget.pointer(path).and_then(Value::as_i64).unwrap_or(0);
    let (have, need) = (number("/status/currentHealthy"), number("/status/desiredHealthy"));
    have >= need && need > 0
}

fn too_many(cause: &str, retry_seconds: i64) -> ApiError {
    let message = "Cannot evict pod as it would violate the pod's disruption budget.";
    let mut error = ApiError::new(429, "TooManyRequests", message);
    let mut details = json!({ "causes": [{ "reason": "DisruptionBudget", "message": cause }] });
    if retry_seconds > 0 {
        details["retryAfterSeconds"] = Value::from(retry_seconds);
    }
    error.details = Some(details);
    error
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::User;
    use crate::harness::{Harness, PODS, pod};

    /// Evicts `p`; it changes `changes` times between the look and the deletion.
    /// Returns the answer's code and how often its cost was asked for.
    async fn evict_while_it_changes(cost: Cost, changes: u32) -> (u16, u32) {
        let harness = Harness::new();
        harness.post(PODS, &pod("p")).await.ok();
        let server = &harness.server.inner;
        let user = User::admin();
        let writer = Writer {
            server,
            entry: server.registry.find("", "v1", "pods").unwrap(),
            user: &user,
            now: server.now(),
            dry_run: false,
            manager: "tests",
        };
        let mut asked = 0;
        let done = remove(&writer, ("default", "p"), &DeleteOptions::default(), &mut |_| {
            asked += 1;
            if asked <= changes {
                writer.modify("default", "p", &mut |pod| {
                    pod["metadata"]["annotations"] = json!({ "change": asked.to_string() });
                    Ok(())
                })?;
            }
            Ok(cost)
        });
        (done.map_or_else(|error| error.code, |()| 200), asked)
    }

    #[tokio::test]
    async fn what_goes_for_free_goes_as_it_was_seen() {
        for (cost, changes, expected) in [
            (Cost::FreeAsSeen, 0, (200, 1)),
            (Cost::FreeAsSeen, 1, (200, 2)),
            (Cost::FreeAsSeen, u32::MAX, (409, TRIES)),
            (Cost::Settled, u32::MAX, (200, 1)),
        ] {
            assert_eq!(evict_while_it_changes(cost, changes).await, expected, "{changes}");
        }
    }
}

//! What a node does with the pods that are bound to it.
//!
//! ```text
//! bound ──start delay──► Running ──run time──► Succeeded | Failed | restarted
//!    └───────────── deleted ──stop delay──► ended, then removed
//! ```

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::process::{self, Ending};
use super::{EXIT_ANNOTATION, Health, KUBELET, RUN_ANNOTATION, condition_status, health};
use crate::cluster::{Change, Key, Seen, Watched, World, uid};
use crate::controller::storage;
use crate::engine::plan::{Action, Call, Note, Plan, View};
use crate::workload::{condition, has_ended, is_terminating, later_by, phase, status_patch};

/// Failed containers are restarted after this time, then twice, four times …
const FIRST_BACKOFF: SignedDuration = SignedDuration::from_secs(10);
const LONGEST_BACKOFF: SignedDuration = SignedDuration::from_mins(5);

pub(crate) fn wake(world: &World, seen: &Seen, wake: &mut dyn FnMut(Key)) {
    match seen {
        Seen::Pod(Change { new: Some(pod), .. }) if pod.node().is_some() => {
            wake(Key::of(&pod.metadata));
        }
        Seen::Claim(Change { old, new: Some(claim) })
            if storage::is_bound(claim) && !old.as_deref().is_some_and(storage::is_bound) =>
        {
            storage::users(world, claim).for_each(|pod| wake(Key::of(&pod.metadata)));
        }
        Seen::Node(change) => {
            let told = |node: &Node| (health(node), condition_status(node, "Ready") == "True");
            let before = change.old.as_deref().map(told);
            if change.new.as_deref().map(told) != before {
                let name = change.object().metadata.name.as_deref().unwrap_or_default();
                world.pods.on_node(name).for_each(|pod| wake(Key::of(&pod.metadata)));
            }
        }
        _ => {}
    }
}

/// Takes the next step with a pod.
pub(crate) fn plan(view: View<'_>, key: &Key) -> Plan {
    let mut plan = Plan::default();
    let Some(pod) = view.world.pods.get(key) else { return plan };
    let Some(node_name) = pod.node() else { return plan };
    let Some(node) = view.world.nodes.get(&Key::new("", node_name)) else { return plan };
    let health = health(node);
    if health == Health::Silent {
        return plan;
    }
    if is_terminating(pod) {
        stop(&mut plan, view, pod, node_name);
    } else if has_ended(pod) {
        // What has ended stays until somebody deletes it.
    } else if phase(pod) == "Running" {
        let node_ready = condition_status(node, "Ready") == "True";
        keep_running(&mut plan, view, pod, node_name, node_ready);
    } else if health == Health::Well && storage::has_volumes(view.world, pod) {
        start(&mut plan, view, pod, node_name);
    }
    plan
}

fn start(plan: &mut Plan, view: View<'_>, pod: &Pod, node: &str) {
    let at = later_by(bound_at(pod), view.settings.start_delay);
    if at > view.now {
        plan.wake_at(at);
        return;
    }
    let mut new = pod.clone();
    let host = view.world.addresses.of_node(node);
    let address =
        if host_network(pod) { host } else { view.world.addresses.of_pod(uid(&pod.metadata)) };
    process::start(&mut new, host, address, view.now);
    let Some(call) = status_patch(pod, &new, true) else { return };
    plan.ordered = true;
    plan.call(call);
    for container in pod.spec.iter().flat_map(|spec| &spec.containers) {
        let image = container.image.as_deref().unwrap_or_default();
        let pulled = format!(
            "Container image \"{image}\" already present on machine and can be accessed by the pod"
        );
        let notes = [
            ("Pulled", pulled),
            ("Created", "Container created".to_owned()),
            ("Started", "Container started".to_owned()),
        ];
        for (reason, message) in notes {
            plan.note(about(pod, &container.name, node, reason, message));
        }
    }
}

/// Ends the pod's processes when they have run long enough, restarts them when
/// they have waited long enough, and keeps the conditions right.
fn keep_running(plan: &mut Plan, view: View<'_>, pod: &Pod, node: &str, node_ready: bool) {
    let mut new = pod.clone();
    let policy = pod.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref());
    let (state, n_restarts) = process::state(pod);
    match state {
        process::State::Running(since) => {
            if let Some(run_time) = run_time(pod, view.settings.run_time) {
                let end = later_by(since, run_time);
                if end > view.now {
                    plan.wake_at(end);
                } else {
                    let code = exit_code(pod);
                    let ending = match (policy, code) {
                        (Some("Never"), _) | (Some("OnFailure"), 0) => Ending::ForGood,
                        _ => Ending::Restarts(backoff(n_restarts)),
                    };
                    process::end(&mut new, code, ending, view.now);
                }
            }
        }
        process::State::Waiting(since) => {
            let again = later_by(since, backoff(n_restarts));
            if again > view.now {
                plan.wake_at(again);
            } else {
                process::restart(&mut new, view.now);
            }
        }
        process::State::Unknown => {}
    }
    // While its node is not ready, the pod is marked by the node's keeper.
    if node_ready && !has_ended(&new) {
        process::refresh_conditions(&mut new, view.now);
    }
    let Some(call) = status_patch(pod, &new, true) else { return };
    let failing = matches!(process::state(&new).0, process::State::Waiting(_))
        && !matches!(state, process::State::Waiting(_));
    if failing {
        let name = pod.spec.iter().flat_map(|s| &s.containers).next().map(|c| c.name.as_str());
        let name = name.unwrap_or_default();
        let message = format!(
            "Back-off restarting failed container {name} in pod {}_{}({})",
            pod.metadata.name.as_deref().unwrap_or_default(),
            pod.metadata.namespace.as_deref().unwrap_or_default(),
            uid(&pod.metadata),
        );
        let note = Note { warning: true, ..about(pod, name, node, "BackOff", message) };
        plan.call_noting(call, note);
    } else {
        plan.call(call);
    }
}

/// Simulated processes end as soon as they are asked to, or after the stop
/// delay, but never later than their grace period allows.
fn stop(plan: &mut Plan, view: View<'_>, pod: &Pod, node: &str) {
    let grace = pod.metadata.deletion_grace_period_seconds.unwrap_or_default().max(0);
    let grace = SignedDuration::from_secs(grace);
    let deadline = pod.metadata.deletion_timestamp.as_ref().map_or(view.now, |time| time.0);
    let asked = later_by(deadline, -grace);
    let end = later_by(asked, grace.min(view.settings.stop_delay));
    if end > view.now {
        plan.wake_at(end);
        return;
    }
    plan.ordered = true;
    if phase(pod) == "Running" {
        let mut new = pod.clone();
        process::kill(&mut new, view.now);
        plan.actions.extend(status_patch(pod, &new, false).map(|call| {
            let name = pod.spec.iter().flat_map(|s| &s.containers).next().map(|c| c.name.as_str());
            let name = name.unwrap_or_default();
            let message = format!("Stopping container {name}");
            let note = about(pod, name, node, "Killing", message);
            Action { call, on_success: Some(note), on_failure: None }
        }));
    }
    // A pod that only its finalizers keep has been deleted already; asking
    // again would change nothing.
    let deleted =
        grace.is_zero() && pod.metadata.finalizers.as_ref().is_some_and(|f| !f.is_empty());
    if !deleted {
        plan.call(Call::delete(pod, Some(0)));
    }
}

/// When the pod came to its node.
pub(crate) fn bound_at(pod: &Pod) -> Timestamp {
    let scheduled = condition(pod, "PodScheduled").filter(|c| c.status == "True");
    let scheduled = scheduled.and_then(|c| c.last_transition_time.as_ref());
    let created = pod.metadata.creation_timestamp.as_ref();
    scheduled.or(created).map_or(Timestamp::UNIX_EPOCH, |time| time.0)
}

fn backoff(n_restarts: i32) -> SignedDuration {
    let doubled = FIRST_BACKOFF.saturating_mul(1 << n_restarts.clamp(0, 10));
    doubled.min(LONGEST_BACKOFF)
}

fn annotation<'a>(pod: &'a Pod, key: &str) -> Option<&'a str> {
    pod.metadata.annotations.as_ref()?.get(key).map(String::as_str)
}

/// How long the pod's containers run; for ever if nothing says otherwise.
fn run_time(pod: &Pod, default: SignedDuration) -> Option<SignedDuration> {
    let given = annotation(pod, RUN_ANNOTATION)
        .and_then(|text| text.trim().parse::<f64>().ok())
        .and_then(|seconds| SignedDuration::try_from_secs_f64(seconds.max(0.)).ok());
    let policy = pod.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref());
    let runs_on = matches!(policy, None | Some("Always"));
    given.or((!runs_on).then_some(default))
}

fn exit_code(pod: &Pod) -> i32 {
    annotation(pod, EXIT_ANNOTATION).and_then(|text| text.trim().parse().ok()).unwrap_or_default()
}

fn host_network(pod: &Pod) -> bool {
    pod.spec.as_ref().is_some_and(|spec| spec.host_network == Some(true))
}

fn about(pod: &Pod, container: &str, node: &str, reason: &'static str, message: String) -> Note {
    let mut note = Note::normal(pod, KUBELET, reason, message).from_host(node);
    note.about.field_path = Some(format!("spec.containers{{{container}}}"));
    note
}

/// A call that marks a pod as not ready, for the controller of nodes.
pub(crate) fn mark_not_ready(pod: &Pod, now: Timestamp) -> Option<Call> {
    let mut new = pod.clone();
    let ready = process::condition_mut(&mut new, "Ready").filter(|c| c.status == "True")?;
    "False".clone_into(&mut ready.status);
    ready.last_transition_time = Some(Time(now));
    status_patch(pod, &new, true)
}

/// A call that says why a pod is going to be deleted; none if it says so.
pub(crate) fn mark_disrupted(
    pod: &Pod,
    reason: &str,
    message: &str,
    now: Timestamp,
) -> Option<Call> {
    let mut new = pod.clone();
    process::put_condition(&mut new, "DisruptionTarget", "True", Some((reason, message)), now);
    status_patch(pod, &new, true)
}

#[cfg(test)]
mod tests;

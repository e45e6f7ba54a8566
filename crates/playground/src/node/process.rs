//! The containers of a pod as its status shows them.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{
    Container, ContainerState, ContainerStateRunning, ContainerStateTerminated,
    ContainerStateWaiting, ContainerStatus, HostIP, Pod, PodCondition, PodIP, PodStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::cluster::uid;
use crate::workload::set_condition;

/// What containers that were told to stop end with.
const TERMINATED: i32 = 143;

/// What the first container does; in the simulation all do the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It has run since then.
    Running(Timestamp),
    /// It ended then and will be started again.
    Waiting(Timestamp),
    /// The status does not say.
    Unknown,
}

/// What comes after the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// Nothing.
    ForGood,
    /// A restart after that time.
    Restarts(SignedDuration),
}

/// What the pod's containers do, and how often they have been restarted.
pub(super) fn state(pod: &Pod) -> (State, i32) {
    let first = pod.status.as_ref().and_then(|s| s.container_statuses.as_ref()?.first());
    let Some(first) = first else { return (State::Unknown, 0) };
    let running = first.state.as_ref().and_then(|s| s.running.as_ref());
    let ended = first.last_state.as_ref().and_then(|s| s.terminated.as_ref());
    let state = if let Some(since) = running.and_then(|r| r.started_at.as_ref()) {
        State::Running(since.0)
    } else if let Some(since) = ended.and_then(|t| t.finished_at.as_ref()) {
        State::Waiting(since.0)
    } else {
        State::Unknown
    };
    (state, first.restart_count)
}

/// All containers run; those that come first have done their work.
pub(super) fn start(pod: &mut Pod, host: Option<&str>, address: Option<&str>, now: Timestamp) {
    let spec = pod.spec.clone().unwrap_or_default();
    let id = uid(&pod.metadata).to_owned();
    let generation = pod.metadata.generation;
    let status = pod.status.get_or_insert_default();
    status.phase = Some("Running".to_owned());
    status.observed_generation = generation;
    status.start_time.get_or_insert(Time(now));
    status.host_ip = host.map(str::to_owned);
    status.host_ips = host.map(|ip| vec![HostIP { ip: ip.to_owned() }]);
    status.pod_ip = address.map(str::to_owned);
    status.pod_ips = address.map(|ip| vec![PodIP { ip: ip.to_owned() }]);
    let sidecar = |c: &Container| c.restart_policy.as_deref() == Some("Always");
    let init = spec.init_containers.iter().flatten().map(|container| {
        if sidecar(container) {
            running(container, &id, now)
        } else {
            let state = terminated(0, Some(now), &id, &container.name, now);
            ContainerStatus {
                state: Some(state),
                ready: true,
                started: Some(false),
                ..running(container, &id, now)
            }
        }
    });
    let init: Vec<ContainerStatus> = init.collect();
    status.init_container_statuses = (!init.is_empty()).then_some(init);
    let containers = spec.containers.iter().map(|container| running(container, &id, now));
    status.container_statuses = Some(containers.collect());
    put_condition(pod, "PodReadyToStartContainers", "True", None, now);
    put_condition(pod, "Initialized", "True", None, now);
    refresh_conditions(pod, now);
}

/// Sets the conditions that follow from the containers.
pub(super) fn refresh_conditions(pod: &mut Pod, now: Timestamp) {
    let statuses = pod.status.as_ref().and_then(|s| s.container_statuses.as_deref());
    let unready: Vec<String> = statuses
        .unwrap_or_default()
        .iter()
        .filter(|status| !status.ready)
        .map(|status| status.name.clone())
        .collect();
    if !unready.is_empty() {
        let message = format!("containers with unready status: [{}]", unready.join(" "));
        let why = Some(("ContainersNotReady", message.as_str()));
        put_condition(pod, "ContainersReady", "False", why, now);
        put_condition(pod, "Ready", "False", why, now);
        return;
    }
    put_condition(pod, "ContainersReady", "True", None, now);
    let gates = pod.spec.as_ref().and_then(|spec| spec.readiness_gates.clone());
    let open =
        |kind: &str| crate::workload::condition(pod, kind).is_some_and(|c| c.status == "True");
    let closed = gates.iter().flatten().find(|gate| !open(&gate.condition_type));
    if let Some(gate) = closed {
        let message = format!(
            "the status of pod readiness gate \"{}\" is not \"True\", but False",
            gate.condition_type
        );
        put_condition(pod, "Ready", "False", Some(("ReadinessGatesNotReady", &message)), now);
    } else {
        put_condition(pod, "Ready", "True", None, now);
    }
}

/// All containers end by themselves.
pub(super) fn end(pod: &mut Pod, code: i32, ending: Ending, now: Timestamp) {
    let id = uid(&pod.metadata).to_owned();
    let status = pod.status.get_or_insert_default();
    for container in status.container_statuses.iter_mut().flatten() {
        let ended = terminated(code, started_at(container), &id, &container.name, now);
        container.ready = false;
        container.started = Some(false);
        match ending {
            Ending::ForGood => container.state = Some(ended),
            Ending::Restarts(delay) => {
                container.last_state = Some(ended);
                let message = format!("back-off {}s restarting failed container", delay.as_secs());
                container.state = Some(ContainerState {
                    waiting: Some(ContainerStateWaiting {
                        reason: Some("CrashLoopBackOff".to_owned()),
                        message: Some(message),
                    }),
                    ..Default::default()
                });
            }
        }
    }
    if ending == Ending::ForGood {
        finish(pod, code == 0, now);
    }
}

/// All containers are started again.
pub(super) fn restart(pod: &mut Pod, now: Timestamp) {
    let status = pod.status.get_or_insert_default();
    for container in status.container_statuses.iter_mut().flatten() {
        container.restart_count += 1;
        container.ready = true;
        container.started = Some(true);
        container.state = Some(running_since(now));
    }
}

/// All containers are stopped. Those that would have run for ever end in good
/// order, those that had not done their work yet have failed.
pub(super) fn kill(pod: &mut Pod, now: Timestamp) {
    let policy = pod.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref());
    let code = if matches!(policy, None | Some("Always")) { 0 } else { TERMINATED };
    end(pod, code, Ending::ForGood, now);
}

/// Sets a condition; its transition time moves with its status only.
pub(super) fn put_condition(
    pod: &mut Pod,
    kind: &str,
    value: &str,
    why: Option<(&str, &str)>,
    now: Timestamp,
) {
    let generation = pod.metadata.generation;
    let status: &mut PodStatus = pod.status.get_or_insert_default();
    let known = status.conditions.iter().flatten().find(|c| c.type_ == kind);
    let same = known.filter(|c| c.status == value);
    let condition = PodCondition {
        type_: kind.to_owned(),
        status: value.to_owned(),
        reason: why.map(|(reason, _)| reason.to_owned()),
        message: why.map(|(_, message)| message.to_owned()),
        last_probe_time: None,
        last_transition_time: same.and_then(|c| c.last_transition_time.clone()).or(Some(Time(now))),
        observed_generation: same.map_or(generation, |c| c.observed_generation.or(generation)),
    };
    set_condition(&mut status.conditions, condition, |c| c.type_ == kind);
}

/// A condition, to change.
pub(super) fn condition_mut<'a>(pod: &'a mut Pod, kind: &str) -> Option<&'a mut PodCondition> {
    pod.status.as_mut()?.conditions.as_mut()?.iter_mut().find(|c| c.type_ == kind)
}

fn finish(pod: &mut Pod, succeeded: bool, now: Timestamp) {
    let status = pod.status.get_or_insert_default();
    let (phase, why) = if succeeded {
        ("Succeeded", Some(("PodCompleted", "")))
    } else {
        ("Failed", Some(("PodFailed", "")))
    };
    status.phase = Some(phase.to_owned());
    for kind in ["Ready", "ContainersReady", "PodReadyToStartContainers"] {
        let why = if kind == "PodReadyToStartContainers" { None } else { why };
        put_condition(pod, kind, "False", why, now);
        if let Some(condition) = condition_mut(pod, kind) {
            condition.message = None;
        }
    }
    if succeeded {
        put_condition(pod, "Initialized", "True", Some(("PodCompleted", "")), now);
        if let Some(condition) = condition_mut(pod, "Initialized") {
            condition.message = None;
        }
    }
}

fn running(container: &Container, uid: &str, now: Timestamp) -> ContainerStatus {
    let image = container.image.clone().unwrap_or_default();
    ContainerStatus {
        name: container.name.clone(),
        image_id: format!("steersman://{image}"),
        image,
        container_id: Some(container_id(uid, &container.name)),
        ready: true,
        started: Some(true),
        state: Some(running_since(now)),
        resources: container.resources.clone(),
        ..Default::default()
    }
}

fn running_since(now: Timestamp) -> ContainerState {
    ContainerState {
        running: Some(ContainerStateRunning { started_at: Some(Time(now)) }),
        ..Default::default()
    }
}

fn terminated(
    code: i32,
    since: Option<Timestamp>,
    uid: &str,
    name: &str,
    now: Timestamp,
) -> ContainerState {
    let reason = if code == 0 { "Completed" } else { "Error" };
    ContainerState {
        terminated: Some(ContainerStateTerminated {
            exit_code: code,
            reason: Some(reason.to_owned()),
            started_at: since.map(Time),
            finished_at: Some(Time(now)),
            container_id: Some(container_id(uid, name)),
            ..Default::default()
        }),
        ..Default::default()
    }
}

fn started_at(container: &ContainerStatus) -> Option<Timestamp> {
    container.state.as_ref()?.running.as_ref()?.started_at.as_ref().map(|time| time.0)
}

fn container_id(uid: &str, name: &str) -> String {
    format!("steersman://{uid}/{name}")
}

//! What state a pod is in.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, PodCondition};

use super::later;

/// Whether and when a pod is available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Availability {
    /// It has been ready for long enough.
    Available,
    /// It will have been by then, if it stays ready.
    At(Timestamp),
    /// It is not ready.
    No,
}

/// The phase; empty when there is none.
pub(crate) fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|s| s.phase.as_deref()).unwrap_or_default()
}

/// Whether the pod has run to its end.
pub(crate) fn has_ended(pod: &Pod) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
}

/// Whether the pod is being deleted.
pub(crate) fn is_terminating(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

/// Whether the pod counts: it has not ended and is not being deleted.
pub(crate) fn is_active(pod: &Pod) -> bool {
    !has_ended(pod) && !is_terminating(pod)
}

/// A condition of the pod.
pub(crate) fn condition<'a>(pod: &'a Pod, kind: &str) -> Option<&'a PodCondition> {
    pod.status.as_ref()?.conditions.as_ref()?.iter().find(|c| c.type_ == kind)
}

/// Whether the pod is ready.
pub(crate) fn is_ready(pod: &Pod) -> bool {
    condition(pod, "Ready").is_some_and(|c| c.status == "True")
}

/// Since when the pod is ready.
pub(crate) fn ready_since(pod: &Pod) -> Option<Timestamp> {
    let ready = condition(pod, "Ready").filter(|c| c.status == "True")?;
    ready.last_transition_time.as_ref().map(|time| time.0)
}

/// Whether the pod has been ready for `min_ready` seconds.
pub(crate) fn availability(pod: &Pod, min_ready: i32, now: Timestamp) -> Availability {
    if !is_ready(pod) {
        return Availability::No;
    }
    if min_ready <= 0 {
        return Availability::Available;
    }
    let Some(since) = ready_since(pod) else { return Availability::No };
    let at = later(since, i64::from(min_ready));
    if at <= now { Availability::Available } else { Availability::At(at) }
}

/// When the pod started.
pub(crate) fn start_time(pod: &Pod) -> Option<Timestamp> {
    pod.status.as_ref()?.start_time.as_ref().map(|time| time.0)
}

/// What the pod's owner says that its deletion costs; 0 unless said.
pub(crate) fn pod_cost(pod: &Pod) -> i32 {
    let annotations = pod.metadata.annotations.as_ref();
    annotations
        .and_then(|a| a.get("controller.kubernetes.io/pod-deletion-cost"))
        .and_then(|cost| cost.parse().ok())
        .unwrap_or_default()
}

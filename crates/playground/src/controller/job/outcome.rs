//! When a job has succeeded or failed, and how it says so.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{Job, JobCondition, JobSpec, JobStatus};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::count;
use crate::workload::{is_active, later, set_condition};

/// How a job ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    success: bool,
    reason: &'static str,
    message: &'static str,
}

const COMPLETE: Verdict = Verdict {
    success: true,
    reason: "CompletionsReached",
    message: "Reached expected number of succeeded pods",
};
const TOO_LATE: Verdict = Verdict {
    success: false,
    reason: "DeadlineExceeded",
    message: "Job was active longer than specified deadline",
};
const TOO_MANY_FAILURES: Verdict = Verdict {
    success: false,
    reason: "BackoffLimitExceeded",
    message: "Job has reached the specified backoff limit",
};

/// Whether the job has ended.
pub(super) fn is_finished(job: &Job) -> bool {
    finished_at(job).is_some()
}

/// When the job ended.
pub(super) fn finished_at(job: &Job) -> Option<Timestamp> {
    let conditions = job.status.as_ref()?.conditions.as_ref()?;
    let end = conditions
        .iter()
        .find(|c| matches!(c.type_.as_str(), "Complete" | "Failed") && c.status == "True")?;
    end.last_transition_time.as_ref().map(|time| time.0)
}

/// How the job ends, if it does now. What has been announced stays.
pub(super) fn verdict(
    spec: &JobSpec,
    status: &JobStatus,
    pods: &[Arc<Pod>],
    now: Timestamp,
) -> Option<Verdict> {
    let announced = |kind: &str| {
        let mut conditions = status.conditions.iter().flatten();
        conditions.find(|c| c.type_ == kind && c.status == "True").and_then(|c| c.reason.as_deref())
    };
    match announced("FailureTarget") {
        Some("DeadlineExceeded") => return Some(TOO_LATE),
        Some(_) => return Some(TOO_MANY_FAILURES),
        None => {}
    }
    if announced("SuccessCriteriaMet").is_some() {
        return Some(COMPLETE);
    }
    let limit = spec.backoff_limit.unwrap_or(6);
    let on_failure =
        spec.template.spec.as_ref().and_then(|s| s.restart_policy.as_deref()) == Some("OnFailure");
    let restarts = if on_failure { restarts(pods) } else { 0 };
    if count::failed(status) > limit || (on_failure && restarts > 0 && restarts >= limit) {
        return Some(TOO_MANY_FAILURES);
    }
    let too_late = spec
        .active_deadline_seconds
        .zip(status.start_time.as_ref())
        .is_some_and(|(seconds, start)| later(start.0, seconds) <= now);
    if too_late && spec.suspend != Some(true) {
        return Some(TOO_LATE);
    }
    let n_succeeded = count::succeeded(status);
    let complete = match spec.completions {
        Some(completions) => n_succeeded >= completions,
        None => n_succeeded > 0 && status.active == Some(0),
    };
    complete.then_some(COMPLETE)
}

/// Says how the job is going to end.
pub(super) fn announce(status: &mut JobStatus, verdict: &Verdict, now: Timestamp) {
    let kind = if verdict.success { "SuccessCriteriaMet" } else { "FailureTarget" };
    put(status, kind, "True", verdict.reason, verdict.message, now);
}

/// Says that the job has ended: no pod of it runs any more.
pub(super) fn conclude(status: &mut JobStatus, verdict: &Verdict, now: Timestamp) {
    let kind = if verdict.success { "Complete" } else { "Failed" };
    put(status, kind, "True", verdict.reason, verdict.message, now);
    if verdict.success {
        status.completion_time.get_or_insert(Time(now));
    }
}

/// Says whether the job is suspended; whether it has just been resumed.
pub(super) fn note_suspension(status: &mut JobStatus, suspended: bool, now: Timestamp) -> bool {
    let known = status.conditions.iter().flatten().find(|c| c.type_ == "Suspended");
    let was = known.is_some_and(|c| c.status == "True");
    if suspended && !was {
        put(status, "Suspended", "True", "JobSuspended", "Job suspended", now);
    } else if !suspended && was {
        put(status, "Suspended", "False", "JobResumed", "Job resumed", now);
    }
    was && !suspended
}

fn restarts(pods: &[Arc<Pod>]) -> i32 {
    let active = pods.iter().filter(|pod| is_active(pod));
    let statuses = active
        .flat_map(|pod| pod.status.iter().flat_map(|s| s.container_statuses.iter().flatten()));
    statuses.map(|status| status.restart_count).sum()
}

fn put(
    status: &mut JobStatus,
    kind: &str,
    value: &str,
    reason: &str,
    message: &str,
    now: Timestamp,
) {
    let known = status.conditions.iter().flatten().find(|c| c.type_ == kind);
    if known.is_some_and(|c| c.status == value) {
        return;
    }
    let condition = JobCondition {
        type_: kind.to_owned(),
        status: value.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_probe_time: Some(Time(now)),
        last_transition_time: Some(Time(now)),
    };
    set_condition(&mut status.conditions, condition, |c| c.type_ == kind);
}

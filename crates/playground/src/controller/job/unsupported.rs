//! What a job may ask for and does not get here.

use k8s_openapi::api::batch::v1::{Job, JobSpec};

use super::REPORTER;
use crate::engine::plan::Note;

/// The controller that a job has unless it names another.
const THIS: &str = "kubernetes.io/job-controller";

/// Whether the job is left to a controller of somebody else.
pub(super) fn is_of_another(spec: &JobSpec) -> bool {
    spec.managed_by.as_deref().is_some_and(|name| name != THIS)
}

/// A warning for each field that is not followed: a job that ends otherwise
/// than its author thinks should say why.
pub(super) fn warnings(job: &Job, spec: &JobSpec) -> Vec<Note> {
    let fields = [
        ("podFailurePolicy", spec.pod_failure_policy.is_some()),
        ("successPolicy", spec.success_policy.is_some()),
        ("backoffLimitPerIndex", spec.backoff_limit_per_index.is_some()),
        ("maxFailedIndexes", spec.max_failed_indexes.is_some()),
    ];
    let given = fields.into_iter().filter(|(_, given)| *given);
    given
        .map(|(field, _)| {
            let message = format!("The playground does not follow spec.{field}");
            Note::warning(job, REPORTER, "NotSimulated", message)
        })
        .collect()
}

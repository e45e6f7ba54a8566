//! Runs pods until enough of them have succeeded.

mod count;
mod indexes;
mod outcome;
mod unsupported;

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::{Job, JobSpec, JobStatus};
use k8s_openapi::api::core::v1::{EnvVar, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;

use super::pod_owners;
use crate::cluster::{Key, Seen, World, controller_of, uid};
use crate::engine::plan::{Action, Call, Note, Part, Plan, View};
use crate::workload::{
    claim, is_active, is_ready, is_terminating, later, later_by, phase, pod_of, start_time,
    status_patch,
};
use count::Tally;

const REPORTER: &str = "job-controller";
/// Keeps finished pods until they have been counted.
const TRACKING: &str = "batch.kubernetes.io/job-tracking";
const INDEX_KEY: &str = "batch.kubernetes.io/job-completion-index";
/// No more pods than this are made in one go.
const BURST: usize = 100;
/// After a failure the next pod waits this long, then twice as long …
const FIRST_BACKOFF: SignedDuration = SignedDuration::from_secs(10);
const LONGEST_BACKOFF: SignedDuration = SignedDuration::from_mins(10);

pub(crate) fn wake(_: &World, seen: &Seen, wake: &mut dyn FnMut(Key)) {
    match seen {
        Seen::Job(change) => wake(Key::of(&change.object().metadata)),
        Seen::Pod(change) => pod_owners(change, "Job").for_each(wake),
        _ => {}
    }
}

/// Takes the next step with a job.
pub(crate) fn plan(view: View<'_>, key: &Key) -> Plan {
    let mut plan = Plan { ordered: true, ..Plan::default() };
    let Some(job) = view.world.jobs.get(key) else {
        abandon(&mut plan, view.world, key);
        return plan;
    };
    let Some(spec) = &job.spec else { return plan };
    if unsupported::is_of_another(spec) {
        return plan;
    }
    let pods: Vec<Arc<Pod>> = match &spec.selector {
        Some(selector) => {
            let claimed = claim(&mut plan, &view.world.pods, &**job, selector);
            if claimed.adopting {
                return plan;
            }
            claimed.owned
        }
        None => view.world.pods.owned_by(uid(&job.metadata)).cloned().collect(),
    };
    if outcome::is_finished(job) {
        clean_up(&mut plan, view, job, spec, &pods);
        return plan;
    }
    if job.metadata.deletion_timestamp.is_some() {
        pods.iter().for_each(|pod| release(&mut plan, pod));
        return plan;
    }
    Running { view, job, spec, pods }.step(&mut plan);
    plan
}

/// A finished job lets its pods go, and goes itself when its time is over.
fn clean_up(plan: &mut Plan, view: View<'_>, job: &Job, spec: &JobSpec, pods: &[Arc<Pod>]) {
    pods.iter().for_each(|pod| release(plan, pod));
    let Some(seconds) = spec.ttl_seconds_after_finished else { return };
    let Some(finished) = outcome::finished_at(job) else { return };
    let end = later(finished, i64::from(seconds));
    if end > view.now {
        plan.wake_at(end);
    } else if job.metadata.deletion_timestamp.is_none() {
        plan.call(Call::delete(job, None));
    }
}

/// The pods of a job that is gone need not be counted; their finalizer would
/// keep them for ever.
fn abandon(plan: &mut Plan, world: &World, key: &Key) {
    let pods = world.pods.in_namespace(&key.namespace);
    let of_job = |pod: &&Arc<Pod>| {
        let owner = controller_of(&pod.metadata);
        owner.is_some_and(|owner| owner.kind == "Job" && owner.name == key.name)
    };
    pods.filter(of_job).for_each(|pod| release(plan, pod));
}

/// Takes the tracking finalizer from a pod.
fn release(plan: &mut Plan, pod: &Pod) {
    let finalizers = pod.metadata.finalizers.as_deref().unwrap_or_default();
    if !finalizers.iter().any(|finalizer| finalizer == TRACKING) {
        return;
    }
    let left: Vec<&String> = finalizers.iter().filter(|f| *f != TRACKING).collect();
    let patch = json!({ "metadata": {
        "uid": pod.metadata.uid,
        "resourceVersion": pod.metadata.resource_version,
        "finalizers": left,
    }});
    plan.call(Call::patch(pod, Part::Main, patch));
}

struct Running<'a> {
    view: View<'a>,
    job: &'a Job,
    spec: &'a JobSpec,
    pods: Vec<Arc<Pod>>,
}

impl Running<'_> {
    fn step(&self, plan: &mut Plan) {
        let now = self.view.now;
        let mut status = self.job.status.clone().unwrap_or_default();
        let tally = Tally::new(&self.pods, self.is_indexed(), self.spec.completions);
        tally.count(&mut status);
        let suspended = self.spec.suspend == Some(true);
        let resumed = outcome::note_suspension(&mut status, suspended, now);
        if suspended {
            status.start_time = None;
        } else if status.start_time.is_none() || resumed {
            status.start_time = Some(Time(now));
        }
        let active: Vec<&Arc<Pod>> = self.pods.iter().filter(|pod| is_active(pod)).collect();
        let n_ending = self.pods.iter().filter(|p| count::is_ending(p)).count();
        status.active = Some(number(active.len()));
        status.ready = Some(number(active.iter().filter(|pod| is_ready(pod)).count()));
        status.terminating = Some(number(n_ending));
        let verdict = outcome::verdict(self.spec, &status, &self.pods, now);
        match verdict {
            Some(verdict) => {
                outcome::announce(&mut status, &verdict, now);
                active.iter().for_each(|pod| self.delete(plan, pod));
                let uncounted = status.uncounted_terminated_pods.is_some();
                if active.is_empty() && n_ending == 0 && !uncounted && !tally.has_news {
                    outcome::conclude(&mut status, &verdict, now);
                }
            }
            None if suspended => active.iter().for_each(|pod| self.delete(plan, pod)),
            None => self.adjust(plan, &status, &active),
        }
        if let Some(end) = self.deadline(&status).filter(|end| *end > now) {
            plan.wake_at(end);
        }
        let begins = !suspended && self.job.status.as_ref().is_none_or(|s| s.start_time.is_none());
        self.write(plan, status, &tally);
        if begins {
            unsupported::warnings(self.job, self.spec).into_iter().for_each(|note| plan.note(note));
        }
    }

    /// Writes the status before the pods that it counts are let go: what has
    /// been counted is never lost.
    fn write(&self, plan: &mut Plan, status: JobStatus, tally: &Tally) {
        let before = self.job.status.clone().unwrap_or_default();
        let note = self.story(&before, &status);
        let new = Job { status: Some(status), ..self.job.clone() };
        if let Some(call) = status_patch(self.job, &new, true) {
            plan.actions.insert(0, Action { call, on_success: note, on_failure: None });
        }
        tally.counted(&before).for_each(|pod| release(plan, pod));
    }

    /// Makes missing pods and deletes surplus ones.
    fn adjust(&self, plan: &mut Plan, status: &JobStatus, active: &[&Arc<Pod>]) {
        let parallelism = self.spec.parallelism.unwrap_or(1).max(0);
        let n_succeeded = count::succeeded(status);
        let n_active = number(active.len());
        let wanted = match self.spec.completions {
            // One success is enough; those that run may end their work.
            None if n_succeeded > 0 => n_active.min(parallelism),
            None => parallelism,
            Some(completions) => parallelism.min(completions.saturating_sub(n_succeeded)).max(0),
        };
        if n_active > wanted {
            let mut victims = active.to_vec();
            victims.sort_by_key(|pod| (is_ready(pod), phase(pod) == "Running", start_time(pod)));
            let n = usize::try_from(n_active - wanted).unwrap_or_default();
            victims.into_iter().take(n).for_each(|pod| self.delete(plan, pod));
            return;
        }
        // Pods that are still ending hold their place if the job says so.
        let replaces_failed = self.spec.pod_replacement_policy.as_deref() == Some("Failed");
        let ending = if replaces_failed { status.terminating.unwrap_or_default() } else { 0 };
        let missing = usize::try_from(wanted - n_active - ending).unwrap_or_default();
        if missing == 0 {
            return;
        }
        if let Some(at) = self.next_try().filter(|at| *at > self.view.now) {
            plan.wake_at(at);
            return;
        }
        if self.is_indexed() {
            let completions = self.spec.completions.unwrap_or_default();
            let done = indexes::parse(status.completed_indexes.as_deref().unwrap_or_default());
            let taken: Vec<i32> = active.iter().filter_map(|pod| count::index_of(pod)).collect();
            let free = (0..completions).filter(|i| !done.contains(i) && !taken.contains(i));
            free.take(missing.min(BURST)).for_each(|index| self.make(plan, Some(index)));
        } else {
            (0..missing.min(BURST)).for_each(|_| self.make(plan, None));
        }
    }

    /// After failures in a row the next pod waits.
    fn next_try(&self) -> Option<Timestamp> {
        let ended = |wanted: &str| {
            let pods = self.pods.iter().filter(move |pod| phase(pod) == wanted);
            pods.filter_map(|pod| count::ended_at(pod)).collect::<Vec<_>>()
        };
        let succeeded = ended("Succeeded").into_iter().max();
        let failures: Vec<Timestamp> =
            ended("Failed").into_iter().filter(|at| Some(*at) > succeeded).collect();
        let last = *failures.iter().max()?;
        let doublings = u32::try_from(failures.len() - 1).unwrap_or(u32::MAX).min(10);
        let delay = FIRST_BACKOFF.saturating_mul(1 << doublings).min(LONGEST_BACKOFF);
        Some(later_by(last, delay))
    }

    fn deadline(&self, status: &JobStatus) -> Option<Timestamp> {
        let seconds = self.spec.active_deadline_seconds?;
        Some(later(status.start_time.as_ref()?.0, seconds))
    }

    fn make(&self, plan: &mut Plan, index: Option<i32>) {
        let mut pod = pod_of(&self.spec.template, self.job);
        pod.metadata.finalizers.get_or_insert_default().push(TRACKING.to_owned());
        if let Some(index) = index {
            let name = self.job.metadata.name.as_deref().unwrap_or_default();
            pod.metadata.generate_name = Some(format!("{name}-{index}-"));
            let entry = || (INDEX_KEY.to_owned(), index.to_string());
            pod.metadata.labels.get_or_insert_default().extend([entry()]);
            pod.metadata.annotations.get_or_insert_default().extend([entry()]);
            if let Some(spec) = &mut pod.spec {
                spec.hostname = Some(format!("{name}-{index}"));
                for container in &mut spec.containers {
                    container.env.get_or_insert_default().push(EnvVar {
                        name: "JOB_COMPLETION_INDEX".to_owned(),
                        value: Some(index.to_string()),
                        value_from: None,
                    });
                }
            }
        }
        plan.actions.push(Action {
            call: Call::create(&pod),
            on_success: Some(
                Note::normal(self.job, REPORTER, "SuccessfulCreate", "Created pod: ").with_name(),
            ),
            on_failure: Some(Note::warning(self.job, REPORTER, "FailedCreate", "Error creating: ")),
        });
    }

    fn delete(&self, plan: &mut Plan, pod: &Pod) {
        if is_terminating(pod) {
            return;
        }
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        let message = format!("Deleted pod: {name}");
        let note = Note::normal(self.job, REPORTER, "SuccessfulDelete", message);
        plan.call_noting(Call::delete(pod, None), note);
    }

    fn is_indexed(&self) -> bool {
        self.spec.completion_mode.as_deref() == Some("Indexed")
    }

    /// The event for what the new status says for the first time.
    fn story(&self, before: &JobStatus, now: &JobStatus) -> Option<Note> {
        let fresh = |kind: &str| {
            let find = |status: &JobStatus| {
                let conditions = status.conditions.clone().unwrap_or_default();
                conditions.into_iter().find(|c| c.type_ == kind)
            };
            let new = find(now)?;
            (find(before).map(|c| c.status) != Some(new.status.clone())).then_some(new)
        };
        if let Some(failed) = fresh("FailureTarget").filter(|c| c.status == "True") {
            let message = failed.message.unwrap_or_default();
            let reason = match failed.reason.as_deref() {
                Some("DeadlineExceeded") => "DeadlineExceeded",
                _ => "BackoffLimitExceeded",
            };
            return Some(Note::warning(self.job, REPORTER, reason, message));
        }
        if fresh("Complete").is_some_and(|c| c.status == "True") {
            return Some(Note::normal(self.job, REPORTER, "Completed", "Job completed"));
        }
        let suspended = fresh("Suspended")?;
        let (reason, message) = if suspended.status == "True" {
            ("Suspended", "Job suspended")
        } else {
            ("Resumed", "Job resumed")
        };
        Some(Note::normal(self.job, REPORTER, reason, message))
    }
}

fn number(n: usize) -> i32 {
    i32::try_from(n).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests;

//! Counting pods that have ended, each exactly once.
//!
//! A pod that ends is first named in the status, then loses its finalizer, and
//! is counted when it no longer has it. Whenever the controller stops in
//! between, the next one goes on from there.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{JobStatus, UncountedTerminatedPods};
use k8s_openapi::api::core::v1::Pod;

use super::{INDEX_KEY, TRACKING, indexes};
use crate::cluster::{Watched, uid};
use crate::workload::{has_ended, is_terminating, phase};

/// The pods of a job that have ended.
pub(super) struct Tally<'a> {
    pods: &'a [Arc<Pod>],
    indexed: bool,
    completions: Option<i32>,
    /// Whether some pods have ended and are not in the status yet.
    pub(super) has_news: bool,
}

impl<'a> Tally<'a> {
    pub(super) fn new(pods: &'a [Arc<Pod>], indexed: bool, completions: Option<i32>) -> Self {
        let has_news = pods.iter().any(|pod| is_tracked(pod) && (is_over(pod)));
        Self { pods, indexed, completions, has_news }
    }

    /// Brings the counters and the list of the uncounted up to date.
    pub(super) fn count(&self, status: &mut JobStatus) {
        let listed = status.uncounted_terminated_pods.take().unwrap_or_default();
        let mut succeeded = listed.succeeded.unwrap_or_default();
        let mut failed = listed.failed.unwrap_or_default();
        let tracked: BTreeSet<&str> =
            self.pods.iter().filter(|pod| is_tracked(pod)).map(|pod| uid(&pod.metadata)).collect();
        let n_succeeded = drain(&mut succeeded, &tracked);
        let n_failed = drain(&mut failed, &tracked);
        add(&mut status.succeeded, n_succeeded);
        add(&mut status.failed, n_failed);
        let mut done = indexes::parse(status.completed_indexes.as_deref().unwrap_or_default());
        for pod in self.pods.iter().filter(|pod| is_tracked(pod) && is_over(pod)) {
            let id = uid(&pod.metadata).to_owned();
            if phase(pod) != "Succeeded" {
                if !failed.contains(&id) {
                    failed.push(id);
                }
            } else if self.indexed {
                let in_range = |index: &i32| self.completions.is_none_or(|n| *index < n);
                done.extend(index_of(pod).filter(in_range));
            } else if !succeeded.contains(&id) {
                succeeded.push(id);
            }
        }
        if self.indexed {
            status.succeeded = Some(super::number(done.len()));
            status.completed_indexes = Some(indexes::show(&done)).filter(|text| !text.is_empty());
        }
        if !succeeded.is_empty() || !failed.is_empty() {
            let some = |list: Vec<String>| (!list.is_empty()).then_some(list);
            status.uncounted_terminated_pods =
                Some(UncountedTerminatedPods { succeeded: some(succeeded), failed: some(failed) });
        }
    }

    /// The pods that the status, as it is stored, knows of: they may go.
    pub(super) fn counted(&self, stored: &JobStatus) -> impl Iterator<Item = &'a Pod> {
        let listed = stored.uncounted_terminated_pods.clone().unwrap_or_default();
        let mut known: BTreeSet<String> = BTreeSet::new();
        known.extend(listed.succeeded.unwrap_or_default());
        known.extend(listed.failed.unwrap_or_default());
        let done = indexes::parse(stored.completed_indexes.as_deref().unwrap_or_default());
        let (indexed, completions) = (self.indexed, self.completions);
        self.pods.iter().map(|pod| &**pod).filter(move |pod| {
            let index = index_of(pod);
            let succeeded = indexed && phase(pod) == "Succeeded";
            let out_of_range = || index.is_none_or(|i| completions.is_some_and(|n| i >= n));
            known.contains(uid(&pod.metadata))
                || (succeeded && (index.is_some_and(|i| done.contains(&i)) || out_of_range()))
        })
    }
}

/// How many pods have succeeded, those among them that are only listed yet.
pub(super) fn succeeded(status: &JobStatus) -> i32 {
    let listed = status.uncounted_terminated_pods.as_ref().and_then(|u| u.succeeded.as_ref());
    status.succeeded.unwrap_or_default() + listed.map_or(0, |list| super::number(list.len()))
}

/// How many pods have failed, those among them that are only listed yet.
pub(super) fn failed(status: &JobStatus) -> i32 {
    let listed = status.uncounted_terminated_pods.as_ref().and_then(|u| u.failed.as_ref());
    status.failed.unwrap_or_default() + listed.map_or(0, |list| super::number(list.len()))
}

/// The number of an indexed job's pod.
pub(super) fn index_of(pod: &Pod) -> Option<i32> {
    pod.metadata.annotations.as_ref()?.get(INDEX_KEY)?.parse().ok()
}

/// When the pod's last container ended.
pub(super) fn ended_at(pod: &Pod) -> Option<Timestamp> {
    let statuses = pod.status.as_ref()?.container_statuses.as_ref()?.iter();
    let ended = statuses.filter_map(|s| s.state.as_ref()?.terminated.as_ref()?.finished_at.clone());
    ended.map(|time| time.0).max()
}

/// Whether the pod is on its way out but still there.
pub(super) fn is_ending(pod: &Pod) -> bool {
    is_terminating(pod) && !is_over(pod)
}

/// Whether nothing more will come of the pod. One that is deleted before it
/// came to a node will never run.
fn is_over(pod: &Pod) -> bool {
    has_ended(pod) || (is_terminating(pod) && pod.node().is_none())
}

fn is_tracked(pod: &Pod) -> bool {
    pod.metadata.finalizers.iter().flatten().any(|finalizer| finalizer == TRACKING)
}

/// Takes those out that are not tracked any more; how many.
fn drain(list: &mut Vec<String>, tracked: &BTreeSet<&str>) -> i32 {
    let before = list.len();
    list.retain(|uid| tracked.contains(uid.as_str()));
    super::number(before - list.len())
}

fn add(counter: &mut Option<i32>, n: i32) {
    if n > 0 {
        *counter = Some(counter.unwrap_or_default() + n);
    }
}

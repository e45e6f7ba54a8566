//! The scheduler as a state machine: events in, effects out.

mod attempt;
mod bindings;
mod invariants;
mod objects;
mod pods;
mod preemption;
mod setup;
mod state;
mod stats;

use std::sync::Arc;
use std::time::Duration;

use steersman_api::key::{ObjectKey, PodUid};
use steersman_api::name::Name;
use steersman_api::pod::PodInfo;
use steersman_api::time::Time;
use steersman_framework::cluster::Cluster;
use steersman_framework::events::Change;
use steersman_framework::observer::{Observer, QueueObserver};
use steersman_framework::signature::Signature;

use bindings::Bindings;
use preemption::News;
pub use setup::{Setup, SetupError};
pub use state::{BindingState, PodState, PodStates, WaitState};
pub use stats::{EventLabel, Stats};

use crate::cycle::{Inputs, lot};
use crate::evaluate::Evaluation;
use crate::event::{Effect, Event};
use crate::pods::PodTable;
use crate::queue::{Place, Profiles, QueueCounts, SchedulingQueue};
use crate::record::{Record, Records};

/// Owns queue, cluster state and pods on their way; decides where pods go.
///
/// A driver feeds events ([`Scheduler::handle`]), asks for decisions
/// ([`Scheduler::schedule_next`]), lets time pass ([`Scheduler::advance`]), and
/// carries out the effects. The same events, times and seed give the same
/// decisions.
pub struct Scheduler {
    cluster: Cluster,
    pods: PodTable,
    queue: SchedulingQueue,
    profiles: Profiles,
    /// Pods with a chosen node whose binding has not ended.
    bindings: Bindings,
    /// Where in the order of nodes the next pod's evaluation starts.
    next_start: usize,
    seed: u64,
    /// How long an accepted binding may take to show in the watch. `None`, as
    /// in the reference: forever.
    assumed_pod_ttl: Option<Duration>,
    /// Whether pods whose binding takes a while are nominated to their node: the
    /// feature `NominatedNodeNameForExpectation`.
    tells_expected_nodes: bool,
    /// How many binding cycles and preemptions were started.
    tickets: u64,
    /// Whether preemptions are told of and not begun.
    only_tells_preemptions: bool,
    effects: Vec<Effect>,
    records: Records,
}

/// How many pods were woken by what, and whether it helped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WakeCount {
    /// The event's label, as in metrics.
    pub event: String,
    /// The plugin whose hint woke the pod.
    pub plugin: &'static str,
    /// Wake-ups after which the pod found a node.
    pub useful: u64,
    /// Wake-ups after which it did not.
    pub vain: u64,
}

/// A pod that waits for something.
#[derive(Clone, Debug)]
pub struct PendingPod<'a> {
    /// The pod.
    pub pod: &'a Arc<PodInfo>,
    /// Where it stands.
    pub place: Place,
    /// When it was first seen.
    pub since: Time,
    /// The plugins that rejected it, or what its gate says.
    pub because: Vec<&'a str>,
}

impl Scheduler {
    /// Takes in what happened; returns what is to be done.
    pub fn handle(&mut self, event: Event, now: Time) -> Vec<Effect> {
        match event {
            Event::Upsert(object) => self.upsert(object, now),
            Event::PodDeleted(uid) => self.pod_deleted(&uid, now),
            Event::NodeDeleted(name) => self.node_deleted(&name, now),
            Event::ObjectDeleted { resource, key } => self.object_deleted(resource, &key, now),
            Event::BindingFinished(report) => self.binding_finished(report, now),
            Event::PermitAllowed { pod, plugin } => self.permit_allowed(&pod, plugin, now),
            Event::PermitRejected { pod, plugin, reason } => {
                self.permit_rejected(&pod, plugin, reason, now);
            }
            Event::EvictionFinished(report) => self.eviction_finished(report, now),
        }
        std::mem::take(&mut self.effects)
    }

    /// Lets time pass: backoffs end, waits at Permit run out, confirmations
    /// become overdue. Call at [`Scheduler::next_timer`], or whenever.
    pub fn advance(&mut self, now: Time) -> Vec<Effect> {
        self.expire_permits(now);
        self.expire_assumed(now);
        self.queue.advance(&self.cluster, now);
        std::mem::take(&mut self.effects)
    }

    /// When [`Scheduler::advance`] has something to do next.
    pub fn next_timer(&self) -> Option<Time> {
        let permits = self.bindings.next_deadline();
        [permits, self.pods.next_expiry(), self.queue.next_timer()].into_iter().flatten().min()
    }

    /// From now on preemptions are only told of, in [`Attempt::preemption`] and
    /// [`Evaluation::preemption`]: no pod is evicted, nor nominated for it.
    ///
    /// [`Attempt::preemption`]: crate::Attempt::preemption
    pub fn only_tell_preemptions(&mut self) {
        self.only_tells_preemptions = true;
    }

    /// What the scheduler thinks of a pod right now, on every node. The pod
    /// need not be known.
    ///
    /// # Errors
    /// When no profile serves its `schedulerName`, or a plugin fails.
    pub fn evaluate(
        &mut self,
        pod: &PodInfo,
        observer: &mut dyn Observer,
    ) -> Result<Evaluation, String> {
        self.cluster.refresh_order();
        let Some(profile) = self.profiles.get(&pod.spec.scheduler_name) else {
            return Err(format!("no profile serves schedulerName {:?}", pod.spec.scheduler_name));
        };
        let inputs = Inputs {
            profile,
            pod,
            cluster: &self.cluster,
            nominations: self.queue.nominations(),
            lot: lot(self.seed, &pod.uid.0, 0),
        };
        inputs.evaluate(observer).map_err(|failed| failed.to_string())
    }

    /// What of a pod its profile's plugins read: pods of equal signature get
    /// equal answers. `None` when no profile serves the pod, or one of its
    /// plugins cannot say.
    pub fn signature(&self, pod: &PodInfo) -> Option<Signature> {
        self.profiles.get(&pod.spec.scheduler_name)?.signature(pod)
    }

    /// The cluster as the scheduler sees it.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Where a pod stands in the queue; `None` when it is not there.
    pub fn place_of(&self, pod: &PodUid) -> Option<Place> {
        self.queue.place(pod)
    }

    /// The latest version of a pod that is known and has no node yet.
    pub fn pending_pod(&self, pod: &PodUid) -> Option<&Arc<PodInfo>> {
        self.queue.pod(pod)
    }

    /// The node that room is kept on for a pod that has none yet.
    pub fn nominated_node(&self, pod: &PodUid) -> Option<&Name> {
        self.queue.nominations().node_of(pod)
    }

    /// The UID of the pod of that name.
    pub fn uid_of(&self, key: &ObjectKey) -> Option<&PodUid> {
        self.pods.uid_of(key)
    }

    /// How many pods stand where in the queue.
    pub fn queue_counts(&self) -> QueueCounts {
        self.queue.counts()
    }

    /// How many pods take room on nodes, assumed ones included.
    pub fn placed_count(&self) -> usize {
        self.pods.len()
    }

    /// The pods that wait for an event: unschedulable and gated ones.
    pub fn pending(&self) -> Vec<PendingPod<'_>> {
        let unschedulable = self.queue.unschedulable_pods().map(|entry| {
            let profile = self.profiles.get(&entry.pod().spec.scheduler_name);
            let because = profile.map(|p| p.names(entry.rejected_by)).unwrap_or_default();
            PendingPod {
                pod: entry.pod(),
                place: Place::Unschedulable,
                since: entry.first_seen,
                because: because.into_iter().collect(),
            }
        });
        let gated = self.queue.gated_pods().map(|(entry, reason)| PendingPod {
            pod: entry.pod(),
            place: Place::Gated,
            since: entry.first_seen,
            because: vec![reason],
        });
        unschedulable.chain(gated).collect()
    }

    /// What woke pods so far, and whether it helped.
    pub fn wake_counts(&self) -> Vec<WakeCount> {
        let counts = self.queue.wake_stats().by_reason.iter();
        counts
            .map(|(reason, (useful, vain))| WakeCount {
                event: reason.event.to_string(),
                plugin: reason.plugin,
                useful: *useful,
                vain: *vain,
            })
            .collect()
    }

    /// How many pods the last-resort flush brought back so far.
    pub fn flushed_count(&self) -> u64 {
        self.queue.wake_stats().flushed
    }

    /// Has one more observer told of the plugins that the queue asks.
    pub fn watch_queue(&mut self, observer: Arc<dyn QueueObserver>) {
        self.queue.watch(observer);
    }

    /// From now on [`Scheduler::take_records`] has something to return.
    pub fn keep_records(&mut self) {
        self.records.keep();
    }

    /// What was recorded since the last time. A driver that has records kept
    /// takes them after every call that may change anything.
    pub fn take_records(&mut self) -> Vec<Record> {
        self.records.take()
    }

    /// Tells the queue of a change that the cluster state shows already.
    fn happened(&mut self, change: Change, now: Time) {
        let news = News::of(&change);
        self.queue.happened(change, &self.cluster, now);
        self.tell_preemptors(news, now);
    }

    fn note(&mut self, text: String) {
        self.effects.push(Effect::Note(text));
    }
}

//! Numbers about the scheduler's state, counted from that state when somebody
//! asks: they cannot drift.

use std::collections::BTreeMap;
use std::sync::Arc;

use steersman_api::key::PodUid;
use steersman_api::name::Name;
use steersman_api::object::ClusterObject;
use steersman_api::pod::PodInfo;

use super::bindings::{Binding, Stage};
use super::{Scheduler, WakeCount};
use crate::event::{Event, FailureReason};
use crate::queue::{Flight, Incoming, QueueCounts};
use crate::record::Record;

/// The numbers at one moment. Counting takes time in proportion to the pods
/// that wait to be tried, and to the events remembered for pods in flight.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// How many pods stand where in the queue.
    pub queue: QueueCounts,
    /// How many pods came into the queue's parts so far, and why.
    pub incoming: Vec<Incoming>,
    /// How many pods that have no node were rejected by which plugins, by
    /// profile and plugin. A pod counts for each of its plugins, until it is
    /// tried again.
    pub rejections: BTreeMap<(Name, &'static str), usize>,
    /// How many events are remembered for pods in flight, by label; those pods
    /// themselves as `PodPopped`.
    pub remembered: BTreeMap<String, usize>,
    /// Known nodes.
    pub nodes: usize,
    /// Pods that take room on nodes, assumed ones included.
    pub pods: usize,
    /// Those of them that the watch has not shown on their node yet.
    pub assumed: usize,
    /// Pods whose binding runs.
    pub binding: usize,
    /// Pods that wait at Permit.
    pub waiting: usize,
    /// What woke pods so far, and whether it helped.
    pub wakes: Vec<WakeCount>,
    /// How many pods the last-resort flush brought back so far.
    pub flushed: u64,
}

impl Scheduler {
    /// The numbers now.
    pub fn stats(&self) -> Stats {
        let waiting = self.bindings.waiting().filter(|b| matches!(b.stage, Stage::Waiting(_)));
        let waiting = waiting.count();
        Stats {
            queue: self.queue.counts(),
            incoming: self.queue.tally().counts(),
            rejections: self.queue.rejections(),
            remembered: self.queue.remembered(),
            nodes: self.cluster.nodes().len(),
            pods: self.pods.len(),
            assumed: self.pods.assumed_count(),
            binding: self.bindings.len() - waiting,
            waiting,
            wakes: self.wake_counts(),
            flushed: self.flushed_count(),
        }
    }

    /// What kind of event this is, for measuring how long it takes to handle:
    /// `NodeAdd`, `AssignedPodUpdate`, as the reference has them. To be asked
    /// before the event is handled. `None` for what does not come from a watch.
    pub fn label(&self, event: &Event) -> Option<EventLabel> {
        let (resource, known, gone) = match event {
            Event::Upsert(ClusterObject::Node(node)) => {
                ("Node", self.cluster.nodes().by_name(&node.name).is_some(), false)
            }
            Event::Upsert(ClusterObject::Pod(pod)) => match pod.node_name {
                Some(_) => ("AssignedPod", self.pods.get(&pod.uid).is_some(), false),
                None => ("UnscheduledPod", self.queue.pod(&pod.uid).is_some(), false),
            },
            Event::Upsert(ClusterObject::Other(object)) => {
                let stores = &self.cluster.stores;
                (object.resource(), stores.contains(object.resource(), object.key()), false)
            }
            Event::NodeDeleted(_) => ("Node", true, true),
            Event::PodDeleted(uid) => match self.pods.get(uid) {
                Some(_) => ("AssignedPod", true, true),
                None => ("UnscheduledPod", true, true),
            },
            Event::ObjectDeleted { resource, .. } => (*resource, true, true),
            Event::BindingFinished(_)
            | Event::PermitAllowed { .. }
            | Event::PermitRejected { .. }
            | Event::EvictionFinished(_) => return None,
        };
        let action = match (gone, known) {
            (true, _) => "Delete",
            (false, true) => "Update",
            (false, false) => "Add",
        };
        Some(EventLabel { resource, action })
    }

    /// The attempt that a pod in flight is in, when somebody wants records.
    pub(super) fn flight_to_record(&self, pod: &PodUid) -> Option<Flight> {
        if self.records.are_kept() { self.queue.flight(pod) } else { None }
    }

    pub(super) fn record_success(&mut self, binding: &Binding) {
        let Some(flight) = binding.flight else { return };
        self.records.push(Record::Scheduled {
            profile: binding.pod.spec.scheduler_name.clone(),
            attempts: flight.attempts,
            started: flight.started,
            first_active: flight.first_active,
            after_flush: flight.after_flush,
        });
    }

    pub(super) fn record_failure(
        &mut self,
        pod: &Arc<PodInfo>,
        reason: FailureReason,
        flight: Option<Flight>,
    ) {
        if !self.records.are_kept() {
            return;
        }
        let started = flight.map(|flight| flight.started);
        let profile = pod.spec.scheduler_name.clone();
        self.records.push(Record::Failed { profile, reason, started });
    }
}

/// The two parts of an event's label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventLabel {
    /// `Node`, `AssignedPod`, `UnscheduledPod`, or another kind.
    pub resource: &'static str,
    /// `Add`, `Update` or `Delete`.
    pub action: &'static str,
}

//! Looking at single pods: where they stand and why. For debugging a live
//! scheduler.

use std::sync::Arc;

use steersman_api::name::Name;
use steersman_api::pod::PodInfo;
use steersman_api::time::Time;

use super::Scheduler;
use super::bindings::{Binding, Stage};
use crate::queue::{Cause, Entry, Place};

/// A pod of the queue.
#[derive(Clone, Debug)]
pub struct PodState<'a> {
    /// The pod.
    pub pod: &'a Arc<PodInfo>,
    /// Where it stands.
    pub place: Place,
    /// How often it was tried.
    pub attempts: u32,
    /// When it was first seen.
    pub since: Time,
    /// When its backoff ends, or ended.
    pub backoff_until: Time,
    /// The plugins that rejected it the last time, sorted.
    pub rejected_by: Vec<&'static str>,
    /// What the PreEnqueue plugin says that keeps it out.
    pub gate: Option<&'a str>,
    /// The event that brought it back the last time, and the plugin whose hint
    /// said so.
    pub woken_by: Option<(Cause, &'static str)>,
    /// Where room is kept for it.
    pub nominated: Option<&'a Name>,
}

/// Pods in one place, one after the other.
pub type PodStates<'a> = Box<dyn Iterator<Item = PodState<'a>> + 'a>;

/// A pod that was given a node and is not bound yet.
#[derive(Clone, Debug)]
pub struct BindingState<'a> {
    /// The pod.
    pub pod: &'a Arc<PodInfo>,
    /// Its node.
    pub node: &'a Name,
    /// Whom it waits for at Permit; none when its binding runs.
    pub waits: Vec<WaitState>,
}

/// A Permit plugin's hold on a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitState {
    /// The plugin.
    pub plugin: &'static str,
    /// When it is over at the latest.
    pub until: Time,
}

impl Scheduler {
    /// The pods that stand in one place of the queue. Of the activeQ and the
    /// backoffQ the first is the next to leave; the others follow as the heap
    /// has them. The rest come in order of arrival within their group of
    /// plugins, pods in flight the oldest first.
    pub fn queued(&self, place: Place) -> PodStates<'_> {
        Box::new(self.queue.standing(place).map(move |entry| self.pod_state(entry, place)))
    }

    /// How many of them there are.
    pub fn queued_count(&self, place: Place) -> usize {
        let counts = self.queue.counts();
        match place {
            Place::Active => counts.active,
            Place::Backoff => counts.backoff,
            Place::Unschedulable => counts.unschedulable,
            Place::Gated => counts.gated,
            Place::InFlight => counts.in_flight,
        }
    }

    fn pod_state<'a>(&'a self, entry: &'a Entry, place: Place) -> PodState<'a> {
        let pod = entry.pod();
        let profile = self.profiles.get(&pod.spec.scheduler_name);
        let rejected_by = profile.map(|profile| profile.names(entry.rejected_by));
        PodState {
            pod,
            place,
            attempts: entry.queued.attempts,
            since: entry.first_seen,
            backoff_until: entry.backoff_until,
            rejected_by: rejected_by.unwrap_or_default().into_iter().collect(),
            gate: entry.gated_because.as_deref(),
            woken_by: entry.woken_by.map(|why| (why.event, why.plugin)),
            nominated: self.queue.nominations().node_of(&pod.uid),
        }
    }

    /// The pods for which room is kept on a node that they do not have yet, and
    /// the node; sorted by node, then UID.
    pub fn nominated(&self) -> Vec<(&Name, &Arc<PodInfo>)> {
        self.queue.nominations().all()
    }

    /// The pods that were given a node and are not bound yet, by UID.
    pub fn bindings(&self) -> impl Iterator<Item = BindingState<'_>> {
        self.bindings.iter().map(|(_, binding)| binding_state(binding))
    }

    /// How many those are.
    pub fn bindings_count(&self) -> usize {
        self.bindings.len()
    }

    /// The pods that take room on a node on which the watch has not shown them
    /// yet, with that node, by UID.
    pub fn assumed(&self) -> impl Iterator<Item = (&Arc<PodInfo>, &Name)> {
        self.pods.assumed().map(|placed| (&placed.pod, &placed.node))
    }

    /// How many those are.
    pub fn assumed_count(&self) -> usize {
        self.pods.assumed_count()
    }
}

fn binding_state(binding: &Binding) -> BindingState<'_> {
    let waits = match &binding.stage {
        Stage::Waiting(waits) => {
            let wait = |(plugin, wait): (&&'static str, &super::bindings::Wait)| WaitState {
                plugin,
                until: wait.until,
            };
            waits.iter().map(wait).collect()
        }
        Stage::Running => Vec::new(),
    };
    BindingState { pod: &binding.pod, node: &binding.node, waits }
}

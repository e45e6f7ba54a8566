//! What goes into the core and what comes out.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use steersman_api::key::{ObjectKey, PodUid};
use steersman_api::name::Name;
use steersman_api::object::ClusterObject;
use steersman_api::pod::PodInfo;
use steersman_framework::diagnosis::Diagnosis;
use steersman_framework::verdict::{Preemption, Reason};

use crate::binding::{BindingCycle, BindingReport};
use crate::eviction::{Eviction, EvictionReport};

/// What happened in the world.
#[derive(Debug)]
pub enum Event {
    /// An object was added or updated; also said again after a re-list.
    Upsert(ClusterObject),
    /// A pod is gone.
    PodDeleted(PodUid),
    /// A node is gone.
    NodeDeleted(Name),
    /// Another object is gone.
    ObjectDeleted {
        /// Its kind, as `StoredObject::RESOURCE`.
        resource: &'static str,
        /// Its namespace and name.
        key: ObjectKey,
    },
    /// A binding cycle ended.
    BindingFinished(BindingReport),
    /// A Permit plugin lets a waiting pod go.
    PermitAllowed {
        /// The pod.
        pod: PodUid,
        /// The plugin.
        plugin: &'static str,
    },
    /// A Permit plugin rejects a waiting pod.
    PermitRejected {
        /// The pod.
        pod: PodUid,
        /// The plugin.
        plugin: &'static str,
        /// Why.
        reason: Reason,
    },
    /// The evictions of an [`Effect::Evict`] were requested, or one of them
    /// could not be: made by [`Eviction::finished`].
    EvictionFinished(EvictionReport),
}

/// What a driver is asked to do.
#[derive(Debug)]
pub enum Effect {
    /// Run a binding cycle, beside others, and report its end as
    /// [`Event::BindingFinished`].
    StartBinding(BindingCycle),
    /// A pod was bound: record the event `Scheduled`.
    Scheduled {
        /// The pod.
        pod: Arc<PodInfo>,
        /// Its node.
        node: Name,
    },
    /// An attempt failed: record the event `FailedScheduling` and, unless the pod
    /// has a node all the same, the condition `PodScheduled`.
    FailedScheduling {
        /// The pod.
        pod: Arc<PodInfo>,
        /// `Unschedulable` or `SchedulerError`: the condition's reason.
        reason: FailureReason,
        /// The event's and the condition's message.
        message: String,
        /// The node on which the pod was seen meanwhile, though this attempt did
        /// not bring it there: another client did, or an earlier attempt whose
        /// answer was lost. It takes its room there and is not tried again.
        bound_on: Option<Name>,
    },
    /// Write the pod's `status.nominatedNodeName`.
    Nominate {
        /// The pod.
        pod: Arc<PodInfo>,
        /// The node; `None` clears it.
        node: Option<Name>,
    },
    /// A pod waits at Permit.
    Waiting {
        /// The pod.
        pod: Arc<PodInfo>,
        /// The plugins it waits for, and for how long at most.
        plugins: BTreeMap<&'static str, Duration>,
    },
    /// Evict pods to make room for another one, beside everything else, and
    /// report the end as [`Event::EvictionFinished`], exactly once: until then
    /// the pod that waits for the room is held back.
    Evict(Eviction),
    /// A pod that was not bound yet has lost its node to a more important one:
    /// record the event `Preempted` with [`crate::preempted_note`]. It is not to be
    /// deleted.
    Preempted {
        /// The pod.
        pod: Arc<PodInfo>,
        /// Who gets the room.
        preemptor: Arc<PodInfo>,
        /// Where.
        node: Name,
    },
    /// Something to log: a plugin misbehaved without harm to the decision.
    Note(String),
}

/// Why an attempt failed, in the API's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureReason {
    /// No node fits, or a plugin said no later.
    Unschedulable,
    /// Something went wrong.
    SchedulerError,
}

impl FailureReason {
    /// The reason of the condition `PodScheduled`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unschedulable => "Unschedulable",
            Self::SchedulerError => "SchedulerError",
        }
    }
}

/// One attempt to schedule a pod.
#[derive(Debug)]
pub struct Attempt {
    /// The pod.
    pub pod: Arc<PodInfo>,
    /// How often it was tried, this time included.
    pub number: u32,
    /// How many nodes were looked at.
    pub n_evaluated: usize,
    /// How many of them can run it.
    pub n_feasible: usize,
    /// How it went.
    pub outcome: Outcome,
    /// Whose eviction makes room, when it fits nowhere and that helps.
    pub preemption: Option<Preemption>,
}

/// How an attempt went.
#[derive(Debug)]
pub enum Outcome {
    /// A node was chosen; the binding is on its way.
    Assumed(Name),
    /// A node was chosen; a Permit plugin holds the pod.
    Waiting(Name),
    /// No node fits.
    Unschedulable(Box<Diagnosis>),
    /// A plugin said no after a node was chosen.
    Rejected {
        /// The node.
        node: Name,
        /// The plugin.
        plugin: &'static str,
        /// Why.
        message: String,
    },
    /// A plugin failed.
    Error(String),
}

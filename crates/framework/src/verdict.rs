//! What plugins answer: one type per extension point, so that an answer that
//! makes no sense at a point cannot be given there.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use steersman_api::key::PodUid;
use steersman_api::name::Name;
use steersman_api::pod::PodInfo;
use thiserror::Error;

/// A reason as users read it in events: `Insufficient cpu`.
pub type Reason = Cow<'static, str>;

/// Whether anything could make a rejected node feasible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RejectKind {
    /// Evicting pods from the node may help.
    Unschedulable,
    /// Evicting pods from the node cannot help.
    UnschedulableAndUnresolvable,
}

impl RejectKind {
    /// The reference's name of the status code.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unschedulable => "Unschedulable",
            Self::UnschedulableAndUnresolvable => "UnschedulableAndUnresolvable",
        }
    }
}

/// A "no", and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// Whether evictions may help.
    pub kind: RejectKind,
    /// At least one reason.
    pub reasons: Vec<Reason>,
}

impl Rejection {
    /// A rejection that evictions may lift.
    pub fn unschedulable(reason: impl Into<Reason>) -> Self {
        Self { kind: RejectKind::Unschedulable, reasons: vec![reason.into()] }
    }

    /// A rejection that evictions cannot lift.
    pub fn unresolvable(reason: impl Into<Reason>) -> Self {
        Self { kind: RejectKind::UnschedulableAndUnresolvable, reasons: vec![reason.into()] }
    }
}

/// A plugin could not do its work: a bug, or the world failed it. The pod's
/// cycle fails and is retried with backoff.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct PluginError(pub String);

/// Whether a pod may enter the activeQ.
#[must_use]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PreEnqueueVerdict {
    /// It may.
    Admit,
    /// It is gated until an event that the plugin waits for.
    Gate(Reason),
}

/// What PreFilter found.
#[must_use]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PreFilterVerdict {
    /// Ask Filter for every node.
    Proceed,
    /// Only these nodes can do; ask Filter for them.
    Narrow(BTreeSet<Name>),
    /// The pod does not need this plugin: leave its Filter out of the cycle.
    Skip,
    /// No node can do.
    Reject(Rejection),
}

/// What Filter says about one node.
#[must_use]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilterVerdict {
    /// The plugin has nothing against it.
    Fit,
    /// The pod cannot run there.
    Reject(Rejection),
}

/// What PostFilter did about a pod that fits nowhere.
#[must_use]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PostFilterVerdict {
    /// Room will be made by other means than evictions: the pod is nominated
    /// to a node.
    Nominate(Name),
    /// Evicting these pods makes room: the pod is nominated to their node.
    Preempt(Preemption),
    /// Room is being made already.
    Wait {
        /// For the pod's message.
        reasons: Vec<Reason>,
        /// The pods that are on their way out; the pod is tried again when the
        /// last of them is gone.
        victims: Vec<PodUid>,
    },
    /// Nothing helps.
    Unhelpful {
        /// For the pod's message; may be empty.
        reasons: Vec<Reason>,
        /// Whether an earlier nomination is void.
        clear_nomination: bool,
    },
}

/// Whom to evict so that a pod fits, and where.
#[derive(Clone, Debug)]
pub struct Preemption {
    /// The node on which room is made.
    pub node: Name,
    /// Who has to go, the most important first. Those that are being deleted
    /// already are among them.
    pub victims: Vec<Arc<PodInfo>>,
    /// How many of them a pod disruption budget would have protected.
    pub budgets_violated: usize,
}

impl PartialEq for Preemption {
    /// Pods are the same when their UIDs are.
    fn eq(&self, other: &Self) -> bool {
        let uids = |preemption: &Self| -> Vec<PodUid> {
            preemption.victims.iter().map(|victim| victim.uid.clone()).collect()
        };
        self.node == other.node
            && self.budgets_violated == other.budgets_violated
            && uids(self) == uids(other)
    }
}

impl Eq for Preemption {}

/// What PreScore found.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreScoreVerdict {
    /// Ask Score for every feasible node.
    Proceed,
    /// Every node would score the same: leave this plugin's Score out.
    Skip,
}

/// What Reserve says.
#[must_use]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReserveVerdict {
    /// What the pod needs is set aside.
    Reserved,
    /// It cannot be set aside.
    Reject(Rejection),
}

/// What Permit says.
#[must_use]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PermitVerdict {
    /// Bind.
    Allow,
    /// Do not bind.
    Reject(Rejection),
    /// Hold the pod until it is allowed or rejected, at the longest this long.
    Wait(Duration),
}

/// What PreBind says.
#[must_use]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PreBindVerdict {
    /// The plugin's work is done.
    Done,
    /// The pod cannot be bound to this node.
    Reject(Rejection),
}

/// What Bind says.
#[must_use]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BindVerdict {
    /// The pod is bound.
    Bound,
    /// Not this plugin's pod; ask the next one.
    Skip,
}

/// The score of a node: 0..=100 after normalisation, times the plugin's weight
/// in the end.
pub type Score = i64;

/// The highest score after normalisation.
pub const MAX_NODE_SCORE: Score = 100;

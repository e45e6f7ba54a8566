//! Programs outside the scheduler that have a say in its decisions.
//!
//! An [`Extender`] is asked after the plugins: which of the feasible nodes it
//! accepts, how good it finds them, what it makes of a preemption, and whether
//! it binds the pod itself. The core decides whom to ask when, checks the
//! answers, and carries on without an extender that [may be
//! ignored](Extender::is_ignorable) when it fails.
//!
//! Source of the rules: kube-scheduler's `findNodesThatPassExtenders`,
//! `prioritizeNodes`, `callExtenders` and `extendersBinding`.

use std::collections::BTreeMap;
use std::fmt;

use bitflags::bitflags;
use steersman_api::key::PodUid;
use steersman_api::name::Name;
use steersman_api::node_info::NodeInfo;
use steersman_api::pod::PodInfo;
use thiserror::Error;

use crate::extensions::BoxFuture;
use crate::verdict::Preemption;

/// What stands for all extenders where plugins are named that rejected a pod.
/// Every change of the cluster brings such a pod back: nobody knows what an
/// extender looks at.
pub const EXTENDERS: &str = "Extender";

/// The highest priority that an extender can give to a node.
pub const MAX_EXTENDER_PRIORITY: i64 = 10;

bitflags! {
    /// What an extender has a say in.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Roles: u8 {
        /// Which of the feasible nodes can run a pod.
        const FILTER = 1;
        /// How good they are.
        const PRIORITIZE = 1 << 1;
        /// Whom to evict.
        const PREEMPT = 1 << 2;
        /// It binds pods itself.
        const BIND = 1 << 3;
    }
}

/// Whole objects that an extender is to be given, beyond what scheduling reads
/// of them: a driver keeps them in [`PodInfo::object`] and
/// `steersman_api::node::Node::object` when some extender wants them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wants {
    /// Pods that wait for a node.
    pub pending_pods: bool,
    /// Pods on nodes.
    pub placed_pods: bool,
    /// Nodes.
    pub nodes: bool,
}

impl Wants {
    /// What either wants.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            pending_pods: self.pending_pods || other.pending_pods,
            placed_pods: self.placed_pods || other.placed_pods,
            nodes: self.nodes || other.nodes,
        }
    }
}

/// An extender, as the core calls it: inside the cycle, which waits for the
/// answer. Only roles that [`Extender::roles`] names are asked for, and only
/// about pods that it is [interested](Extender::is_interested) in.
pub trait Extender: Send + Sync {
    /// What it is called in messages: its address.
    fn name(&self) -> &str;

    /// What it has a say in.
    fn roles(&self) -> Roles;

    /// Whether it is to be asked about `pod` at all.
    fn is_interested(&self, pod: &PodInfo) -> bool {
        let _ = pod;
        true
    }

    /// Whether scheduling goes on without it when it fails to filter, to judge
    /// a preemption or to bind.
    fn is_ignorable(&self) -> bool {
        false
    }

    /// The whole objects that it is to be given.
    fn wants(&self) -> Wants {
        Wants::default()
    }

    /// What its priorities are multiplied by.
    fn weight(&self) -> i64 {
        1
    }

    /// Which of `nodes`, all of them feasible so far, can run the pod.
    ///
    /// # Errors
    /// The attempt fails, unless the extender may be ignored.
    fn filter(&self, pod: &PodInfo, nodes: &[&NodeInfo]) -> Result<Filtered, ExtenderError> {
        let _ = (pod, nodes);
        Err(ExtenderError("does not filter".to_owned()))
    }

    /// Begins to ask how good `nodes` are. All extenders are asked before the
    /// first answer is waited for.
    fn prioritize<'a>(
        &'a self,
        pod: &'a PodInfo,
        nodes: &'a [&'a NodeInfo],
    ) -> Pending<'a, Vec<Priority>> {
        let _ = (pod, nodes);
        Pending::new(|| Err(ExtenderError("does not prioritize".to_owned())))
    }

    /// What it makes of the ways to make room that were found: which of them it
    /// accepts, and with whom to be evicted.
    ///
    /// # Errors
    /// There is no preemption, unless the extender may be ignored.
    fn preempt(
        &self,
        pod: &PodInfo,
        candidates: &[Preemption],
    ) -> Result<Vec<NodeVictims>, ExtenderError> {
        let _ = (pod, candidates);
        Err(ExtenderError("does not judge preemptions".to_owned()))
    }

    /// Binds the pod to the node. Runs beside the core.
    ///
    /// # Errors
    /// The pod is tried again later, unless the extender may be ignored: then
    /// the profile's Bind plugins bind it.
    fn bind<'a>(
        &'a self,
        pod: &'a PodInfo,
        node: &'a Name,
    ) -> BoxFuture<'a, Result<(), ExtenderError>> {
        let _ = (pod, node);
        Box::pin(std::future::ready(Err(ExtenderError("does not bind".to_owned()))))
    }
}

/// Why an extender gave no usable answer, in words for the events and conditions
/// of pods, and for the log.
///
/// They have to name the extender when nothing else does: where it fails a pod's
/// attempt, preemption or binding. When it is left out instead, since it
/// [may be ignored](Extender::is_ignorable) or only gives priorities, they follow
/// its name in a note and need not repeat it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct ExtenderError(pub String);

/// What a filtering extender says. Nodes of the question that stand nowhere are
/// out of the question, without a reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filtered {
    /// The nodes that can run the pod.
    pub passed: Vec<Name>,
    /// Nodes that cannot, and why; evictions may help.
    pub failed: BTreeMap<Name, String>,
    /// Nodes that cannot, and why; evictions do not help. Counts more than
    /// [`Filtered::failed`].
    pub failed_for_good: BTreeMap<Name, String>,
}

/// A node's priority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Priority {
    /// The node.
    pub node: Name,
    /// 0 to [`MAX_EXTENDER_PRIORITY`]; what is outside is taken as it is.
    pub priority: i64,
}

/// Whom to evict from a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeVictims {
    /// The node.
    pub node: Name,
    /// At least one pod of the node.
    pub victims: Vec<PodUid>,
    /// How many of them a pod disruption budget would have protected.
    pub budgets_violated: usize,
}

/// An answer on its way.
pub struct Pending<'a, T>(Box<dyn FnOnce() -> Result<T, ExtenderError> + 'a>);

impl<'a, T> Pending<'a, T> {
    /// What `wait` waits for.
    pub fn new(wait: impl FnOnce() -> Result<T, ExtenderError> + 'a) -> Self {
        Self(Box::new(wait))
    }

    /// Waits for the answer.
    ///
    /// # Errors
    /// There is no usable one.
    pub fn wait(self) -> Result<T, ExtenderError> {
        (self.0)()
    }
}

impl<T> fmt::Debug for Pending<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pending")
    }
}

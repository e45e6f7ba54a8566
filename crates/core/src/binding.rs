//! The binding cycle: a self-contained piece of work that runs beside the core.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use steersman_api::key::PodUid;
use steersman_api::name::Name;
use steersman_api::pod::PodInfo;
use steersman_framework::extensions::BindCtx;
use steersman_framework::observer::Observer;
use steersman_framework::state::CycleState;
use steersman_framework::world::ClusterWriter;

use crate::profile::Profile;
use crate::runner::{BindOutcome, run_binding};

/// A pod on its way to a node. A driver runs it and reports its end.
pub struct BindingCycle {
    pub(crate) pod: Arc<PodInfo>,
    pub(crate) node: Name,
    pub(crate) profile: Arc<Profile>,
    pub(crate) state: Arc<CycleState>,
    /// Tells this cycle from an earlier one of the same pod.
    pub(crate) ticket: u64,
    pub(crate) recall: Arc<Recall>,
}

/// Settles once whether a binding cycle binds or is called off: the core may
/// want the room for a more important pod while the cycle runs elsewhere.
#[derive(Debug, Default)]
pub(crate) struct Recall(AtomicU8);

const OPEN: u8 = 0;
const RECALLED: u8 = 1;
const BINDING: u8 = 2;

impl Recall {
    /// Calls the cycle off; `false` when it is too late.
    pub(crate) fn recall(&self) -> bool {
        let settled = self.0.compare_exchange(OPEN, RECALLED, Ordering::AcqRel, Ordering::Acquire);
        matches!(settled, Ok(_) | Err(RECALLED))
    }

    /// Whether the cycle was called off.
    pub(crate) fn is_recalled(&self) -> bool {
        self.0.load(Ordering::Acquire) == RECALLED
    }

    /// The cycle is about to bind; `false` when it was called off.
    pub(crate) fn may_bind(&self) -> bool {
        let settled = self.0.compare_exchange(OPEN, BINDING, Ordering::AcqRel, Ordering::Acquire);
        matches!(settled, Ok(_) | Err(BINDING))
    }
}

/// How a binding cycle ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BindingReport {
    pub(crate) pod: PodUid,
    pub(crate) ticket: u64,
    pub(crate) outcome: BindOutcome,
    /// What went wrong without harm.
    pub(crate) notes: Vec<String>,
}

impl BindingReport {
    /// The pod.
    pub fn pod(&self) -> &PodUid {
        &self.pod
    }

    /// Whether the pod was bound.
    pub fn is_bound(&self) -> bool {
        self.outcome == BindOutcome::Bound
    }
}

impl BindingCycle {
    /// The pod.
    pub fn pod(&self) -> &Arc<PodInfo> {
        &self.pod
    }

    /// Where it goes.
    pub fn node(&self) -> &Name {
        &self.node
    }

    /// Runs PreBind, Bind (by an extender, if one binds) and PostBind. Plugins
    /// that panic fail this binding only. A cycle that the core calls off ends
    /// before Bind: it looks whenever it is polled.
    pub async fn run(
        self,
        world: &dyn ClusterWriter,
        observer: &mut (dyn Observer + Send),
    ) -> BindingReport {
        let ctx = BindCtx { pod: &self.pod, node: &self.node, state: &self.state, world };
        let mut notes = Vec::new();
        let outcome = run_binding(&self.profile, ctx, &self.recall, observer, &mut notes).await;
        BindingReport { pod: self.pod.uid.clone(), ticket: self.ticket, outcome, notes }
    }
}

impl fmt::Debug for BindingCycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BindingCycle({} -> {})", self.pod.key, self.node)
    }
}

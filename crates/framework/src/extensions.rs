//! The extension points as traits, and the set of them that a plugin serves.

use std::cmp::Ordering;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use steersman_api::name::Name;
use steersman_api::node_info::{NodeIdx, NodeInfo};
use steersman_api::pod::PodInfo;
use steersman_api::time::Time;

use crate::cluster::Cluster;
use crate::diagnosis::Diagnosis;
use crate::events::EnqueueExtensions;
use crate::point::{ExtensionPoint, PointSet};
use crate::signature::{Scope, Sign};
use crate::state::CycleState;
use crate::verdict::{
    BindVerdict, FilterVerdict, PermitVerdict, PluginError, PostFilterVerdict, PreBindVerdict,
    PreEnqueueVerdict, PreFilterVerdict, PreScoreVerdict, Preemption, ReserveVerdict, Score,
};
use crate::world::ClusterWriter;

/// The extension points that one plugin instance serves. A plugin fills in its
/// own and leaves the rest to [`Default`].
#[derive(Clone, Default)]
pub struct Extensions {
    /// May a pod enter the activeQ?
    pub pre_enqueue: Option<Arc<dyn PreEnqueue>>,
    /// The order of the activeQ.
    pub queue_sort: Option<Arc<dyn QueueSort>>,
    /// Once a cycle, before nodes are looked at.
    pub pre_filter: Option<Arc<dyn PreFilter>>,
    /// Can a node run the pod?
    pub filter: Option<Arc<dyn Filter>>,
    /// What can be done when none can?
    pub post_filter: Option<Arc<dyn PostFilter>>,
    /// Once a cycle, before feasible nodes are scored.
    pub pre_score: Option<Arc<dyn PreScore>>,
    /// How good is a feasible node?
    pub score: Option<Arc<dyn ScorePlugin>>,
    /// A node was chosen.
    pub reserve: Option<Arc<dyn Reserve>>,
    /// May the pod be bound now?
    pub permit: Option<Arc<dyn Permit>>,
    /// Work before the binding.
    pub pre_bind: Option<Arc<dyn PreBind>>,
    /// The binding.
    pub bind: Option<Arc<dyn Bind>>,
    /// After the binding.
    pub post_bind: Option<Arc<dyn PostBind>>,
    /// Which events may lift this plugin's rejections. Without it every event
    /// brings a pod back that the plugin rejected.
    pub events: Option<Arc<dyn EnqueueExtensions>>,
    /// What of a pod the plugin reads. Without it pods of profiles that use
    /// the plugin's Filter or Score have no signature.
    pub sign: Option<Arc<dyn Sign>>,
}

impl Extensions {
    /// The points that are served.
    pub fn points(&self) -> PointSet {
        use ExtensionPoint as P;
        [
            (self.pre_enqueue.is_some(), P::PreEnqueue),
            (self.queue_sort.is_some(), P::QueueSort),
            (self.pre_filter.is_some(), P::PreFilter),
            (self.filter.is_some(), P::Filter),
            (self.post_filter.is_some(), P::PostFilter),
            (self.pre_score.is_some(), P::PreScore),
            (self.score.is_some(), P::Score),
            (self.reserve.is_some(), P::Reserve),
            (self.permit.is_some(), P::Permit),
            (self.pre_bind.is_some(), P::PreBind),
            (self.bind.is_some(), P::Bind),
            (self.post_bind.is_some(), P::PostBind),
        ]
        .into_iter()
        .filter(|(served, _)| *served)
        .fold(PointSet::empty(), |set, (_, point)| set | point.set())
    }
}

/// What a plugin may look at while a pod's nodes are judged.
#[derive(Clone, Copy, Debug)]
pub struct CycleCtx<'a> {
    /// The pod.
    pub pod: &'a PodInfo,
    /// The cluster.
    pub cluster: &'a Cluster,
    /// What plugins kept for this cycle.
    pub state: &'a CycleState,
}

/// As [`CycleCtx`], where a plugin may keep data for later in the cycle.
#[derive(Debug)]
pub struct PrepareCtx<'a> {
    /// The pod.
    pub pod: &'a PodInfo,
    /// The cluster.
    pub cluster: &'a Cluster,
    /// What plugins keep for this cycle.
    pub state: &'a mut CycleState,
}

/// A pod in the queue, as a queue order sees it.
#[derive(Clone, Debug)]
pub struct QueuedPod {
    /// The pod.
    pub pod: Arc<PodInfo>,
    /// When it was queued, the latest time.
    pub queued_at: Time,
    /// How often it was tried.
    pub attempts: u32,
}

/// See [`ExtensionPoint::PreEnqueue`].
pub trait PreEnqueue: Send + Sync {
    /// Whether `pod` may enter the activeQ.
    ///
    /// # Errors
    /// The pod stays out, as if it were gated.
    fn pre_enqueue(
        &self,
        pod: &PodInfo,
        cluster: &Cluster,
    ) -> Result<PreEnqueueVerdict, PluginError>;
}

/// See [`ExtensionPoint::QueueSort`].
pub trait QueueSort: Send + Sync {
    /// Which of two pods is tried first: the lesser one. Must be a total order.
    fn compare(&self, a: &QueuedPod, b: &QueuedPod) -> Ordering;
}

/// See [`ExtensionPoint::PreFilter`].
pub trait PreFilter: Send + Sync {
    /// Looks at the pod and the cluster as a whole.
    ///
    /// # Errors
    /// The cycle fails.
    fn pre_filter(&self, ctx: &mut PrepareCtx<'_>) -> Result<PreFilterVerdict, PluginError>;

    /// How to keep what PreFilter computed true when a pod is added to or
    /// taken from a node in thought. `None` when it does not depend on pods.
    fn extensions(&self) -> Option<&dyn PreFilterExtensions> {
        None
    }
}

/// What-if updates of a PreFilter plugin's data.
pub trait PreFilterExtensions: Send + Sync {
    /// `added` is now on `node` (which counts it already).
    ///
    /// # Errors
    /// The what-if is given up.
    fn add_pod(
        &self,
        ctx: &mut PrepareCtx<'_>,
        added: &PodInfo,
        node: &NodeInfo,
    ) -> Result<(), PluginError>;

    /// `removed` is no longer on `node` (which does not count it any more).
    ///
    /// # Errors
    /// The what-if is given up.
    fn remove_pod(
        &self,
        ctx: &mut PrepareCtx<'_>,
        removed: &PodInfo,
        node: &NodeInfo,
    ) -> Result<(), PluginError>;
}

/// See [`ExtensionPoint::Filter`].
pub trait Filter: Send + Sync {
    /// Whether the pod can run on `node`.
    ///
    /// # Errors
    /// The cycle fails.
    fn filter(&self, ctx: &CycleCtx<'_>, node: &NodeInfo) -> Result<FilterVerdict, PluginError>;

    /// What the answer depends on.
    fn scope(&self) -> Scope {
        Scope::Cluster
    }
}

/// See [`ExtensionPoint::PostFilter`].
pub trait PostFilter: Send + Sync {
    /// Looks for a way to make a pod schedulable that fits nowhere.
    ///
    /// # Errors
    /// The next PostFilter plugin is not asked.
    fn post_filter(&self, ctx: &PostFilterCtx<'_>) -> Result<PostFilterVerdict, PluginError>;
}

/// What a PostFilter plugin may look at.
#[derive(Clone, Copy)]
pub struct PostFilterCtx<'a> {
    /// The cycle that failed.
    pub cycle: CycleCtx<'a>,
    /// Why it did.
    pub diagnosis: &'a Diagnosis,
    /// Where the pod is nominated to, if it is.
    pub nominated: Option<&'a Name>,
    /// A number for drawing among equals; another one in every attempt.
    pub lot: u64,
    /// For trying out changes.
    pub what_if: &'a dyn WhatIf,
}

/// Runs the profile's filters on nodes as they might be. Works on copies of
/// node and state that the caller owns.
pub trait WhatIf {
    /// Puts `pod` on `node` in thought.
    ///
    /// # Errors
    /// A plugin failed.
    fn add_pod(
        &self,
        state: &mut CycleState,
        pod: Arc<PodInfo>,
        node: &mut NodeInfo,
    ) -> Result<(), PluginError>;

    /// Takes `pod` off `node` in thought.
    ///
    /// # Errors
    /// A plugin failed.
    fn remove_pod(
        &self,
        state: &mut CycleState,
        pod: &PodInfo,
        node: &mut NodeInfo,
    ) -> Result<(), PluginError>;

    /// Whether the cycle's pod fits on `node` now, pods nominated to it
    /// counted.
    ///
    /// # Errors
    /// A plugin failed.
    fn filter(&self, state: &CycleState, node: &NodeInfo) -> Result<FilterVerdict, PluginError>;

    /// What the extenders make of `candidates`, the ways to make room that were
    /// found: they may leave out some and evict others. Victims that come back
    /// stand in no particular order, and are at least one each.
    ///
    /// # Errors
    /// An extender that may not be ignored failed.
    fn ask_extenders(&self, candidates: Vec<Preemption>) -> Result<Vec<Preemption>, PluginError>;
}

/// See [`ExtensionPoint::PreScore`].
pub trait PreScore: Send + Sync {
    /// Prepares scoring of the feasible `nodes`.
    ///
    /// # Errors
    /// The cycle fails.
    fn pre_score(
        &self,
        ctx: &mut PrepareCtx<'_>,
        nodes: &[NodeIdx],
    ) -> Result<PreScoreVerdict, PluginError>;
}

/// A node's score.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeScore {
    /// The node.
    pub node: NodeIdx,
    /// Its score.
    pub score: Score,
}

/// See [`ExtensionPoint::Score`].
pub trait ScorePlugin: Send + Sync {
    /// How good `node` is; any number before normalisation.
    ///
    /// # Errors
    /// The cycle fails.
    fn score(&self, ctx: &CycleCtx<'_>, node: &NodeInfo) -> Result<Score, PluginError>;

    /// Brings the scores of all feasible nodes into 0..=100. A plugin whose
    /// scores are there already leaves this out.
    ///
    /// # Errors
    /// The cycle fails.
    fn normalize(&self, ctx: &CycleCtx<'_>, scores: &mut [NodeScore]) -> Result<(), PluginError> {
        let _ = (ctx, scores);
        Ok(())
    }

    /// What the score before normalisation depends on.
    fn scope(&self) -> Scope {
        Scope::Cluster
    }
}

/// See [`ExtensionPoint::Reserve`].
pub trait Reserve: Send + Sync {
    /// Sets aside what the pod needs on `node`.
    ///
    /// # Errors
    /// The cycle fails; what was reserved is given back.
    fn reserve(&self, ctx: &mut PrepareCtx<'_>, node: &Name)
    -> Result<ReserveVerdict, PluginError>;

    /// Gives back what was set aside. Called in reverse order of reservation,
    /// also for plugins that were not asked yet; must not fail and may be
    /// called twice.
    fn unreserve(&self, ctx: &CycleCtx<'_>, node: &Name);
}

/// See [`ExtensionPoint::Permit`].
pub trait Permit: Send + Sync {
    /// Whether the pod may be bound to `node` now.
    ///
    /// # Errors
    /// The cycle fails.
    fn permit(&self, ctx: &mut PrepareCtx<'_>, node: &Name) -> Result<PermitVerdict, PluginError>;
}

/// What a plugin may use in the binding cycle, which runs beside the core and
/// sees no cluster state.
#[derive(Clone, Copy)]
pub struct BindCtx<'a> {
    /// The pod.
    pub pod: &'a Arc<PodInfo>,
    /// Where it goes.
    pub node: &'a Name,
    /// What plugins kept for this cycle.
    pub state: &'a CycleState,
    /// The way to the API server.
    pub world: &'a dyn ClusterWriter,
}

/// A boxed future.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// See [`ExtensionPoint::PreBind`].
pub trait PreBind: Send + Sync {
    /// Whether there will be work to do for this pod. Known before the binding
    /// cycle starts, so that the expected node can be announced.
    fn has_work(&self, ctx: &CycleCtx<'_>, node: &Name) -> bool {
        let _ = (ctx, node);
        true
    }

    /// Does it.
    fn pre_bind<'a>(
        &'a self,
        ctx: BindCtx<'a>,
    ) -> BoxFuture<'a, Result<PreBindVerdict, PluginError>>;
}

/// See [`ExtensionPoint::Bind`].
pub trait Bind: Send + Sync {
    /// Binds the pod, or leaves it to the next plugin.
    fn bind<'a>(&'a self, ctx: BindCtx<'a>) -> BoxFuture<'a, Result<BindVerdict, PluginError>>;
}

/// See [`ExtensionPoint::PostBind`].
pub trait PostBind: Send + Sync {
    /// Takes note of a binding.
    fn post_bind<'a>(&'a self, ctx: BindCtx<'a>) -> BoxFuture<'a, ()>;
}

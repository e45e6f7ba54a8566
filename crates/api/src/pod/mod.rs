//! Pods as scheduling sees them.

mod affinity;
mod convert;
mod features;
mod requests;
mod spread;
mod volumes;

use std::sync::Arc;

use k8s_openapi::api::core::v1 as core_v1;

pub use affinity::{AffinityTerm, PodAffinity, WeightedAffinityTerm};
pub use requests::{
    DEFAULT_MEMORY_REQUEST, DEFAULT_MILLI_CPU_REQUEST, PodResources, pod_resources,
};
pub use spread::{InclusionPolicy, SpreadConstraint, WhenUnsatisfiable};
pub use volumes::{PodVolume, UsedClaim};

use crate::key::{ObjectKey, PodUid};
use crate::labels::Labels;
use crate::name::{Interned, Name};
use crate::node::Node;
use crate::ports::HostPort;
use crate::resources::Resources;
use crate::selector::{NodeSelector, NodeSelectorTerm};
use crate::taint::Toleration;
use crate::time::WallTime;

/// One version of a pod.
///
/// Everything that copies of one template share ([`PodInfo::spec`],
/// [`PodInfo::resources`], labels) is interned, so that ten thousand copies
/// cost little more than their names, and one template is told from another by
/// comparing pointers.
#[derive(Clone, Debug)]
pub struct PodInfo {
    /// Namespace and name.
    pub key: ObjectKey,
    /// `metadata.uid`.
    pub uid: PodUid,
    /// `metadata.labels`.
    pub labels: Labels,
    /// What the spec says that scheduling reads.
    pub spec: Interned<PodSpec>,
    /// What the pod asks for, a pending resize included.
    pub resources: Interned<PodResources>,
    /// The volumes that scheduling reads. Not part of the spec: names of claims
    /// tell copies of one template apart.
    pub volumes: Interned<Box<[PodVolume]>>,
    /// The controller that owns it.
    pub controller: Option<Interned<OwnerRef>>,
    /// `spec.nodeName`: where it is bound.
    pub node_name: Option<Name>,
    /// `status.nominatedNodeName`: where it hopes to go.
    pub nominated_node: Option<Name>,
    /// `metadata.creationTimestamp`.
    pub created: WallTime,
    /// `status.startTime`.
    pub started: Option<WallTime>,
    /// Whether `metadata.deletionTimestamp` is set.
    pub terminating: bool,
    /// Whether the condition `DisruptionTarget` says that a scheduler disrupts
    /// the pod to make room for another one.
    pub preempted: bool,
    /// `status.phase`.
    pub phase: Phase,
    /// The whole object, when a driver keeps it for those who want more; of a
    /// pod on a node perhaps only its annotations.
    pub object: Option<Arc<core_v1::Pod>>,
}

/// `status.phase`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Not started yet.
    #[default]
    Pending,
    /// Started.
    Running,
    /// Ended well.
    Succeeded,
    /// Ended badly.
    Failed,
    /// Unknown to the API server.
    Unknown,
}

impl Phase {
    /// Whether the pod has ended and uses nothing any more.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }
}

/// The controller that a pod belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OwnerRef {
    /// `apps/v1` and the like.
    pub api_version: Name,
    /// `ReplicaSet` and the like.
    pub kind: Name,
    /// Its name, in the pod's namespace.
    pub name: Name,
    /// Its `metadata.uid`.
    pub uid: Name,
}

/// The part of a pod's spec that scheduling reads, without what tells copies
/// of one template apart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PodSpec {
    /// Which scheduler, and which of its profiles, the pod wants.
    pub scheduler_name: Name,
    /// The resolved priority.
    pub priority: i32,
    /// Whether the pod may have others evicted (`preemptionPolicy` is not
    /// `Never`).
    pub may_preempt: bool,
    /// `spec.schedulingGates`, by name.
    pub scheduling_gates: Box<[Name]>,
    /// `spec.nodeSelector`.
    pub node_selector: Labels,
    /// Required node affinity.
    pub required_node_affinity: Option<NodeSelector>,
    /// Preferred node affinity.
    pub preferred_node_affinity: Box<[WeightedNodeTerm]>,
    /// `spec.tolerations`.
    pub tolerations: Box<[Toleration]>,
    /// Host ports of all containers that keep running.
    pub host_ports: Box<[HostPort]>,
    /// `spec.topologySpreadConstraints`.
    pub spread_constraints: Box<[SpreadConstraint]>,
    /// Affinity and anti-affinity to other pods. Interned by itself: existing
    /// pods are grouped by it.
    pub affinity: Interned<PodAffinity>,
    /// Images of init containers, then containers, as written.
    pub images: Box<[Name]>,
    /// Images that are mounted as volumes, as written.
    pub volume_images: Box<[Name]>,
    /// Node features that the spec needs, sorted; see `features.rs`.
    pub required_features: Box<[Name]>,
    /// Whether the pod names resource claims.
    pub has_resource_claims: bool,
    /// What the pod may use at the most, by its spec. Nothing is decided by it:
    /// it is shown.
    pub limits: Resources,
}

/// A preferred node selector term.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WeightedNodeTerm {
    /// 1..=100.
    pub weight: i32,
    /// What is preferred.
    pub term: NodeSelectorTerm,
}

impl PodSpec {
    /// Whether the pod's node selector and required node affinity allow `node`.
    pub fn allows_node(&self, node: &Node) -> bool {
        self.node_selector.iter().all(|(key, value)| node.labels.get(key) == Some(value))
            && self
                .required_node_affinity
                .as_ref()
                .is_none_or(|required| required.matches(&node.name, &node.labels))
    }
}

impl PodInfo {
    /// Whether the pod has a node.
    pub fn is_bound(&self) -> bool {
        self.node_name.is_some()
    }
}

//! The gates that concern scheduling, and what they do here.

/// A gate that changes how the reference schedules or what it serves.
///
/// Gates that only concern other programs are accepted by name
/// ([`super::FeatureGates::parse`]) and have no variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "named as in Kubernetes, where they are described")]
pub enum Gate {
    ComponentFlagz,
    ComponentStatusz,
    CoordinatedLeaderElection,
    DRAAdminAccess,
    DRAConsumableCapacity,
    DRADeviceBindingConditions,
    DRADeviceTaintRules,
    DRADeviceTaints,
    DRAExtendedResource,
    DRAListTypeAttributes,
    DRANodeAllocatableResources,
    DRAPartitionableDevices,
    DRAPrioritizedList,
    DRAResourceClaimDeviceStatus,
    DRASchedulerFilterTimeout,
    DRAWorkloadResourceClaims,
    DynamicResourceAllocation,
    GangScheduling,
    GenericWorkload,
    InPlacePodLevelResourcesVerticalScaling,
    InPlacePodVerticalScaling,
    MatchLabelKeysInPodTopologySpread,
    NativeHistograms,
    NodeDeclaredFeatures,
    NodeInclusionPolicyInPodTopologySpread,
    NominatedNodeNameForExpectation,
    OpportunisticBatching,
    PodLevelResources,
    SchedulerAsyncAPICalls,
    SchedulerAsyncPreemption,
    SchedulerPopFromBackoffQ,
    SchedulerQueueingHints,
    StorageCapacityScoring,
    TaintTolerationComparisonOperators,
    TopologyAwareWorkloadScheduling,
    VolumeAttributesClass,
    VolumeLimitScaling,
    WorkloadAwarePreemption,
}

/// What setting a gate to something other than its default does here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The same as in the reference; in short, what.
    Same(&'static str),
    /// Nothing, and why.
    None(&'static str),
    /// It may not be set to anything else.
    Locked,
}

const NO_CLAIMS: &str = "resource claims are not supported yet";
const NO_WORKLOADS: &str = "pods are scheduled one by one";

/// The gates, their names and effects, in the order of the variants.
const GATES: [(Gate, &str, Effect); 38] = [
    (Gate::ComponentFlagz, "ComponentFlagz", Effect::Same("/flagz is served")),
    (Gate::ComponentStatusz, "ComponentStatusz", Effect::Same("/statusz is served")),
    (
        Gate::CoordinatedLeaderElection,
        "CoordinatedLeaderElection",
        Effect::None("replicas choose among themselves"),
    ),
    (Gate::DRAAdminAccess, "DRAAdminAccess", Effect::Locked),
    (Gate::DRAConsumableCapacity, "DRAConsumableCapacity", Effect::None(NO_CLAIMS)),
    (Gate::DRADeviceBindingConditions, "DRADeviceBindingConditions", Effect::None(NO_CLAIMS)),
    (Gate::DRADeviceTaintRules, "DRADeviceTaintRules", Effect::None(NO_CLAIMS)),
    (Gate::DRADeviceTaints, "DRADeviceTaints", Effect::None(NO_CLAIMS)),
    (Gate::DRAExtendedResource, "DRAExtendedResource", Effect::None(NO_CLAIMS)),
    (Gate::DRAListTypeAttributes, "DRAListTypeAttributes", Effect::None(NO_CLAIMS)),
    (Gate::DRANodeAllocatableResources, "DRANodeAllocatableResources", Effect::None(NO_CLAIMS)),
    (Gate::DRAPartitionableDevices, "DRAPartitionableDevices", Effect::None(NO_CLAIMS)),
    (Gate::DRAPrioritizedList, "DRAPrioritizedList", Effect::None(NO_CLAIMS)),
    (Gate::DRAResourceClaimDeviceStatus, "DRAResourceClaimDeviceStatus", Effect::None(NO_CLAIMS)),
    (Gate::DRASchedulerFilterTimeout, "DRASchedulerFilterTimeout", Effect::None(NO_CLAIMS)),
    (Gate::DRAWorkloadResourceClaims, "DRAWorkloadResourceClaims", Effect::None(NO_WORKLOADS)),
    (Gate::DynamicResourceAllocation, "DynamicResourceAllocation", Effect::Locked),
    (Gate::GangScheduling, "GangScheduling", Effect::None(NO_WORKLOADS)),
    (Gate::GenericWorkload, "GenericWorkload", Effect::None(NO_WORKLOADS)),
    (
        Gate::InPlacePodLevelResourcesVerticalScaling,
        "InPlacePodLevelResourcesVerticalScaling",
        Effect::None("resources of whole pods and their resizes always count"),
    ),
    (Gate::InPlacePodVerticalScaling, "InPlacePodVerticalScaling", Effect::Locked),
    (
        Gate::MatchLabelKeysInPodTopologySpread,
        "MatchLabelKeysInPodTopologySpread",
        Effect::None("matchLabelKeys always narrow the selector"),
    ),
    (
        Gate::NativeHistograms,
        "NativeHistograms",
        Effect::None("histograms are served with fixed buckets"),
    ),
    (
        Gate::NodeDeclaredFeatures,
        "NodeDeclaredFeatures",
        Effect::Same("the plugin of that name runs"),
    ),
    (
        Gate::NodeInclusionPolicyInPodTopologySpread,
        "NodeInclusionPolicyInPodTopologySpread",
        Effect::Locked,
    ),
    (
        Gate::NominatedNodeNameForExpectation,
        "NominatedNodeNameForExpectation",
        Effect::Same("nominatedNodeName names the node of a pod whose binding takes a while"),
    ),
    (
        Gate::OpportunisticBatching,
        "OpportunisticBatching",
        Effect::None("it saves work of the reference and changes no decision"),
    ),
    (
        Gate::PodLevelResources,
        "PodLevelResources",
        Effect::None("resources of whole pods always count"),
    ),
    (
        Gate::SchedulerAsyncAPICalls,
        "SchedulerAsyncAPICalls",
        Effect::None("requests never hold up scheduling"),
    ),
    (
        Gate::SchedulerAsyncPreemption,
        "SchedulerAsyncPreemption",
        Effect::None("victims are always deleted beside the cycles"),
    ),
    (
        Gate::SchedulerPopFromBackoffQ,
        "SchedulerPopFromBackoffQ",
        Effect::Same("pods that back off are tried when nothing else is to do"),
    ),
    (Gate::SchedulerQueueingHints, "SchedulerQueueingHints", Effect::Locked),
    (
        Gate::StorageCapacityScoring,
        "StorageCapacityScoring",
        Effect::None("VolumeBinding does not score"),
    ),
    (
        Gate::TaintTolerationComparisonOperators,
        "TaintTolerationComparisonOperators",
        Effect::None("tolerations with Lt and Gt tolerate nothing"),
    ),
    (
        Gate::TopologyAwareWorkloadScheduling,
        "TopologyAwareWorkloadScheduling",
        Effect::None(NO_WORKLOADS),
    ),
    (Gate::VolumeAttributesClass, "VolumeAttributesClass", Effect::Locked),
    (
        Gate::VolumeLimitScaling,
        "VolumeLimitScaling",
        Effect::None("a node without a CSINode has no limit"),
    ),
    (Gate::WorkloadAwarePreemption, "WorkloadAwarePreemption", Effect::None(NO_WORKLOADS)),
];

impl Gate {
    /// All of them, by name.
    pub fn all() -> impl Iterator<Item = Self> {
        GATES.iter().map(|(gate, ..)| *gate)
    }

    /// The name in the flag.
    pub fn name(self) -> &'static str {
        GATES[self as usize].1
    }

    /// What setting it does here.
    pub fn effect(self) -> Effect {
        GATES[self as usize].2
    }

    /// The gate of that name.
    pub(super) fn named(name: &str) -> Option<Self> {
        GATES.iter().find(|(_, other, _)| *other == name).map(|(gate, ..)| *gate)
    }
}

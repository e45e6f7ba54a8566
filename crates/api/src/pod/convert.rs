//! From the API's pod to the scheduling view.

use k8s_openapi::api::core::v1 as core_v1;

use super::{
    OwnerRef, Phase, PodAffinity, PodInfo, PodSpec, SpreadConstraint, WeightedNodeTerm, features,
    requests, volumes,
};
use crate::key::{ObjectKey, PodUid};
use crate::labels::Labels;
use crate::name::{Interned, Name};
use crate::ports::HostPort;
use crate::problem::{FieldPath, Problem};
use crate::selector::{NodeSelector, NodeSelectorTerm};
use crate::taint::{TaintEffect, Toleration, TolerationOperator};
use crate::time::WallTime;

/// The scheduler of pods that name none.
const DEFAULT_SCHEDULER: &str = "default-scheduler";

impl PodInfo {
    /// Reads a pod. What cannot be read is reported and takes the meaning that
    /// keeps it from harm: an unreadable selector matches nothing, an
    /// unreadable amount is zero.
    pub fn from_k8s(pod: &core_v1::Pod, problems: &mut Vec<Problem>) -> Self {
        let root = FieldPath::root();
        let meta = &pod.metadata;
        let name = meta.name.as_deref().unwrap_or_default();
        if name.is_empty() {
            problems.push(Problem::required(&root.field("metadata").field("name"), "a pod's name"));
        }
        let namespace = Name::new(meta.namespace.as_deref().unwrap_or_default());
        let key = ObjectKey::namespaced(namespace, name);
        // A pod without a UID is told apart by its name: manifests have none.
        let uid = match meta.uid.as_deref() {
            Some(uid) if !uid.is_empty() => PodUid::from(uid),
            _ => PodUid::from(key.to_string().as_str()),
        };
        let status = pod.status.as_ref();
        let labels = Labels::from(meta.labels.as_ref());
        let spec = pod_spec(pod, &key.namespace, &labels, problems);
        let resources = requests::pod_resources(pod, problems);
        Self {
            uid,
            labels,
            spec: Interned::new(spec),
            resources: Interned::new(resources),
            volumes: Interned::new(pod.spec.as_ref().map(volumes::volumes).unwrap_or_default()),
            controller: controller(pod),
            node_name: set(pod.spec.as_ref().and_then(|s| s.node_name.as_deref())),
            nominated_node: set(status.and_then(|s| s.nominated_node_name.as_deref())),
            created: meta.creation_timestamp.as_ref().map(WallTime::from).unwrap_or_default(),
            started: status.and_then(|s| s.start_time.as_ref()).map(WallTime::from),
            terminating: meta.deletion_timestamp.is_some(),
            preempted: status.is_some_and(is_preempted),
            phase: phase(status.and_then(|s| s.phase.as_deref())),
            object: None,
            key,
        }
    }
}

fn set(text: Option<&str>) -> Option<Name> {
    text.filter(|t| !t.is_empty()).map(Name::new)
}

fn phase(text: Option<&str>) -> Phase {
    match text {
        None | Some("" | "Pending") => Phase::Pending,
        Some("Running") => Phase::Running,
        Some("Succeeded") => Phase::Succeeded,
        Some("Failed") => Phase::Failed,
        Some(_) => Phase::Unknown,
    }
}

fn is_preempted(status: &core_v1::PodStatus) -> bool {
    let mut conditions = status.conditions.iter().flatten();
    let disruption = conditions.find(|condition| condition.type_ == "DisruptionTarget");
    disruption.is_some_and(|condition| {
        condition.status == "True" && condition.reason.as_deref() == Some("PreemptionByScheduler")
    })
}

fn controller(pod: &core_v1::Pod) -> Option<Interned<OwnerRef>> {
    let owners = pod.metadata.owner_references.as_deref().unwrap_or_default();
    let owner = owners.iter().find(|o| o.controller == Some(true))?;
    Some(Interned::new(OwnerRef {
        api_version: owner.api_version.as_str().into(),
        kind: owner.kind.as_str().into(),
        name: owner.name.as_str().into(),
        uid: owner.uid.as_str().into(),
    }))
}

fn pod_spec(
    pod: &core_v1::Pod,
    namespace: &Name,
    labels: &Labels,
    problems: &mut Vec<Problem>,
) -> PodSpec {
    let at = FieldPath::from("spec");
    let Some(spec) = pod.spec.as_ref() else {
        problems.push(Problem::required(&at, "a pod's spec"));
        return PodSpec { scheduler_name: DEFAULT_SCHEDULER.into(), ..PodSpec::default() };
    };
    if spec.containers.is_empty() {
        problems.push(Problem::required(&at.field("containers"), "at least one container"));
    }
    let affinity_at = at.field("affinity");
    let node_affinity = spec.affinity.as_ref().and_then(|a| a.node_affinity.as_ref());
    let node_affinity_at = affinity_at.field("nodeAffinity");
    PodSpec {
        scheduler_name: set(spec.scheduler_name.as_deref())
            .unwrap_or_else(|| DEFAULT_SCHEDULER.into()),
        priority: spec.priority.unwrap_or(0),
        may_preempt: spec.preemption_policy.as_deref() != Some("Never"),
        scheduling_gates: spec
            .scheduling_gates
            .iter()
            .flatten()
            .map(|gate| gate.name.as_str().into())
            .collect(),
        node_selector: Labels::from(spec.node_selector.as_ref()),
        required_node_affinity: node_affinity
            .and_then(|a| a.required_during_scheduling_ignored_during_execution.as_ref())
            .map(|selector| {
                let at = node_affinity_at.field("requiredDuringSchedulingIgnoredDuringExecution");
                NodeSelector::from_k8s(selector, &at, problems)
            }),
        preferred_node_affinity: preferred_terms(node_affinity, &node_affinity_at, problems),
        tolerations: tolerations(spec, &at.field("tolerations"), problems),
        host_ports: host_ports(spec),
        spread_constraints: SpreadConstraint::list_from_k8s(
            spec.topology_spread_constraints.as_deref().unwrap_or_default(),
            labels,
            &at.field("topologySpreadConstraints"),
            problems,
        ),
        affinity: Interned::new(PodAffinity::from_k8s(
            spec.affinity.as_ref(),
            namespace,
            &affinity_at,
            problems,
        )),
        images: all_containers(spec)
            .map(|c| c.image.as_deref().unwrap_or_default().into())
            .collect(),
        volume_images: spec
            .volumes
            .iter()
            .flatten()
            .filter_map(|v| v.image.as_ref())
            .map(|image| image.reference.as_deref().unwrap_or_default().into())
            .collect(),
        required_features: features::required_features(spec),
        has_resource_claims: spec.resource_claims.as_ref().is_some_and(|c| !c.is_empty()),
        limits: requests::pod_limits(spec, problems),
    }
}

/// Init containers, then containers.
pub(super) fn all_containers(spec: &core_v1::PodSpec) -> impl Iterator<Item = &core_v1::Container> {
    spec.init_containers.iter().flatten().chain(&spec.containers)
}

/// Whether an init container keeps running beside the containers (KEP-753).
pub(super) fn is_sidecar(container: &core_v1::Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}

fn preferred_terms(
    affinity: Option<&core_v1::NodeAffinity>,
    at: &FieldPath,
    problems: &mut Vec<Problem>,
) -> Box<[WeightedNodeTerm]> {
    let at = at.field("preferredDuringSchedulingIgnoredDuringExecution");
    let terms = affinity
        .and_then(|a| a.preferred_during_scheduling_ignored_during_execution.as_deref())
        .unwrap_or_default();
    terms
        .iter()
        .enumerate()
        .map(|(i, term)| WeightedNodeTerm {
            weight: term.weight,
            term: NodeSelectorTerm::from_k8s(
                &term.preference,
                &at.index(i).field("preference"),
                problems,
            ),
        })
        .collect()
}

fn tolerations(
    spec: &core_v1::PodSpec,
    at: &FieldPath,
    problems: &mut Vec<Problem>,
) -> Box<[Toleration]> {
    let mut read = Vec::new();
    for (i, toleration) in spec.tolerations.iter().flatten().enumerate() {
        let effect = match toleration.effect.as_deref() {
            None | Some("") => None,
            Some(text) => match TaintEffect::parse(text) {
                Some(effect) => Some(effect),
                None => {
                    problems.push(Problem::invalid(
                        &at.index(i).field("effect"),
                        format_args!("{text:?}"),
                        "NoSchedule, PreferNoSchedule, NoExecute",
                    ));
                    continue;
                }
            },
        };
        let operator = match toleration.operator.as_deref() {
            None | Some("" | "Equal") => TolerationOperator::Equal,
            Some("Exists") => TolerationOperator::Exists,
            Some("Lt" | "Gt") => TolerationOperator::Never,
            Some(other) => {
                problems.push(Problem::invalid(
                    &at.index(i).field("operator"),
                    format_args!("{other:?}"),
                    "Equal, Exists",
                ));
                continue;
            }
        };
        read.push(Toleration {
            key: toleration.key.as_deref().unwrap_or_default().into(),
            operator,
            value: toleration.value.as_deref().unwrap_or_default().into(),
            effect,
        });
    }
    read.into()
}

fn host_ports(spec: &core_v1::PodSpec) -> Box<[HostPort]> {
    let sidecars = spec.init_containers.iter().flatten().filter(|c| is_sidecar(c));
    let mut ports: Vec<HostPort> = spec
        .containers
        .iter()
        .chain(sidecars)
        .flat_map(|c| c.ports.iter().flatten())
        .filter_map(|port| {
            let number = port.host_port.filter(|p| *p > 0)?;
            let ip = port.host_ip.as_deref().unwrap_or_default();
            let protocol = port.protocol.as_deref().unwrap_or_default();
            Some(HostPort::new(ip, protocol, number))
        })
        .collect();
    // Two containers that declare one port take it once.
    ports.sort();
    ports.dedup();
    ports.into()
}

//! Nodes as scheduling sees them.

use std::sync::Arc;

use k8s_openapi::api::core::v1 as core_v1;

use crate::labels::Labels;
use crate::name::Name;
use crate::problem::{FieldPath, Problem};
use crate::quantity::Quantity;
use crate::resources::{ResourceKind, Resources};
use crate::taint::{Taint, TaintEffect};

/// One version of a node object: what its owner declares, without the pods on
/// it (see [`crate::node_info::NodeInfo`] for those).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Node {
    /// `metadata.name`.
    pub name: Name,
    /// `metadata.labels`.
    pub labels: Labels,
    /// `metadata.annotations`.
    pub annotations: Labels,
    /// `spec.taints`.
    pub taints: Box<[Taint]>,
    /// `spec.unschedulable`: cordoned.
    pub unschedulable: bool,
    /// `status.allocatable`, without `pods`.
    pub allocatable: Resources,
    /// `status.allocatable.pods`: how many pods it takes.
    pub allowed_pods: i64,
    /// `status.images`.
    pub images: Box<[NodeImage]>,
    /// `status.declaredFeatures`, sorted.
    pub declared_features: Box<[Name]>,
    /// Type and status of `status.conditions`.
    pub conditions: Labels,
    /// The whole object, when a driver keeps it for plugins that want more.
    pub object: Option<Arc<core_v1::Node>>,
}

/// A container image that a node holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeImage {
    /// All the names it goes by.
    pub names: Box<[Name]>,
    /// Its size in bytes.
    pub size: i64,
}

/// The label that names a node's zone.
pub const ZONE_LABEL: &str = "topology.kubernetes.io/zone";
/// The label that names a node's region.
pub const REGION_LABEL: &str = "topology.kubernetes.io/region";
/// The label that names the node itself.
pub const HOSTNAME_LABEL: &str = "kubernetes.io/hostname";
const OLD_ZONE_LABEL: &str = "failure-domain.beta.kubernetes.io/zone";
const OLD_REGION_LABEL: &str = "failure-domain.beta.kubernetes.io/region";

impl Node {
    /// Reads a node. What cannot be read is reported and left out.
    pub fn from_k8s(node: &core_v1::Node, problems: &mut Vec<Problem>) -> Self {
        let root = FieldPath::root();
        let meta = &node.metadata;
        let name = meta.name.as_deref().unwrap_or_default();
        if name.is_empty() {
            problems
                .push(Problem::required(&root.field("metadata").field("name"), "a node's name"));
        }
        let spec = node.spec.as_ref();
        let status = node.status.as_ref();
        let (allocatable, allowed_pods) = allocatable(status, &root.field("status"), problems);
        let conditions = status.and_then(|s| s.conditions.as_deref()).unwrap_or_default();
        let mut declared_features: Vec<Name> = status
            .and_then(|s| s.declared_features.as_deref())
            .unwrap_or_default()
            .iter()
            .map(|f| f.as_str().into())
            .collect();
        declared_features.sort();
        Self {
            name: name.into(),
            labels: meta.labels.as_ref().into(),
            annotations: meta.annotations.as_ref().into(),
            taints: taints(spec, problems),
            unschedulable: spec.and_then(|s| s.unschedulable).unwrap_or(false),
            allocatable,
            allowed_pods,
            images: images(status),
            declared_features: declared_features.into(),
            conditions: Labels::from_pairs(
                conditions.iter().map(|c| (c.type_.as_str(), c.status.as_str())),
            ),
            object: None,
        }
    }

    /// The zone that nodes are interleaved by: region and zone together.
    /// `None` when the node names neither.
    pub fn zone_key(&self) -> Option<(Name, Name)> {
        let label = |new: &str, old: &str| {
            self.labels.get(&new.into()).or_else(|| self.labels.get(&old.into())).cloned()
        };
        let region = label(REGION_LABEL, OLD_REGION_LABEL).unwrap_or_default();
        let zone = label(ZONE_LABEL, OLD_ZONE_LABEL).unwrap_or_default();
        (!region.is_empty() || !zone.is_empty()).then_some((region, zone))
    }
}

fn taints(spec: Option<&core_v1::NodeSpec>, problems: &mut Vec<Problem>) -> Box<[Taint]> {
    let taints = spec.and_then(|s| s.taints.as_deref()).unwrap_or_default();
    let mut read = Vec::with_capacity(taints.len());
    for (i, taint) in taints.iter().enumerate() {
        let Some(effect) = TaintEffect::parse(&taint.effect) else {
            problems.push(Problem::invalid(
                &FieldPath::from("spec.taints").index(i).field("effect"),
                format_args!("{:?}", taint.effect),
                "NoSchedule, PreferNoSchedule, NoExecute",
            ));
            continue;
        };
        let value = taint.value.as_deref().unwrap_or_default();
        read.push(Taint { key: taint.key.as_str().into(), value: value.into(), effect });
    }
    read.into()
}

fn allocatable(
    status: Option<&core_v1::NodeStatus>,
    at: &FieldPath,
    problems: &mut Vec<Problem>,
) -> (Resources, i64) {
    let Some(status) = status else { return (Resources::default(), 0) };
    // An API server copies capacity to allocatable when only the first is set.
    let (field, list) = match (&status.allocatable, &status.capacity) {
        (Some(list), _) => ("allocatable", list),
        (None, Some(list)) => ("capacity", list),
        (None, None) => return (Resources::default(), 0),
    };
    let mut resources = Resources::default();
    let mut pods = 0;
    for (name, quantity) in list {
        let at = at.field(field).key(name);
        match read_amount(&quantity.0, &at) {
            Ok(amount) => match ResourceKind::of(name) {
                ResourceKind::Pods => pods = amount.value(),
                kind => resources.set(kind, amount),
            },
            Err(problem) => problems.push(problem),
        }
    }
    (resources, pods)
}

/// Reads an amount that must not be negative.
pub(crate) fn read_amount(text: &str, at: &FieldPath) -> Result<Quantity, Problem> {
    let amount = Quantity::parse(text).map_err(|error| Problem::new(at, error.to_string()))?;
    if amount.is_negative() {
        return Err(Problem::invalid(at, format_args!("{text:?}"), "0 or more"));
    }
    Ok(amount)
}

fn images(status: Option<&core_v1::NodeStatus>) -> Box<[NodeImage]> {
    let images = status.and_then(|s| s.images.as_deref()).unwrap_or_default();
    images
        .iter()
        .map(|image| NodeImage {
            names: image.names.iter().flatten().map(|n| n.as_str().into()).collect(),
            size: image.size_bytes.unwrap_or(0),
        })
        .collect()
}

//! Which nodes a daemon set wants a pod on, and how the pod is tied to one.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PodSpec, Toleration,
};

use crate::controller::taint_eviction::tolerates;

const NAME_FIELD: &str = "metadata.name";

/// Taints that the pods of every daemon set tolerate, with their effects: node
/// problems do not drive them away.
const TOLERATED: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];
/// A taint that they tolerate too when they use the host's network.
const TOLERATED_ON_HOST_NETWORK: (&str, &str) =
    ("node.kubernetes.io/network-unavailable", "NoSchedule");

/// What a daemon set wants of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// A pod.
    Wanted,
    /// No new pod, but one that is there may stay.
    Kept,
    /// No pod.
    Refused,
}

pub(super) fn verdict(spec: &PodSpec, node: &Node) -> Verdict {
    let name = node.metadata.name.as_deref().unwrap_or_default();
    let named = spec.node_name.as_deref().is_none_or(|wanted| wanted.is_empty() || wanted == name);
    if !named || !matches_node(spec, node) {
        return Verdict::Refused;
    }
    let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    let tolerations = spec.tolerations.as_deref().unwrap_or_default();
    let mut verdict = Verdict::Wanted;
    for taint in taints.filter(|taint| taint.effect != "PreferNoSchedule") {
        if !tolerations.iter().any(|toleration| tolerates(toleration, taint)) {
            if taint.effect == "NoExecute" {
                return Verdict::Refused;
            }
            verdict = Verdict::Kept;
        }
    }
    verdict
}

pub(super) fn tolerate_node_problems(spec: &mut PodSpec) {
    let host_network = (spec.host_network == Some(true)).then_some(TOLERATED_ON_HOST_NETWORK);
    let tolerations = spec.tolerations.get_or_insert_default();
    for (key, effect) in TOLERATED.into_iter().chain(host_network) {
        let toleration = Toleration {
            key: Some(key.to_owned()),
            operator: Some("Exists".to_owned()),
            effect: Some(effect.to_owned()),
            ..Default::default()
        };
        if !tolerations.contains(&toleration) {
            tolerations.push(toleration);
        }
    }
}

/// Ties the pod to the node: any other requirement of the template has been
/// met, and gives way.
pub(super) fn pin(spec: &mut PodSpec, node: &str) {
    let requirement = NodeSelectorRequirement {
        key: NAME_FIELD.to_owned(),
        operator: "In".to_owned(),
        values: Some(vec![node.to_owned()]),
    };
    let term = NodeSelectorTerm { match_fields: Some(vec![requirement]), match_expressions: None };
    let affinity = spec.affinity.get_or_insert_default().node_affinity.get_or_insert_default();
    affinity.required_during_scheduling_ignored_during_execution =
        Some(NodeSelector { node_selector_terms: vec![term] });
}

/// The node that a pod is tied to.
pub(super) fn pinned(spec: &PodSpec) -> Option<&str> {
    let required = required(spec)?;
    let fields = required.node_selector_terms.iter().flat_map(|t| t.match_fields.iter().flatten());
    let mut names = fields.filter(|f| f.key == NAME_FIELD && f.operator == "In");
    names.next()?.values.as_ref()?.first().map(String::as_str)
}

fn required(spec: &PodSpec) -> Option<&NodeSelector> {
    let affinity = spec.affinity.as_ref()?.node_affinity.as_ref()?;
    affinity.required_during_scheduling_ignored_during_execution.as_ref()
}

fn matches_node(spec: &PodSpec, node: &Node) -> bool {
    let none = BTreeMap::new();
    let labels = node.metadata.labels.as_ref().unwrap_or(&none);
    let selected =
        spec.node_selector.iter().flatten().all(|(key, value)| labels.get(key) == Some(value));
    let name = node.metadata.name.as_ref();
    let term = |term: &NodeSelectorTerm| {
        let expressions = term.match_expressions.as_deref().unwrap_or_default();
        let fields = term.match_fields.as_deref().unwrap_or_default();
        // A term without requirements matches nothing.
        !(expressions.is_empty() && fields.is_empty())
            && expressions.iter().all(|r| meets(r, labels.get(&r.key)))
            && fields.iter().all(|r| r.key == NAME_FIELD && meets(r, name))
    };
    selected && required(spec).is_none_or(|required| required.node_selector_terms.iter().any(term))
}

fn meets(requirement: &NodeSelectorRequirement, value: Option<&String>) -> bool {
    let values = requirement.values.as_deref().unwrap_or_default();
    let number = |text: &String| text.parse::<i64>().ok();
    let limit = values.first().and_then(number);
    match requirement.operator.as_str() {
        "In" => value.is_some_and(|value| values.contains(value)),
        "NotIn" => !value.is_some_and(|value| values.contains(value)),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => value.and_then(number).zip(limit).is_some_and(|(value, limit)| value > limit),
        "Lt" => value.and_then(number).zip(limit).is_some_and(|(value, limit)| value < limit),
        _ => false,
    }
}

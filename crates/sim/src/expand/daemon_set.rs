//! Daemon sets: a pod for every node that accepts it.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::{apps::v1 as apps_v1, core::v1 as core_v1};
use steersman_api::node::Node;
use steersman_api::pod::PodInfo;
use steersman_api::selector::METADATA_NAME;
use steersman_api::taint::find_untolerated;

use super::deployment::no_spec;
use super::template::{self, Owner, REVISION_LABEL};
use super::{Expander, origin_of, workload_of};
use crate::admission::{NOT_READY_TAINT, UNREACHABLE_TAINT};
use crate::manifest::Sourced;

/// Taints that the pods of every daemon set tolerate, with their effects:
/// node problems do not drive them away.
const TOLERATED: [(&str, &str); 6] = [
    (NOT_READY_TAINT, "NoExecute"),
    (UNREACHABLE_TAINT, "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];
/// A taint that they tolerate too when they use the host's network.
const TOLERATED_ON_HOST_NETWORK: (&str, &str) =
    ("node.kubernetes.io/network-unavailable", "NoSchedule");

impl Expander<'_, '_, '_> {
    pub(super) fn daemon_set(&mut self, set: &Sourced<apps_v1::DaemonSet>, nodes: &[Arc<Node>]) {
        let metadata = &set.object.metadata;
        let origin = origin_of("DaemonSet", set, metadata);
        let Some(spec) = &set.object.spec else {
            return self.intake.report_object(&origin, no_spec());
        };
        let Some(selector) = self.own_selector(&spec.selector, &spec.template, &origin) else {
            return;
        };
        let workload = workload_of("DaemonSet", metadata);
        let served: BTreeSet<String> = self
            .existing
            .owned_or_adopted(&workload, metadata, &selector)
            .into_iter()
            .filter_map(|pod| target(pod).map(str::to_owned))
            .collect();
        let owner = Owner::new("apps/v1", "DaemonSet", metadata);
        let revision = [(REVISION_LABEL, template::hash(&spec.template))];
        let mut template = template::labelled(&spec.template, revision);
        if let Some(spec) = &mut template.spec {
            tolerate_node_problems(spec);
        }
        // What is wrong with the template is reported with the first pod.
        let view = PodInfo::from_k8s(
            &template::pod(&template, &owner, owner.name.to_owned()),
            &mut Vec::new(),
        );
        let base = format!("{}-", owner.name);
        for (index, node) in nodes.iter().enumerate() {
            if !accepts(node, &view) || served.contains(node.name.as_str()) {
                continue;
            }
            let name = self.names.generate(owner.namespace, &base, index);
            let mut pod = template::pod(&template, &owner, name);
            if let Some(spec) = &mut pod.spec {
                pin(spec, node.name.as_str());
            }
            self.intake.take(pod, &origin, Some(workload.clone()));
        }
    }
}

/// Whether a daemon set puts a pod on the node. Room does not matter: when
/// there is none, the pod waits.
fn accepts(node: &Node, pod: &PodInfo) -> bool {
    let spec = &pod.spec;
    let named = pod.node_name.as_ref().is_none_or(|name| *name == node.name);
    let selected =
        spec.node_selector.iter().all(|(key, value)| node.labels.get(key) == Some(value));
    let affine = spec
        .required_node_affinity
        .as_ref()
        .is_none_or(|affinity| affinity.matches(node.name.as_str(), &node.labels));
    named
        && selected
        && affine
        && find_untolerated(&node.taints, &spec.tolerations, |t| t.effect.repels()).is_none()
}

fn tolerate_node_problems(spec: &mut core_v1::PodSpec) {
    let host_network = (spec.host_network == Some(true)).then_some(TOLERATED_ON_HOST_NETWORK);
    let tolerations = spec.tolerations.get_or_insert_default();
    for (key, effect) in TOLERATED.into_iter().chain(host_network) {
        let toleration = core_v1::Toleration {
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
fn pin(spec: &mut core_v1::PodSpec, node: &str) {
    let requirement = core_v1::NodeSelectorRequirement {
        key: METADATA_NAME.to_owned(),
        operator: "In".to_owned(),
        values: Some(vec![node.to_owned()]),
    };
    let term = core_v1::NodeSelectorTerm {
        match_fields: Some(vec![requirement]),
        match_expressions: None,
    };
    let affinity = spec.affinity.get_or_insert_default().node_affinity.get_or_insert_default();
    affinity.required_during_scheduling_ignored_during_execution =
        Some(core_v1::NodeSelector { node_selector_terms: vec![term] });
}

/// The node that a daemon's pod is on, or is tied to.
fn target(pod: &core_v1::Pod) -> Option<&str> {
    let spec = pod.spec.as_ref()?;
    if let Some(node) = spec.node_name.as_deref().filter(|name| !name.is_empty()) {
        return Some(node);
    }
    let affinity = spec.affinity.as_ref()?.node_affinity.as_ref()?;
    let required = affinity.required_during_scheduling_ignored_during_execution.as_ref()?;
    let fields = required.node_selector_terms.iter().flat_map(|t| t.match_fields.iter().flatten());
    let mut names = fields.filter(|f| f.key == METADATA_NAME && f.operator == "In");
    names.next()?.values.as_ref()?.first().map(String::as_str)
}

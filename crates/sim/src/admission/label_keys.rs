//! `matchLabelKeys` and `mismatchLabelKeys`: the pod's own values of these
//! labels become part of the selector.
//!
//! Source: KEP-3243 (topology spread), KEP-3633 (affinity to pods).

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1 as core_v1;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use steersman_api::problem::{FieldPath, Problem};

/// Merges the label keys of every selector of the pod.
pub(super) fn merge(pod: &mut core_v1::Pod, problems: &mut Vec<Problem>) {
    let Some(spec) = &mut pod.spec else { return };
    let no_labels = BTreeMap::new();
    let labels = pod.metadata.labels.as_ref().unwrap_or(&no_labels);
    let mut merger = Merger { labels, problems };
    let at = FieldPath::from("spec.topologySpreadConstraints");
    for (i, constraint) in spec.topology_spread_constraints.iter_mut().flatten().enumerate() {
        let keys = constraint.match_label_keys.as_deref();
        merger.merge(&mut constraint.label_selector, keys, None, &at.index(i));
    }
    let Some(affinity) = &mut spec.affinity else { return };
    let at = FieldPath::from("spec.affinity");
    if let Some(wanted) = &mut affinity.pod_affinity {
        merger.terms(
            &mut wanted.required_during_scheduling_ignored_during_execution,
            &mut wanted.preferred_during_scheduling_ignored_during_execution,
            &at.field("podAffinity"),
        );
    }
    if let Some(unwanted) = &mut affinity.pod_anti_affinity {
        merger.terms(
            &mut unwanted.required_during_scheduling_ignored_during_execution,
            &mut unwanted.preferred_during_scheduling_ignored_during_execution,
            &at.field("podAntiAffinity"),
        );
    }
}

struct Merger<'a> {
    labels: &'a BTreeMap<String, String>,
    problems: &'a mut Vec<Problem>,
}

impl Merger<'_> {
    fn terms(
        &mut self,
        required: &mut Option<Vec<core_v1::PodAffinityTerm>>,
        preferred: &mut Option<Vec<core_v1::WeightedPodAffinityTerm>>,
        at: &FieldPath,
    ) {
        let required_at = at.field("requiredDuringSchedulingIgnoredDuringExecution");
        for (i, term) in required.iter_mut().flatten().enumerate() {
            self.term(term, &required_at.index(i));
        }
        let preferred_at = at.field("preferredDuringSchedulingIgnoredDuringExecution");
        for (i, weighted) in preferred.iter_mut().flatten().enumerate() {
            let at = preferred_at.index(i).field("podAffinityTerm");
            self.term(&mut weighted.pod_affinity_term, &at);
        }
    }

    fn term(&mut self, term: &mut core_v1::PodAffinityTerm, at: &FieldPath) {
        let keys = term.match_label_keys.as_deref();
        let mismatch_keys = term.mismatch_label_keys.as_deref();
        self.merge(&mut term.label_selector, keys, mismatch_keys, at);
    }

    fn merge(
        &mut self,
        selector: &mut Option<LabelSelector>,
        keys: Option<&[String]>,
        mismatch_keys: Option<&[String]>,
        at: &FieldPath,
    ) {
        let (keys, mismatch_keys) = (keys.unwrap_or_default(), mismatch_keys.unwrap_or_default());
        if keys.is_empty() && mismatch_keys.is_empty() {
            return;
        }
        let Some(selector) = selector else {
            let why = "matchLabelKeys and mismatchLabelKeys add to a selector";
            return self.problems.push(Problem::required(&at.field("labelSelector"), why));
        };
        let keys = keys.iter().map(|key| (key, "In"));
        for (key, operator) in keys.chain(mismatch_keys.iter().map(|key| (key, "NotIn"))) {
            let Some(value) = self.labels.get(key) else { continue };
            let requirement = LabelSelectorRequirement {
                key: key.clone(),
                operator: operator.to_owned(),
                values: Some(vec![value.clone()]),
            };
            let requirements = selector.match_expressions.get_or_insert_default();
            // Pods from an API server have been through this before.
            if !requirements.contains(&requirement) {
                requirements.push(requirement);
            }
        }
    }
}

//! `spec.affinity.podAffinity` and `podAntiAffinity`.

use k8s_openapi::api::core::v1 as core_v1;

use crate::labels::Labels;
use crate::name::Name;
use crate::problem::{FieldPath, Problem};
use crate::selector::Selector;

/// Affinity and anti-affinity of a pod to other pods.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PodAffinity {
    /// Pods of which one must be in the node's domain, term by term.
    pub required: Box<[AffinityTerm]>,
    /// Pods that attract.
    pub preferred: Box<[WeightedAffinityTerm]>,
    /// Pods of which none may be in the node's domain.
    pub required_anti: Box<[AffinityTerm]>,
    /// Pods that repel.
    pub preferred_anti: Box<[WeightedAffinityTerm]>,
}

/// Which pods, within which domain.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AffinityTerm {
    /// Which pods, by label.
    pub selector: Selector,
    /// The namespaces named by the term; the pod's own when the term names
    /// none and selects none.
    pub namespaces: Box<[Name]>,
    /// Further namespaces, by their labels.
    pub namespace_selector: Selector,
    /// The node label whose values are the domains.
    pub topology_key: Name,
}

/// A preference.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WeightedAffinityTerm {
    /// 1..=100.
    pub weight: i32,
    /// Which pods.
    pub term: AffinityTerm,
}

impl PodAffinity {
    /// Whether the pod cares about no other pod.
    pub fn is_empty(&self) -> bool {
        self.required.is_empty()
            && self.preferred.is_empty()
            && self.required_anti.is_empty()
            && self.preferred_anti.is_empty()
    }

    /// Reads the affinity of a pod in `namespace`. Terms that cannot be read
    /// are reported and match no pod.
    pub(super) fn from_k8s(
        affinity: Option<&core_v1::Affinity>,
        namespace: &Name,
        at: &FieldPath,
        problems: &mut Vec<Problem>,
    ) -> Self {
        let mut read = Self::default();
        let mut reader = TermReader { namespace, problems };
        if let Some(wanted) = affinity.and_then(|a| a.pod_affinity.as_ref()) {
            let at = at.field("podAffinity");
            read.required = reader.required(
                wanted.required_during_scheduling_ignored_during_execution.as_deref(),
                &at,
            );
            read.preferred = reader.preferred(
                wanted.preferred_during_scheduling_ignored_during_execution.as_deref(),
                &at,
            );
        }
        if let Some(unwanted) = affinity.and_then(|a| a.pod_anti_affinity.as_ref()) {
            let at = at.field("podAntiAffinity");
            read.required_anti = reader.required(
                unwanted.required_during_scheduling_ignored_during_execution.as_deref(),
                &at,
            );
            read.preferred_anti = reader.preferred(
                unwanted.preferred_during_scheduling_ignored_during_execution.as_deref(),
                &at,
            );
        }
        read
    }
}

impl AffinityTerm {
    /// Whether a pod of `namespace` (with `namespace_labels`) and `labels` is
    /// meant.
    pub fn matches(&self, namespace: &Name, namespace_labels: &Labels, labels: &Labels) -> bool {
        (self.namespaces.contains(namespace) || self.namespace_selector.matches(namespace_labels))
            && self.selector.matches(labels)
    }
}

struct TermReader<'a> {
    namespace: &'a Name,
    problems: &'a mut Vec<Problem>,
}

impl TermReader<'_> {
    fn required(
        &mut self,
        terms: Option<&[core_v1::PodAffinityTerm]>,
        at: &FieldPath,
    ) -> Box<[AffinityTerm]> {
        let at = at.field("requiredDuringSchedulingIgnoredDuringExecution");
        let terms = terms.unwrap_or_default().iter().enumerate();
        terms.map(|(i, term)| self.term(term, &at.index(i))).collect()
    }

    fn preferred(
        &mut self,
        terms: Option<&[core_v1::WeightedPodAffinityTerm]>,
        at: &FieldPath,
    ) -> Box<[WeightedAffinityTerm]> {
        let at = at.field("preferredDuringSchedulingIgnoredDuringExecution");
        let terms = terms.unwrap_or_default().iter().enumerate();
        terms
            .map(|(i, weighted)| WeightedAffinityTerm {
                weight: weighted.weight,
                term: self.term(&weighted.pod_affinity_term, &at.index(i).field("podAffinityTerm")),
            })
            .collect()
    }

    fn term(&mut self, term: &core_v1::PodAffinityTerm, at: &FieldPath) -> AffinityTerm {
        if term.topology_key.is_empty() {
            self.problems.push(Problem::required(&at.field("topologyKey"), "a node label"));
        }
        let mut namespaces: Vec<Name> =
            term.namespaces.iter().flatten().map(|n| n.as_str().into()).collect();
        if namespaces.is_empty() && term.namespace_selector.is_none() {
            namespaces.push(self.namespace.clone());
        }
        namespaces.sort();
        namespaces.dedup();
        let selector = Selector::from_k8s(
            term.label_selector.as_ref(),
            &at.field("labelSelector"),
            self.problems,
        );
        let namespace_selector = Selector::from_k8s(
            term.namespace_selector.as_ref(),
            &at.field("namespaceSelector"),
            self.problems,
        );
        AffinityTerm {
            selector,
            namespaces: namespaces.into(),
            namespace_selector,
            topology_key: term.topology_key.as_str().into(),
        }
    }
}

//! Which pods a term means.
//!
//! Two views that differ in one point: a pending pod's term selects among the
//! namespaces that exist, a term of a pod on a node is held against the labels
//! of the pending pod's namespace, which are none when it is not known.

use steersman_api::key::ObjectKey;
use steersman_api::labels::Labels;
use steersman_api::name::Name;
use steersman_api::namespace::Namespace;
use steersman_api::pod::{AffinityTerm, PodInfo};
use steersman_api::selector::Selector;
use steersman_framework::cluster::{LabelGroup, Population, Stores};

/// Whether `term`, of a pending pod, means pods of the namespace of that name.
pub(super) fn covers(term: &AffinityTerm, namespace: &Name, stores: &Stores) -> bool {
    let labels = || stores.get::<Namespace>(&ObjectKey::cluster(namespace)).map(|n| &n.labels);
    term.namespaces.contains(namespace) || selects(term, labels)
}

/// Whether the namespace selector of `term`, of a pending pod, selects a
/// namespace with these labels (`None`: one that does not exist).
pub(super) fn selects<'a>(
    term: &AffinityTerm,
    labels: impl FnOnce() -> Option<&'a Labels>,
) -> bool {
    let selector = &term.namespace_selector;
    selector.is_everything()
        || *selector != Selector::Nothing && labels().is_some_and(|labels| selector.matches(labels))
}

/// Whether `term`, of a pending pod, means `other`.
pub(super) fn means(term: &AffinityTerm, other: &PodInfo, stores: &Stores) -> bool {
    term.selector.matches(&other.labels) && covers(term, &other.key.namespace, stores)
}

/// Whether there are terms, of a pending pod, and all of them mean `other`.
pub(super) fn all_mean(terms: &[AffinityTerm], other: &PodInfo, stores: &Stores) -> bool {
    !terms.is_empty() && terms.iter().all(|term| means(term, other, stores))
}

/// The pods on nodes that all of `terms` mean, in groups; none without terms.
pub(super) fn groups_meant<'a>(
    terms: &'a [AffinityTerm],
    population: &'a Population,
    stores: &Stores,
) -> impl Iterator<Item = &'a LabelGroup> {
    let covered = |namespace: &&Name| terms.iter().all(|term| covers(term, namespace, stores));
    // A term that only names namespaces, the usual one, saves a look at all.
    let naming = terms.iter().find(|term| term.namespace_selector == Selector::Nothing);
    let namespaces: Vec<&Name> = match naming {
        Some(term) => term.namespaces.iter().filter(covered).collect(),
        None if terms.is_empty() => Vec::new(),
        None => population.namespaces().filter(covered).collect(),
    };
    namespaces
        .into_iter()
        .flat_map(|namespace| population.in_namespace(namespace))
        .filter(move |group| terms.iter().all(|term| term.selector.matches(&group.labels)))
}

/// A pending pod as terms of pods on nodes see it.
pub(super) struct Seen<'a> {
    pod: &'a PodInfo,
    namespace_labels: Labels,
}

impl<'a> Seen<'a> {
    pub(super) fn new(pod: &'a PodInfo, stores: &Stores) -> Self {
        Self { pod, namespace_labels: stores.namespace_labels(&pod.key.namespace) }
    }

    /// Whether `term`, of a pod on a node, means the pending pod.
    pub(super) fn is_meant_by(&self, term: &AffinityTerm) -> bool {
        term.matches(&self.pod.key.namespace, &self.namespace_labels, &self.pod.labels)
    }
}

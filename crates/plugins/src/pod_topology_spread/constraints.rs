//! Which constraints a pod has, and which pods and nodes they count.

use std::borrow::Cow;
use std::collections::BTreeMap;

use steersman_api::key::ObjectKey;
use steersman_api::labels::Labels;
use steersman_api::name::Name;
use steersman_api::node::{HOSTNAME_LABEL, Node, ZONE_LABEL};
use steersman_api::pod::{InclusionPolicy, PodInfo, PodSpec, SpreadConstraint, WhenUnsatisfiable};
use steersman_api::problem::FieldPath;
use steersman_api::selector::{Requirement, Selector};
use steersman_api::taint::find_untolerated;
use steersman_api::workload::{ReplicaSet, ReplicationController, Service, StatefulSet};
use steersman_framework::cluster::Stores;
use steersman_framework::registry::InitError;

use super::args::{DefaultingType, PodTopologySpreadArgs};

/// The constraints of pods that have none of their own, without selector: each
/// pod's services and owner give it.
pub(super) struct Defaults {
    templates: Box<[SpreadConstraint]>,
    /// Whether they are the built-in ones.
    pub(super) built_in: bool,
}

impl Defaults {
    pub(super) fn new(args: &PodTopologySpreadArgs) -> Result<Self, InitError> {
        if args.defaulting_type == DefaultingType::System {
            let templates = [soft(HOSTNAME_LABEL, 3), soft(ZONE_LABEL, 5)];
            return Ok(Self { templates: templates.into(), built_in: true });
        }
        let mut problems = Vec::new();
        let templates = SpreadConstraint::list_from_k8s(
            &args.default_constraints,
            &Labels::default(),
            &FieldPath::from("defaultConstraints"),
            &mut problems,
        );
        if problems.is_empty() {
            return Ok(Self { templates, built_in: false });
        }
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        Err(InitError(problems.join("; ")))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.templates.is_empty()
    }

    /// The constraints as configured; their selectors are not to be used.
    pub(super) fn templates(&self) -> &[SpreadConstraint] {
        &self.templates
    }

    /// Whether a default constraint can reject a node.
    pub(super) fn can_reject(&self) -> bool {
        self.templates.iter().any(|c| c.when_unsatisfiable == WhenUnsatisfiable::DoNotSchedule)
    }

    /// The constraints of one kind that hold for `pod`: its own, or else the
    /// defaults.
    pub(super) fn constraints_of<'a>(
        &self,
        pod: &'a PodInfo,
        stores: &Stores,
        kind: WhenUnsatisfiable,
    ) -> Cow<'a, [SpreadConstraint]> {
        let own = &pod.spec.spread_constraints;
        let of_kind = |c: &&SpreadConstraint| c.when_unsatisfiable == kind;
        if own.iter().all(|c| of_kind(&c)) && !own.is_empty() {
            return Cow::Borrowed(own);
        }
        if !own.is_empty() {
            return Cow::Owned(own.iter().filter(of_kind).cloned().collect());
        }
        let mut defaults: Vec<SpreadConstraint> =
            self.templates.iter().filter(of_kind).cloned().collect();
        if defaults.is_empty() {
            return Cow::Owned(defaults);
        }
        let selector = selector_of_kin(pod, stores);
        if selector.is_everything() {
            return Cow::Owned(Vec::new());
        }
        for constraint in &mut defaults {
            constraint.selector = selector.clone();
        }
        Cow::Owned(defaults)
    }
}

fn soft(topology_key: &str, max_skew: i32) -> SpreadConstraint {
    SpreadConstraint {
        max_skew,
        topology_key: topology_key.into(),
        when_unsatisfiable: WhenUnsatisfiable::ScheduleAnyway,
        selector: Selector::Nothing,
        min_domains: None,
        node_affinity_policy: InclusionPolicy::Honor,
        node_taints_policy: InclusionPolicy::Ignore,
    }
}

/// A controller of a kind whose selector is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KnownOwner<'a> {
    ReplicationController(&'a Name),
    ReplicaSet(&'a Name),
    StatefulSet(&'a Name),
}

/// The pod's controller, if it is of a kind whose selector is known.
pub(super) fn known_owner(pod: &PodInfo) -> Option<KnownOwner<'_>> {
    let owner = pod.controller.as_ref()?;
    match (owner.api_version.as_str(), owner.kind.as_str()) {
        ("v1", "ReplicationController") => Some(KnownOwner::ReplicationController(&owner.name)),
        ("apps/v1", "ReplicaSet") => Some(KnownOwner::ReplicaSet(&owner.name)),
        ("apps/v1", "StatefulSet") => Some(KnownOwner::StatefulSet(&owner.name)),
        _ => None,
    }
}

/// Selects the pods that belong to the same services and the same controller as
/// `pod`; everything when it belongs to none.
fn selector_of_kin(pod: &PodInfo, stores: &Stores) -> Selector {
    let mut labels: BTreeMap<&Name, &Name> = BTreeMap::new();
    for service in stores.list_in::<Service>(&pod.key.namespace) {
        labels.extend(pairs_if_selected(service, pod).into_iter().flat_map(Labels::iter));
    }
    let key = |name: &Name| ObjectKey::namespaced(pod.key.namespace.clone(), name);
    let mut more = None;
    match known_owner(pod) {
        Some(KnownOwner::ReplicationController(name)) => {
            let owner = stores.get::<ReplicationController>(&key(name));
            labels.extend(owner.into_iter().flat_map(|owner| owner.selector.iter()));
        }
        Some(KnownOwner::ReplicaSet(name)) => {
            more = stores.get::<ReplicaSet>(&key(name)).map(|owner| &owner.selector);
        }
        Some(KnownOwner::StatefulSet(name)) => {
            more = stores.get::<StatefulSet>(&key(name)).map(|owner| &owner.selector);
        }
        None => {}
    }
    let pairs =
        labels.into_iter().map(|(key, value)| Requirement::equals(key.clone(), value.clone()));
    // A controller without a selector adds no condition.
    let more = match more {
        Some(Selector::All(requirements)) => requirements.to_vec(),
        Some(Selector::Nothing) | None => Vec::new(),
    };
    Selector::everything().and(pairs.chain(more))
}

/// The labels that `service` selects by, if it selects `pod`, which must be of
/// its namespace.
pub(super) fn pairs_if_selected<'a>(service: &'a Service, pod: &PodInfo) -> Option<&'a Labels> {
    let selector = service.selector.as_ref()?;
    selector.iter().all(|(key, value)| pod.labels.get(key) == Some(value)).then_some(selector)
}

/// Whether `constraint` counts a pod of these labels and the right namespace.
/// An empty selector, which means every pod, counts none.
pub(super) fn counts_labels(constraint: &SpreadConstraint, labels: &Labels) -> bool {
    !constraint.selector.is_everything() && constraint.selector.matches(labels)
}

/// Whether a node has the labels of all constraints.
pub(super) fn has_all_keys(labels: &Labels, constraints: &[SpreadConstraint]) -> bool {
    constraints.iter().all(|c| labels.contains_key(&c.topology_key))
}

/// Whether the inclusion policies of `constraint` let the node count for a pod
/// of that spec.
pub(super) fn includes(constraint: &SpreadConstraint, spec: &PodSpec, node: &Node) -> bool {
    let affinity =
        constraint.node_affinity_policy == InclusionPolicy::Ignore || spec.allows_node(node);
    affinity
        && (constraint.node_taints_policy == InclusionPolicy::Ignore
            || find_untolerated(&node.taints, &spec.tolerations, |t| t.effect.repels()).is_none())
}

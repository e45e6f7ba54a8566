//! `spec.topologySpreadConstraints`.

use k8s_openapi::api::core::v1 as core_v1;

use crate::labels::Labels;
use crate::name::Name;
use crate::problem::{FieldPath, Problem};
use crate::selector::{Requirement, Selector};

/// One topology spread constraint.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SpreadConstraint {
    /// By how many pods domains may differ; at least 1.
    pub max_skew: i32,
    /// The node label whose values are the domains.
    pub topology_key: Name,
    /// Filter or only score.
    pub when_unsatisfiable: WhenUnsatisfiable,
    /// Which pods are counted; `matchLabelKeys` are part of it.
    pub selector: Selector,
    /// Below this many domains the least loaded one counts as empty.
    pub min_domains: Option<i32>,
    /// Whether nodes outside the pod's node affinity count. Absent: honoured.
    pub node_affinity_policy: InclusionPolicy,
    /// Whether nodes whose taints the pod does not tolerate count. Absent:
    /// ignored.
    pub node_taints_policy: InclusionPolicy,
}

/// What an unsatisfiable constraint does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WhenUnsatisfiable {
    /// Keeps the pod from the node.
    DoNotSchedule,
    /// Lowers the node's score.
    ScheduleAnyway,
}

/// Whether a property of a node decides if the node is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InclusionPolicy {
    /// Nodes that do not fit are left out.
    Honor,
    /// It makes no difference.
    Ignore,
}

impl SpreadConstraint {
    /// Reads the constraints of a pod with `labels`. One that cannot be read is
    /// reported and left out.
    pub fn list_from_k8s(
        constraints: &[core_v1::TopologySpreadConstraint],
        labels: &Labels,
        at: &FieldPath,
        problems: &mut Vec<Problem>,
    ) -> Box<[Self]> {
        let mut read = Vec::with_capacity(constraints.len());
        for (i, constraint) in constraints.iter().enumerate() {
            let at = at.index(i);
            match Self::from_k8s(constraint, labels, &at, problems) {
                Ok(good) => read.push(good),
                Err(problem) => problems.push(problem),
            }
        }
        read.into()
    }

    fn from_k8s(
        constraint: &core_v1::TopologySpreadConstraint,
        labels: &Labels,
        at: &FieldPath,
        problems: &mut Vec<Problem>,
    ) -> Result<Self, Problem> {
        let when_unsatisfiable = match constraint.when_unsatisfiable.as_str() {
            "DoNotSchedule" => WhenUnsatisfiable::DoNotSchedule,
            "ScheduleAnyway" => WhenUnsatisfiable::ScheduleAnyway,
            other => {
                return Err(Problem::invalid(
                    &at.field("whenUnsatisfiable"),
                    format_args!("{other:?}"),
                    "DoNotSchedule, ScheduleAnyway",
                ));
            }
        };
        if constraint.max_skew < 1 {
            return Err(Problem::invalid(&at.field("maxSkew"), constraint.max_skew, "1 or more"));
        }
        if constraint.topology_key.is_empty() {
            return Err(Problem::required(&at.field("topologyKey"), "a node label"));
        }
        if constraint.min_domains.is_some_and(|n| n < 1) {
            let found = constraint.min_domains.unwrap_or_default();
            return Err(Problem::invalid(&at.field("minDomains"), found, "1 or more"));
        }
        let policy = |value: Option<&String>, field: &str, absent| match value.map(String::as_str) {
            None => Ok(absent),
            Some("Honor") => Ok(InclusionPolicy::Honor),
            Some("Ignore") => Ok(InclusionPolicy::Ignore),
            Some(other) => {
                Err(Problem::invalid(&at.field(field), format_args!("{other:?}"), "Honor, Ignore"))
            }
        };
        Ok(Self {
            max_skew: constraint.max_skew,
            topology_key: constraint.topology_key.as_str().into(),
            when_unsatisfiable,
            selector: selector(constraint, labels, at, problems),
            min_domains: constraint.min_domains,
            node_affinity_policy: policy(
                constraint.node_affinity_policy.as_ref(),
                "nodeAffinityPolicy",
                InclusionPolicy::Honor,
            )?,
            node_taints_policy: policy(
                constraint.node_taints_policy.as_ref(),
                "nodeTaintsPolicy",
                InclusionPolicy::Ignore,
            )?,
        })
    }
}

/// The constraint's selector, narrowed to pods that share the values of the
/// labels named by `matchLabelKeys`. API servers write these into the selector
/// themselves; pods that come from elsewhere, or from an older one, need it
/// done here, and doing it twice changes nothing.
fn selector(
    constraint: &core_v1::TopologySpreadConstraint,
    labels: &Labels,
    at: &FieldPath,
    problems: &mut Vec<Problem>,
) -> Selector {
    let at = at.field("labelSelector");
    let selector = Selector::from_k8s(constraint.label_selector.as_ref(), &at, problems);
    let shared = constraint.match_label_keys.iter().flatten().filter_map(|key| {
        let key = Name::from(key.as_str());
        let value = labels.get(&key)?.clone();
        Some(Requirement::equals(key, value))
    });
    selector.and(shared)
}

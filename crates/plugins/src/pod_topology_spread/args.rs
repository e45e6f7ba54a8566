//! The arguments of PodTopologySpread.
//!
//! Source: `PodTopologySpreadArgs` of `kubescheduler.config.k8s.io/v1`.

use k8s_openapi::api::core::v1::TopologySpreadConstraint;
use serde::{Deserialize, Serialize};
use steersman_api::problem::{FieldPath, Problem};
use steersman_api::qualified::check_qualified_name;
use steersman_framework::args::PluginArgs;

/// How pods are spread that do not say so themselves.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodTopologySpreadArgs {
    /// Constraints for pods that have none and belong to a service or an
    /// owner, whose selector they take; so they have none of their own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub default_constraints: Vec<TopologySpreadConstraint>,
    /// Where the default constraints come from.
    pub defaulting_type: DefaultingType,
}

/// Where the default constraints come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum DefaultingType {
    /// Built in: hostname with a skew of 3 and zone with a skew of 5, both
    /// `ScheduleAnyway`.
    #[default]
    #[serde(alias = "")]
    System,
    /// [`PodTopologySpreadArgs::default_constraints`], which may be empty.
    List,
}

impl PluginArgs for PodTopologySpreadArgs {
    const KIND: &'static str = "PodTopologySpreadArgs";

    fn validate(&self, at: &FieldPath, problems: &mut Vec<Problem>) {
        if self.defaulting_type == DefaultingType::System && !self.default_constraints.is_empty() {
            let allowed = "List, as there are defaultConstraints";
            problems.push(Problem::invalid(&at.field("defaultingType"), "System", allowed));
        }
        let at = at.field("defaultConstraints");
        for (i, constraint) in self.default_constraints.iter().enumerate() {
            check_constraint(constraint, &at.index(i), problems);
            let same = |other: &&TopologySpreadConstraint| {
                other.topology_key == constraint.topology_key
                    && other.when_unsatisfiable == constraint.when_unsatisfiable
            };
            if self.default_constraints[..i].iter().any(|other| same(&other)) {
                let TopologySpreadConstraint { topology_key, when_unsatisfiable, .. } = constraint;
                let found = format_args!("{{{topology_key}, {when_unsatisfiable}}}");
                problems.push(Problem::duplicate(&at.index(i), found));
            }
        }
    }
}

fn check_constraint(
    constraint: &TopologySpreadConstraint,
    at: &FieldPath,
    problems: &mut Vec<Problem>,
) {
    if constraint.max_skew <= 0 {
        problems.push(Problem::invalid(&at.field("maxSkew"), constraint.max_skew, "1 or more"));
    }
    let key = &constraint.topology_key;
    if key.is_empty() {
        problems.push(Problem::required(&at.field("topologyKey"), "the key of a node label"));
    } else if let Err(allowed) = check_qualified_name(key) {
        problems.push(Problem::invalid(&at.field("topologyKey"), format_args!("{key:?}"), allowed));
    }
    let action = &constraint.when_unsatisfiable;
    if !matches!(action.as_str(), "DoNotSchedule" | "ScheduleAnyway") {
        let at = at.field("whenUnsatisfiable");
        let found = format_args!("{action:?}");
        problems.push(Problem::invalid(&at, found, "DoNotSchedule, ScheduleAnyway"));
    }
    if constraint.label_selector.is_some() {
        problems.push(Problem::new(
            &at.field("labelSelector"),
            "found a selector, allowed: none, as it is taken from each pod's service or owner",
        ));
    }
}

//! The arguments of DefaultPreemption.
//!
//! Source: `DefaultPreemptionArgs` of `kubescheduler.config.k8s.io/v1`.

use serde::{Deserialize, Serialize};
use steersman_api::problem::{FieldPath, Problem};
use steersman_framework::args::PluginArgs;

/// How many nodes are tried when victims are looked for: the larger of the two
/// numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DefaultPreemptionArgs {
    /// As a share of all nodes, 0 to 100 percent.
    pub min_candidate_nodes_percentage: i32,
    /// As a number of nodes, 0 or more; not 0 together with the percentage.
    pub min_candidate_nodes_absolute: i32,
}

impl Default for DefaultPreemptionArgs {
    fn default() -> Self {
        Self { min_candidate_nodes_percentage: 10, min_candidate_nodes_absolute: 100 }
    }
}

impl PluginArgs for DefaultPreemptionArgs {
    const KIND: &'static str = "DefaultPreemptionArgs";

    fn validate(&self, at: &FieldPath, problems: &mut Vec<Problem>) {
        let (percentage, absolute) =
            (self.min_candidate_nodes_percentage, self.min_candidate_nodes_absolute);
        let percentage_at = at.field("minCandidateNodesPercentage");
        let absolute_at = at.field("minCandidateNodesAbsolute");
        if !(0..=100).contains(&percentage) {
            problems.push(Problem::invalid(&percentage_at, percentage, "0 to 100"));
        }
        if absolute < 0 {
            problems.push(Problem::invalid(&absolute_at, absolute, "0 or more"));
        }
        if percentage == 0 && absolute == 0 {
            for (at, other) in [(&percentage_at, &absolute_at), (&absolute_at, &percentage_at)] {
                problems.push(Problem::invalid(
                    at,
                    0,
                    format_args!("more than 0 while {other} is 0"),
                ));
            }
        }
    }
}

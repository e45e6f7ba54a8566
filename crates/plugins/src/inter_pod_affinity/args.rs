//! The arguments of InterPodAffinity.
//!
//! Source: `InterPodAffinityArgs` of `kubescheduler.config.k8s.io/v1`.

use serde::{Deserialize, Serialize};
use steersman_api::problem::{FieldPath, Problem};
use steersman_framework::args::PluginArgs;

/// How much other pods' affinity counts when nodes are scored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InterPodAffinityArgs {
    /// What a required affinity term of an existing pod that matches the
    /// incoming one adds to a score, 0 to 100.
    pub hard_pod_affinity_weight: i32,
    /// Whether preferred terms of existing pods are left out when the incoming
    /// pod has no affinity of its own.
    pub ignore_preferred_terms_of_existing_pods: bool,
}

impl Default for InterPodAffinityArgs {
    fn default() -> Self {
        Self { hard_pod_affinity_weight: 1, ignore_preferred_terms_of_existing_pods: false }
    }
}

impl PluginArgs for InterPodAffinityArgs {
    const KIND: &'static str = "InterPodAffinityArgs";

    fn validate(&self, at: &FieldPath, problems: &mut Vec<Problem>) {
        if !(0..=100).contains(&self.hard_pod_affinity_weight) {
            let at = at.field("hardPodAffinityWeight");
            problems.push(Problem::invalid(&at, self.hard_pod_affinity_weight, "0 to 100"));
        }
    }
}

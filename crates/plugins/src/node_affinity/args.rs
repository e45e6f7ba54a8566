//! The arguments of NodeAffinity.
//!
//! Source: `NodeAffinityArgs` of `kubescheduler.config.k8s.io/v1`.

use k8s_openapi::api::core::v1 as core_v1;
use serde::{Deserialize, Serialize};
use steersman_api::problem::{FieldPath, Problem};
use steersman_api::qualified::{check_label_value, check_qualified_name};
use steersman_api::selector::{NodeSelector, NodeSelectorTerm};
use steersman_framework::args::PluginArgs;

/// Affinity that all pods of the profile have besides their own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeAffinityArgs {
    /// Required terms must be met besides the pod's own; preferred ones add to
    /// the score.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub added_affinity: Option<core_v1::NodeAffinity>,
}

impl PluginArgs for NodeAffinityArgs {
    const KIND: &'static str = "NodeAffinityArgs";

    fn validate(&self, at: &FieldPath, problems: &mut Vec<Problem>) {
        let Some(affinity) = &self.added_affinity else { return };
        let at = at.field("addedAffinity");
        if let Some(required) = &affinity.required_during_scheduling_ignored_during_execution {
            let at = at.field("requiredDuringSchedulingIgnoredDuringExecution");
            NodeSelector::from_k8s(required, &at, problems);
            for (i, term) in required.node_selector_terms.iter().enumerate() {
                check_labels(term, &at.field("nodeSelectorTerms").index(i), problems);
            }
        }
        let at = at.field("preferredDuringSchedulingIgnoredDuringExecution");
        let preferred = affinity.preferred_during_scheduling_ignored_during_execution.as_deref();
        for (i, term) in preferred.unwrap_or_default().iter().enumerate() {
            // A term without weight has no effect, whatever it says.
            if term.weight != 0 {
                let at = at.index(i).field("preference");
                NodeSelectorTerm::from_k8s(&term.preference, &at, problems);
                check_labels(&term.preference, &at, problems);
            }
        }
    }
}

/// Reports keys and values that no label can have.
fn check_labels(term: &core_v1::NodeSelectorTerm, at: &FieldPath, problems: &mut Vec<Problem>) {
    let at = at.field("matchExpressions");
    for (i, expression) in term.match_expressions.iter().flatten().enumerate() {
        let at = at.index(i);
        if let Err(allowed) = check_qualified_name(&expression.key) {
            let found = format_args!("{:?}", expression.key);
            problems.push(Problem::invalid(&at.field("key"), found, allowed));
        }
        for (j, value) in expression.values.iter().flatten().enumerate() {
            if let Err(allowed) = check_label_value(value) {
                let at = at.field("values").index(j);
                problems.push(Problem::invalid(&at, format_args!("{value:?}"), allowed));
            }
        }
    }
}

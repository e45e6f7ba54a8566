//! The arguments of NodeResourcesBalancedAllocation.
//!
//! Source: `NodeResourcesBalancedAllocationArgs` of
//! `kubescheduler.config.k8s.io/v1`.

use serde::{Deserialize, Serialize};
use steersman_api::problem::{FieldPath, Problem};
use steersman_framework::args::PluginArgs;

use crate::scoring_args::{
    ResourceSpec, check_resources_unique, default_resources, set_resource_defaults,
};

/// Which resources are to be used evenly.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeResourcesBalancedAllocationArgs {
    /// The resources, each once and with weight 1: they are compared with each
    /// other, so none can count more.
    pub resources: Vec<ResourceSpec>,
}

impl Default for NodeResourcesBalancedAllocationArgs {
    fn default() -> Self {
        Self { resources: default_resources() }
    }
}

impl PluginArgs for NodeResourcesBalancedAllocationArgs {
    const KIND: &'static str = "NodeResourcesBalancedAllocationArgs";

    fn set_defaults(&mut self) {
        set_resource_defaults(&mut self.resources);
    }

    fn validate(&self, at: &FieldPath, problems: &mut Vec<Problem>) {
        let at = at.field("resources");
        check_resources_unique(&self.resources, &at, problems);
        for (i, resource) in self.resources.iter().enumerate() {
            if resource.weight != 1 {
                let at = at.index(i).field("weight");
                problems.push(Problem::invalid(&at, resource.weight, "1"));
            }
        }
    }
}

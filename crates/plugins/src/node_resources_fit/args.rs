//! The arguments of NodeResourcesFit.
//!
//! Source: `NodeResourcesFitArgs` of `kubescheduler.config.k8s.io/v1`.

use serde::{Deserialize, Serialize};
use steersman_api::problem::{FieldPath, Problem};
use steersman_api::qualified::check_qualified_name;
use steersman_framework::args::PluginArgs;

use crate::scoring_args::{
    ResourceSpec, ShapePoint, check_shape, default_resources, set_resource_defaults,
};

/// Which resources are checked, and how nodes that have room are ranked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeResourcesFitArgs {
    /// Extended resources that the filter does not look at, by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignored_resources: Vec<String>,
    /// The same by the part of the name before the `/`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignored_resource_groups: Vec<String>,
    /// How nodes are ranked.
    pub scoring_strategy: ScoringStrategy,
}

/// How nodes are ranked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ScoringStrategy {
    /// The rule. `None` when a strategy was given without one, which is not
    /// allowed.
    #[serde(rename = "type")]
    pub strategy: Option<StrategyType>,
    /// The resources that count, with weights from 1 to 100.
    pub resources: Vec<ResourceSpec>,
    /// Set with [`StrategyType::RequestedToCapacityRatio`] and only then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requested_to_capacity_ratio: Option<RequestedToCapacityRatio>,
}

/// The rule by which nodes are ranked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StrategyType {
    /// The emptier the better.
    LeastAllocated,
    /// The fuller the better.
    MostAllocated,
    /// By a function of the share that is requested.
    RequestedToCapacityRatio,
}

/// The function of [`StrategyType::RequestedToCapacityRatio`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RequestedToCapacityRatio {
    /// Its points, by rising utilization; straight lines between them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shape: Vec<ShapePoint>,
}

impl Default for NodeResourcesFitArgs {
    fn default() -> Self {
        Self {
            ignored_resources: Vec::new(),
            ignored_resource_groups: Vec::new(),
            scoring_strategy: ScoringStrategy {
                strategy: Some(StrategyType::LeastAllocated),
                resources: default_resources(),
                requested_to_capacity_ratio: None,
            },
        }
    }
}

impl PluginArgs for NodeResourcesFitArgs {
    const KIND: &'static str = "NodeResourcesFitArgs";

    fn set_defaults(&mut self) {
        set_resource_defaults(&mut self.scoring_strategy.resources);
    }

    fn validate(&self, at: &FieldPath, problems: &mut Vec<Problem>) {
        self.check_ignored(at, problems);
        self.scoring_strategy.check(&at.field("scoringStrategy"), problems);
    }
}

impl NodeResourcesFitArgs {
    fn check_ignored(&self, at: &FieldPath, problems: &mut Vec<Problem>) {
        for (i, name) in self.ignored_resources.iter().enumerate() {
            if let Err(allowed) = check_qualified_name(name) {
                let at = at.field("ignoredResources").index(i);
                problems.push(Problem::invalid(&at, format_args!("{name:?}"), allowed));
            }
        }
        for (i, group) in self.ignored_resource_groups.iter().enumerate() {
            let allowed = match check_qualified_name(group) {
                _ if group.contains('/') => "the part of a resource name before the '/'",
                Err(allowed) => allowed,
                Ok(()) => continue,
            };
            let at = at.field("ignoredResourceGroups").index(i);
            problems.push(Problem::invalid(&at, format_args!("{group:?}"), allowed));
        }
    }
}

impl ScoringStrategy {
    fn check(&self, at: &FieldPath, problems: &mut Vec<Problem>) {
        if self.strategy.is_none() {
            let what = "LeastAllocated, MostAllocated or RequestedToCapacityRatio";
            problems.push(Problem::required(&at.field("type"), what));
        }
        for (i, resource) in self.resources.iter().enumerate() {
            if !(1..=100).contains(&resource.weight) {
                let at = at.field("resources").index(i).field("weight");
                problems.push(Problem::invalid(&at, resource.weight, "1 to 100"));
            }
        }
        let by_ratio = self.strategy == Some(StrategyType::RequestedToCapacityRatio);
        let at = at.field("requestedToCapacityRatio");
        match &self.requested_to_capacity_ratio {
            Some(ratio) if by_ratio => check_shape(&ratio.shape, &at.field("shape"), problems),
            Some(_) => problems.push(Problem::new(
                &at,
                "found a function, allowed: only with type RequestedToCapacityRatio",
            )),
            None if by_ratio => problems.push(Problem::required(
                &at,
                "the function that type RequestedToCapacityRatio ranks by",
            )),
            None => {}
        }
    }
}

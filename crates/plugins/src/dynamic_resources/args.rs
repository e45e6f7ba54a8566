//! The arguments of DynamicResources.
//!
//! Source: `DynamicResourcesArgs` of `kubescheduler.config.k8s.io/v1`.

use serde::{Deserialize, Serialize};
use steersman_api::duration::GoDuration;
use steersman_api::problem::{FieldPath, Problem};
use steersman_framework::args::PluginArgs;

/// How long allocating and binding devices may take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DynamicResourcesArgs {
    /// The time that allocating for one node may take; 0 means any.
    pub filter_timeout: GoDuration,
    /// The time that a device may take to become ready for a bound claim, at
    /// least a second.
    pub binding_timeout: GoDuration,
}

impl Default for DynamicResourcesArgs {
    fn default() -> Self {
        Self {
            filter_timeout: GoDuration::from_secs(10),
            binding_timeout: GoDuration::from_secs(600),
        }
    }
}

impl PluginArgs for DynamicResourcesArgs {
    const KIND: &'static str = "DynamicResourcesArgs";

    fn validate(&self, at: &FieldPath, problems: &mut Vec<Problem>) {
        if self.filter_timeout < GoDuration::ZERO {
            let at = at.field("filterTimeout");
            problems.push(Problem::invalid(&at, self.filter_timeout, "0s or more"));
        }
        if self.binding_timeout < GoDuration::from_secs(1) {
            let at = at.field("bindingTimeout");
            problems.push(Problem::invalid(&at, self.binding_timeout, "1s or more"));
        }
    }
}

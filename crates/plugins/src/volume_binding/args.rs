//! The arguments of VolumeBinding.
//!
//! Source: `VolumeBindingArgs` of `kubescheduler.config.k8s.io/v1`.

use serde::{Deserialize, Serialize};
use steersman_api::problem::{FieldPath, Problem};
use steersman_framework::args::PluginArgs;

use crate::scoring_args::ShapePoint;

/// How long binding volumes may take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VolumeBindingArgs {
    /// Seconds that binding or provisioning may take; 0 or more.
    pub bind_timeout_seconds: i64,
    /// Part of the format, and not allowed: it belongs to scoring by storage
    /// capacity (StorageCapacityScoring), which is off by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shape: Option<Vec<ShapePoint>>,
}

impl Default for VolumeBindingArgs {
    fn default() -> Self {
        Self { bind_timeout_seconds: 600, shape: None }
    }
}

impl PluginArgs for VolumeBindingArgs {
    const KIND: &'static str = "VolumeBindingArgs";

    fn validate(&self, at: &FieldPath, problems: &mut Vec<Problem>) {
        if self.bind_timeout_seconds < 0 {
            let at = at.field("bindTimeoutSeconds");
            problems.push(Problem::invalid(&at, self.bind_timeout_seconds, "0 or more"));
        }
        if self.shape.is_some() {
            problems.push(Problem::new(
                &at.field("shape"),
                "found a shape, allowed: none, as the feature StorageCapacityScoring is off",
            ));
        }
    }
}

//! The flags of kube-scheduler v1.36, in its groups and with its names and
//! defaults, and those that only this scheduler has.
//!
//! A file a group. What a flag means together with the configuration is
//! decided in `settled`; how its value is written, in `value`.

mod authentication;
mod authorization;
mod deprecated;
mod election;
mod features;
mod global;
mod logs;
mod metrics;
mod misc;
mod serving;
mod tracing;
pub(super) mod value;

use std::time::Duration;

use clap::Args;
use steersman_metrics::Choice;
use steersman_serving::{AuthenticationOptions, AuthorizationOptions, ServerOptions};

pub(super) use authentication::AuthenticationFlags;
pub(super) use authorization::AuthorizationFlags;
pub(super) use deprecated::DeprecatedFlags;
pub(super) use election::ElectionFlags;
pub(super) use features::{FeatureFlags, list_features};
pub(super) use global::{GlobalFlags, VersionWish};
pub(super) use logs::LogFlags;
pub(super) use metrics::MetricsFlags;
pub(super) use misc::MiscFlags;
pub(super) use serving::ServingFlags;
pub(super) use tracing::TracingFlags;

/// All flags, in the order in which the reference's help shows the groups.
#[derive(Clone, Debug, Args)]
pub(super) struct Flags {
    #[command(flatten)]
    pub(super) misc: MiscFlags,
    #[command(flatten)]
    pub(super) serving: ServingFlags,
    #[command(flatten)]
    pub(super) authentication: AuthenticationFlags,
    #[command(flatten)]
    pub(super) authorization: AuthorizationFlags,
    #[command(flatten)]
    pub(super) deprecated: DeprecatedFlags,
    #[command(flatten)]
    pub(super) election: ElectionFlags,
    #[command(flatten)]
    pub(super) features: FeatureFlags,
    #[command(flatten)]
    pub(super) metrics: MetricsFlags,
    #[command(flatten)]
    pub(super) logs: LogFlags,
    #[command(flatten)]
    pub(super) tracing: TracingFlags,
    #[command(flatten)]
    pub(super) global: GlobalFlags,
}

/// What flags come to whose values have to be looked at together.
pub(super) struct Checked {
    pub(super) metrics: Choice,
    pub(super) max_unschedulable: Duration,
    /// `None` to serve nothing.
    pub(super) serving: Option<ServerOptions>,
    pub(super) authentication: AuthenticationOptions,
    pub(super) authorization: AuthorizationOptions,
    /// What is unusual about them.
    pub(super) warnings: Vec<String>,
}

impl Flags {
    /// Looks at values together, also at those that are not used.
    ///
    /// # Errors
    /// When they do not go together, with the flag's name.
    pub(super) fn check(&self) -> anyhow::Result<Checked> {
        let (authentication, warnings) = self.authentication.options()?;
        Ok(Checked {
            metrics: self.metrics.choice()?,
            max_unschedulable: self.deprecated.max_unschedulable()?,
            serving: self.serving.options()?,
            authentication,
            authorization: self.authorization.options(),
            warnings,
        })
    }
}

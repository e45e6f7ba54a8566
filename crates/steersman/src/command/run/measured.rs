//! The metrics of this process, and who feeds them.

use std::sync::Arc;

use steersman_config::FeatureGates;
use steersman_leader_election::Monitor;
use steersman_metrics::{Build, CONTENT_TYPE, Choice, Options, Reload, SchedulerMetrics};
use steersman_runtime::views::AskError;
use steersman_serving::{Page, PageError, PageRequest, Reply, Site, SiteError};

use super::Later;
use super::reload::Told;

/// Metrics with nothing counted yet, but what is known from the start.
pub(super) fn metrics(choice: Choice, gates: &FeatureGates) -> Arc<SchedulerMetrics> {
    let metrics = SchedulerMetrics::new(Options { choice, build: Build::default() });
    for gate in gates.iter() {
        metrics.feature(gate.name, gate.stage.as_label(), gate.enabled);
    }
    metrics
}

/// Counts configurations.
pub(super) struct Reloads(pub(super) Arc<SchedulerMetrics>);

impl Told for Reloads {
    fn taken_over(&self) {
        self.0.config_reloaded(Reload::Success);
    }

    fn unchanged(&self) {
        self.0.config_reloaded(Reload::Unchanged);
    }

    fn refused(&self) {
        self.0.config_reloaded(Reload::Error);
    }
}

/// Puts the metrics on a site.
pub(super) fn pages(
    site: Site,
    metrics: &Arc<SchedulerMetrics>,
    monitor: Option<Monitor>,
) -> Result<Site, SiteError> {
    let all = All { metrics: metrics.clone(), monitor };
    site.page("/metrics", Arc::new(all))?
        .page("/metrics/resources", Arc::new(Resources(metrics.clone())))
}

struct All {
    metrics: Arc<SchedulerMetrics>,
    monitor: Option<Monitor>,
}

impl Page for All {
    fn render<'a>(&'a self, _: &'a PageRequest) -> Later<'a, Result<Reply, PageError>> {
        Box::pin(async {
            if let Some(monitor) = &self.monitor {
                let now = monitor.metrics();
                self.metrics.leader_election(monitor.name(), now.is_leader, now.slowpath);
            }
            Ok(Reply::new(CONTENT_TYPE, self.metrics.render().await))
        })
    }
}

/// What pods ask for and may use. A replica that stands by leaves that to the
/// one that leads.
struct Resources(Arc<SchedulerMetrics>);

impl Page for Resources {
    fn render<'a>(&'a self, _: &'a PageRequest) -> Later<'a, Result<Reply, PageError>> {
        Box::pin(async {
            match self.0.render_resources().await {
                Ok(text) => Ok(Reply::new(CONTENT_TYPE, text)),
                Err(AskError::NotRunning) => Ok(Reply::new(CONTENT_TYPE, "")),
                Err(busy) => Err(PageError::Unavailable(busy.to_string())),
            }
        })
    }
}

//! The metrics of this process, and who feeds them.

use std::sync::Arc;

use steersman_config::FeatureGates;
use steersman_leader_election::Monitor;
use steersman_metrics::{Build, CONTENT_TYPE, Choice, Options, Reload, SchedulerMetrics};
use steersman_runtime::views::AskError;
use steersman_serving::{Check, Page, PageError, PageRequest, Reply, Site, SiteError, page, ping};

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
    let checked = metrics.clone();
    let checked = page(move |_| Ok(Reply::new(CONTENT_TYPE, checked.render_slis())));
    site.page("/metrics", Arc::new(all))?
        .page("/metrics/resources", Arc::new(Resources(metrics.clone())))?
        .page("/metrics/slis", checked)
}

/// The checks of an endpoint, `healthz` for instance, each counted when it is
/// made. None of them means `ping`.
pub(super) fn counted(
    endpoint: &'static str,
    checks: Vec<Arc<dyn Check>>,
    metrics: &Arc<SchedulerMetrics>,
) -> Vec<Arc<dyn Check>> {
    let checks = if checks.is_empty() { vec![ping()] } else { checks };
    let counted = |check| -> Arc<dyn Check> {
        Arc::new(Counted { check, endpoint, metrics: metrics.clone() })
    };
    checks.into_iter().map(counted).collect()
}

struct Counted {
    check: Arc<dyn Check>,
    endpoint: &'static str,
    metrics: Arc<SchedulerMetrics>,
}

impl Check for Counted {
    fn name(&self) -> &str {
        self.check.name()
    }

    fn check(&self) -> Result<(), String> {
        let result = self.check.check();
        self.metrics.health_checked(self.name(), self.endpoint, result.is_ok());
        result
    }
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

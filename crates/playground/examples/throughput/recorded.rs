//! The scheduler's metrics, put together as `steersman run` does it.

use std::sync::Arc;

use steersman_metrics::{Options, SchedulerMetrics};
use steersman_runtime::{Counters, Inspector};

/// What is recorded while the scheduler works.
pub(crate) struct Recorded {
    pub(crate) metrics: Arc<SchedulerMetrics>,
    pub(crate) inspector: Inspector,
}

impl Recorded {
    pub(crate) fn new(counters: &Arc<Counters>) -> Self {
        let metrics = SchedulerMetrics::new(Options::default());
        let inspector = Inspector::default();
        metrics.attach(inspector.clone(), counters.clone());
        Self { metrics, inspector }
    }

    /// What is wrong about the page: it must know of every binding, or nothing was
    /// measured.
    pub(crate) async fn problem(&self, n_bound: u64) -> Option<String> {
        const SERIES: &str = "scheduler_schedule_attempts_total{profile=\"default-scheduler\",\
                              result=\"scheduled\"} ";
        let page = self.metrics.render().await;
        let counted = page.lines().find_map(|line| line.strip_prefix(SERIES)).unwrap_or("none");
        (counted != n_bound.to_string())
            .then(|| format!("{n_bound} pods were bound, of which the metrics know {counted}"))
    }
}

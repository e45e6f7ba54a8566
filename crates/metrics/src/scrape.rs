//! Making the page: what is counted from the scheduler's state is asked for
//! first.

use std::sync::Arc;
use std::time::Duration;

use prometheus::proto::MetricFamily;
use prometheus::{IntCounter, TextEncoder};
use steersman_core::Stats;
use steersman_runtime::views::AskError;
use steersman_runtime::{Counters, Inspector, Summary};

use crate::{SchedulerMetrics, resources};

/// Where numbers come from.
#[derive(Default)]
pub(crate) struct Sources {
    inspector: Option<Inspector>,
    counters: Option<Arc<Counters>>,
}

impl Sources {
    pub(crate) fn attach(&mut self, inspector: Inspector, counters: Arc<Counters>) {
        self.inspector = Some(inspector);
        self.counters = Some(counters);
    }
}

/// How long the scheduling thread may take to answer: scrapers wait for ten
/// seconds by default.
const PATIENCE: Duration = Duration::from_secs(3);

impl SchedulerMetrics {
    /// The page of `/metrics`. Where the scheduling thread does not answer in
    /// three seconds, what is counted from its state is left as it was at the
    /// last answer, and `steersman_scheduling_thread_answers` is 0.
    pub async fn render(&self) -> String {
        let inspector = self.sources.lock().inspector.clone();
        let stats = match &inspector {
            Some(inspector) => inspector.answer(PATIENCE, |m| m.scheduler.stats()).await,
            None => Err(AskError::NotRunning),
        };
        let unsynced = inspector.and_then(|inspector| inspector.unsynced());
        let n_unsynced = unsynced.map_or(0, |kinds| kinds.len());
        let sources = self.sources.lock();
        self.ours.unsynced.set(to_i64(n_unsynced));
        self.ours.answers.set(i64::from(stats.is_ok()));
        match stats {
            Ok(stats) => self.set_state(&stats),
            // A process that schedules nothing has no pods that wait.
            Err(AskError::NotRunning) => self.set_state(&Stats::default()),
            Err(AskError::Busy(_)) => {}
        }
        if let Some(counters) = &sources.counters {
            self.set_counts(counters.summary());
        }
        self.process.refresh();
        encode(&self.choice.apply(self.registry.gather()))
    }

    /// The page of `/metrics/slis`: results of health checks.
    pub fn render_slis(&self) -> String {
        encode(&self.choice.apply(self.slis.gather()))
    }

    /// The page of `/metrics/resources`.
    ///
    /// # Errors
    /// When no scheduler runs here, or its thread does not come to answer.
    pub async fn render_resources(&self) -> Result<String, AskError> {
        let inspector = self.sources.lock().inspector.clone();
        let inspector = inspector.ok_or(AskError::NotRunning)?;
        let pods = inspector.answer(PATIENCE, resources::pods).await?;
        Ok(encode(&self.choice.apply(vec![resources::family(&pods)])))
    }

    fn set_state(&self, stats: &Stats) {
        let families = &self.scheduler;
        let queue = &stats.queue;
        for (label, n) in [
            ("active", queue.active),
            ("backoff", queue.backoff),
            ("unschedulable", queue.unschedulable),
            ("gated", queue.gated),
        ] {
            families.pending_pods.with_label_values(&[label]).set(to_i64(n));
        }
        for (label, n) in
            [("nodes", stats.nodes), ("pods", stats.pods), ("assumed_pods", stats.assumed)]
        {
            families.cache_size.with_label_values(&[label]).set(to_i64(n));
        }
        let under_way = families.goroutines.with_label_values(&["binding"]);
        under_way.set(to_i64(stats.binding + stats.waiting));
        families.inflight_events.reset();
        for (event, n) in &stats.remembered {
            families.inflight_events.with_label_values(&[event]).set(to_i64(*n));
        }
        families.unschedulable_pods.reset();
        for ((profile, plugin), n) in &stats.rejections {
            let labels = [*plugin, &**profile];
            families.unschedulable_pods.with_label_values(&labels).set(to_i64(*n));
        }
        families.incoming.reset();
        for incoming in &stats.incoming {
            let labels = [incoming.queue, &incoming.event];
            families.incoming.with_label_values(&labels).inc_by(incoming.count);
        }
        let ours = &self.ours;
        ours.waiting.set(to_i64(stats.waiting));
        ours.binding.set(to_i64(stats.binding));
        ours.wakes.reset();
        for wake in &stats.wakes {
            for (result, n) in [("useful", wake.useful), ("vain", wake.vain)] {
                let labels = [wake.event.as_str(), wake.plugin, result];
                ours.wakes.with_label_values(&labels).inc_by(n);
            }
        }
        set(&ours.flushed, stats.flushed);
    }

    fn set_counts(&self, counts: Summary) {
        let ours = &self.ours;
        set(&ours.lists, counts.lists);
        set(&ours.watches, counts.watches);
        set(&ours.bad_objects, counts.bad_objects);
        set(&ours.binding_retries, counts.binding_retries);
        set(&ours.status_writes, counts.status_writes);
        set(&ours.events.with_label_values(&["written"]), counts.events_written);
        set(&ours.events.with_label_values(&["dropped"]), counts.events_dropped);
    }
}

/// Sets a counter to what is counted elsewhere. Where that began anew, so does
/// the counter: readers know that as a restart.
fn set(counter: &IntCounter, value: u64) {
    if value < counter.get() {
        counter.reset();
    }
    counter.inc_by(value - counter.get());
}

fn encode(families: &[MetricFamily]) -> String {
    let mut page = String::new();
    // It writes into a string, which cannot fail; families without series are
    // its only complaint, and there are none of these.
    let families: Vec<MetricFamily> =
        families.iter().filter(|family| !family.get_metric().is_empty()).cloned().collect();
    let _ = TextEncoder::new().encode_utf8(&families, &mut page);
    page
}

fn to_i64(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

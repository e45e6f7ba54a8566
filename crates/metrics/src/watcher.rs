//! Watches the scheduler at work and measures it: the listener of the driver.
//!
//! An attempt costs a dozen readings of the clock and as many atomic additions.
//! Single plugins are timed in some attempts only, and then for a bounded number
//! of calls: on 5000 nodes timing every call would cost more than the calls.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use prometheus::{Histogram, IntCounter};
use steersman_api::name::Name;
use steersman_api::pod::PodInfo;
use steersman_api::time::Time;
use steersman_core::{Attempt, EventLabel, FailureReason, Record, Stats};
use steersman_framework::cluster::Cluster;
use steersman_framework::events::{ClusterEvent, Hint};
use steersman_framework::extensions::NodeScore;
use steersman_framework::observer::{Call, Observer, Outcome, Phase, QueueObserver};
use steersman_framework::point::ExtensionPoint;
use steersman_runtime::Listener;
use tokio::time::Instant;

use crate::SchedulerMetrics;

/// Attempts of which the calls of plugins are timed, in percent. The
/// reference's `pluginMetricsSamplePercent`.
const SAMPLED_PERCENT: u64 = 10;
/// So many calls of filters are timed in such an attempt at the most.
const TIMED_FILTER_CALLS: usize = 500;
/// So many calls of each scoring plugin: one scores all nodes before the next
/// one scores any.
const TIMED_SCORE_CALLS: usize = 50;
/// One of so many calls of queueing hints is timed.
const TIMED_HINTS: u64 = 10;
/// From this number of attempts on they share a label, as in the reference.
const MANY_ATTEMPTS: u32 = 15;

/// See the module documentation.
pub(crate) struct Watcher {
    metrics: Arc<SchedulerMetrics>,
    cycle: Cycle,
    /// The series of kinds of events, found without writing their labels.
    handling: HashMap<EventLabel, Histogram>,
}

impl Watcher {
    pub(crate) fn new(metrics: Arc<SchedulerMetrics>) -> Self {
        let cycle = Cycle::new(metrics.clone());
        Self { metrics, cycle, handling: HashMap::new() }
    }
}

impl Listener for Watcher {
    fn observer(&mut self) -> Option<&mut dyn Observer> {
        Some(&mut self.cycle)
    }

    fn binding_observer(&mut self, pod: &PodInfo, _: &Name) -> Option<Box<dyn Observer + Send>> {
        let mut cycle = Cycle::new(self.metrics.clone());
        cycle.is_sampled = is_sampled(pod, 0);
        Some(Box::new(cycle))
    }

    fn queue_observers(&mut self) -> Vec<Arc<dyn QueueObserver>> {
        vec![Arc::new(QueueWatcher {
            metrics: self.metrics.clone(),
            since: Mutex::new(None),
            n_hints: AtomicU64::new(0),
        })]
    }

    fn wants_records(&self) -> bool {
        true
    }

    fn recorded(&mut self, record: &Record, now: Time) {
        let families = &self.metrics.scheduler;
        let attempt = |result: &str, profile: &Name, started: Option<Time>| {
            let labels = [result, profile];
            families.attempts.with_label_values(&labels).inc();
            if let Some(started) = started {
                let took = now.since(started).as_secs_f64();
                families.attempt_duration.with_label_values(&labels).observe(took);
            }
        };
        match record {
            Record::Scheduled { profile, attempts, started, first_active, after_flush } => {
                attempt("scheduled", profile, Some(*started));
                families.pod_attempts.observe(f64::from(*attempts));
                let took = now.since(*first_active).as_secs_f64();
                let label = attempts_label(*attempts);
                families.sli_duration.with_label_values(&[&*label]).observe(took);
                if *after_flush {
                    families.after_flush.inc();
                }
            }
            Record::Failed { profile, reason, started } => {
                let result = match reason {
                    FailureReason::Unschedulable => "unschedulable",
                    FailureReason::SchedulerError => "error",
                };
                attempt(result, profile, *started);
            }
            Record::PermitWaited { allowed, waited } => {
                let result = if *allowed { "Success" } else { "Unschedulable" };
                families.permit_wait.with_label_values(&[result]).observe(waited.as_secs_f64());
            }
        }
    }

    fn handled(&mut self, label: EventLabel, took: Duration) {
        let histogram = self.handling.entry(label).or_insert_with(|| {
            let label = format!("{}{}", label.resource, label.action);
            self.metrics.scheduler.event_handling.with_label_values(&[&*label])
        });
        histogram.observe(took.as_secs_f64());
    }

    fn evicted(&mut self, succeeded: bool, took: Duration) {
        let result = [if succeeded { "success" } else { "error" }];
        let families = &self.metrics.scheduler;
        families.evictions.with_label_values(&result).inc();
        families.evictions_duration.with_label_values(&result).observe(took.as_secs_f64());
    }

    fn ended(&mut self, stats: &Stats) {
        self.metrics.scheduler_ended(stats);
    }

    fn attempted(&mut self, attempt: &Attempt, _: &Cluster) {
        let ours = &self.metrics.ours;
        ours.evaluated.observe(attempt.n_evaluated as f64);
        ours.feasible.observe(attempt.n_feasible as f64);
        if let Some(preemption) = &attempt.preemption {
            let n_victims = preemption.victims.len() as f64;
            self.metrics.scheduler.preemption_victims.observe(n_victims);
        }
    }
}

fn attempts_label(attempts: u32) -> String {
    if attempts >= MANY_ATTEMPTS { format!("{MANY_ATTEMPTS}+") } else { attempts.to_string() }
}

/// Whether plugins are timed in this attempt: drawn from the pod and the
/// attempt, so that a run can be repeated.
fn is_sampled(pod: &PodInfo, attempt: u32) -> bool {
    // FNV-1a.
    let hash = pod
        .uid
        .0
        .bytes()
        .chain(attempt.to_le_bytes())
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
    (hash >> 32) % 100 < SAMPLED_PERCENT
}

/// Calls there are many in one attempt.
fn is_about_nodes(point: ExtensionPoint) -> bool {
    matches!(point, ExtensionPoint::Filter | ExtensionPoint::Score)
}

/// The statuses that a phase can end with.
const STATUSES: [&str; 6] =
    ["Success", "Skip", "Unschedulable", "UnschedulableAndUnresolvable", "Wait", "Error"];

/// The series of one profile, found without looking at labels.
#[derive(Default)]
struct ProfileSeries {
    points: HashMap<(ExtensionPoint, usize), Histogram>,
    /// By the address of the plugin's name, which never changes.
    evaluations: HashMap<(ExtensionPoint, usize), IntCounter>,
}

/// Measures one cycle.
struct Cycle {
    metrics: Arc<SchedulerMetrics>,
    profiles: Vec<(Name, ProfileSeries)>,
    is_sampled: bool,
    /// So many more calls about single nodes are timed.
    node_calls_left: usize,
    began: Option<Instant>,
    phase_began: Option<Instant>,
    call_began: Option<Instant>,
}

impl Cycle {
    fn new(metrics: Arc<SchedulerMetrics>) -> Self {
        Self {
            metrics,
            profiles: Vec::new(),
            is_sampled: false,
            node_calls_left: 0,
            began: None,
            phase_began: None,
            call_began: None,
        }
    }

    fn series(&mut self, profile: &Name) -> usize {
        // There are few.
        if let Some(at) = self.profiles.iter().position(|(name, _)| name == profile) {
            return at;
        }
        self.profiles.push((profile.clone(), ProfileSeries::default()));
        self.profiles.len() - 1
    }

    fn evaluated(&mut self, pod: &PodInfo, point: ExtensionPoint, plugin: &'static str, n: usize) {
        let at = self.series(&pod.spec.scheduler_name);
        let (profile, series) = &mut self.profiles[at];
        let key = (point, plugin.as_ptr() as usize);
        let counter = series.evaluations.entry(key).or_insert_with(|| {
            let labels = [plugin, point.name(), profile];
            self.metrics.plugins.evaluations.with_label_values(&labels)
        });
        counter.inc_by(n as u64);
    }

    /// Whether a call is timed.
    fn is_timed(&self, call: Call<'_>) -> bool {
        self.is_sampled && (!is_about_nodes(call.point) || self.node_calls_left > 0)
    }
}

impl Observer for Cycle {
    fn cycle_begins(&mut self, pod: &PodInfo, attempt: u32) {
        self.is_sampled = is_sampled(pod, attempt);
        self.began = Some(Instant::now());
    }

    fn judged(&mut self, _: &PodInfo) {
        if let Some(began) = self.began.take() {
            let took = began.elapsed().as_secs_f64();
            self.metrics.scheduler.algorithm_duration.observe(took);
        }
    }

    fn phase_begins(&mut self, phase: Phase<'_>) {
        self.node_calls_left = match phase.point {
            ExtensionPoint::Filter => TIMED_FILTER_CALLS,
            ExtensionPoint::Score => TIMED_SCORE_CALLS,
            _ => 0,
        };
        self.phase_began = Some(Instant::now());
    }

    fn phase_ends(&mut self, phase: Phase<'_>, outcome: Outcome<'_>) {
        let Some(began) = self.phase_began.take() else { return };
        let took = began.elapsed().as_secs_f64();
        let at = self.series(&phase.pod.spec.scheduler_name);
        let (profile, series) = &mut self.profiles[at];
        let status = outcome.status();
        let place = STATUSES.iter().position(|known| *known == status).unwrap_or(STATUSES.len());
        let histogram = series.points.entry((phase.point, place)).or_insert_with(|| {
            let labels = [phase.point.name(), status, profile];
            self.metrics.plugins.point_duration.with_label_values(&labels)
        });
        histogram.observe(took);
    }

    fn asked(&mut self, phase: Phase<'_>, plugin: &'static str, n_nodes: usize) {
        self.evaluated(phase.pod, phase.point, plugin, n_nodes);
    }

    fn scored(&mut self, _: &'static str, _: &[NodeScore]) {
        self.node_calls_left = TIMED_SCORE_CALLS;
    }

    fn before(&mut self, call: Call<'_>) {
        if call.point == ExtensionPoint::PostFilter && call.plugin == "DefaultPreemption" {
            self.metrics.scheduler.preemption_attempts.inc();
        }
        if self.is_timed(call) {
            self.call_began = Some(Instant::now());
        }
    }

    fn after(&mut self, call: Call<'_>, outcome: Outcome<'_>) {
        if let Some(began) = self.call_began.take() {
            let took = began.elapsed().as_secs_f64();
            if is_about_nodes(call.point) {
                self.node_calls_left = self.node_calls_left.saturating_sub(1);
            }
            let labels = [call.plugin, call.point.name(), outcome.status()];
            self.metrics.plugins.plugin_duration.with_label_values(&labels).observe(took);
        }
        let counts = matches!(call.point, ExtensionPoint::PreFilter | ExtensionPoint::PreScore);
        if counts && outcome != Outcome::Skip {
            self.evaluated(call.pod, call.point, call.plugin, 1);
        }
    }

    fn wants_nodes(&self) -> bool {
        self.is_sampled && self.node_calls_left > 0
    }
}

/// Measures PreEnqueue and queueing hints.
struct QueueWatcher {
    metrics: Arc<SchedulerMetrics>,
    since: Mutex<Option<Instant>>,
    n_hints: AtomicU64,
}

impl QueueObserver for QueueWatcher {
    fn gate_begins(&self) {
        *self.since.lock() = Some(Instant::now());
    }

    fn gated(&self, pod: &PodInfo, by: Option<&'static str>) {
        let Some(since) = self.since.lock().take() else { return };
        let status = if by.is_some() { "UnschedulableAndUnresolvable" } else { "Success" };
        let labels = ["PreEnqueue", status, &*pod.spec.scheduler_name];
        let durations = &self.metrics.plugins.point_duration;
        durations.with_label_values(&labels).observe(since.elapsed().as_secs_f64());
    }

    fn hint_begins(&self) {
        // A change can ask ten thousand hints that take less than a reading of
        // the clock each.
        let n = self.n_hints.fetch_add(1, Ordering::Relaxed);
        *self.since.lock() = n.is_multiple_of(TIMED_HINTS).then(Instant::now);
    }

    fn hinted(&self, plugin: &'static str, event: &ClusterEvent, hint: Option<Hint>) {
        let Some(since) = self.since.lock().take() else { return };
        let took = since.elapsed().as_secs_f64();
        let hint = match hint {
            Some(Hint::Queue) => "Queue",
            Some(Hint::Skip) => "QueueSkip",
            None => "Error",
        };
        let labels = [plugin, &*event.to_string(), hint];
        self.metrics.plugins.hint_duration.with_label_values(&labels).observe(took);
    }
}

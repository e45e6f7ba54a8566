//! Making the page: what is counted from the scheduler's state is asked for
//! first.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use prometheus::proto::MetricFamily;
use prometheus::{IntCounter, TextEncoder};
use steersman_api::name::Name;
use steersman_core::Stats;
use steersman_runtime::views::AskError;
use steersman_runtime::{Counters, Inspector, Summary};

use crate::{SchedulerMetrics, resources};

/// Where numbers come from.
#[derive(Default)]
pub(crate) struct Sources {
    inspector: Option<Inspector>,
    counters: Option<Arc<Counters>>,
    /// What the scheduler that runs now has counted, as far as it is shown.
    shown: Shown,
    /// How many schedulers have ended here: with a reload one does, and another
    /// one counts from 0 again.
    n_ended: u64,
    /// Series of gauges that were shown once: they go to 0 and do not vanish.
    rejecting: BTreeSet<(Name, &'static str)>,
    /// The profiles that are served now, once that was said.
    served: Option<BTreeSet<Name>>,
    remembered: BTreeSet<String>,
}

/// Counts by what they are of: the label `queue` or `plugin`, and the event.
type Counts = BTreeMap<(&'static str, String), u64>;

/// Numbers that a scheduler counts from 0 and metrics go on from where the
/// scheduler before it ended.
#[derive(Default)]
struct Shown {
    incoming: Counts,
    useful: Counts,
    vain: Counts,
    flushed: u64,
}

impl Sources {
    pub(crate) fn attach(&mut self, inspector: Inspector, counters: Arc<Counters>) {
        self.inspector = Some(inspector);
        self.counters = Some(counters);
    }

    /// Whether there is such a profile now.
    fn serves(&self, profile: &Name) -> bool {
        self.served.as_ref().is_none_or(|served| served.contains(profile))
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
        let (inspector, n_ended) = {
            let sources = self.sources.lock();
            (sources.inspector.clone(), sources.n_ended)
        };
        let stats = match &inspector {
            Some(inspector) => inspector.answer(PATIENCE, |m| m.scheduler.stats()).await,
            None => Err(AskError::NotRunning),
        };
        let unsynced = inspector.and_then(|inspector| inspector.unsynced());
        let n_unsynced = unsynced.map_or(0, |kinds| kinds.len());
        let sources = &mut *self.sources.lock();
        self.ours.unsynced.set(to_i64(n_unsynced));
        self.ours.answers.set(i64::from(stats.is_ok()));
        match stats {
            Ok(stats) => {
                self.set_state(&stats, sources);
                // The answer of one that has ended since is counted already.
                if n_ended == sources.n_ended {
                    self.count(&stats, &mut sources.shown);
                }
            }
            // A process that schedules nothing has no pods that wait.
            Err(AskError::NotRunning) => self.set_state(&Stats::default(), sources),
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
        Ok(encode(&self.choice.apply(resources::families(&pods))))
    }

    /// From now on these profiles are served. Of others no gauge is left: their
    /// pods are nobody's here. What was counted of them stays.
    pub fn serves(&self, profiles: impl IntoIterator<Item = Name>) {
        let sources = &mut *self.sources.lock();
        let served = BTreeSet::from_iter(profiles);
        sources.rejecting.retain(|(profile, plugin)| {
            let stays = served.contains(profile);
            if !stays {
                // An error would say that it is not there.
                let _ = self.scheduler.unschedulable_pods.remove_label_values(&[*plugin, profile]);
            }
            stays
        });
        sources.served = Some(served);
    }

    /// The numbers of the next scheduler are added to these.
    pub(crate) fn scheduler_ended(&self, stats: &Stats) {
        let sources = &mut *self.sources.lock();
        self.count(stats, &mut sources.shown);
        sources.shown = Shown::default();
        sources.n_ended += 1;
    }

    /// Moves counters on by what was counted since the last time.
    fn count(&self, stats: &Stats, shown: &mut Shown) {
        let incoming = stats.incoming.iter().map(|it| ((it.queue, it.event.clone()), it.count));
        move_on(&mut shown.incoming, incoming, |(queue, event), more| {
            self.scheduler.incoming.with_label_values(&[queue, event]).inc_by(more);
        });
        let wakes = |result: &'static str| {
            move |(plugin, event): (&'static str, &str), more| {
                self.ours.wakes.with_label_values(&[event, plugin, result]).inc_by(more);
            }
        };
        let useful = stats.wakes.iter().map(|it| ((it.plugin, it.event.clone()), it.useful));
        move_on(&mut shown.useful, useful, wakes("useful"));
        let vain = stats.wakes.iter().map(|it| ((it.plugin, it.event.clone()), it.vain));
        move_on(&mut shown.vain, vain, wakes("vain"));
        let before = std::mem::replace(&mut shown.flushed, stats.flushed);
        self.ours.flushed.inc_by(stats.flushed.saturating_sub(before));
    }

    fn set_state(&self, stats: &Stats, sources: &mut Sources) {
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
        sources.remembered.extend(stats.remembered.keys().cloned());
        for event in &sources.remembered {
            let n = stats.remembered.get(event).copied().unwrap_or_default();
            families.inflight_events.with_label_values(&[event]).set(to_i64(n));
        }
        // The answer may be of a scheduler that has ended since.
        let rejecting = stats.rejections.keys().filter(|(profile, _)| sources.serves(profile));
        let rejecting: Vec<_> = rejecting.cloned().collect();
        sources.rejecting.extend(rejecting);
        for rejecting in &sources.rejecting {
            let n = stats.rejections.get(rejecting).copied().unwrap_or_default();
            let (profile, plugin) = rejecting;
            families.unschedulable_pods.with_label_values(&[*plugin, &**profile]).set(to_i64(n));
        }
        self.ours.waiting.set(to_i64(stats.waiting));
        self.ours.binding.set(to_i64(stats.binding));
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

/// Calls `show` with what each count has grown by.
fn move_on(
    shown: &mut Counts,
    counts: impl Iterator<Item = ((&'static str, String), u64)>,
    show: impl Fn((&'static str, &str), u64),
) {
    for ((label, event), count) in counts {
        let shown = shown.entry((label, event));
        let event = shown.key().1.clone();
        let before = std::mem::replace(shown.or_default(), count);
        show((label, &event), count.saturating_sub(before));
    }
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

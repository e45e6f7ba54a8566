//! Drives the core: feeds it what the reflectors saw, lets it decide, and sends
//! its effects on their way. Waits for nothing but the next event, so it can
//! have a thread of its own.

use std::collections::BTreeSet;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

use steersman_api::time::Time;
use steersman_core::{
    Attempt, BindingCycle, Effect, Event, Eviction, FailureReason, Outcome, Scheduler,
    preempted_note,
};
use steersman_framework::observer::Observers;
use steersman_framework::world::ClusterWriter;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::{JoinSet, yield_now};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::counters::Counters;
use crate::evict::Evictor;
use crate::inspect::{Desk, Moment, Question};
use crate::listener::Listener;
use crate::record::{Recorder, What};
use crate::reflector::Batch;
use crate::status::StatusBoard;

/// Where effects go.
pub(crate) struct Outlets {
    /// Where binding cycles run.
    pub(crate) io: Handle,
    pub(crate) world: Arc<dyn ClusterWriter>,
    pub(crate) evictor: Evictor,
    pub(crate) recorder: Arc<Recorder>,
    pub(crate) board: Arc<StatusBoard>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) listener: Box<dyn Listener>,
}

/// See the module documentation.
pub(crate) struct Driver {
    scheduler: Scheduler,
    outlets: Outlets,
    changes: mpsc::Receiver<Batch>,
    reports: mpsc::UnboundedReceiver<Report>,
    reporter: mpsc::UnboundedSender<Report>,
    /// Binding cycles and evictions under way; dropped with the driver.
    tasks: JoinSet<()>,
    n_under_way: usize,
    /// How many kinds are not known completely yet.
    n_unsynced: usize,
    start: Instant,
    looked_at_timers: Instant,
    drain: Duration,
    desk: Desk,
    /// Whether the listener wants to know how long things take.
    measures: bool,
}

/// The end of work that ran beside the core.
struct Report {
    event: Event,
    took: Duration,
}

/// What to do with a pod's nomination when an attempt failed without a word
/// about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Nomination {
    Keep,
    Clear,
}

/// So many events at the most are taken in between two attempts.
const STRETCH: usize = 2048;
/// The core's timers are looked at no more often than this.
const TICK: Duration = Duration::from_millis(1);

/// Two schedulers that serve the same pods by mistake look like one that fails
/// now and then.
const BOUND_BY_ANOTHER: &str = "another client bound the pod, which stays on that node: for \
    instance a second scheduler with the same schedulerName under another lock, or an earlier \
    attempt whose answer was lost";

impl Driver {
    /// A driver for a scheduler that knows nothing yet; it decides nothing
    /// before these kinds are known completely. At the end it gives
    /// bindings under way the time `drain`.
    pub(crate) fn new(
        mut scheduler: Scheduler,
        mut outlets: Outlets,
        changes: mpsc::Receiver<Batch>,
        kinds: BTreeSet<&'static str>,
        drain: Duration,
        desk: Desk,
    ) -> Self {
        let (reporter, reports) = mpsc::unbounded_channel();
        desk.begin(kinds.clone(), &outlets.board);
        let measures = outlets.listener.wants_records();
        if measures {
            scheduler.keep_records();
        }
        for observer in outlets.listener.queue_observers() {
            scheduler.watch_queue(observer);
        }
        Self {
            scheduler,
            outlets,
            changes,
            reports,
            reporter,
            tasks: JoinSet::new(),
            n_under_way: 0,
            n_unsynced: kinds.len(),
            start: Instant::now(),
            looked_at_timers: Instant::now(),
            drain,
            desk,
            measures,
        }
    }

    /// Schedules until told to stop, then waits for bindings under way.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        while !stop.is_cancelled() {
            self.take_in();
            if self.n_unsynced == 0 && self.schedule_one() {
                // On a runtime that is shared, others get their turn.
                yield_now().await;
                continue;
            }
            tokio::select! {
                () = stop.cancelled() => break,
                () = self.wait(None) => {}
            }
        }
        self.wind_down().await;
    }

    async fn wind_down(&mut self) {
        let deadline = Instant::now() + self.drain;
        if self.n_under_way > 0 {
            tracing::info!(n = self.n_under_way, "waiting for bindings and evictions under way");
        }
        while self.n_under_way > 0 && Instant::now() < deadline {
            self.wait(Some(deadline)).await;
            self.take_in();
        }
        if self.n_under_way > 0 {
            tracing::warn!(n = self.n_under_way, "some bindings or evictions did not end in time");
        }
        if self.measures {
            self.outlets.listener.ended(&self.scheduler.stats());
        }
    }

    /// Takes in what is there already, and lets time pass.
    fn take_in(&mut self) {
        let moment = Moment { scheduler: &self.scheduler, now: self.now() };
        self.desk.answer(moment);
        while let Ok(report) = self.reports.try_recv() {
            self.report(report);
        }
        let mut n = 0;
        while n < STRETCH
            && let Ok(batch) = self.changes.try_recv()
        {
            n += batch.events.len().max(1);
            self.batch(batch);
        }
        // Looking for the next timer goes through all bindings: not every time.
        let now = Instant::now();
        if now.duration_since(self.looked_at_timers) >= TICK {
            self.looked_at_timers = now;
            let now = self.now();
            if self.scheduler.next_timer().is_some_and(|timer| timer <= now) {
                let effects = self.scheduler.advance(now);
                self.carry_out(effects, Nomination::Clear);
            }
        }
        while let Some(ended) = self.tasks.try_join_next() {
            // Its pod would wait for a report that never comes, and the work on
            // the way to the end be counted wrongly: better to start anew.
            if let Err(error) = ended
                && error.is_panic()
            {
                resume_unwind(error.into_panic());
            }
        }
    }

    /// Waits until there is something to do.
    async fn wait(&mut self, until: Option<Instant>) {
        let soonest = Instant::now() + TICK;
        let timer = self.scheduler.next_timer().map(|t| self.start + t.since_start());
        let timer = timer.map(|timer| timer.max(soonest));
        let alarm = [timer, until].into_iter().flatten().min();
        let something = async {
            tokio::select! {
                Some(report) = self.reports.recv() => Some(Happened::Report(report)),
                Some(batch) = self.changes.recv() => Some(Happened::Batch(batch)),
                question = self.desk.next() => Some(Happened::Question(question)),
                () = sleep_until(alarm.unwrap_or(soonest)), if alarm.is_some() => None,
                else => None,
            }
        };
        match something.await {
            Some(Happened::Report(report)) => self.report(report),
            Some(Happened::Batch(batch)) => self.batch(batch),
            Some(Happened::Question(answer)) => {
                answer(Moment { scheduler: &self.scheduler, now: self.now() });
            }
            None => {}
        }
    }

    fn batch(&mut self, batch: Batch) {
        for event in batch.events {
            let start = self.now();
            let label = if self.measures { self.scheduler.label(&event) } else { None };
            let effects = self.scheduler.handle(event, start);
            if let Some(label) = label {
                self.outlets.listener.handled(label, self.now().since(start));
            }
            self.carry_out(effects, Nomination::Clear);
        }
        if batch.synced {
            self.n_unsynced = self.desk.synced(batch.kind);
            if self.n_unsynced == 0 {
                let (nodes, pods) =
                    (self.scheduler.cluster().nodes().len(), self.scheduler.placed_count());
                tracing::info!(nodes, bound_pods = pods, "the cluster is known, scheduling begins");
            }
        }
    }

    fn report(&mut self, report: Report) {
        self.n_under_way = self.n_under_way.saturating_sub(1);
        if let Event::EvictionFinished(eviction) = &report.event {
            self.outlets.listener.evicted(eviction.succeeded(), report.took);
        }
        let effects = self.scheduler.handle(report.event, self.now());
        self.carry_out(effects, Nomination::Clear);
    }

    /// Tries the next pod; `false` when there is none.
    fn schedule_one(&mut self) -> bool {
        let now = self.now();
        let mut observers = Observers(self.outlets.listener.observers());
        let Some((attempt, effects)) = self.scheduler.schedule_next(now, &mut observers) else {
            return false;
        };
        self.outlets.counters.attempts.up();
        log(&attempt);
        self.outlets.listener.attempted(&attempt, self.scheduler.cluster());
        // Only when no node fits does PostFilter decide about the nomination.
        let nomination = match attempt.outcome {
            Outcome::Unschedulable(_) => Nomination::Keep,
            _ => Nomination::Clear,
        };
        self.carry_out(effects, nomination);
        true
    }

    fn carry_out(&mut self, effects: Vec<Effect>, nomination: Nomination) {
        let records = self.scheduler.take_records();
        if !records.is_empty() {
            let now = self.now();
            for record in records {
                self.outlets.listener.recorded(&record, now);
            }
        }
        for effect in effects {
            match effect {
                Effect::StartBinding(cycle) => self.start_binding(cycle),
                Effect::Scheduled { pod, node } => {
                    let Outlets { counters, recorder, listener, .. } = &mut self.outlets;
                    counters.bound.up();
                    tracing::info!(v = 2, pod = %pod.key, %node, "bound");
                    let note = format!("Successfully assigned {} to {node}", pod.key);
                    recorder.record(What::Scheduled, &pod, note);
                    listener.bound(&pod, &node);
                }
                Effect::FailedScheduling { pod, reason, message, bound_on } => {
                    let Outlets { counters, recorder, board, listener, .. } = &mut self.outlets;
                    match reason {
                        FailureReason::Unschedulable => counters.unschedulable.up(),
                        FailureReason::SchedulerError => counters.errors.up(),
                    }
                    if let Some(node) = &bound_on {
                        tracing::warn!(pod = %pod.key, %node, error = message, "{BOUND_BY_ANOTHER}");
                    } else {
                        if reason == FailureReason::SchedulerError {
                            // Failed bindings come here as well.
                            // No field is called "message": that is the line itself.
                            tracing::error!(
                                pod = %pod.key,
                                error = message,
                                "not scheduled, will be tried again"
                            );
                        }
                        board.failed(&pod.uid, reason, &message);
                        if nomination == Nomination::Clear {
                            board.nominate(&pod.uid, None);
                        }
                    }
                    listener.failed(&pod, reason, &message);
                    recorder.record(What::FailedScheduling, &pod, message);
                }
                Effect::Nominate { pod, node } => self.outlets.board.nominate(&pod.uid, node),
                Effect::Waiting { pod, plugins } => {
                    let plugins: Vec<_> = plugins.keys().collect();
                    tracing::debug!(pod = %pod.key, ?plugins, "waiting at Permit");
                }
                Effect::Evict(eviction) => self.start_eviction(eviction),
                Effect::Preempted { pod, preemptor, node } => {
                    let note = preempted_note(&preemptor, &node);
                    self.outlets.recorder.preempted(&pod, &preemptor, note);
                }
                Effect::Note(note) => tracing::warn!("{note}"),
            }
        }
    }

    fn start_binding(&mut self, cycle: BindingCycle) {
        self.n_under_way += 1;
        let (world, board) = (self.outlets.world.clone(), self.outlets.board.clone());
        let reporter = self.reporter.clone();
        let observers = self.outlets.listener.binding_observers(cycle.pod(), cycle.node());
        let span = self.outlets.listener.binding_span();
        let start = Instant::now();
        let work = async move {
            board.settle(&cycle.pod().uid).await;
            let mut observers = Observers(observers);
            let event = Event::BindingFinished(cycle.run(&*world, &mut observers).await);
            // Spans and measurements end with the cycle.
            drop(observers);
            // Without a driver nobody wants to know.
            let _ = reporter.send(Report { event, took: start.elapsed() });
        };
        self.tasks.spawn_on(Box::pin(work.instrument(span)), &self.outlets.io);
    }

    fn start_eviction(&mut self, eviction: Eviction) {
        self.n_under_way += 1;
        let (evictor, reporter) = (self.outlets.evictor.clone(), self.reporter.clone());
        let start = Instant::now();
        let work = async move {
            let event = evictor.evict(&eviction).await;
            let _ = reporter.send(Report { event, took: start.elapsed() });
        };
        self.tasks.spawn_on(Box::pin(work), &self.outlets.io);
    }

    fn now(&self) -> Time {
        Time::from_start(self.start.elapsed())
    }
}

enum Happened {
    Report(Report),
    Question(Question),
    Batch(Batch),
}

fn log(attempt: &Attempt) {
    let Attempt { pod, number, n_evaluated, n_feasible, outcome, .. } = attempt;
    let pod = &pod.key;
    match outcome {
        Outcome::Assumed(node) | Outcome::Waiting(node) => {
            tracing::debug!(%pod, %node, number, n_evaluated, n_feasible, "chose a node");
        }
        Outcome::Unschedulable(diagnosis) => {
            let message = diagnosis.full_message();
            let extender = diagnosis.emptied_by.as_deref();
            tracing::debug!(%pod, number, n_evaluated, reason = message, extender, "no node fits");
        }
        Outcome::Rejected { node, plugin, message } => {
            tracing::debug!(%pod, %node, number, plugin, reason = message, "rejected after a node was chosen");
        }
        Outcome::Error(error) => tracing::debug!(%pod, number, error, "the attempt failed"),
    }
}

#[cfg(test)]
mod tests;

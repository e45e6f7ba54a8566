//! Writes events about pods (events.k8s.io/v1) without ever being in the way:
//! there is a bounded queue that loses its oldest event when full, and a few
//! writers that empty it.

mod event;
mod series;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::json;
use steersman_api::name::Name;
use steersman_api::pod::PodInfo;
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{Instant, interval_at, sleep, timeout_at};

use crate::api::{Api, Call, CallError};
use crate::chance::{Backoff, Chance};
use crate::counters::Counters;
pub(crate) use event::What;
use event::{PodEvent, PodRef};
use series::{Aggregator, FINISH, REFRESH, Write};

/// Takes events and writes them some time later.
pub(crate) struct Recorder {
    queue: Mutex<VecDeque<PodEvent>>,
    work: Notify,
    /// Events that were taken from the queue and are not written yet.
    under_way: AtomicUsize,
    api: Arc<Api>,
    counters: Arc<Counters>,
    /// Names this process.
    identity: String,
    seed: u64,
    wall: fn() -> Timestamp,
}

/// Thousands of pods that arrive at once are bound faster than their events are
/// written; these wait, and come a little late. An event has about a kilobyte.
const LONGEST_QUEUE: usize = 20_000;
/// How many events are written at once. The reference sets no limit.
const WRITERS: usize = 16;
/// How often an event is tried, and the waits between two tries.
const TRIES: u32 = 12;
const WAITS: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(10));
/// How long one request may take.
const PATIENCE: Duration = Duration::from_secs(15);

impl Recorder {
    pub(crate) fn new(
        api: Arc<Api>,
        counters: Arc<Counters>,
        identity: String,
        seed: u64,
        wall: fn() -> Timestamp,
    ) -> Self {
        Self {
            queue: Mutex::default(),
            work: Notify::new(),
            under_way: AtomicUsize::new(0),
            api,
            counters,
            identity,
            seed,
            wall,
        }
    }

    /// Notes an event. Never waits.
    pub(crate) fn record(&self, what: What, pod: &PodInfo, note: String) {
        let controller = pod.spec.scheduler_name.clone();
        self.enqueue(what, PodRef::of(pod), None, controller, note);
    }

    /// Notes that a pod had to make room for another one. Never waits.
    pub(crate) fn preempted(&self, victim: &PodInfo, preemptor: &PodInfo, note: String) {
        let controller = preemptor.spec.scheduler_name.clone();
        let related = Some(PodRef::of(preemptor));
        self.enqueue(What::Preempted, PodRef::of(victim), related, controller, note);
    }

    fn enqueue(
        &self,
        what: What,
        pod: PodRef,
        related: Option<PodRef>,
        controller: Name,
        note: String,
    ) {
        let event = PodEvent {
            what,
            pod,
            related,
            instance: format!("{controller}-{}", self.identity),
            controller,
            note,
            at: (self.wall)(),
            series: None,
        };
        {
            let mut queue = self.queue.lock();
            if queue.len() >= LONGEST_QUEUE {
                queue.pop_front();
                self.counters.events_dropped.up();
            }
            queue.push_back(event);
        }
        self.work.notify_one();
    }

    /// Writes what was recorded, forever.
    pub(crate) async fn run(self: Arc<Self>) {
        let mut aggregator = Aggregator::default();
        let writers = Arc::new(Semaphore::new(WRITERS));
        let mut tasks = JoinSet::new();
        let start = Instant::now();
        let mut finish = interval_at(start + FINISH, FINISH);
        let mut refresh = interval_at(start + REFRESH, REFRESH);
        loop {
            // Nothing leaves the queue before somebody is free to write it.
            let free = writers.clone().acquire_owned().await;
            let writes = tokio::select! {
                event = self.next() => aggregator.observe(event, Instant::now()).into_iter().collect(),
                _ = finish.tick() => self.counted(aggregator.finish(Instant::now())),
                _ = refresh.tick() => self.counted(aggregator.refresh()),
            };
            while tasks.try_join_next().is_some() {}
            if writes.is_empty() {
                self.done();
                continue;
            }
            let recorder = self.clone();
            tasks.spawn(async move {
                for write in writes {
                    recorder.write(write).await;
                }
                recorder.done();
                drop(free);
            });
        }
    }

    /// Waits until everything is written, no longer than until `deadline`.
    pub(crate) async fn flush(&self, deadline: Instant) {
        let idle = async {
            while self.under_way.load(Ordering::Acquire) > 0 || !self.queue.lock().is_empty() {
                sleep(Duration::from_millis(10)).await;
            }
        };
        if timeout_at(deadline, idle).await.is_err() {
            tracing::warn!(left = self.queue.lock().len(), "some events were not written in time");
        }
    }

    async fn next(&self) -> PodEvent {
        loop {
            let work = self.work.notified();
            {
                let mut queue = self.queue.lock();
                if let Some(event) = queue.pop_front() {
                    // Under the queue's lock, so that flush never sees neither.
                    self.under_way.fetch_add(1, Ordering::AcqRel);
                    return event;
                }
            }
            work.await;
        }
    }

    fn counted(&self, writes: Vec<Write>) -> Vec<Write> {
        self.under_way.fetch_add(1, Ordering::AcqRel);
        writes
    }

    fn done(&self) {
        self.under_way.fetch_sub(1, Ordering::AcqRel);
    }

    async fn write(&self, write: Write) {
        let (event, mut is_series) = match write {
            Write::Create(event) => (event, false),
            Write::Series(event) => (event, true),
        };
        let mut backoff = Backoff::new(WAITS.0, WAITS.1, Chance::new(self.seed, &event.pod.uid.0));
        for _ in 0..TRIES {
            let error = match self.send(&event, is_series).await {
                Ok(()) => return self.counters.events_written.up(),
                Err(error) => error,
            };
            match error.code() {
                // Events are forgotten after a while; or its creation is late.
                404 if is_series => {
                    is_series = false;
                    continue;
                }
                // Somebody else means us: an earlier try went through.
                409 if event.series.is_none() => return self.counters.events_written.up(),
                409 if !is_series => is_series = true,
                _ if error.may_pass() => {}
                _ => {
                    tracing::debug!(pod = %event.pod.key, %error, "the API server refused an event");
                    return self.counters.events_dropped.up();
                }
            }
            sleep(error.retry_after().unwrap_or_else(|| backoff.wait())).await;
        }
        tracing::warn!(pod = %event.pod.key, "an event could not be written");
        self.counters.events_dropped.up();
    }

    async fn send(&self, event: &PodEvent, is_series: bool) -> Result<(), CallError> {
        let collection = event.collection();
        let call = match event.series.filter(|_| is_series) {
            Some(series) => {
                let path = format!("{collection}/{}", event.name());
                Call::patch(path, json!({"series": series.body()}))
            }
            None => Call::post(collection, event.body()),
        };
        self.api.bytes(call.within(PATIENCE)).await.map(drop)
    }
}

#[cfg(test)]
mod tests;

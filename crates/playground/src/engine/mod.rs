//! The driver of all controllers: one task owns the copy of the cluster, asks
//! controllers for plans when something concerns them, and has the plans
//! carried out by others.
//!
//! ```text
//! watches ──► News ──► World ──► Seen ──► Queue ──► Plan ──► calls
//!               ▲                                              │
//!               └────────────────── answers ◄──────────────────┘
//! ```
//!
//! Nothing is polled: a cluster in which nothing changes costs the heartbeats
//! of its nodes and no more.

mod calls;
mod guard;
mod informer;
pub mod plan;
mod queue;
mod record;

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::cluster::{Kind, News, World};
use crate::controller::{self};
use calls::Caller;
use plan::{Settings, View};
use queue::{Ended, Queue};

pub use queue::Task;

/// The kinds that are followed.
const KINDS: [Kind; 15] = [
    Kind::Node,
    Kind::Pod,
    Kind::Lease,
    Kind::Namespace,
    Kind::ServiceAccount,
    Kind::Deployment,
    Kind::ReplicaSet,
    Kind::DaemonSet,
    Kind::StatefulSet,
    Kind::Revision,
    Kind::Job,
    Kind::Claim,
    Kind::Volume,
    Kind::StorageClass,
    Kind::Budget,
];

/// News taken in before plans are made again.
const BATCH: usize = 512;
/// Plans made before news are taken in again.
const PLANS: usize = 256;
/// How often the queue forgets what is over.
const TIDY: Duration = Duration::from_secs(30);

/// A clock that follows tokio's, so that tests can turn it.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    started: Instant,
    wall: Timestamp,
}

impl Clock {
    /// A clock that shows `wall` now.
    pub fn starting_at(wall: Timestamp) -> Self {
        Self { started: Instant::now(), wall }
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        // It would take millions of years to overflow.
        self.wall.checked_add(self.started.elapsed()).unwrap_or(Timestamp::MAX)
    }

    fn instant(&self, at: Timestamp) -> Instant {
        let ahead = Duration::try_from(at.duration_since(self.wall)).unwrap_or_default();
        self.started + ahead
    }
}

/// Runs all nodes and controllers until `stop`.
pub async fn run(client: Client, clock: Clock, settings: Settings, stop: CancellationToken) {
    let (news_in, news) = mpsc::channel(4096);
    let (notes_in, notes) = mpsc::channel(8192);
    let (ended_in, ended) = mpsc::unbounded_channel();
    let mut tasks = JoinSet::new();
    for kind in KINDS {
        tasks.spawn(informer::follow(client.clone(), kind, news_in.clone()));
    }
    tasks.spawn(record::run(client.clone(), clock, notes));
    drop(news_in);
    let engine = Engine {
        world: World::default(),
        queue: Queue::default(),
        unlisted: BTreeSet::from(KINDS),
        settings,
        clock,
        caller: Caller::new(client, notes_in),
        ended_in,
    };
    tokio::select! {
        () = engine.run(news, ended) => {}
        // None of them ends while the engine runs, unless by a panic.
        _ = tasks.join_next() => tracing::error!("a part of the engine ended"),
        () = stop.cancelled() => {}
    }
    tasks.shutdown().await;
}

type Report = (Task, Vec<News>, Ended);

struct Engine {
    world: World,
    queue: Queue,
    /// The kinds of which the first list is still missing. Before it is there,
    /// decisions would be made from half a cluster.
    unlisted: BTreeSet<Kind>,
    settings: Settings,
    clock: Clock,
    caller: Caller,
    ended_in: mpsc::UnboundedSender<Report>,
}

impl Engine {
    async fn run(
        mut self,
        mut news: mpsc::Receiver<News>,
        mut ended: mpsc::UnboundedReceiver<Report>,
    ) {
        let mut batch = Vec::with_capacity(BATCH);
        let mut reports = Vec::new();
        let mut plans = JoinSet::new();
        let mut tidy = tokio::time::interval(TIDY);
        loop {
            let due = self.due();
            tokio::select! {
                n = news.recv_many(&mut batch, BATCH) => if n == 0 { return },
                _ = ended.recv_many(&mut reports, BATCH) => {}
                () = tokio::time::sleep_until(due) => {}
                _ = tidy.tick() => self.queue.tidy(self.clock.now()),
            }
            for item in batch.drain(..) {
                self.take_in(item);
            }
            for (task, news, how) in reports.drain(..) {
                news.into_iter().for_each(|item| self.take_in(item));
                self.queue.ended(task, how, self.clock.now());
            }
            // How they went has been reported already.
            while plans.try_join_next().is_some() {}
            self.plan(&mut plans);
        }
    }

    fn due(&self) -> Instant {
        let far = Instant::now() + Duration::from_secs(3600);
        match self.queue.next() {
            Some(at) if self.unlisted.is_empty() => self.clock.instant(at).min(far),
            _ => far,
        }
    }

    fn take_in(&mut self, news: News) {
        if let News::Listed(kind, ..) = &news {
            self.unlisted.remove(kind);
        }
        let (seen, errors) = self.world.apply(news);
        for error in errors {
            tracing::warn!(%error, "an object was skipped: it is not of its kind's form");
        }
        let now = self.clock.now();
        for seen in &seen {
            controller::wake(&self.world, seen, &mut |task| self.queue.wake(task, now));
        }
    }

    fn plan(&mut self, plans: &mut JoinSet<()>) {
        if !self.unlisted.is_empty() {
            return;
        }
        for _ in 0..PLANS {
            let now = self.clock.now();
            let Some(task) = self.queue.pop(now) else { return };
            let since = self.clock.wall;
            let view = View { world: &self.world, now, since, settings: &self.settings };
            let planned = guard::planned(&task, || task.controller.plan(view, &task.key));
            let Some(mut plan) = planned else { continue };
            let again_at = plan.again_at.take();
            if !plan.actions.is_empty() {
                self.queue.started(task.clone());
                let caller = self.caller.named(task.controller.agent());
                let (ended, task) = (self.ended_in.clone(), task.clone());
                plans.spawn(async move {
                    let (news, how) = guard::carried_out(&task, caller.carry_out(plan)).await;
                    // Nobody listens once the engine has stopped.
                    let _ = ended.send((task, news, how));
                });
            }
            if let Some(at) = again_at {
                self.queue.wake(task, at);
            }
        }
    }
}

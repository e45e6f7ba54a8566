//! Puts the parts together.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use jiff::Timestamp;
use steersman_api::decode::{KINDS, KindRow};
use steersman_config::Config;
use steersman_core::{Scheduler, Setup, SetupError};
use steersman_framework::events::EventResource;
use steersman_framework::extender::{Extender, Wants};
use steersman_framework::registry::Registry;
use thiserror::Error;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::api::{Api, Limiter};
use crate::counters::{Counters, Summary};
use crate::driver::{Driver, Outlets};
use crate::evict::Evictor;
use crate::inspect::Desk;
use crate::listener::{Deaf, Listener};
use crate::record::Recorder;
use crate::reflector::{Limits, Reflector, Surroundings};
use crate::status::{StatusBoard, StatusWriter};
use crate::view::View;
use crate::world::LiveCluster;

/// How to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Requests a second to the API server; `None`, 0 or less: any number.
    pub qps: Option<f32>,
    /// How many may go out at once before `qps` counts.
    pub burst: u32,
    /// For drawing among equally good nodes, and for spreading retries in time.
    pub seed: u64,
    /// Names this process in events, after the profile's name: the host's name.
    pub identity: String,
    /// How long bindings under way and events may take at the end.
    pub drain: Duration,
    /// A watch that is silent for longer is opened anew. API servers send a
    /// bookmark a minute.
    pub watch_idle: Duration,
    /// How long a pod that found no node waits at the longest until it is tried
    /// again, though nothing has happened that could help it; more than none.
    pub max_unschedulable: Duration,
    /// The time of day.
    pub wall: fn() -> Timestamp,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            qps: None,
            burst: 0,
            seed: 0,
            identity: "steersman".to_owned(),
            drain: Duration::from_secs(10),
            watch_idle: Limits::default().idle,
            max_unschedulable: Duration::from_secs(5 * 60),
            wall: Timestamp::now,
        }
    }
}

/// What runs: the parts that [`run`] puts together.
pub struct Scheduling<'a> {
    /// The way to the API server. It must not repeat requests by itself: see
    /// `default_retry` of `kube::Config`.
    pub client: kube::Client,
    /// The configuration.
    pub config: &'a Config,
    /// The plugins that exist.
    pub registry: &'a Registry,
    /// How to run.
    pub options: Options,
    /// The extenders, in the order of the configuration.
    pub extenders: Vec<Arc<dyn Extender>>,
    /// Who is told what happens.
    pub listener: Box<dyn Listener>,
    /// Counts what happens.
    pub counters: Arc<Counters>,
    /// Where questions about the scheduler's state come in.
    pub desk: Desk,
}

impl<'a> Scheduling<'a> {
    /// Without extenders, and with nobody who listens or asks.
    pub fn new(client: kube::Client, config: &'a Config, registry: &'a Registry) -> Self {
        Self {
            client,
            config,
            registry,
            options: Options::default(),
            extenders: Vec::new(),
            listener: Box::new(Deaf),
            counters: Arc::default(),
            desk: Desk::closed(),
        }
    }
}

/// Why a scheduler stopped that should not have, or did not start.
#[derive(Debug, Error)]
pub enum Error {
    /// The configuration cannot be run with.
    #[error("cannot set up the scheduler")]
    Setup(#[source] SetupError),
    /// There is no thread for it.
    #[error("cannot start the scheduling thread")]
    Thread(#[source] std::io::Error),
    /// Scheduling ended with a panic.
    #[error("the scheduling thread ended unexpectedly")]
    Driver,
    /// A task around it ended with a panic.
    #[error("a task of the scheduler ended unexpectedly")]
    Task(#[source] tokio::task::JoinError),
}

/// How many batches of events may wait to be taken in; reflectors wait when
/// there are more.
const BATCHES: usize = 64;
/// How many pods' status is written at once.
const STATUS_WRITERS: usize = 8;

/// Schedules the pods of a cluster until `shutdown` is cancelled, and returns
/// what happened. Failures of the API server are waited out.
///
/// Must be called within a tokio runtime with time and IO.
///
/// # Errors
/// When the configuration cannot be run with, or the scheduler panics.
pub async fn run(
    scheduling: Scheduling<'_>,
    shutdown: CancellationToken,
) -> Result<Summary, Error> {
    let Scheduling { client, config, registry, options, extenders, listener, counters, desk } =
        scheduling;
    let setup = Setup {
        seed: options.seed,
        max_unschedulable: options.max_unschedulable,
        extenders: &extenders,
        ..Setup::new(config, registry)
    };
    let (scheduler, notices) = Scheduler::new(setup).map_err(Error::Setup)?;
    for notice in notices {
        tracing::warn!("{notice}");
    }
    let kinds = watched(&scheduler);
    let (sink, changes) = mpsc::channel(BATCHES);
    let parts = Parts::new(client, &options, counters.clone());
    let mut tasks = JoinSet::new();
    let wants = extenders.iter().map(|it| it.wants()).fold(Wants::default(), Wants::or);
    parts.spawn(&mut tasks, &kinds, sink, wants, &options);

    let outlets = parts.outlets(&options, listener);
    let names = kinds.iter().map(|row| row.plural).collect();
    let driver = Driver::new(scheduler, outlets, changes, names, options.drain, desk);
    // Whoever drops this future stops the thread as well.
    let stop = shutdown.child_token();
    let _guard = stop.clone().drop_guard();
    let mut done = start_thread(driver, stop).map_err(Error::Thread)?;
    loop {
        tokio::select! {
            ended = &mut done => match ended {
                Ok(()) => break,
                Err(_) => return Err(Error::Driver),
            },
            Some(task) = tasks.join_next() => {
                // Without one of them the scheduler would be blind or dumb.
                task.map_err(Error::Task)?;
            }
        }
    }
    parts.recorder.flush(Instant::now() + options.drain).await;
    Ok(counters.summary())
}

/// The kinds that the plugins need; pods and nodes always.
fn watched(scheduler: &Scheduler) -> Vec<&'static KindRow> {
    let needs = scheduler.needs();
    let wanted = |row: &&KindRow| {
        let resource = EventResource(row.resource);
        matches!(row.kind, "Pod" | "Node")
            || needs.as_ref().is_none_or(|needs| needs.contains(&resource))
    };
    KINDS.iter().filter(wanted).collect()
}

/// What is shared by the driver and the tasks around it.
struct Parts {
    api: Arc<Api>,
    counters: Arc<Counters>,
    board: Arc<StatusBoard>,
    view: Arc<View>,
    recorder: Arc<Recorder>,
}

impl Parts {
    fn new(client: kube::Client, options: &Options, counters: Arc<Counters>) -> Self {
        let Options { qps, burst, seed, identity, wall, .. } = options;
        let api = Arc::new(Api::new(client, Limiter::new(*qps, *burst)));
        let recorder = Recorder::new(api.clone(), counters.clone(), identity.clone(), *seed, *wall);
        let (board, view) = (Arc::default(), Arc::default());
        Self { api, counters, board, view, recorder: Arc::new(recorder) }
    }

    fn spawn(
        &self,
        tasks: &mut JoinSet<()>,
        kinds: &[&'static KindRow],
        sink: mpsc::Sender<crate::reflector::Batch>,
        wants: Wants,
        options: &Options,
    ) {
        let around = Surroundings {
            api: self.api.clone(),
            sink,
            counters: self.counters.clone(),
            board: self.board.clone(),
            view: self.view.clone(),
            limits: Limits { idle: options.watch_idle, ..Limits::default() },
            outage: Arc::default(),
            wants,
            seed: options.seed,
        };
        for row in kinds {
            tasks.spawn(Box::pin(Reflector::new(row, around.clone()).run()));
        }
        for _ in 0..STATUS_WRITERS {
            let writer = StatusWriter {
                api: self.api.clone(),
                board: self.board.clone(),
                counters: self.counters.clone(),
                seed: options.seed,
                wall: options.wall,
            };
            tasks.spawn(Box::pin(writer.run()));
        }
        tasks.spawn(self.recorder.clone().run());
    }

    fn outlets(&self, options: &Options, listener: Box<dyn Listener>) -> Outlets {
        let (api, view) = (self.api.clone(), self.view.clone());
        let world = LiveCluster::new(api.clone(), self.counters.clone(), view, options.seed);
        let recorder = self.recorder.clone();
        let evictor = Evictor { api, recorder, seed: options.seed, wall: options.wall };
        Outlets {
            io: Handle::current(),
            world: Arc::new(world),
            evictor,
            recorder: self.recorder.clone(),
            board: self.board.clone(),
            counters: self.counters.clone(),
            listener,
        }
    }
}

/// Runs the driver on a thread of its own; its end shows at the receiver, a
/// panic as an error.
fn start_thread(driver: Driver, stop: CancellationToken) -> std::io::Result<oneshot::Receiver<()>> {
    let (done, ended) = oneshot::channel();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    thread::Builder::new().name("scheduler".to_owned()).spawn(move || {
        runtime.block_on(driver.run(stop));
        let _ = done.send(());
    })?;
    Ok(ended)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds_for(config: &str) -> String {
        let registry = steersman_plugins::table::in_tree();
        let head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";
        let config = steersman_config::load(&format!("{head}{config}"), &registry).unwrap().config;
        let setup = Setup::new(&config, &registry);
        let kinds = watched(&Scheduler::new(setup).unwrap().0);
        kinds.iter().map(|row| row.plural).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn only_what_plugins_need_is_watched() {
        let all = kinds_for("");
        for kind in ["pods", "nodes", "namespaces", "services", "replicasets", "statefulsets"] {
            assert!(all.split(' ').any(|k| k == kind), "{kind} is not among {all}");
        }
        let few = "profiles: [{plugins: {multiPoint: {disabled: [{name: '*'}], enabled: \
                   [{name: PrioritySort}, {name: NodeName}, {name: DefaultBinder}]}}}]";
        assert_eq!(kinds_for(few), "pods nodes");
        let no_defaults = "profiles: [{pluginConfig: [{name: PodTopologySpread, args: \
                           {defaultingType: List}}]}]";
        assert!(!kinds_for(no_defaults).contains("services"));
    }
}

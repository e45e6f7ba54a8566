//! The driver with a core, a world on paper and no network, in virtual time.

use std::sync::atomic::{AtomicU8, Ordering};

use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::json;
use steersman_api::decode::kind_row;
use steersman_api::key::{ObjectKey, PodUid};
use steersman_api::name::Name;
use steersman_api::object::ClusterObject;
use steersman_api::pod::PodInfo;
use steersman_core::{EventLabel, Record, Setup, Stats};
use steersman_framework::extensions::BoxFuture;
use steersman_framework::world::WriteError;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::*;
use crate::inspect::Inspector;
use crate::listener::Several;
use crate::logged::Logged;
use crate::scenario::Scenario;
use crate::views::{Limit, PATIENCE, Page, QueuedPod};

const SECOND: Duration = Duration::from_secs(1);

/// Each binding takes so long, and goes well unless the pod's name says not.
struct Paper(Duration);

impl ClusterWriter for Paper {
    fn bind<'a>(
        &'a self,
        pod: &'a ObjectKey,
        _: &'a PodUid,
        _: &'a Name,
    ) -> BoxFuture<'a, Result<(), WriteError>> {
        Box::pin(async move {
            sleep(self.0).await;
            match &*pod.name {
                "unlucky" => Err(WriteError::Other("bad luck".to_owned())),
                "taken" => Err(WriteError::Conflict("it has a node".to_owned())),
                "fatal" => panic!("a bug"),
                _ => Ok(()),
            }
        })
    }
}

/// Writes down what happens and when.
#[derive(Clone, Default)]
struct Diary(Arc<Mutex<Vec<String>>>);

impl Listener for Diary {
    fn attempted(&mut self, attempt: &Attempt, _: &steersman_framework::cluster::Cluster) {
        self.0.lock().push(format!("try {}", attempt.pod.key.name));
    }

    fn bound(&mut self, pod: &PodInfo, node: &Name) {
        self.0.lock().push(format!("{} on {node}", pod.key.name));
    }

    fn failed(&mut self, pod: &PodInfo, reason: FailureReason, message: &str) {
        self.0.lock().push(format!("{} {}: {message}", pod.key.name, reason.name()));
    }
}

/// Writes down what was measured.
#[derive(Clone, Default)]
struct Measures(Arc<Mutex<Vec<String>>>);

impl Listener for Measures {
    fn wants_records(&self) -> bool {
        true
    }

    fn recorded(&mut self, record: &Record, now: Time) {
        self.0.lock().push(match record {
            Record::Scheduled { attempts, started, .. } => {
                format!("scheduled, {attempts} attempts, {:?}", now.since(*started))
            }
            Record::Failed { reason, .. } => format!("failed: {}", reason.name()),
            Record::PermitWaited { .. } => "waited".to_owned(),
        });
    }

    fn handled(&mut self, label: EventLabel, _: Duration) {
        self.0.lock().push(format!("{} {}", label.resource, label.action));
    }

    fn ended(&mut self, stats: &Stats) {
        self.0.lock().push(format!("ended, knowing {} nodes", stats.nodes));
    }
}

struct Running {
    measures: Measures,
    changes: mpsc::Sender<Batch>,
    diary: Diary,
    counters: Arc<Counters>,
    stop: CancellationToken,
    driver: JoinHandle<()>,
    /// Makes work of the driver panic that no plugin does.
    lost_work: Option<oneshot::Sender<()>>,
    n_synced: AtomicU8,
    inspector: Inspector,
    board: Arc<StatusBoard>,
}

/// A driver that waits for two kinds, and whose bindings take `binding`.
fn start(binding: Duration, drain: Duration) -> Running {
    let registry = steersman_plugins::table::in_tree();
    let config = steersman_config::Config::default_for(&registry).unwrap();
    let setup = Setup::new(&config, &registry);
    let scheduler = Scheduler::new(setup).unwrap().0;
    let (api, counters) = (Scenario::new(vec![]).api(), Arc::new(Counters::default()));
    let wall = || Timestamp::UNIX_EPOCH;
    let recorder = Recorder::new(api.clone(), counters.clone(), "host".to_owned(), 1, wall);
    let recorder = Arc::new(recorder);
    let (diary, measures) = (Diary::default(), Measures::default());
    let board = Arc::new(StatusBoard::default());
    let outlets = Outlets {
        io: Handle::current(),
        world: Arc::new(Paper(binding)),
        evictor: Evictor { api, recorder: recorder.clone(), seed: 1, wall },
        recorder,
        board: board.clone(),
        counters: counters.clone(),
        listener: Box::new(Several(vec![Box::new(diary.clone()), Box::new(measures.clone())])),
    };
    let (changes, batches) = mpsc::channel(10);
    let stop = CancellationToken::new();
    let inspector = Inspector::default();
    let kinds = ["nodes", "pods"].into();
    let mut driver = Driver::new(scheduler, outlets, batches, kinds, drain, inspector.desk());
    let (lose, lost) = oneshot::channel::<()>();
    driver.tasks.spawn(async move {
        if lost.await.is_ok() {
            panic!("lost");
        }
    });
    let driver = tokio::spawn(driver.run(stop.clone()));
    Running {
        changes,
        diary,
        counters,
        stop,
        driver,
        lost_work: Some(lose),
        n_synced: AtomicU8::new(0),
        inspector,
        board,
        measures,
    }
}

impl Running {
    /// The first time the one kind is synced, the second time the other.
    async fn tell(&self, synced: bool, objects: &[(&str, serde_json::Value)]) {
        let read = |(kind, json): &(&str, serde_json::Value)| {
            Event::Upsert(kind_row("v1", kind).unwrap().decode(json).unwrap().object)
        };
        let events = objects.iter().map(read).collect();
        let kind = if self.n_synced.fetch_add(u8::from(synced), Ordering::Relaxed) == 0 {
            "pods"
        } else {
            "nodes"
        };
        self.changes.send(Batch { kind, events, synced }).await.unwrap();
    }

    fn entries(&self) -> Vec<String> {
        std::mem::take(&mut *self.diary.0.lock())
    }
}

fn node(name: &str) -> (&'static str, serde_json::Value) {
    let allocatable = json!({"cpu": "1", "memory": "1Gi", "pods": "10"});
    ("Node", json!({"metadata": {"name": name}, "status": {"allocatable": allocatable}}))
}

fn pod(name: &str, cpu: &str) -> (&'static str, serde_json::Value) {
    let container = json!({"name": "c", "resources": {"requests": {"cpu": cpu}}});
    let json = json!({
        "metadata": {"namespace": "ns", "name": name, "uid": format!("uid-{name}")},
        "spec": {"containers": [container], "schedulerName": "default-scheduler"},
    });
    ("Pod", json)
}

#[tokio::test(start_paused = true)]
async fn nothing_is_decided_before_every_kind_is_known() {
    let running = start(SECOND, SECOND * 10);
    running.tell(true, &[pod("p", "1")]).await;
    sleep(SECOND * 100).await;
    assert!(running.entries().is_empty());
    assert_eq!(running.inspector.unsynced(), Some(vec!["nodes"]));
    running.tell(false, &[node("n")]).await;
    sleep(SECOND).await;
    assert!(running.entries().is_empty());
    running.tell(true, &[]).await;
    sleep(SECOND * 2).await;
    assert_eq!(running.entries(), ["try p", "p on n"]);
    assert_eq!(running.inspector.unsynced(), Some(vec![]));
}

#[tokio::test(start_paused = true)]
async fn a_pod_without_room_is_tried_when_room_comes_and_a_failed_binding_again() {
    let running = start(SECOND, SECOND * 10);
    running.tell(true, &[pod("p", "1")]).await;
    running.tell(true, &[]).await;
    sleep(SECOND).await;
    let message = "p Unschedulable: no nodes available to schedule pods";
    assert_eq!(running.entries(), ["try p", message]);
    running.tell(false, &[node("n")]).await;
    sleep(SECOND * 3).await;
    assert_eq!(running.entries(), ["try p", "p on n"]);

    running.tell(false, &[node("m"), pod("unlucky", "1")]).await;
    sleep(SECOND * 5).await;
    let entries = running.entries();
    assert_eq!(entries[0], "try unlucky");
    assert!(
        entries[1].contains("SchedulerError") && entries[1].contains("bad luck"),
        "{entries:?}"
    );
    assert_eq!(entries[2], "try unlucky", "after its backoff");
    assert!(running.counters.errors.get() >= 1);
}

#[tokio::test(start_paused = true)]
async fn the_queue_shows_why_pods_do_not_fit_and_the_error_of_those_that_wait_for_a_retry() {
    let running = start(SECOND, SECOND * 10);
    let pods = [pod("big", "64"), pod("unlucky", "100m")];
    for (_, json) in &pods {
        let decoded = kind_row("v1", "Pod").unwrap().decode(json).unwrap();
        let ClusterObject::Pod(pod) = decoded.object else { panic!("not a pod") };
        running.board.saw(&pod, json);
    }
    running.tell(true, &pods).await;
    running.tell(true, &[node("n")]).await;
    sleep(SECOND + TICK * 10).await;
    let view = running.inspector.queue(PATIENCE, Limit::default()).await.expect("it answers");
    let failures = |page: &Page<QueuedPod>| {
        let failure = |pod: &QueuedPod| {
            format!("{}: {}", pod.pod, pod.last_failure.as_deref().unwrap_or("-"))
        };
        page.items.iter().map(failure).collect::<Vec<_>>()
    };
    let no_room = failures(&view.unschedulable);
    assert_eq!(no_room.len(), 1, "{no_room:?}");
    let words = "ns/big: 0/1 nodes are available: 1 Insufficient cpu. ";
    assert!(no_room[0].starts_with(words), "{no_room:?}");
    let retried = "ns/unlucky: running Bind plugin \"DefaultBinder\": bad luck";
    assert_eq!(failures(&view.backoff), [retried]);
}

#[tokio::test(start_paused = true)]
async fn a_pod_bound_by_another_client_is_counted_as_an_error_and_told_in_the_log() {
    let (log, _guard) = Logged::start();
    let running = start(SECOND, SECOND * 10);
    running.tell(true, &[node("n"), pod("taken", "600m"), pod("unlucky", "100m")]).await;
    running.tell(true, &[]).await;
    sleep(SECOND / 2).await;
    assert_eq!(running.entries(), ["try taken", "try unlucky"]);
    // Somebody was faster, and chose the same node.
    for name in ["taken", "unlucky"] {
        let (kind, mut bound) = pod(name, "600m");
        bound["spec"]["nodeName"] = "n".into();
        running.tell(false, &[(kind, bound)]).await;
    }
    sleep(SECOND * 60).await;
    let refused = "running Bind plugin \"DefaultBinder\": it has a node";
    let failed = format!("taken SchedulerError: {refused}");
    // What no clear answer came to may have been our own binding.
    assert_eq!(running.entries(), [&*failed, "unlucky on n"]);
    assert_eq!((running.counters.errors.get(), running.counters.bound.get()), (1, 1));
    let measured = running.measures.0.lock().clone();
    let ended = |what: &&String| what.starts_with("scheduled") || what.starts_with("failed");
    let ended: Vec<&String> = measured.iter().filter(ended).collect();
    assert_eq!(ended, ["failed: SchedulerError", "scheduled, 1 attempts, 1s"]);
    let lines = log.take();
    assert_eq!(lines.len(), 1, "{lines:?}");
    let error = format!("error={refused:?}");
    for part in ["WARN", "pod=ns/taken", "node=n", "another client bound", &error] {
        assert!(lines[0].contains(part), "{part} is not in {lines:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn every_listener_is_told_what_happens_and_how_long_it_took() {
    let running = start(SECOND * 3, SECOND * 10);
    running.tell(true, &[pod("p", "1")]).await;
    running.tell(true, &[]).await;
    sleep(SECOND).await;
    running.tell(false, &[node("n"), node("n")]).await;
    sleep(SECOND * 5).await;
    let bound = "p Unschedulable: no nodes available to schedule pods";
    assert_eq!(running.entries(), ["try p", bound, "try p", "p on n"]);
    let measured = std::mem::take(&mut *running.measures.0.lock());
    let expected = [
        "UnscheduledPod Add",
        "failed: Unschedulable",
        "Node Add",
        "Node Update",
        "scheduled, 2 attempts, 3s",
    ];
    assert_eq!(measured, expected);
    running.stop.cancel();
    running.driver.await.unwrap();
    assert_eq!(*running.measures.0.lock(), ["ended, knowing 1 nodes"]);
}

#[tokio::test(start_paused = true)]
async fn a_plugin_that_panics_costs_one_attempt() {
    let running = start(SECOND, SECOND * 10);
    running.tell(true, &[node("n"), pod("fatal", "100m"), pod("p", "100m")]).await;
    running.tell(true, &[]).await;
    sleep(SECOND + TICK * 10).await;
    let entries = running.entries();
    let failed = "running Bind plugin \"DefaultBinder\": panicked: a bug";
    assert!(entries.iter().any(|entry| entry.ends_with(failed)), "{entries:?}");
    assert!(entries.contains(&"p on n".to_owned()), "{entries:?}");
    assert!(!running.driver.is_finished());
}

/// Work of the driver's own, for instance writing down what happens, is not
/// guarded like plugins are.
#[tokio::test(start_paused = true)]
async fn a_panic_around_a_binding_ends_the_driver_instead_of_losing_the_pod() {
    let mut running = start(SECOND, SECOND * 10);
    running.lost_work.take().expect("nobody took it").send(()).expect("the driver runs");
    let ended = tokio::time::timeout(SECOND * 60, running.driver).await.expect("it ends");
    assert!(ended.expect_err("it ends with the panic").is_panic());
}

#[tokio::test(start_paused = true)]
async fn stopping_lets_bindings_under_way_finish_and_takes_no_more_pods() {
    let running = start(SECOND * 5, SECOND * 10);
    running.tell(true, &[node("n"), pod("p", "100m")]).await;
    running.tell(true, &[]).await;
    sleep(SECOND).await;
    running.stop.cancel();
    running.tell(false, &[pod("q", "100m")]).await;
    let start = Instant::now();
    running.driver.await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 4);
    assert_eq!(std::mem::take(&mut *running.diary.0.lock()), ["try p", "p on n"]);
}

#[tokio::test(start_paused = true)]
async fn stopping_takes_no_longer_than_allowed() {
    let running = start(SECOND * 500, SECOND * 10);
    running.tell(true, &[node("n"), pod("p", "100m")]).await;
    running.tell(true, &[]).await;
    sleep(SECOND).await;
    running.stop.cancel();
    let start = Instant::now();
    running.driver.await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 10);
    assert_eq!(running.counters.bound.get(), 0);
}

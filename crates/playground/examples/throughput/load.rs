//! The pods: who creates them, and when each was created and bound.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use http::Request;
use kube::Client;
use serde_json::{Value, json};
use steersman_api::name::Name;
use steersman_api::pod::PodInfo;
use steersman_runtime::Listener;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::Failure;

/// Pods to create, each after the other by some client.
#[derive(Clone)]
pub(crate) struct Load {
    shared: Arc<Shared>,
    n_clients: usize,
}

struct Shared {
    start: Instant,
    /// When each pod was sent, in nanoseconds after the start; 0 for not yet.
    created: Vec<AtomicU64>,
    /// When each pod was bound, likewise.
    bound: Vec<AtomicU64>,
    n_bound: AtomicUsize,
    changed: Notify,
}

const PODS: &str = "/api/v1/namespaces/default/pods";
const PREFIX: &str = "web-7c9f4d8b5-";

impl Load {
    pub(crate) fn new(n_pods: usize, n_clients: usize) -> Self {
        let times = || (0..n_pods).map(|_| AtomicU64::new(0)).collect();
        let shared = Shared {
            start: Instant::now(),
            created: times(),
            bound: times(),
            n_bound: AtomicUsize::new(0),
            changed: Notify::new(),
        };
        Self { shared: Arc::new(shared), n_clients }
    }

    /// Creates all pods and returns how long it took.
    pub(crate) async fn create(&self, client: Client) -> Result<Duration, Failure> {
        let start = Instant::now();
        let next = Arc::new(AtomicUsize::new(0));
        let mut clients = JoinSet::new();
        for _ in 0..self.n_clients {
            let (shared, next, client) = (self.shared.clone(), next.clone(), client.clone());
            clients.spawn(async move {
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    let Some(time) = shared.created.get(n) else { return Ok::<_, Failure>(()) };
                    time.store(shared.nanos(), Ordering::Relaxed);
                    post(&client, &pod(&format!("{PREFIX}{n:06}"))).await?;
                }
            });
        }
        while let Some(ended) = clients.join_next().await {
            ended??;
        }
        Ok(start.elapsed())
    }

    /// Has one more pod bound: afterwards the scheduler knows the cluster.
    pub(crate) async fn warm_up(&self, client: Client) -> Result<(), Failure> {
        let changed = self.shared.changed.notified();
        post(&client, &pod("warm-up")).await?;
        changed.await;
        Ok(())
    }

    pub(crate) async fn all_bound(&self) {
        loop {
            let changed = self.shared.changed.notified();
            if self.shared.n_bound.load(Ordering::Acquire) >= self.shared.bound.len() {
                return;
            }
            changed.await;
        }
    }

    pub(crate) fn listener(&self) -> Box<dyn Listener> {
        Box::new(Ear(self.shared.clone()))
    }

    /// From creation to binding, sorted; only of pods that are bound.
    pub(crate) fn latencies(&self) -> Vec<Duration> {
        let times = self.shared.created.iter().zip(&self.shared.bound);
        let mut all: Vec<Duration> = times
            .map(|(from, to)| (from.load(Ordering::Relaxed), to.load(Ordering::Relaxed)))
            .filter(|(_, to)| *to > 0)
            .map(|(from, to)| Duration::from_nanos(to.saturating_sub(from)))
            .collect();
        all.sort_unstable();
        all
    }
}

impl Shared {
    fn nanos(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

/// Hears of bindings on the scheduler's thread.
struct Ear(Arc<Shared>);

impl Listener for Ear {
    fn bound(&mut self, pod: &PodInfo, _: &Name) {
        let shared = &*self.0;
        let number = pod.key.name.strip_prefix(PREFIX).and_then(|n| n.parse::<usize>().ok());
        if let Some(time) = number.and_then(|n| shared.bound.get(n)) {
            time.store(shared.nanos(), Ordering::Relaxed);
            let n_bound = shared.n_bound.fetch_add(1, Ordering::AcqRel) + 1;
            if n_bound < shared.bound.len() {
                return;
            }
        }
        shared.changed.notify_one();
    }
}

async fn post(client: &Client, object: &Value) -> Result<(), Failure> {
    let request = Request::post(PODS).header("content-type", "application/json");
    // Refusals are errors of the client.
    client.request_text(request.body(serde_json::to_vec(object)?)?).await?;
    Ok(())
}

/// A plain pod, as a ReplicaSet makes it.
fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "web", "pod-template-hash": "7c9f4d8b5"}},
        "spec": {"containers": [{"name": "c", "image": "app",
            "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}}}]},
    })
}

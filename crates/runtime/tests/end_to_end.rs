//! The scheduler against the embedded API server, both in this process.

use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use steersman_apiserver::{ApiServer, Config};
use steersman_runtime::{Placement, Placements, Scheduling, Summary, run};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// Nothing takes longer than this unless it never comes.
const PATIENCE: Duration = Duration::from_secs(60);

struct Cluster {
    server: ApiServer,
    client: Client,
}

struct Running {
    placements: mpsc::UnboundedReceiver<Placement>,
    shutdown: CancellationToken,
    task: JoinHandle<Summary>,
}

impl Cluster {
    fn new() -> Self {
        let resources = steersman_apikinds::resources();
        let server = ApiServer::new(Config { resources, ..Config::default() });
        // The namespaces among these exist already.
        let loaded = server.load(steersman_apikinds::bootstrap(jiff::Timestamp::now()));
        assert!(loaded.iter().any(Result::is_ok), "{loaded:?}");
        let client = Client::new(server.service(), "default");
        Self { server, client }
    }

    fn start(&self) -> Running {
        let (client, shutdown) = (self.client.clone(), CancellationToken::new());
        let (listener, placements) = Placements::new();
        let stop = shutdown.clone();
        let task = tokio::spawn(async move {
            let registry = steersman_plugins::table::in_tree();
            let config =
                steersman_config::Config::default_for(&registry).expect("the defaults are good");
            let scheduling = Scheduling {
                listener: Box::new(listener),
                ..Scheduling::new(client, &config, &registry)
            };
            Box::pin(run(scheduling, stop)).await.expect("it runs until it is stopped")
        });
        Running { placements, shutdown, task }
    }

    async fn send(&self, method: Method, path: &str, body: Value) -> Value {
        let content_type = match method {
            Method::PATCH => "application/merge-patch+json",
            _ => "application/json",
        };
        let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", content_type)
            .body(Body::from(body.to_vec()))
            .expect("the request is good");
        let response = self.client.send(request).await.expect("the server answers");
        let status = response.status();
        let bytes = response.into_body().collect().await.expect("the answer is whole").to_bytes();
        let json: Value = serde_json::from_slice(&bytes).expect("answers are JSON");
        assert!(status.is_success(), "{path}: {json}");
        json
    }

    async fn node(&self, name: &str, cpu: &str) {
        let amounts = json!({"cpu": cpu, "memory": "8Gi", "pods": "110"});
        let node = json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name},
            "status": {"capacity": amounts, "allocatable": amounts},
        });
        self.send(Method::POST, "/api/v1/nodes", node).await;
    }

    async fn pod(&self, name: &str, cpu: &str, extra: Value) {
        let container = json!({"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}});
        let mut pod = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name},
            "spec": {"containers": [container]},
        });
        for (field, value) in extra.as_object().into_iter().flatten() {
            pod["spec"][field] = value.clone();
        }
        self.send(Method::POST, PODS, pod).await;
    }

    async fn get(&self, path: &str) -> Value {
        self.send(Method::GET, path, Value::Null).await
    }

    /// The node of each pod, as far as there is one.
    async fn nodes_of_pods(&self) -> Vec<(String, Option<String>)> {
        let list = self.get(PODS).await;
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let pods = list["items"].as_array().into_iter().flatten();
        pods.map(|p| {
            (text(&p["metadata"]["name"]).unwrap_or_default(), text(&p["spec"]["nodeName"]))
        })
        .collect()
    }

    async fn until_bound(&self, n: usize) {
        until(async || {
            self.nodes_of_pods().await.iter().filter(|(_, node)| node.is_some()).count() == n
        })
        .await;
    }

    async fn events_of(&self, pod: &str) -> Vec<Value> {
        let list = self.get("/apis/events.k8s.io/v1/namespaces/default/events").await;
        let events = list["items"].as_array().into_iter().flatten();
        events.filter(|event| event["regarding"]["name"] == pod).cloned().collect()
    }
}

impl Running {
    async fn stop(self) -> Summary {
        self.shutdown.cancel();
        timeout(PATIENCE, self.task).await.expect("it stops").expect("it does not panic")
    }
}

const PODS: &str = "/api/v1/namespaces/default/pods";

/// Asks again and again until it is so.
async fn until<F: Future<Output = bool>>(mut is_so: impl FnMut() -> F) {
    let mut ticks = tokio::time::interval(Duration::from_millis(10));
    timeout(PATIENCE, async {
        while !is_so().await {
            ticks.tick().await;
        }
    })
    .await
    .expect("it comes about");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pods_are_bound_and_say_so() {
    let cluster = Cluster::new();
    cluster.node("n1", "4").await;
    cluster.node("n2", "4").await;
    cluster.pod("early", "100m", json!({})).await;
    let mut running = cluster.start();
    for i in 0..20 {
        cluster.pod(&format!("p{i}"), "100m", json!({})).await;
    }
    cluster.pod("foreign", "100m", json!({"schedulerName": "somebody-else"})).await;
    cluster.until_bound(21).await;
    until(async || !cluster.events_of("early").await.is_empty()).await;
    let placement = running.placements.recv().await.expect("a placement");
    assert_eq!((placement.n_feasible, placement.scores.is_empty()), (2, false));
    let summary = running.stop().await;
    assert_eq!((summary.bound, summary.errors), (21, 0));

    let pod = cluster.get("/api/v1/namespaces/default/pods/early").await;
    let node = pod["spec"]["nodeName"].as_str().unwrap();
    let event = &cluster.events_of("early").await[0];
    assert_eq!(event["note"], format!("Successfully assigned default/early to {node}"));
    assert_eq!((&event["reason"], &event["action"]), (&json!("Scheduled"), &json!("Binding")));
    let foreign = cluster.get("/api/v1/namespaces/default/pods/foreign").await;
    assert_eq!(foreign["spec"].get("nodeName"), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_without_room_says_why_and_goes_when_room_comes() {
    let cluster = Cluster::new();
    cluster.node("small", "1").await;
    let running = cluster.start();
    cluster.pod("big", "2", json!({})).await;
    let path = "/api/v1/namespaces/default/pods/big";
    let condition = async || {
        let pod = cluster.get(path).await;
        let conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.into_iter().find(|c| c["type"] == "PodScheduled").unwrap_or_default()
    };
    until(async || condition().await["status"] == "False").await;
    until(async || !cluster.events_of("big").await.is_empty()).await;
    let message = condition().await["message"].as_str().unwrap().to_owned();
    assert!(message.starts_with("0/1 nodes are available: 1 Insufficient cpu."), "{message}");
    let events = cluster.events_of("big").await;
    assert_eq!(
        (&events[0]["reason"], &events[0]["note"]),
        (&json!("FailedScheduling"), &json!(message))
    );

    cluster.node("large", "4").await;
    cluster.until_bound(1).await;
    assert_eq!(condition().await["status"], "True");
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_important_pod_gets_the_room_of_another() {
    let cluster = Cluster::new();
    let class = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
                       "metadata": {"name": "vip"}, "value": 1000});
    cluster.send(Method::POST, "/apis/scheduling.k8s.io/v1/priorityclasses", class).await;
    cluster.node("n", "1").await;
    let running = cluster.start();
    cluster.pod("victim", "1", json!({"terminationGracePeriodSeconds": 0})).await;
    cluster.until_bound(1).await;
    cluster.pod("vip", "1", json!({"priorityClassName": "vip"})).await;
    // There is no kubelet, and without grace none is needed.
    until(async || cluster.nodes_of_pods().await.iter().all(|(name, _)| name != "victim")).await;
    cluster.until_bound(1).await;
    assert_eq!(cluster.nodes_of_pods().await, [("vip".to_owned(), Some("n".to_owned()))]);
    until(async || cluster.events_of("victim").await.iter().any(|e| e["reason"] == "Preempted"))
        .await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_scheduler_goes_on_where_the_last_one_stopped() {
    let cluster = Cluster::new();
    cluster.node("n", "1").await;
    for round in 0..3 {
        let running = cluster.start();
        cluster.pod(&format!("p{round}"), "300m", json!({})).await;
        cluster.until_bound(round + 1).await;
        running.stop().await;
    }
    let running = cluster.start();
    cluster.pod("too-much", "300m", json!({})).await;
    until(async || !cluster.events_of("too-much").await.is_empty()).await;
    assert_eq!(running.stop().await.bound, 0, "what others bound takes room");
    assert_eq!(cluster.server.dump().iter().filter(|o| o["kind"] == "Pod").count(), 4);
}

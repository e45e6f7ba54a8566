//! Scheduler, embedded API server and sample extender, over real HTTP.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use steersman_apiserver::{ApiServer, Config};
use steersman_extender::{Options, Proxies, connect};
use steersman_runtime::{Scheduling, Summary, run};
use steersman_sample_extender::app;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// Nothing takes longer than this unless it never comes.
const PATIENCE: Duration = Duration::from_secs(60);

struct Cluster {
    client: Client,
    /// Keeps what the client talks to.
    _server: ApiServer,
    extender: JoinHandle<()>,
    scheduler: JoinHandle<Summary>,
    shutdown: CancellationToken,
}

impl Cluster {
    /// The sample's own configuration, on a port that is free.
    async fn start() -> Self {
        let resources = steersman_apikinds::resources();
        let server = ApiServer::new(Config { resources, ..Config::default() });
        let loaded = server.load(steersman_apikinds::bootstrap(jiff::Timestamp::now()));
        assert!(loaded.iter().any(Result::is_ok), "{loaded:?}");
        let client = Client::new(server.service(), "default");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let at = listener.local_addr().expect("an address").to_string();
        let router = app(client.clone());
        let extender = tokio::spawn(async move {
            axum::serve(listener, router).await.expect("it serves until it is aborted");
        });
        let text = include_str!("../extender.yaml").replace("127.0.0.1:8888", &at);
        let shutdown = CancellationToken::new();
        let scheduler = schedule(client.clone(), text, shutdown.clone());
        Self { client, _server: server, extender, scheduler, shutdown }
    }

    async fn node(&self, name: &str, metadata: Value) {
        let amounts = json!({"cpu": "4", "memory": "8Gi", "pods": "110"});
        let mut node = json!({
            "apiVersion": "v1", "kind": "Node", "metadata": metadata,
            "status": {"capacity": amounts, "allocatable": amounts},
        });
        node["metadata"]["name"] = name.into();
        let node: Node = serde_json::from_value(node).expect("a node");
        let nodes = Api::<Node>::all(self.client.clone());
        nodes.create(&PostParams::default(), &node).await.expect("it is created");
    }

    async fn annotate_node(&self, name: &str, key: &str, value: &str) {
        let patch = json!({"metadata": {"annotations": {key: value}}});
        let nodes = Api::<Node>::all(self.client.clone());
        let patched = nodes.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await;
        patched.expect("it is patched");
    }

    fn pods(&self) -> Api<Pod> {
        Api::default_namespaced(self.client.clone())
    }

    async fn pod(&self, name: &str, requests: Value, priority_class: Option<&str>) {
        let resources = json!({"requests": requests, "limits": requests});
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {
                "containers": [{"name": "c", "image": "i", "resources": resources}],
                "terminationGracePeriodSeconds": 0,
                "priorityClassName": priority_class,
            },
        });
        let pod: Pod = serde_json::from_value(pod).expect("a pod");
        self.pods().create(&PostParams::default(), &pod).await.expect("it is created");
    }

    /// A pod for nodes with these labels, that takes next to nothing.
    async fn pod_for(&self, name: &str, labels: Value) {
        let resources = json!({"requests": {"cpu": "1m"}});
        let containers = json!([{"name": "c", "image": "i", "resources": resources}]);
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
                         "spec": {"containers": containers, "nodeSelector": labels}});
        let pod: Pod = serde_json::from_value(pod).expect("a pod");
        self.pods().create(&PostParams::default(), &pod).await.expect("it is created");
    }

    /// Where the pods are; those without a node are left out.
    async fn places(&self) -> BTreeMap<String, String> {
        let pods = self.pods().list(&ListParams::default()).await.expect("a list").items;
        let place = |pod: Pod| Some((pod.metadata.name?, pod.spec?.node_name?));
        pods.into_iter().filter_map(place).collect()
    }

    async fn until_at(&self, pod: &str, node: &str) {
        until(async || self.places().await.get(pod).is_some_and(|at| at == node)).await;
    }

    /// Until the pod's condition `PodScheduled` is false and says so.
    async fn until_refused(&self, pod: &str, why: &str) {
        until(async || {
            let pod = self.pods().get(pod).await.expect("it exists");
            let conditions = pod.status.and_then(|status| status.conditions).unwrap_or_default();
            let refused = conditions.into_iter().find(|it| it.status == "False");
            refused.and_then(|it| it.message).is_some_and(|message| message.contains(why))
        })
        .await;
    }

    async fn stop(self) -> Summary {
        self.shutdown.cancel();
        let summary = timeout(PATIENCE, self.scheduler).await.expect("it stops");
        self.extender.abort();
        summary.expect("it does not panic")
    }
}

fn schedule(client: Client, text: String, stop: CancellationToken) -> JoinHandle<Summary> {
    tokio::spawn(async move {
        let registry = steersman_plugins::table::in_tree();
        let config = steersman_config::load(&text, &registry).expect("a configuration").config;
        let options = Options { proxies: Proxies::None, ..Options::default() };
        let extenders = connect(&config.extenders, &Handle::current(), &options);
        let scheduling = Scheduling {
            extenders: extenders.expect("extenders"),
            ..Scheduling::new(client, &config, &registry)
        };
        Box::pin(run(scheduling, stop)).await.expect("it runs until it is stopped")
    })
}

/// Asks again and again until it is so.
async fn until(mut is_so: impl AsyncFnMut() -> bool) {
    let mut ticks = tokio::time::interval(Duration::from_millis(10));
    let waiting = async {
        while !is_so().await {
            ticks.tick().await;
        }
    };
    timeout(PATIENCE, waiting).await.expect("it comes about");
}

fn gpus(n: &str) -> Value {
    json!({"cpu": "100m", "example.com/gpu": n})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_are_refused_preferred_and_counted_by_the_extender() {
    let cluster = Cluster::start().await;
    cluster.node("refuses", json!({"annotations": {"example.com/refuse": "cleaning"}})).await;
    cluster.pod("first", json!({"cpu": "1"}), None).await;
    let why = "0/1 nodes are available: 1 node refuses pods: cleaning.";
    cluster.until_refused("first", why).await;
    cluster.node("plain", json!({"annotations": {"example.com/gpus": "2"}})).await;
    cluster.until_at("first", "plain").await;
    cluster.node("fast", json!({"labels": {"example.com/tier": "fast"}})).await;
    // Pods and nodes come by different watches: the scheduler knows the node when
    // a pod is there that fits nowhere else.
    cluster.pod_for("scout", json!({"example.com/tier": "fast"})).await;
    cluster.until_at("scout", "fast").await;
    cluster.pod("second", json!({"cpu": "1"}), None).await;
    cluster.until_at("second", "fast").await;

    // The GPUs are where the extender says, whatever is faster.
    for pod in ["g1", "g2", "g3"] {
        cluster.pod(pod, gpus("1"), None).await;
    }
    let mut refused = None;
    until(async || {
        let places = cluster.places().await;
        let on_node = ["g1", "g2", "g3"].into_iter().filter(|pod| places.contains_key(*pod));
        let without = ["g1", "g2", "g3"].into_iter().find(|pod| !places.contains_key(*pod));
        refused = without;
        on_node.count() == 2
    })
    .await;
    let refused = refused.expect("one of three");
    // It may have lost a race for the last one before: then binding it failed.
    cluster.until_refused(refused, "Insufficient example.com/gpu").await;
    // A change of nothing but an annotation brings it back.
    cluster.annotate_node("plain", "example.com/gpus", "3").await;
    cluster.until_at(refused, "plain").await;
    let summary = cluster.stop().await;
    assert_eq!(summary.bound, 6);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_is_evicted_where_the_extender_sees_no_use_in_it() {
    let cluster = Cluster::start().await;
    let class = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
                       "metadata": {"name": "vip"}, "value": 1000});
    let class: k8s_openapi::api::scheduling::v1::PriorityClass =
        serde_json::from_value(class).expect("a class");
    let classes = Api::all(cluster.client.clone());
    classes.create(&PostParams::default(), &class).await.expect("it is created");
    cluster.node("without", json!({})).await;
    cluster.pod("w", json!({"cpu": "4"}), None).await;
    cluster.until_at("w", "without").await;
    cluster.node("with", json!({"annotations": {"example.com/gpus": "1"}})).await;
    cluster.pod("g", json!({"cpu": "4", "example.com/gpu": "1"}), None).await;
    cluster.until_at("g", "with").await;
    cluster.pod("vip", json!({"cpu": "4", "example.com/gpu": "1"}), Some("vip")).await;
    cluster.until_at("vip", "with").await;
    let places = cluster.places().await;
    assert_eq!(places.get("w").map(String::as_str), Some("without"));
    assert_eq!(places.get("g"), None, "it gave way");
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_extender_that_is_gone_matters_only_to_its_own_pods() {
    let cluster = Cluster::start().await;
    cluster.node("n", json!({"annotations": {"example.com/gpus": "1"}})).await;
    cluster.pod("before", json!({"cpu": "1"}), None).await;
    cluster.until_at("before", "n").await;
    cluster.extender.abort();
    cluster.pod("plain", json!({"cpu": "1"}), None).await;
    cluster.until_at("plain", "n").await;
    cluster.pod("g", gpus("1"), None).await;
    cluster.until_refused("g", "Post \"http://127.0.0.1:").await;
    cluster.pod("after", json!({"cpu": "1"}), None).await;
    cluster.until_at("after", "n").await;
    cluster.stop().await;
}

//! Everything that can go wrong on the way to the API server does, by a seed,
//! and yet every pod is bound exactly once.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};
use steersman_apiserver::{ApiServer, Config};
use steersman_runtime::{Counters, Scheduling, run};
use tokio::time::{interval, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tower::{BoxError, ServiceExt, service_fn};

type Answer = Response<UnsyncBoxBody<Bytes, BoxError>>;

/// The way to the server.
struct Way {
    server: ApiServer,
    chance: Mutex<u64>,
    /// Bindings that the server carried out, by path.
    bound: Mutex<BTreeMap<String, usize>>,
    /// How often what went wrong.
    faults: Mutex<BTreeMap<&'static str, usize>>,
}

impl Way {
    /// A number below 1000.
    fn permille(&self) -> u64 {
        let mut state = self.chance.lock();
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        *state % 1000
    }

    fn fault(&self, name: &'static str) {
        *self.faults.lock().entry(name).or_default() += 1;
    }

    async fn go(&self, request: Request<Body>) -> Result<Answer, BoxError> {
        match self.permille() {
            0..50 => {
                self.fault("delay");
                // Real time: the way is slow at times.
                sleep(Duration::from_millis(self.permille() / 3)).await;
            }
            50..100 => {
                self.fault("lost request");
                return Err(reset());
            }
            100..120 => return Ok(self.refuse("429", StatusCode::TOO_MANY_REQUESTS)),
            120..150 => return Ok(self.refuse("500", StatusCode::INTERNAL_SERVER_ERROR)),
            150..170 => return Ok(self.refuse("409", StatusCode::CONFLICT)),
            170..180 => return Ok(self.refuse("410", StatusCode::GONE)),
            _ => {}
        }
        let path = request.uri().path().to_owned();
        let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        let response = self.server.service().oneshot(request).await?;
        if path.ends_with("/binding") && response.status().is_success() {
            *self.bound.lock().entry(path).or_default() += 1;
        }
        if !is_watch && self.permille() < 50 {
            self.fault("lost answer");
            return Err(reset());
        }
        let (head, body) = response.into_parts();
        let frames = body.into_data_stream().map(|data| data.map_err(BoxError::from));
        // A watch does not live for long.
        let left = if is_watch { 1 + usize::try_from(self.permille() / 200)? } else { usize::MAX };
        let cut = futures::stream::once(async { Err(reset()) });
        let frames = frames.take(left).chain(cut.take(usize::from(is_watch)));
        let body = StreamBody::new(frames.map(|data| data.map(http_body::Frame::data)));
        Ok(Response::from_parts(head, body.boxed_unsync()))
    }

    fn refuse(&self, name: &'static str, status: StatusCode) -> Answer {
        self.fault(name);
        let mut response =
            Response::new(Full::new(Bytes::new()).map_err(BoxError::from).boxed_unsync());
        *response.status_mut() = status;
        response
    }
}

fn reset() -> BoxError {
    io::Error::from(io::ErrorKind::ConnectionReset).into()
}

/// Sends a request past everything that goes wrong.
async fn send(server: &ApiServer, method: Method, path: &str, body: &Value) -> Value {
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json")
        .body(Body::from(body))
        .expect("the request is good");
    let response = server.service().oneshot(request).await.expect("the server answers");
    let bytes = response.into_body().collect().await.expect("the answer is whole").to_bytes();
    serde_json::from_slice(&bytes).expect("answers are JSON")
}

const PODS: &str = "/api/v1/namespaces/default/pods";
const N_PODS: usize = 300;
const N_NODES: usize = 10;

async fn create(server: &ApiServer) {
    let amounts = json!({"cpu": "3", "memory": "8Gi", "pods": "110"});
    for n in 0..N_NODES {
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": format!("n{n}")},
                          "status": {"capacity": amounts, "allocatable": amounts}});
        send(server, Method::POST, "/api/v1/nodes", &node).await;
    }
    // They fill the nodes completely.
    let container = json!({"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m"}}});
    for n in 0..N_PODS {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("p{n}")},
                         "spec": {"containers": [container]}});
        send(server, Method::POST, PODS, &pod).await;
    }
}

/// How many pods each node has; pods without one stand under the empty name.
async fn pods_by_node(server: &ApiServer) -> BTreeMap<String, usize> {
    let list = send(server, Method::GET, PODS, &Value::Null).await;
    let mut counts = BTreeMap::new();
    for pod in list["items"].as_array().into_iter().flatten() {
        let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
        *counts.entry(node.to_owned()).or_default() += 1;
    }
    counts
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_pod_is_bound_exactly_once_whatever_goes_wrong() {
    let resources = steersman_apikinds::resources();
    let server = ApiServer::new(Config { resources, ..Config::default() });
    server.load(steersman_apikinds::bootstrap(jiff::Timestamp::now()));
    let way = Arc::new(Way {
        server: server.clone(),
        chance: Mutex::new(0x5eed),
        bound: Mutex::default(),
        faults: Mutex::default(),
    });
    let service = service_fn({
        let way = way.clone();
        move |request| {
            let way = way.clone();
            async move { way.go(request).await }
        }
    });
    let client = Client::new(service, "default");
    let (shutdown, counters) = (CancellationToken::new(), Arc::new(Counters::default()));
    let scheduling = tokio::spawn({
        let (stop, counters) = (shutdown.clone(), counters.clone());
        async move {
            let registry = steersman_plugins::table::in_tree();
            let config = steersman_config::Config::default_for(&registry).expect("good defaults");
            let scheduling = Scheduling { counters, ..Scheduling::new(client, &config, &registry) };
            Box::pin(run(scheduling, stop)).await.expect("it runs until it is stopped")
        }
    });
    create(&server).await;
    let all_bound = async {
        let mut ticks = interval(Duration::from_millis(50));
        while pods_by_node(&server).await.contains_key("") {
            ticks.tick().await;
        }
    };
    let in_time = timeout(Duration::from_secs(120), all_bound).await;
    assert!(in_time.is_ok(), "{:?}, {:?}", counters.summary(), way.faults.lock());
    shutdown.cancel();
    timeout(Duration::from_secs(60), scheduling).await.expect("it stops").expect("no panic");

    let by_node = pods_by_node(&server).await;
    assert!(by_node.values().all(|n| *n == N_PODS / N_NODES), "{by_node:?}");
    assert_eq!(by_node.len(), N_NODES);
    let bound = way.bound.lock();
    assert_eq!(bound.len(), N_PODS);
    assert!(bound.values().all(|times| *times == 1), "{bound:?}");
    let faults = way.faults.lock();
    for name in ["delay", "lost request", "lost answer", "429", "500", "409"] {
        assert!(faults.contains_key(name), "no {name}: {faults:?}");
    }
}

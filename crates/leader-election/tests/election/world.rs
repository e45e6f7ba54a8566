//! Replicas, and what may happen to their connections.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use jiff::Timestamp;
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::Value;
use steersman_apiserver::{ApiServer, Config as ServerConfig};
use steersman_leader_election::{Clock, Config, Election, LockKind, Observer};
use tokio::time::Instant;
use tower::{BoxError, ServiceExt};

/// How a connection is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Weather {
    #[default]
    Fine,
    /// Nothing is ever answered, or arrives.
    Cut,
    /// Writes arrive, and answers to them are lost.
    LosesAnswers,
    /// The server cannot do it.
    Refuses,
    /// Everything takes that long.
    Slow(Duration),
}

/// A cluster that replicas compete in.
pub(crate) struct World {
    pub(crate) server: ApiServer,
    pub(crate) clock: Arc<TestClock>,
}

/// The connection of one replica.
#[derive(Clone, Default)]
pub(crate) struct Link {
    weather: Arc<Mutex<Weather>>,
    /// How many requests of each method were sent.
    sent: Arc<Mutex<BTreeMap<String, u32>>>,
}

impl Link {
    pub(crate) fn set(&self, weather: Weather) {
        *self.weather.lock() = weather;
    }

    pub(crate) fn sent(&self, method: &Method) -> u32 {
        self.sent.lock().get(method.as_str()).copied().unwrap_or_default()
    }
}

impl World {
    pub(crate) fn new() -> Self {
        let resources = steersman_apikinds::resources();
        let server = ApiServer::new(ServerConfig { resources, ..ServerConfig::default() });
        Self { server, clock: Arc::new(TestClock::new()) }
    }

    /// A client behind a connection.
    pub(crate) fn client(&self, link: &Link) -> Client {
        let (server, link) = (self.server.service(), link.clone());
        let service = tower::service_fn(move |request: Request<Body>| {
            let (server, link) = (server.clone(), link.clone());
            async move {
                let method = request.method().clone();
                *link.sent.lock().entry(method.to_string()).or_default() += 1;
                let weather = *link.weather.lock();
                match weather {
                    Weather::Cut => std::future::pending::<()>().await,
                    Weather::Refuses => return Ok(unavailable()),
                    // Real time: none passes, the tests pause it.
                    Weather::Slow(by) => tokio::time::sleep(by).await,
                    Weather::Fine | Weather::LosesAnswers => {}
                }
                let answer = server.oneshot(request).await.map_err(BoxError::from)?;
                if weather == Weather::LosesAnswers && method != Method::GET {
                    std::future::pending::<()>().await;
                }
                let (head, body) = answer.into_parts();
                let body = body.collect().await.map_err(BoxError::from)?.to_bytes();
                Ok::<_, BoxError>(Response::from_parts(head, Body::from(body.to_vec())))
            }
        });
        Client::new(service, "default")
    }

    pub(crate) fn election(&self, identity: &str, link: &Link) -> Election {
        self.election_for(LockKind::Leases, identity, link, Arc::new(()))
    }

    pub(crate) fn election_for(
        &self,
        kind: LockKind,
        identity: &str,
        link: &Link,
        observer: Arc<dyn Observer>,
    ) -> Election {
        let mut config = Config::lease("kube-system", "worker", identity);
        (config.kind, config.component) = (kind, "tester".to_owned());
        let election = Election::new(self.client(link), config).expect("it succeeds");
        election.with_clock(self.clock.clone()).with_observer(observer)
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        let request = Request::get(path).body(Vec::new()).expect("it succeeds");
        self.client(&Link::default()).request(request).await.expect("it succeeds")
    }

    /// The spec of the lease.
    pub(crate) async fn lease(&self) -> Value {
        self.get("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/worker").await["spec"]
            .take()
    }

    /// The messages of the events about the lock, in alphabetical order.
    pub(crate) async fn events(&self) -> Vec<String> {
        let list = self.get("/api/v1/namespaces/kube-system/events").await;
        let message = |event: &Value| {
            let (object, reason) =
                (&event["involvedObject"], event["reason"].as_str().expect("text"));
            let kind = object["kind"].as_str().expect("text");
            let name = object["name"].as_str().expect("text");
            let said = event["message"].as_str().expect("text");
            format!("{reason} {kind} {name}: {said}")
        };
        let mut messages: Vec<String> =
            list["items"].as_array().expect("a list").iter().map(message).collect();
        messages.sort();
        messages
    }
}

fn unavailable() -> Response<Body> {
    let mut response = Response::new(Body::from(b"no".to_vec()));
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    response
}

/// tokio's virtual time, and jumps that tokio's timers do not see: the machine,
/// or the process, was frozen.
#[derive(Debug)]
pub(crate) struct TestClock {
    start: Instant,
    jumped: Mutex<Duration>,
}

impl TestClock {
    fn new() -> Self {
        Self { start: Instant::now(), jumped: Mutex::default() }
    }

    pub(crate) fn jump(&self, by: Duration) {
        *self.jumped.lock() += by;
    }
}

impl Clock for TestClock {
    fn elapsed(&self) -> Duration {
        self.start.elapsed() + *self.jumped.lock()
    }

    fn wall(&self) -> Timestamp {
        "2026-01-01T00:00:00Z".parse::<Timestamp>().expect("it succeeds") + self.elapsed()
    }
}

/// Writes down what it is told.
#[derive(Default)]
pub(crate) struct Diary(pub(crate) Mutex<Vec<String>>);

impl Diary {
    pub(crate) fn entries(&self) -> Vec<String> {
        self.0.lock().clone()
    }
}

impl Observer for Diary {
    fn started_leading(&self) {
        self.0.lock().push("started".to_owned());
    }

    fn stopped_leading(&self) {
        self.0.lock().push("stopped".to_owned());
    }

    fn new_leader(&self, identity: &str) {
        self.0.lock().push(format!("leader {identity}"));
    }
}

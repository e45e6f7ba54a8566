//! The server: what it holds, and how it is asked in-process.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::header::{HeaderValue, USER_AGENT};
use http::{Request, Response};
use jiff::Timestamp;
use parking_lot::{Mutex, RwLock};
use serde_json::Value;
use steersman_apimachinery::resource::Resource;
use steersman_apimachinery::rules::View;
use tokio_util::sync::CancellationToken;

use crate::access::audit::Audit;
use crate::access::{Access, Authorization};
use crate::auth::{Auth, User};
use crate::clock::{Clock, SystemClock};
use crate::openapi::Documents;
use crate::registry::Registry;
use crate::rest::{self, Body};
use crate::store::{Store, key, range};
use crate::tokens::Signer;

/// What a server is made of.
pub struct Config {
    /// The resources it serves.
    pub resources: &'static [Resource],
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// Where uids and generated names come from: equal seeds and equal requests
    /// give equal names.
    pub seed: u64,
    /// How many changes of each resource are kept. A watch or a paged list that
    /// falls further behind has to start again.
    pub watch_window: usize,
    /// How long events are kept, in seconds.
    pub event_ttl_seconds: i64,
    /// What decides whether a request is allowed.
    pub authorization: Authorization,
    /// Who is told of each decision.
    pub audit: Option<Arc<dyn Audit>>,
}

impl Default for Config {
    /// No resources, the machine's clock, everything allowed, and the
    /// reference's lifetime of events: one hour.
    fn default() -> Self {
        Self {
            resources: &[],
            clock: Arc::new(SystemClock),
            seed: 0,
            watch_window: 8_192,
            event_ttl_seconds: 3_600,
            authorization: Authorization::default(),
            audit: None,
        }
    }
}

/// A handle on a server. Copies are handles on the same one.
#[derive(Clone)]
pub struct ApiServer {
    pub(crate) inner: Arc<Inner>,
}

/// What all handles share.
pub(crate) struct Inner {
    pub(crate) registry: Registry,
    pub(crate) resources: &'static [Resource],
    pub(crate) store: Store,
    pub(crate) documents: Documents,
    pub(crate) event_ttl_seconds: i64,
    pub(crate) access: Access,
    pub(crate) signer: Signer,
    /// How those are known who connect to the sockets that are served.
    pub(crate) auths: RwLock<Vec<Arc<Auth>>>,
    /// Held while objects are loaded and while garbage is collected: in between
    /// an object may be there before its owner.
    pub(crate) housekeeping: Mutex<()>,
    clock: Arc<dyn Clock>,
    seed: u64,
    drawn: AtomicU64,
}

/// The revision before the first write. Clients take 0 and 1 for special.
const FIRST_REVISION: u64 = 100;

impl ApiServer {
    /// An empty cluster with the namespaces that every cluster has.
    pub fn new(config: Config) -> Self {
        let registry = Registry::new(config.resources);
        let store = Store::new(registry.tables(), config.watch_window, FIRST_REVISION);
        let access = Access::new(config.authorization, config.audit, &registry);
        let inner = Inner {
            registry,
            resources: config.resources,
            store,
            documents: Documents::default(),
            event_ttl_seconds: config.event_ttl_seconds,
            access,
            signer: Signer::default(),
            auths: RwLock::default(),
            housekeeping: Mutex::new(()),
            clock: config.clock,
            seed: config.seed,
            drawn: AtomicU64::new(0),
        };
        let server = Self { inner: Arc::new(inner) };
        server.create_namespaces();
        server
    }

    /// The server as a service for clients in this process, which are trusted:
    /// their requests are those of `system:admin`.
    pub fn service(&self) -> LocalService {
        LocalService { server: self.clone(), user: Arc::new(User::admin()), agent: None }
    }

    /// Removes what is no longer wanted, for as long as it is polled: objects
    /// whose owners are gone, what is in namespaces that are being deleted,
    /// events that have outlived their time.
    pub async fn run_garbage_collector(&self) {
        crate::gc::run(self.clone()).await;
    }
}

impl Inner {
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// A new number. The sequence is that of the seed.
    pub(crate) fn random(&self) -> u64 {
        let drawn = self.drawn.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        // SplitMix64: every step of the counter gives an unrelated number.
        let mut z = self.seed.wrapping_add(drawn.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A new uid, in the form of a random UUID.
    pub(crate) fn uid(&self) -> String {
        let (a, b) = (self.random(), self.random());
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            a >> 32,
            (a >> 16) & 0xffff,
            a & 0xfff,
            0x8000 | (b >> 50),
            b & 0xffff_ffff_ffff,
        )
    }
}

impl View for Inner {
    fn get(&self, group: &str, plural: &str, namespace: &str, name: &str) -> Option<Arc<Value>> {
        let table = self.registry.table(group, plural)?;
        self.store.get(table, &key(namespace, name)).map(|found| found.value.clone())
    }

    fn list(&self, group: &str, plural: &str, namespace: Option<&str>) -> Vec<Arc<Value>> {
        let Some(table) = self.registry.table(group, plural) else { return Vec::new() };
        let objects = self.store.snapshot(table).objects;
        range(&objects, namespace, None).map(|(_, object)| object.value.clone()).collect()
    }
}

/// A server as an in-process service.
#[derive(Clone)]
pub struct LocalService {
    server: ApiServer,
    user: Arc<User>,
    agent: Option<HeaderValue>,
}

impl LocalService {
    /// The service for a client that is this user and may do no more: whatever
    /// decides about requests from outside decides about its requests, too.
    #[must_use]
    pub fn acting_as(self, user: User) -> Self {
        Self { user: Arc::new(user), ..self }
    }

    /// The service for a client of this name: what it writes is its in
    /// `managedFields`, unless a request says otherwise.
    #[must_use]
    pub fn named(self, agent: &'static str) -> Self {
        Self { agent: Some(HeaderValue::from_static(agent)), ..self }
    }
}

impl<B> tower::Service<Request<B>> for LocalService
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        if let Some(agent) = &self.agent {
            request.headers_mut().entry(USER_AGENT).or_insert_with(|| agent.clone());
        }
        let (server, user) = (self.server.clone(), self.user.clone());
        Box::pin(async move {
            let never = CancellationToken::new();
            Ok(rest::answer(&server, Some(&user), request, &never).await)
        })
    }
}

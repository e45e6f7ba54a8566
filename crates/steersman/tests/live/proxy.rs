//! A reverse proxy that misbehaves on purpose, by a seed.
//!
//! It stands between a client and an embedded API server and delays, resets,
//! refuses and cuts what passes; on demand it lets nothing pass at all. What it
//! let through is counted, so that a test can say what really happened, and who
//! did it: each client that a test wants to tell from others gets a proxy.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use parking_lot::Mutex;
use serde_json::Value;
use steersman_apiserver::ApiServer;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

type Body = http_body_util::combinators::UnsyncBoxBody<Bytes, BoxError>;
type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// What goes wrong with one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    Nothing,
    /// The request arrives late.
    Delay(Duration),
    /// The connection breaks and the request has no effect.
    LoseRequest,
    /// The request has its effect and the connection breaks before the answer.
    LoseAnswer,
    /// The request has no effect and is refused.
    Refuse(StatusCode),
    /// The answer breaks off after so many pieces.
    Cut(u64),
}

/// The proxy. It stops when dropped.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    state: Arc<State>,
    stop: CancellationToken,
}

struct State {
    server: ApiServer,
    random: Mutex<Random>,
    /// Of 100 requests, how many something goes wrong with.
    percent: u64,
    counts: Mutex<Counts>,
    /// Whether anything passes.
    is_up: watch::Sender<bool>,
}

/// What happened.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    /// Bindings that the API server carried out, by the path of the request.
    pub(crate) bound: BTreeMap<String, usize>,
    /// Faults by kind.
    pub(crate) faults: BTreeMap<&'static str, usize>,
    pub(crate) requests: usize,
    /// Requests for bindings that arrived here, whatever became of them.
    pub(crate) bindings_asked: usize,
    /// Writes of leases that the API server carried out.
    pub(crate) leases: Vec<LeaseWrite>,
}

/// A lease was created or replaced.
#[derive(Clone, Debug)]
pub(crate) struct LeaseWrite {
    /// The resource version that it got by that.
    pub(crate) revision: u64,
    /// Whom it names since.
    pub(crate) holder: String,
    /// Before the API server was asked.
    pub(crate) asked: Instant,
    /// When it had answered.
    pub(crate) answered: Instant,
}

impl Proxy {
    /// Starts a proxy on a port of the kernel's choice.
    pub(crate) async fn start(server: ApiServer, seed: u64, percent: u64) -> std::io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let state = Arc::new(State {
            server,
            random: Mutex::new(Random(seed)),
            percent,
            counts: Mutex::default(),
            is_up: watch::Sender::new(true),
        });
        let stop = CancellationToken::new();
        tokio::spawn(stop.clone().run_until_cancelled_owned(accept(listener, Arc::clone(&state))));
        Ok(Self { address, state, stop })
    }

    pub(crate) fn counts(&self) -> Counts {
        self.state.counts.lock().clone()
    }

    /// Breaks all connections, and each new one at once, until it is healed.
    pub(crate) fn cut(&self) {
        self.state.is_up.send_replace(false);
    }

    pub(crate) fn heal(&self) {
        self.state.is_up.send_replace(true);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn accept(listener: TcpListener, state: Arc<State>) {
    while let Ok((stream, _)) = listener.accept().await {
        let state = Arc::clone(&state);
        tokio::spawn(async move {
            let mut is_up = state.is_up.subscribe();
            let service = service_fn(move |request| answer(Arc::clone(&state), request));
            let builder = auto::Builder::new(TokioExecutor::new());
            tokio::select! {
                biased;
                _ = is_up.wait_for(|is_up| !is_up) => {}
                _ = builder.serve_connection(TokioIo::new(stream), service) => {}
            }
        });
    }
}

/// An error ends the connection.
async fn answer(state: Arc<State>, request: Request<Incoming>) -> Result<Response<Body>, BoxError> {
    if request.uri().path().ends_with("/binding") {
        state.counts.lock().bindings_asked += 1;
    }
    let is_watch = request.uri().query().is_some_and(|query| query.contains("watch="));
    let fault = state.draw(is_watch);
    state.count(fault);
    match fault {
        Fault::Refuse(status) => return Ok(refusal(status)),
        Fault::LoseRequest => return Err("the proxy loses the request".into()),
        // Real time: the way is slow at times.
        Fault::Delay(time) => tokio::time::sleep(time).await,
        Fault::Nothing | Fault::LoseAnswer | Fault::Cut(_) => {}
    }
    let (parts, body) = request.into_parts();
    let body = Full::new(body.collect().await?.to_bytes());
    let request = Request::from_parts(parts, body);
    // A task of its own: what has come this far is carried out, and noted, also
    // when the connection breaks meanwhile.
    let response = tokio::spawn(async move { state.pass(request).await }).await??;
    match fault {
        Fault::LoseAnswer => Err("the proxy loses the answer".into()),
        Fault::Cut(pieces) => Ok(response.map(|body| cut(body, pieces))),
        _ => Ok(response),
    }
}

/// Lets some pieces of a body pass and then breaks the connection.
fn cut<B>(body: B, pieces: u64) -> Body
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let pieces = usize::try_from(pieces).unwrap_or(usize::MAX);
    let passed = body.into_data_stream().take(pieces).map(|piece| match piece {
        Ok(piece) => Ok(Frame::data(piece)),
        Err(error) => Err(error.into()),
    });
    let broken = futures::stream::once(async { Err(BoxError::from("the proxy cuts the answer")) });
    Body::new(StreamBody::new(passed.chain(broken)))
}

fn refusal(status: StatusCode) -> Response<Body> {
    let reason = match status.as_u16() {
        409 => "Conflict",
        410 => "Expired",
        429 => "TooManyRequests",
        _ => "InternalError",
    };
    let body = format!(
        r#"{{"kind":"Status","apiVersion":"v1","metadata":{{}},"status":"Failure","message":"refused by the proxy","reason":"{reason}","code":{}}}"#,
        status.as_u16()
    );
    let body = Full::from(body).map_err(|never: Infallible| match never {});
    let mut response = Response::new(body.boxed_unsync());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert("content-type", http::HeaderValue::from_static("application/json"));
    if status == StatusCode::TOO_MANY_REQUESTS {
        headers.insert("retry-after", http::HeaderValue::from_static("1"));
    }
    response
}

impl State {
    /// Has the API server answer, and notes what it did.
    async fn pass(&self, request: Request<Full<Bytes>>) -> Result<Response<Body>, BoxError> {
        let path = request.uri().path().to_owned();
        let writes_lease = path.starts_with("/apis/coordination.k8s.io/")
            && matches!(*request.method(), Method::POST | Method::PUT);
        let asked = Instant::now();
        let response = self.server.service().oneshot(request).await;
        let response = response.map_err(|error| format!("the API server failed: {error}"))?;
        let answered = Instant::now();
        let (head, body) = response.into_parts();
        let body = body.map_err(BoxError::from);
        if head.status.is_success() && path.ends_with("/binding") {
            *self.counts.lock().bound.entry(path).or_default() += 1;
        } else if head.status.is_success() && writes_lease {
            let body = body.collect().await?.to_bytes();
            let lease: Value = serde_json::from_slice(&body)?;
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            self.counts.lock().leases.push(LeaseWrite {
                revision: text(&lease["metadata"]["resourceVersion"]).parse()?,
                holder: text(&lease["spec"]["holderIdentity"]),
                asked,
                answered,
            });
            let body = Full::from(body).map_err(|never: Infallible| match never {});
            return Ok(Response::from_parts(head, body.boxed_unsync()));
        }
        Ok(Response::from_parts(head, body.boxed_unsync()))
    }

    fn draw(&self, is_watch: bool) -> Fault {
        let mut random = self.random.lock();
        // Most watches break sooner or later; requests go wrong now and then.
        if is_watch && random.below(100) < 80 {
            return Fault::Cut(1 + random.below(200));
        }
        if random.below(100) >= self.percent {
            return Fault::Nothing;
        }
        const REFUSALS: [StatusCode; 4] = [
            StatusCode::CONFLICT,
            StatusCode::GONE,
            StatusCode::TOO_MANY_REQUESTS,
            StatusCode::INTERNAL_SERVER_ERROR,
        ];
        match random.below(8) {
            0 | 1 => Fault::Delay(Duration::from_millis(random.below(300))),
            2 => Fault::LoseRequest,
            3 => Fault::LoseAnswer,
            kind => Fault::Refuse(REFUSALS[kind as usize - 4]),
        }
    }

    fn count(&self, fault: Fault) {
        let name = match fault {
            Fault::Nothing => "none",
            Fault::Delay(_) => "delay",
            Fault::LoseRequest => "lost request",
            Fault::LoseAnswer => "lost answer",
            Fault::Refuse(_) => "refusal",
            Fault::Cut(_) => "cut",
        };
        let mut counts = self.counts.lock();
        counts.requests += 1;
        *counts.faults.entry(name).or_default() += 1;
    }
}

/// SplitMix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// A number from 0 up to, not including, `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end
    }
}

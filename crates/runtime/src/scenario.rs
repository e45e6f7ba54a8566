//! A scripted API server for tests: expects requests in an order, and answers
//! each as written.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::pending;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};
use tower::{BoxError, service_fn};

use crate::api::{Api, Limiter};

/// The script and how far it is.
pub(crate) struct Scenario {
    steps: Mutex<VecDeque<Step>>,
    seen: Mutex<Vec<Seen>>,
    /// Requests that nobody expected.
    unexpected: Mutex<Vec<String>>,
    start: Instant,
    progress: mpsc::UnboundedSender<()>,
    progressed: tokio::sync::Mutex<mpsc::UnboundedReceiver<()>>,
}

/// A request that came.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) at: Duration,
    pub(crate) path: String,
    pub(crate) content_type: String,
    pub(crate) body: Value,
}

/// One expected request, as `METHOD part of the path and query`, which may have
/// several parts, each of which has to be there.
pub(crate) struct Step {
    expected: &'static str,
    answer: Answer,
}

pub(crate) enum Answer {
    /// A complete answer.
    Json(u16, Value),
    /// The same with a Retry-After of so many seconds.
    RetryAfter(u16, u64),
    /// A body in pieces.
    Stream(Vec<Piece>),
    /// The connection breaks before the answer.
    Break,
    /// No answer ever comes.
    Silence,
}

/// A piece of a body.
#[derive(Clone)]
pub(crate) enum Piece {
    Line(Value),
    Text(&'static str),
    Wait(Duration),
    Break,
    /// The body stays open and nothing more comes.
    Silence,
}

type ResponseBody = UnsyncBoxBody<Bytes, BoxError>;

pub(crate) fn step(expected: &'static str, answer: Answer) -> Step {
    Step { expected, answer }
}

/// A watch event.
pub(crate) fn event(kind: &str, object: Value) -> Piece {
    Piece::Line(json!({"type": kind, "object": object}))
}

/// A `Status` that refuses.
pub(crate) fn refusal(code: u16, reason: &str) -> Answer {
    let message = format!("refused: {reason}");
    Answer::Json(
        code,
        json!({"kind": "Status", "code": code, "reason": reason, "message": message}),
    )
}

impl Scenario {
    pub(crate) fn new(steps: Vec<Step>) -> Arc<Self> {
        let (progress, progressed) = mpsc::unbounded_channel();
        Arc::new(Self {
            steps: Mutex::new(steps.into()),
            seen: Mutex::default(),
            unexpected: Mutex::default(),
            start: Instant::now(),
            progress,
            progressed: tokio::sync::Mutex::new(progressed),
        })
    }

    /// A client without a limit.
    pub(crate) fn api(self: &Arc<Self>) -> Arc<Api> {
        let this = self.clone();
        let service = service_fn(move |request: Request<Body>| {
            let this = this.clone();
            async move { this.answer(request).await }
        });
        Arc::new(Api::new(kube::Client::new(service, "default"), Limiter::new(None, 0)))
    }

    /// Waits until the script is at its end.
    pub(crate) async fn finished(&self) {
        let mut progressed = self.progressed.lock().await;
        while !self.steps.lock().is_empty() {
            let waited = timeout(Duration::from_secs(3600), progressed.recv()).await;
            assert!(
                waited.is_ok() && self.unexpected.lock().is_empty(),
                "stuck before {:?}; unexpected: {:?}",
                self.steps.lock().front().map(|step| step.expected),
                self.unexpected.lock()
            );
        }
    }

    /// The requests, in order. All that were expected came, and no others.
    #[track_caller]
    pub(crate) fn requests(&self) -> Vec<Seen> {
        assert_eq!(*self.unexpected.lock(), Vec::<String>::new(), "unexpected requests");
        let left: Vec<_> = self.steps.lock().iter().map(|step| step.expected).collect();
        assert_eq!(left, Vec::<&str>::new(), "requests that did not come");
        self.seen.lock().clone()
    }

    async fn answer(&self, request: Request<Body>) -> Result<Response<ResponseBody>, BoxError> {
        let path = request.uri().path_and_query().map(ToString::to_string).unwrap_or_default();
        let line = format!("{} {path}", request.method());
        let header = request.headers().get(http::header::CONTENT_TYPE);
        let content_type = header.and_then(|v| v.to_str().ok()).unwrap_or_default().to_owned();
        let body = request.into_body().collect_bytes().await?;
        let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
        self.seen.lock().push(Seen { at: self.start.elapsed(), path, content_type, body });
        let fits = |step: &Step| step.expected.split(' ').all(|part| line.contains(part));
        let step = {
            let mut steps = self.steps.lock();
            if steps.front().is_some_and(fits) { steps.pop_front() } else { None }
        };
        let Some(step) = step else {
            self.unexpected.lock().push(line);
            let _ = self.progress.send(());
            return pending().await;
        };
        let _ = self.progress.send(());
        respond(step.answer).await
    }
}

async fn respond(answer: Answer) -> Result<Response<ResponseBody>, BoxError> {
    let whole = |value: &Value| {
        Full::new(Bytes::from(value.to_string())).map_err(|e: Infallible| match e {}).boxed_unsync()
    };
    let builder = Response::builder();
    Ok(match answer {
        Answer::Json(code, value) => builder.status(code).body(whole(&value))?,
        Answer::RetryAfter(code, seconds) => {
            let builder = builder.status(code).header(http::header::RETRY_AFTER, seconds);
            builder
                .body(Full::new(Bytes::new()).map_err(|e: Infallible| match e {}).boxed_unsync())?
        }
        Answer::Stream(pieces) => builder.status(200).body(in_pieces(pieces))?,
        Answer::Break => return Err(io::Error::from(io::ErrorKind::ConnectionReset).into()),
        Answer::Silence => return pending().await,
    })
}

fn in_pieces(pieces: Vec<Piece>) -> ResponseBody {
    let frames = stream::unfold(VecDeque::from(pieces), |mut pieces| async move {
        loop {
            let data = match pieces.pop_front()? {
                Piece::Line(value) => format!("{value}\n"),
                Piece::Text(text) => text.to_owned(),
                Piece::Wait(wait) => {
                    sleep(wait).await;
                    continue;
                }
                Piece::Break => {
                    let error: BoxError = io::Error::from(io::ErrorKind::ConnectionReset).into();
                    return Some((Err(error), VecDeque::new()));
                }
                Piece::Silence => return pending().await,
            };
            return Some((Ok(hyper_frame(data)), pieces));
        }
    });
    StreamBody::new(frames).boxed_unsync()
}

fn hyper_frame(data: String) -> http_body::Frame<Bytes> {
    http_body::Frame::data(Bytes::from(data))
}

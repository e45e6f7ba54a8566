//! Counts requests by client, verb and resource, and the time that the client's
//! threads spend on each. In-process that is the API server's own work, since it
//! works where it is asked; through a socket it is what sending and receiving
//! costs. It is time on the clock: on a busy machine the shares say more than
//! the seconds.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Method, Request, Response};
use http_body::{Body, Frame, SizeHint};
use parking_lot::Mutex;
use tower::Service;

/// Who asked for what.
pub(crate) type Kind = (&'static str, String);

/// What became of requests of one kind.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Calls {
    pub(crate) n: u64,
    /// Those that were answered with an error.
    pub(crate) n_refused: u64,
    pub(crate) busy: Duration,
}

/// Shared by all clients.
#[derive(Clone, Default)]
pub(crate) struct Meter(Arc<Mutex<BTreeMap<Kind, Calls>>>);

impl Meter {
    pub(crate) fn reset(&self) {
        self.0.lock().clear();
    }

    pub(crate) fn calls(&self) -> BTreeMap<Kind, Calls> {
        self.0.lock().clone()
    }

    fn add(&self, kind: &Kind, note: impl FnOnce(&mut Calls)) {
        let mut calls = self.0.lock();
        match calls.get_mut(kind) {
            Some(known) => note(known),
            None => note(calls.entry(kind.clone()).or_default()),
        }
    }
}

/// A service whose requests are counted.
#[derive(Clone)]
pub(crate) struct Metered<S> {
    inner: S,
    meter: Meter,
    who: &'static str,
}

impl<S> Metered<S> {
    pub(crate) fn new(inner: S, meter: Meter, who: &'static str) -> Self {
        Self { inner, meter, who }
    }
}

impl<S, B, R> Service<Request<B>> for Metered<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Future: Send + 'static,
    S::Error: 'static,
    R: Body<Data = Bytes> + Send + Unpin + 'static,
{
    type Response = Response<MeteredBody<R>>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Self::Response, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let kind = (self.who, what(&request));
        let meter = self.meter.clone();
        let mut busy = Timed::new(self.inner.call(request).boxed());
        Box::pin(async move {
            let answer = (&mut busy).await;
            let refused = answer.as_ref().map_or(true, |answer| !answer.status().is_success());
            meter.add(&kind, |calls| {
                calls.n += 1;
                calls.n_refused += u64::from(refused);
                calls.busy += busy.busy;
            });
            answer.map(|answer| answer.map(|inner| MeteredBody { inner, meter, kind }))
        })
    }
}

/// `verb resource[/subresource]`.
fn what<B>(request: &Request<B>) -> String {
    let query = request.uri().query().unwrap_or_default();
    let verb = match *request.method() {
        Method::GET if query.contains("watch=") => "watch",
        Method::GET => "get",
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        _ => "other",
    };
    let mut parts = request.uri().path().trim_matches('/').split('/');
    let after_version = if parts.next() == Some("api") { 1 } else { 2 };
    let mut parts = parts.skip(after_version).peekable();
    let mut first = parts.next().unwrap_or_default();
    if first == "namespaces" && parts.peek().is_some() {
        parts.next();
        first = parts.next().unwrap_or(first);
    }
    match parts.nth(1) {
        Some(subresource) => format!("{verb} {first}/{subresource}"),
        None => format!("{verb} {first}"),
    }
}

/// A future that knows for how long it was polled.
struct Timed<F> {
    inner: F,
    busy: Duration,
}

impl<F> Timed<F> {
    fn new(inner: F) -> Self {
        Self { inner, busy: Duration::ZERO }
    }
}

impl<F: Future + Unpin> Future for Timed<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let start = Instant::now();
        let polled = self.inner.poll_unpin(cx);
        self.busy += start.elapsed();
        polled
    }
}

/// A body whose frames are part of the request's time.
pub(crate) struct MeteredBody<B> {
    inner: B,
    meter: Meter,
    kind: Kind,
}

impl<B: Body<Data = Bytes> + Unpin> Body for MeteredBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let start = Instant::now();
        let polled = Pin::new(&mut self.inner).poll_frame(cx);
        self.meter.add(&self.kind, |calls| calls.busy += start.elapsed());
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

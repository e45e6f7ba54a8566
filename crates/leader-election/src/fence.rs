//! Keeps writes in that were not sent in time.

use std::future::poll_fn;
use std::task::{Context, Poll};

use futures::future::{BoxFuture, FutureExt, TryFutureExt, ready};
use http::{Method, Request};
use thiserror::Error;
use tower::{BoxError, Layer, Service};

use crate::leadership::Leadership;

/// A layer for an HTTP client, such as one of `kube::client::ClientBuilder`:
/// reads always pass, writes only while the term runs. The question is asked for
/// each request when it is sent, so a process that was frozen between a decision
/// and its request does not act on it any more. It is asked again whenever a
/// request goes on: one that still waits for a connection or a token when the term
/// ends is not sent either, and one that has been sent is not waited for.
#[derive(Clone, Debug)]
pub struct Fence {
    leadership: Leadership,
}

/// A service behind a [`Fence`].
#[derive(Clone, Debug)]
pub struct Fenced<S> {
    leadership: Leadership,
    inner: S,
}

/// The term is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FencedOut {
    /// A write was not begun.
    #[error("not sent: this process is not the leader any more")]
    Unsent,
    /// A write was under way. It may have arrived.
    #[error("given up before an answer: this process is not the leader any more")]
    Unanswered,
}

impl Fence {
    pub(crate) fn new(leadership: Leadership) -> Self {
        Self { leadership }
    }
}

impl<S> Layer<S> for Fence {
    type Service = Fenced<S>;

    fn layer(&self, inner: S) -> Fenced<S> {
        Fenced { leadership: self.leadership.clone(), inner }
    }
}

impl<S, B> Service<Request<B>> for Fenced<S>
where
    S: Service<Request<B>>,
    S::Error: Into<BoxError> + 'static,
    S::Future: Send + 'static,
    S::Response: Send + 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<S::Response, BoxError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        if !writes(request.method()) {
            return self.inner.call(request).map_err(Into::into).boxed();
        }
        if !self.leadership.still_valid() {
            return ready(Err(FencedOut::Unsent.into())).boxed();
        }
        let leadership = self.leadership.clone();
        let mut answer = Box::pin(self.inner.call(request));
        let fenced = poll_fn(move |cx| {
            if !leadership.still_valid() {
                return Poll::Ready(Err(FencedOut::Unanswered.into()));
            }
            answer.as_mut().poll(cx).map_err(Into::into)
        });
        fenced.boxed()
    }
}

fn writes(method: &Method) -> bool {
    !matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

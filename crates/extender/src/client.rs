//! Sends questions and waits for answers, never for longer than allowed.

use std::sync::mpsc::{self, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue, PROXY_AUTHORIZATION};
use http::{Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::runtime::Handle;
use tokio::time::timeout;

use crate::error::{CallError, chain};
use crate::handshake;
use crate::permission::Permission;
use crate::route::Route;
use crate::text::harmless;

/// An answer may have so many bytes.
pub(crate) const LONGEST_ANSWER: usize = 64 << 20;
/// The caller waits so much longer than the call may take, in which the call
/// ends by itself unless the threads that carry it out are all busy.
const GRACE: Duration = Duration::from_millis(500);
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// The connections to one extender.
#[derive(Clone)]
pub(crate) struct Client {
    http: HttpClient<HttpsConnector<Route>, Full<Bytes>>,
    route: Route,
    io: Handle,
    limit: Duration,
    traceparent: Option<fn() -> Option<String>>,
}

/// An answer on its way.
pub(crate) struct Call {
    answer: mpsc::Receiver<Result<Bytes, CallError>>,
    url: String,
    limit: Duration,
}

/// What to send.
pub(crate) struct Question {
    /// For messages.
    pub(crate) verb: String,
    pub(crate) url: Uri,
    pub(crate) body: Vec<u8>,
}

impl Client {
    pub(crate) fn new(
        connector: HttpsConnector<Route>,
        route: Route,
        io: Handle,
        limit: Duration,
        traceparent: Option<fn() -> Option<String>>,
    ) -> Self {
        let http = HttpClient::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .build(connector);
        Self { http, route, io, limit, traceparent }
    }

    /// Begins to ask.
    pub(crate) fn start(&self, question: Question) -> Call {
        let (tell, answer) = sync_channel(1);
        let url = question.url.to_string();
        let posting = self.clone().post(self.request(question));
        self.io.spawn(report(posting, tell));
        Call { answer, url, limit: self.limit }
    }

    /// Asks for something that changes the world, while that is permitted, and
    /// waits without blocking the thread.
    pub(crate) async fn write(
        &self,
        question: Question,
        permission: Option<&Permission>,
    ) -> Result<Bytes, CallError> {
        let url = question.url.to_string();
        let (posting, permission) =
            (self.clone().post(self.request(question)), permission.cloned());
        let asked = url.clone();
        let posting = async move {
            match permission {
                Some(permission) => permission.guard(&asked, posting).await,
                None => posting.await,
            }
        };
        self.io.spawn(posting).await.unwrap_or(Err(CallError::Stopped { url }))
    }

    fn request(&self, question: Question) -> Asking {
        let Question { verb, url, body } = question;
        let mut request = Request::new(Full::new(Bytes::from(body)));
        *request.method_mut() = Method::POST;
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(authorization) = self.route.proxy_authorization(&url) {
            headers.insert(PROXY_AUTHORIZATION, authorization);
        }
        let trace = self.traceparent.and_then(|trace| trace());
        if let Some(trace) = trace.and_then(|trace| HeaderValue::try_from(trace).ok()) {
            headers.insert(TRACEPARENT, trace);
        }
        let text = url.to_string();
        *request.uri_mut() = url;
        Asking { request, verb, url: text }
    }

    async fn post(self, asking: Asking) -> Result<Bytes, CallError> {
        let Asking { request, verb, url } = asking;
        let limit = self.limit;
        let exchange = exchange(&self.http, request, &verb, &url);
        match timeout(limit, Box::pin(exchange)).await {
            Ok(answer) => answer,
            Err(_) => Err(CallError::TimedOut { url, limit }),
        }
    }
}

struct Asking {
    request: Request<Full<Bytes>>,
    verb: String,
    url: String,
}

async fn report(
    posting: impl Future<Output = Result<Bytes, CallError>>,
    tell: SyncSender<Result<Bytes, CallError>>,
) {
    // Whoever has given up does not want to know.
    let _ = tell.send(posting.await);
}

async fn exchange(
    http: &HttpClient<HttpsConnector<Route>, Full<Bytes>>,
    request: Request<Full<Bytes>>,
    verb: &str,
    url: &str,
) -> Result<Bytes, CallError> {
    // Some of it comes from the other side, such as names in a certificate.
    let transport = |error: &(dyn std::error::Error + 'static)| CallError::Transport {
        url: url.to_owned(),
        why: harmless(&handshake::in_words(error).unwrap_or_else(|| chain(error))),
    };
    let response = http.request(request).await.map_err(|error| transport(&error))?;
    let status = response.status();
    if status != StatusCode::OK {
        let hint = if status.is_redirection() { ", redirects are not followed" } else { "" };
        let (verb, url) = (verb.to_owned(), url.to_owned());
        return Err(CallError::Status { verb, url, code: status.as_u16(), hint });
    }
    match Limited::new(response.into_body(), LONGEST_ANSWER).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => {
            Err(CallError::TooLong { url: url.to_owned(), limit: LONGEST_ANSWER })
        }
        Err(error) => Err(transport(&*error)),
    }
}

impl Call {
    /// Waits for the answer; blocks the thread.
    pub(crate) fn wait(self) -> Result<Bytes, CallError> {
        let Self { answer, url, limit } = self;
        match answer.recv_timeout(limit + GRACE) {
            Ok(answer) => answer,
            Err(RecvTimeoutError::Timeout) => Err(CallError::TimedOut { url, limit }),
            Err(RecvTimeoutError::Disconnected) => Err(CallError::Stopped { url }),
        }
    }
}

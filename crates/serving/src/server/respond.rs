//! The answer to one request.

use std::io::Write;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::FutureExt;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, ALLOW, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE,
    EXPECT, HeaderName, RETRY_AFTER, VARY, WARNING, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Body, Incoming};
use rustls::pki_types::{CertificateDer, UnixTime};

use super::activity::UnderWay;
use super::{Access, Shared};
use crate::authn::Unknown;
use crate::page::{PageError, PageRequest, Reply};
use crate::refusal::Refusal;
use crate::review::{Deed, Verdict};
use crate::site::MAX_SETTING;

/// Smaller answers are not compressed.
const MIN_GZIP: usize = 1024;
/// Larger ones are compressed on a thread that may block.
const MAX_INLINE_GZIP: usize = 32 * 1024;

/// The other side of a connection.
#[derive(Default)]
pub(super) struct Peer {
    /// The client's certificate and those below it.
    pub(super) certificates: Vec<CertificateDer<'static>>,
}

pub(super) async fn respond(
    request: Request<Incoming>,
    peer: &Peer,
    under_way: &mut UnderWay<'_>,
    shared: &Shared,
) -> Response<Full<Bytes>> {
    let method = request.method().clone();
    let path = request.uri().path().to_owned();
    let gzip = accepts_gzip(request.headers());
    let answering = AssertUnwindSafe(answer(request, peer, under_way, shared)).catch_unwind();
    let outcome = match tokio::time::timeout(shared.limits.request, answering).await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(_)) => Err(Refusal::Panicked),
        Err(_) => Err(Refusal::TimedOut),
    };
    let (reply, refusal) = match outcome {
        Ok(reply) => (reply, None),
        Err(refusal) => (refusal.reply(), Some(refusal)),
    };
    note(&method, &path, &reply, refusal.as_ref());
    write(reply, refusal.as_ref(), &method, gzip).await
}

fn note(method: &Method, path: &str, reply: &Reply, refusal: Option<&Refusal>) {
    let code = reply.status.as_u16();
    match refusal {
        Some(Refusal::Page(error @ PageError::Failed(_))) => {
            tracing::warn!(path, error = crate::chain(error), "a page cannot be shown");
        }
        Some(Refusal::Panicked) => tracing::error!(path, "a page panicked"),
        Some(Refusal::TimedOut) => tracing::warn!(path, "a page was not ready in time"),
        _ => tracing::trace!(%method, path, code, "served"),
    }
}

/// First who it is, then whether they may, then what there is.
async fn answer(
    request: Request<Incoming>,
    peer: &Peer,
    under_way: &mut UnderWay<'_>,
    shared: &Shared,
) -> Result<Reply, Refusal> {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path();
    admit(&parts.method, path, &parts.headers, peer, &shared.access).await?;
    under_way.admit();
    let body = match shared.site.takes_body(&parts.method, path) {
        true => read(&parts.headers, body, shared.limits.request / 2).await?,
        false => Bytes::new(),
    };
    let accept = accept(&parts.headers);
    let page = PageRequest::new(parts.uri.query().unwrap_or_default(), accept.as_deref());
    shared.site.answer(&parts.method, path, page, &body).await
}

async fn admit(
    method: &Method,
    path: &str,
    headers: &HeaderMap,
    peer: &Peer,
    access: &Access,
) -> Result<(), Refusal> {
    let Access::Delegated { authenticator, authorizer } = access else {
        return Ok(());
    };
    // Without a look at credentials: probes must not depend on the API server.
    if authorizer.is_always_allowed(path) {
        return Ok(());
    }
    let known = authenticator.user(headers, &peer.certificates, UnixTime::now()).await;
    let user = known.map_err(|unknown| match unknown {
        Unknown::Refused => Refusal::Unauthorized,
        Unknown::CannotTell(error) => {
            tracing::warn!(error = crate::chain(&error), "cannot find out who asks");
            Refusal::CannotTell
        }
    })?;
    let deed = Deed { verb: method.as_str().to_ascii_lowercase(), path: path.to_owned() };
    match authorizer.verdict(&user, deed.clone()).await {
        Ok(Verdict::Allowed) => Ok(()),
        Ok(Verdict::Refused(reason)) => Err(Refusal::forbidden(&user, &deed, &reason)),
        Err(error) => {
            tracing::warn!(error = crate::chain(&error), "cannot find out who may read");
            Err(Refusal::CannotTell)
        }
    }
}

async fn read(headers: &HeaderMap, body: Incoming, limit: Duration) -> Result<Bytes, Refusal> {
    // Whoever asks first whether to send has not sent it yet, and is told no.
    if headers.contains_key(EXPECT) && body.size_hint().lower() > MAX_SETTING as u64 {
        return Err(Refusal::TooLarge);
    }
    let mut body = body;
    let reading = Limited::new(&mut body, MAX_SETTING).collect();
    match tokio::time::timeout(limit, reading).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            // A client that is cut while it sends does not hear why.
            let rest = async { while let Some(Ok(_)) = body.frame().await {} };
            let _ = tokio::time::timeout(limit / 2, rest).await;
            Err(Refusal::TooLarge)
        }
        Ok(Err(_)) => Err(Refusal::BrokenOff),
        Err(_) => Err(Refusal::TooSlow),
    }
}

/// All lines of the header as one.
fn accept(headers: &HeaderMap) -> Option<String> {
    let lines: Vec<&str> =
        headers.get_all(ACCEPT).iter().filter_map(|line| line.to_str().ok()).collect();
    (!lines.is_empty()).then(|| lines.join(","))
}

fn accepts_gzip(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let is_gzip = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        let is_refused = parts.any(|part| {
            part.strip_prefix("q=").is_some_and(|q| q.parse::<f32>().is_ok_and(|q| q <= 0.0))
        });
        is_gzip && !is_refused
    })
}

async fn write(
    reply: Reply,
    refusal: Option<&Refusal>,
    method: &Method,
    gzip: bool,
) -> Response<Full<Bytes>> {
    let Reply { status, content_type, warning, body } = reply;
    let mut headers = HeaderMap::new();
    let mut set = |name: HeaderName, value: &str| {
        // Values of ours are plain ASCII; one that is not is left out.
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    };
    set(CONTENT_TYPE, &content_type);
    set(X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(CACHE_CONTROL, "no-cache, private");
    set(VARY, "Accept, Accept-Encoding");
    if let Some(warning) = warning {
        set(WARNING, &format!("299 - {warning:?}"));
    }
    if let Some(allow) = refusal.and_then(Refusal::allow) {
        set(ALLOW, allow);
    }
    if status == StatusCode::SERVICE_UNAVAILABLE {
        set(RETRY_AFTER, "1");
    }
    let (body, is_packed) = match gzip && body.len() >= MIN_GZIP {
        true => compress(body).await,
        false => (body, false),
    };
    if is_packed {
        set(CONTENT_ENCODING, "gzip");
    }
    set(CONTENT_LENGTH, &body.len().to_string());
    let body = if *method == Method::HEAD { Bytes::new() } else { body };
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

/// The body packed, and whether it is.
async fn compress(body: Bytes) -> (Bytes, bool) {
    if body.len() <= MAX_INLINE_GZIP {
        return (pack(&body), true);
    }
    let kept = body.clone();
    match tokio::task::spawn_blocking(move || pack(&body)).await {
        Ok(packed) => (packed, true),
        Err(_) => (kept, false),
    }
}

fn pack(body: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::with_capacity(body.len() / 4), Compression::fast());
    encoder.write_all(body).expect("writing to memory cannot fail");
    encoder.finish().expect("writing to memory cannot fail").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_used_when_asked_for() {
        let check = |value: &'static str, expected| {
            let headers =
                HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static(value))]);
            assert_eq!(accepts_gzip(&headers), expected, "{value}");
        };
        check("gzip", true);
        check("deflate, GZIP;q=0.5", true);
        check("gzip;q=0", false);
        check("br", false);
        assert!(!accepts_gzip(&HeaderMap::new()));
    }
}

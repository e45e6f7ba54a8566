//! Answers.

use std::convert::Infallible;

use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use serde_json::Value;
use steersman_apimachinery::error::ApiError;

use super::negotiate::Syntax;

/// The body of an answer.
pub type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Lists longer than this are sent in pieces.
const PIECE: usize = 64 * 1024;

/// Any bytes.
pub(crate) fn bytes(status: u16, content_type: &'static str, bytes: Bytes) -> Response<Body> {
    let mut response = Response::new(Full::new(bytes).boxed_unsync());
    *response.status_mut() =
        StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// A JSON value.
pub(crate) fn json(status: u16, value: &Value) -> Response<Body> {
    bytes(status, "application/json", Bytes::from(value.to_string()))
}

/// A value in the syntax that was asked for.
pub(crate) fn value(status: u16, value: &Value, syntax: Syntax) -> Response<Body> {
    match syntax {
        Syntax::Json => json(status, value),
        Syntax::Yaml => match serde_saphyr::to_string(value) {
            Ok(text) => bytes(status, "application/yaml", Bytes::from(text)),
            Err(failed) => error(&ApiError::internal(format!("cannot write YAML: {failed}"))),
        },
    }
}

/// Plain text.
pub(crate) fn text(status: u16, text: String) -> Response<Body> {
    bytes(status, "text/plain; charset=utf-8", Bytes::from(text))
}

/// A refusal.
pub(crate) fn error(error: &ApiError) -> Response<Body> {
    let mut response = json(error.code, &error.to_status());
    let details = error.details.as_ref();
    let retry = details.and_then(|details| details.get("retryAfterSeconds"));
    if let Some(seconds) = retry.and_then(Value::as_i64) {
        response.headers_mut().insert("retry-after", HeaderValue::from(seconds));
    }
    response
}

/// JSON that is made of pieces, put together while it is sent.
pub(crate) fn pieces(pieces: impl Iterator<Item = Bytes> + Send + 'static) -> Response<Body> {
    let mut pieces = pieces.fuse();
    let chunks = std::iter::from_fn(move || {
        let mut chunk = BytesMut::from(pieces.next()?.as_ref());
        while chunk.len() < PIECE
            && let Some(piece) = pieces.next()
        {
            chunk.extend_from_slice(&piece);
        }
        Some(Ok(Frame::data(chunk.freeze())))
    });
    let body = StreamBody::new(futures::stream::iter(chunks));
    let mut response = Response::new(body.boxed_unsync());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Adds the header for a warning; one that cannot stand in a header is left out.
pub(crate) fn warn(response: &mut Response<Body>, warning: &str) {
    let quoted = warning.replace('\\', "\\\\").replace('"', "\\\"");
    if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{quoted}\"")) {
        response.headers_mut().append("warning", value);
    }
}

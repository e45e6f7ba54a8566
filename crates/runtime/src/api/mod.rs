//! Requests to the API server: paths and bodies are JSON, every request waits
//! for its turn and has a time limit, and every failure is a [`CallError`].

mod error;
mod limiter;

use std::time::Duration;

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{Method, Request, Response};
use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::Value;
use steersman_api::key::ObjectKey;
use tokio::time::timeout;

pub(crate) use error::{CallError, Refusal};
pub(crate) use limiter::Limiter;

/// Talks to one API server.
pub(crate) struct Api {
    client: kube::Client,
    limiter: Limiter,
}

/// One request.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    method: Method,
    /// With the query.
    path: String,
    body: Option<(&'static str, Value)>,
    /// How long it may take.
    within: Duration,
}

/// How long most requests may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

impl Call {
    pub(crate) fn get(path: String) -> Self {
        Self { method: Method::GET, path, body: None, within: PATIENCE }
    }

    pub(crate) fn post(path: String, body: Value) -> Self {
        let body = Some(("application/json", body));
        Self { method: Method::POST, path, body, within: PATIENCE }
    }

    /// A strategic merge patch.
    pub(crate) fn patch(path: String, body: Value) -> Self {
        let body = Some(("application/strategic-merge-patch+json", body));
        Self { method: Method::PATCH, path, body, within: PATIENCE }
    }

    /// A JSON merge patch.
    pub(crate) fn merge_patch(path: String, body: Value) -> Self {
        let body = Some(("application/merge-patch+json", body));
        Self { method: Method::PATCH, path, body, within: PATIENCE }
    }

    pub(crate) fn delete(path: String, options: Value) -> Self {
        let body = Some(("application/json", options));
        Self { method: Method::DELETE, path, body, within: PATIENCE }
    }

    /// The same request with another time limit.
    #[must_use]
    pub(crate) fn within(self, within: Duration) -> Self {
        Self { within, ..self }
    }

    fn request(&self) -> Result<Request<Body>, CallError> {
        let unsendable = |error: &dyn std::error::Error| {
            // Names come from the API server: this is no reason to panic.
            CallError::Refused(Refusal {
                code: 400,
                reason: "BadRequest".to_owned(),
                message: format!("the request cannot be written: {error}"),
                retry_after: None,
            })
        };
        let builder = Request::builder()
            .method(self.method.clone())
            .uri(&self.path)
            .header(ACCEPT, "application/json");
        let (builder, body) = match &self.body {
            None => (builder, Body::empty()),
            Some((content_type, body)) => {
                let bytes = serde_json::to_vec(body).map_err(|error| unsendable(&error))?;
                (builder.header(CONTENT_TYPE, *content_type), Body::from(bytes))
            }
        };
        builder.body(body).map_err(|error| unsendable(&error))
    }
}

impl Api {
    pub(crate) fn new(client: kube::Client, limiter: Limiter) -> Self {
        Self { client, limiter }
    }

    /// Sends a request and reads the whole answer.
    pub(crate) async fn json(&self, call: Call) -> Result<Value, CallError> {
        let bytes = self.bytes(call).await?;
        serde_json::from_slice(&bytes).map_err(|error| CallError::Garbled(error.to_string()))
    }

    /// Sends a request and reads the whole answer as it is.
    pub(crate) async fn bytes(&self, call: Call) -> Result<bytes::Bytes, CallError> {
        let request = call.request()?;
        self.limiter.turn().await;
        let whole = async {
            let response = self.send(request).await?;
            let body = response.into_body().collect().await;
            body.map(http_body_util::Collected::to_bytes)
                .map_err(|error| CallError::Unreachable(error::chain(&error)))
        };
        timeout(call.within, whole).await.unwrap_or(Err(CallError::Timeout(call.within)))
    }

    /// Sends a request; the answer's body is still to come. The time limit is
    /// for its head.
    pub(crate) async fn open(&self, call: Call) -> Result<Response<Body>, CallError> {
        let request = call.request()?;
        self.limiter.turn().await;
        let head = self.send(request);
        timeout(call.within, head).await.unwrap_or(Err(CallError::Timeout(call.within)))
    }

    async fn send(&self, request: Request<Body>) -> Result<Response<Body>, CallError> {
        let sent = self.client.send(request).await;
        let response = sent.map_err(|error| CallError::Unreachable(error::of_client(&error)))?;
        if response.status().is_success() {
            return Ok(response);
        }
        let (head, body) = response.into_parts();
        // What an error says is a bonus; its code counts even without.
        let body = body.collect().await.map(http_body_util::Collected::to_bytes);
        let body = body.unwrap_or_default();
        let refusal = Refusal::from_answer(head.status.as_u16(), &head.headers, &body);
        Err(CallError::Refused(refusal))
    }
}

/// Where the API serves a pod, or one of its subresources.
pub(crate) fn pod_path(key: &ObjectKey, subresource: &str) -> String {
    format!("/api/v1/namespaces/{}/pods/{}{subresource}", key.namespace, key.name)
}

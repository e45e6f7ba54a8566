//! A server for tests, with a clock that they set and requests in one line.

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::auth::User;
use crate::clock::Clock;
use crate::rest::Body;
use crate::server::{ApiServer, Config};

pub(crate) const JSON: &str = "application/json";
pub(crate) const MERGE: &str = "application/merge-patch+json";
pub(crate) const STRATEGIC: &str = "application/strategic-merge-patch+json";
pub(crate) const JSON_PATCH: &str = "application/json-patch+json";
pub(crate) const APPLY: &str = "application/apply-patch+yaml";
pub(crate) const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

/// A clock that stands still until it is moved.
pub(crate) struct HandClock(Mutex<Timestamp>);

impl HandClock {
    pub(crate) fn advance(&self, seconds: i64) {
        let mut now = self.0.lock();
        *now += SignedDuration::from_secs(seconds);
    }
}

impl Clock for HandClock {
    fn now(&self) -> Timestamp {
        *self.0.lock()
    }
}

/// A server and its clock.
pub(crate) struct Harness {
    pub(crate) server: ApiServer,
    pub(crate) clock: Arc<HandClock>,
}

/// An answer that has been read to its end.
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) warnings: Vec<String>,
    pub(crate) content_type: String,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| {
            panic!("{error}: {}", String::from_utf8_lossy(&self.body));
        })
    }

    /// The object, if the request went well.
    #[track_caller]
    pub(crate) fn ok(&self) -> Value {
        let json = self.json();
        assert!(self.code < 300, "{}: {json:#}", self.code);
        json
    }

    /// `code reason: message`, for a request that did not.
    #[track_caller]
    pub(crate) fn refusal(&self) -> String {
        let json = self.json();
        assert!(self.code >= 400, "{}: {json:#}", self.code);
        assert_eq!(json["code"], self.code, "{json:#}");
        let text = |field: &str| json[field].as_str().unwrap_or("").to_owned();
        format!("{} {}: {}", self.code, text("reason"), text("message"))
    }
}

impl Harness {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut Config)) -> Self {
        let start: Timestamp = "2024-01-01T00:00:00Z".parse().unwrap();
        let clock = Arc::new(HandClock(Mutex::new(start)));
        let mut config = Config {
            resources: steersman_apikinds::resources(),
            clock: clock.clone(),
            seed: 7,
            ..Config::default()
        };
        change(&mut config);
        Self { server: ApiServer::new(config), clock }
    }

    /// Sends a request; `headers` beside the content type.
    pub(crate) async fn send(
        &self,
        method: &str,
        uri: &str,
        content_type: &str,
        body: impl Into<Bytes>,
        headers: &[(&str, &str)],
    ) -> Response<Body> {
        self.send_as(&User::admin(), method, uri, content_type, body, headers).await
    }

    /// Sends a request of a user.
    async fn send_as(
        &self,
        user: &User,
        method: &str,
        uri: &str,
        content_type: &str,
        body: impl Into<Bytes>,
        headers: &[(&str, &str)],
    ) -> Response<Body> {
        let mut request = Request::builder().method(method).uri(uri);
        request = request.header("content-type", content_type).header("user-agent", "tests/1.0");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(body.into())).unwrap();
        self.server.service().acting_as(user.clone()).oneshot(request).await.unwrap()
    }

    /// Sends a request and reads the answer.
    pub(crate) async fn ask(
        &self,
        method: &str,
        uri: &str,
        content_type: &str,
        body: impl Into<Bytes>,
        headers: &[(&str, &str)],
    ) -> Answer {
        self.ask_as(&User::admin(), method, uri, content_type, body, headers).await
    }

    /// Sends a request of a user and reads the answer.
    pub(crate) async fn ask_as(
        &self,
        user: &User,
        method: &str,
        uri: &str,
        content_type: &str,
        body: impl Into<Bytes>,
        headers: &[(&str, &str)],
    ) -> Answer {
        let response = self.send_as(user, method, uri, content_type, body, headers).await;
        let text = |value: &http::HeaderValue| value.to_str().unwrap().to_owned();
        Answer {
            code: response.status().as_u16(),
            warnings: response.headers().get_all("warning").iter().map(text).collect(),
            content_type: response.headers().get("content-type").map(text).unwrap_or_default(),
            body: response.into_body().collect().await.unwrap().to_bytes(),
        }
    }

    pub(crate) async fn get(&self, uri: &str) -> Answer {
        self.ask("GET", uri, JSON, "", &[]).await
    }

    pub(crate) async fn get_as(&self, uri: &str, accept: &str) -> Answer {
        self.ask("GET", uri, JSON, "", &[("accept", accept)]).await
    }

    pub(crate) async fn post(&self, uri: &str, body: &Value) -> Answer {
        self.ask("POST", uri, JSON, body.to_string(), &[]).await
    }

    pub(crate) async fn put(&self, uri: &str, body: &Value) -> Answer {
        self.ask("PUT", uri, JSON, body.to_string(), &[]).await
    }

    pub(crate) async fn patch(&self, uri: &str, content_type: &str, body: &Value) -> Answer {
        self.ask("PATCH", uri, content_type, body.to_string(), &[]).await
    }

    pub(crate) async fn delete(&self, uri: &str) -> Answer {
        self.ask("DELETE", uri, JSON, "", &[]).await
    }

    /// Creates config maps in the default namespace.
    pub(crate) async fn config_maps(&self, names: &[&str]) {
        for name in names {
            self.post(CONFIG_MAPS, &config_map(name)).await.ok();
        }
    }
}

pub(crate) const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
pub(crate) const PODS: &str = "/api/v1/namespaces/default/pods";

pub(crate) fn config_map(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": name, "labels": { "name": name } },
        "data": { "key": "value" },
    })
}

pub(crate) fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "labels": { "app": "web" } },
        "spec": { "containers": [{ "name": "c", "image": "i" }] },
    })
}

/// The values at a pointer, of a list's items.
pub(crate) fn each(list: &Value, pointer: &str) -> Vec<String> {
    let items = list["items"].as_array().unwrap();
    let at = |item: &Value| item.pointer(pointer).cloned().unwrap_or_default();
    items.iter().map(at).map(|value| value.as_str().unwrap_or("").to_owned()).collect()
}

pub(crate) fn names(list: &Value) -> Vec<String> {
    each(list, "/metadata/name")
}

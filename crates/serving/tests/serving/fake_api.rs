//! A small API server: token reviews, access reviews, and the configmap that
//! says whom the cluster trusts.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// What it knows and has been asked.
#[derive(Default)]
pub(crate) struct State {
    /// Users by token.
    pub(crate) tokens: BTreeMap<String, &'static str>,
    /// What is allowed: user, verb, path.
    pub(crate) allowed: BTreeSet<(&'static str, &'static str, &'static str)>,
    /// The configmap's data.
    pub(crate) published: Option<BTreeMap<String, String>>,
    /// Statuses with which the next questions are answered, before any other.
    pub(crate) failures: Vec<u16>,
    /// Answer nothing any more.
    pub(crate) forbidden: bool,
    pub(crate) token_reviews: usize,
    /// The specs of the access reviews.
    pub(crate) access_reviews: Vec<Value>,
}

/// It stops with the test.
pub(crate) struct FakeApi {
    pub(crate) state: Arc<Mutex<State>>,
    pub(crate) client: kube::Client,
    _serving: JoinSet<()>,
}

impl FakeApi {
    pub(crate) async fn start() -> Self {
        let state: Arc<Mutex<State>> = Arc::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut serving = JoinSet::new();
        let shared = state.clone();
        serving.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let state = shared.clone();
                connections.spawn(async move {
                    let service = hyper::service::service_fn(move |request| {
                        let state = state.clone();
                        async move { Ok::<_, Infallible>(answer(request, &state).await) }
                    });
                    let _ = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        let url = format!("http://{address}").parse().unwrap();
        let client = kube::Client::try_from(kube::Config::new(url)).unwrap();
        Self { state, client, _serving: serving }
    }
}

async fn answer(request: Request<Incoming>, state: &Mutex<State>) -> Response<Full<Bytes>> {
    let path = request.uri().path().to_owned();
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let mut state = state.lock();
    if state.forbidden {
        return failure(403);
    }
    if let Some(code) = state.failures.pop() {
        return failure(code);
    }
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    match path.as_str() {
        "/apis/authentication.k8s.io/v1/tokenreviews" => token_review(body, &mut state),
        "/apis/authorization.k8s.io/v1/subjectaccessreviews" => access_review(body, &mut state),
        "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication" => {
            match &state.published {
                Some(data) => {
                    reply(200, &json!({"kind": "ConfigMap", "apiVersion": "v1", "data": data}))
                }
                None => failure(404),
            }
        }
        _ => failure(404),
    }
}

fn token_review(mut review: Value, state: &mut State) -> Response<Full<Bytes>> {
    state.token_reviews += 1;
    let token = review["spec"]["token"].as_str().unwrap_or_default();
    review["status"] = match state.tokens.get(token) {
        Some(user) => {
            json!({"authenticated": true, "user": {"username": user, "uid": "u1", "groups": ["g1"]}})
        }
        None => json!({"authenticated": false, "error": "invalid bearer token"}),
    };
    reply(201, &review)
}

fn access_review(mut review: Value, state: &mut State) -> Response<Full<Bytes>> {
    let spec = review["spec"].clone();
    let part = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let asked = &spec["nonResourceAttributes"];
    let (user, verb, path) = (part(&spec["user"]), part(&asked["verb"]), part(&asked["path"]));
    let allowed = state.allowed.iter().any(|rule| *rule == (&*user, &*verb, &*path));
    state.access_reviews.push(spec);
    review["status"] = json!({"allowed": allowed, "reason": if allowed { "a rule" } else { "" }});
    reply(201, &review)
}

fn failure(code: u16) -> Response<Full<Bytes>> {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "a failure of the test's", "reason": "Unknown", "code": code,
    });
    reply(code, &status)
}

fn reply(code: u16, body: &Value) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body.to_string())));
    *response.status_mut() = StatusCode::from_u16(code).unwrap();
    response.headers_mut().insert("content-type", "application/json".parse().unwrap());
    response
}

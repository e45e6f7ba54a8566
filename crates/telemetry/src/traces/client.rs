//! The HTTP client that carries spans to the collector.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::{ConfigBuilderExt, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use opentelemetry_http::{HttpClient, HttpError};
use parking_lot::Mutex;
use rustls::{ClientConfig, RootCertStore};
use tokio::runtime::Handle;
use tokio::time::{Instant, timeout};

use super::{Endpoint, Error};

/// Collectors answer with little.
const MAX_REPLY: usize = 64 << 10;
/// A collector that stays away is worth a line so often.
const SILENCE: Duration = Duration::from_secs(60);

type Connection = legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

pub(super) struct Client {
    connection: Connection,
    /// Requests run here: the exporter's own thread has no reactor.
    io: Handle,
    patience: Duration,
    /// When the last complaint was, while the collector does not take spans.
    complained: Mutex<Option<Instant>>,
}

impl Client {
    pub(super) fn new(endpoint: &Endpoint, io: Handle, patience: Duration) -> Result<Self, Error> {
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls(endpoint)?)
            .https_or_http()
            .enable_http1()
            .build();
        let connection = legacy::Client::builder(TokioExecutor::new()).build(connector);
        Ok(Self { connection, io, patience, complained: Mutex::new(None) })
    }

    fn tell(&self, trouble: Option<&str>) {
        let mut complained = self.complained.lock();
        let now = Instant::now();
        match (trouble, *complained) {
            (None, None) => {}
            (None, Some(_)) => {
                *complained = None;
                tracing::info!("the collector takes spans again");
            }
            (Some(_), Some(last)) if now.duration_since(last) < SILENCE => {}
            (Some(trouble), _) => {
                *complained = Some(now);
                tracing::warn!(error = trouble, "spans cannot be sent and are dropped");
            }
        }
    }
}

/// Our provider by name: a program may have set none, or another.
fn tls(endpoint: &Endpoint) -> Result<ClientConfig, Error> {
    let provider = rustls::crypto::ring::default_provider();
    let config = ClientConfig::builder_with_provider(provider.into())
        .with_safe_default_protocol_versions()
        .expect("ring serves the default versions of TLS");
    Ok(match endpoint.is_tls() {
        true => config.with_native_roots().map_err(Error::Certificates)?.with_no_client_auth(),
        // Nothing but http will be asked for, and reading certificates takes time.
        false => config.with_root_certificates(RootCertStore::empty()).with_no_client_auth(),
    })
}

#[async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let reply = self.connection.request(request.map(Full::new));
        let exchange = async move {
            let (head, body) = reply.await?.into_parts();
            let body = Limited::new(body, MAX_REPLY).collect().await?.to_bytes();
            Ok::<_, HttpError>(Response::from_parts(head, body))
        };
        let patience = self.patience;
        let sent = self.io.spawn(async move { timeout(patience, exchange).await });
        let reply = match sent.await {
            Ok(Ok(reply)) => reply,
            Ok(Err(_)) => Err("no reply in time".into()),
            // The end of the program.
            Err(ended) => Err(ended.into()),
        };
        match &reply {
            Ok(reply) if reply.status().is_success() => self.tell(None),
            Ok(reply) => self.tell(Some(&format!("the collector answers {}", reply.status()))),
            Err(error) => self.tell(Some(&with_causes(&**error))),
        }
        reply
    }
}

fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

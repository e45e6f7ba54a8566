//! An HTTPS client that can do odd things.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Request};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::client::ResolvesClientCert;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, RootCertStore, SignatureScheme};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::pki::Pair;

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The message of a `Status` object.
    pub(crate) fn message(&self) -> String {
        let status: serde_json::Value = serde_json::from_slice(&self.body).unwrap();
        assert_eq!(status["code"], self.status);
        status["message"].as_str().unwrap().to_owned()
    }
}

/// Whom the client trusts, and who it is.
#[derive(Clone)]
pub(crate) struct Client {
    address: SocketAddr,
    config: ClientConfig,
    name: ServerName<'static>,
}

impl Client {
    pub(crate) fn new(address: SocketAddr, authority_pem: &str) -> Self {
        Self::with_versions(address, authority_pem, None, rustls::ALL_VERSIONS)
    }

    pub(crate) fn with_versions(
        address: SocketAddr,
        authority_pem: &str,
        identity: Option<&Pair>,
        versions: &[&'static rustls::SupportedProtocolVersion],
    ) -> Self {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(authority_pem.as_bytes()) {
            roots.add(certificate.unwrap()).unwrap();
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .unwrap()
            .with_root_certificates(roots);
        let config = match identity {
            Some(pair) => builder
                .with_client_auth_cert(
                    vec![CertificateDer::from_pem_slice(pair.certificate.as_bytes()).unwrap()],
                    PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap(),
                )
                .unwrap(),
            None => builder.with_no_client_auth(),
        };
        Self { address, config, name: ServerName::IpAddress(address.ip().into()) }
    }

    /// Shows something that is no certificate.
    pub(crate) fn with_noise(mut self, pair: &Pair) -> Self {
        let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap();
        let key = rustls::crypto::ring::sign::any_supported_type(&key).unwrap();
        let noise = vec![CertificateDer::from(b"noise".to_vec())];
        self.config.client_auth_cert_resolver = Arc::new(Always(CertifiedKey::new(noise, key)));
        self
    }

    pub(crate) fn named(mut self, name: &str) -> Self {
        self.name = ServerName::try_from(name.to_owned()).unwrap();
        self
    }

    pub(crate) async fn connect(&self) -> std::io::Result<TlsStream<TcpStream>> {
        let stream = TcpStream::connect(self.address).await?;
        let connector = TlsConnector::from(Arc::new(self.config.clone()));
        connector.connect(self.name.clone(), stream).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(request("GET", path, &[])).await
    }

    pub(crate) async fn get_with(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        self.send(request("GET", path, headers)).await
    }

    /// One request over HTTP/1.1.
    pub(crate) async fn send(&self, request: Request<Full<Bytes>>) -> Answer {
        let io = TokioIo::new(self.connect().await.unwrap());
        let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
        let connection = tokio::spawn(connection);
        let answer = collect(sender.send_request(request).await.unwrap()).await;
        connection.abort();
        answer
    }

    /// Several requests at once over one connection of HTTP/2.
    pub(crate) async fn send_http2(&self, paths: &[&str]) -> Vec<Answer> {
        let mut client = self.clone();
        client.config.alpn_protocols = vec![b"h2".to_vec()];
        let stream = client.connect().await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        let executor = TokioExecutor::new();
        let handshake = hyper::client::conn::http2::handshake(executor, TokioIo::new(stream));
        let (sender, connection) = handshake.await.unwrap();
        let connection = tokio::spawn(connection);
        let all =
            paths.iter().map(|path| {
                let mut sender = sender.clone();
                let uri = format!("https://{}{path}", self.address);
                async move {
                    collect(sender.send_request(request("GET", &uri, &[])).await.unwrap()).await
                }
            });
        let answers = futures::future::join_all(all).await;
        connection.abort();
        answers
    }
}

#[derive(Debug)]
struct Always(CertifiedKey);

impl ResolvesClientCert for Always {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(Arc::new(self.0.clone()))
    }

    fn has_certs(&self) -> bool {
        true
    }
}

pub(crate) fn request(method: &str, uri: &str, headers: &[(&str, &str)]) -> Request<Full<Bytes>> {
    let mut builder = Request::builder().method(method).uri(uri);
    if !uri.starts_with("https:") {
        builder = builder.header("host", "localhost");
    }
    for (name, value) in headers {
        builder = builder.header(*name, *value);
    }
    builder.body(Full::default()).unwrap()
}

async fn collect(response: http::Response<hyper::body::Incoming>) -> Answer {
    let (parts, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    Answer { status: parts.status.as_u16(), headers: parts.headers, body }
}

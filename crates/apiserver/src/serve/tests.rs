use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::{TokioExecutor, TokioIo};
use jiff::Timestamp;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::access::Authorization;
use crate::auth::{Auth, User};
use crate::harness::{CONFIG_MAPS, Harness};
use crate::tls::{ClientIdentity, Identity, Tls};

/// Tests end, even if what they wait for never comes.
const LIMIT: Duration = Duration::from_secs(20);

struct Served {
    harness: Harness,
    address: std::net::SocketAddr,
    stop: oneshot::Sender<()>,
    ended: tokio::task::JoinHandle<std::io::Result<()>>,
}

async fn serve(tls: Tls, auth: Auth) -> Served {
    serve_on(Harness::new(), tls, auth).await
}

async fn serve_on(harness: Harness, tls: Tls, auth: Auth) -> Served {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let server = harness.server.clone();
    let ended = tokio::spawn(async move {
        let shutdown = async move { drop(stopped.await) };
        server.serve(listener, tls, auth, shutdown).await
    });
    Served { harness, address, stop, ended }
}

fn request(uri: &str, token: &str) -> Request<Empty<Bytes>> {
    let request = Request::builder().uri(uri).header("host", "localhost");
    let request = request.header("authorization", format!("Bearer {token}"));
    request.body(Empty::new()).unwrap()
}

#[tokio::test]
async fn tls_with_either_http_version_and_tokens() {
    let identity = Identity::generate(&["example.test".to_owned()], Timestamp::now()).unwrap();
    let auth = Auth::tokens([("good".to_owned(), User::admin())]);
    let served = serve(identity.tls().unwrap(), auth).await;
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(identity.ca_pem.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    for (protocol, name) in [
        (&b"h2"[..], "localhost"),
        (b"http/1.1", "127.0.0.1"),
        (b"h2", "example.test"),
        (b"http/1.1", "kubernetes.default.svc"),
    ] {
        let mut config = config.clone();
        config.alpn_protocols = vec![protocol.to_vec()];
        let connector = TlsConnector::from(Arc::new(config));
        let stream = TcpStream::connect(served.address).await.unwrap();
        let name = ServerName::try_from(name).unwrap();
        let stream = connector.connect(name, stream).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(protocol));
        let io = TokioIo::new(stream);
        let mut codes = Vec::new();
        let cases = [("/version", "bad"), ("/api", "bad"), ("/api", "good"), ("/livez", "")];
        if protocol == b"h2" {
            let (mut client, connection) =
                hyper::client::conn::http2::handshake(TokioExecutor::new(), io).await.unwrap();
            tokio::spawn(connection);
            for (uri, token) in cases {
                let answer = client.send_request(request(uri, token)).await.unwrap();
                codes.push(answer.status().as_u16());
            }
        } else {
            let (mut client, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
            tokio::spawn(connection);
            for (uri, token) in cases {
                let answer = client.send_request(request(uri, token)).await.unwrap();
                codes.push(answer.status().as_u16());
                answer.into_body().collect().await.unwrap();
            }
        }
        assert_eq!(codes, [200, 401, 200, 200], "{protocol:?}");
    }
    served.stop.send(()).unwrap();
    timeout(LIMIT, served.ended).await.unwrap().unwrap().unwrap();
}

#[tokio::test]
async fn who_connects_is_known_by_certificate_by_token_or_not_at_all() {
    let now = Timestamp::now();
    let identity = Identity::generate(&[], now).unwrap();
    let harness = Harness::with(|config| config.authorization = Authorization::Rbac);
    let policy = steersman_apikinds::rbac_policy(now);
    assert!(harness.server.load(policy).iter().all(Result::is_ok));
    let auth = Auth::tokens([("good".to_owned(), User::new("bob", [""; 0]))]);
    let served = serve_on(harness, identity.tls().unwrap(), auth).await;
    let of_another = Identity::generate(&[], now).unwrap();
    let scheduler = identity.client("system:kube-scheduler", None, now).unwrap();
    let master = identity.client("root", Some("system:masters"), now).unwrap();
    let stranger = of_another.client("root", Some("system:masters"), now).unwrap();
    for (client, token, expected) in [
        (None, "", [401, 401, 401, 401]),
        (None, "bad", [401, 401, 401, 401]),
        (None, "none", [200, 403, 403, 403]),
        (None, "good", [200, 200, 403, 403]),
        (Some(&scheduler), "none", [200, 200, 200, 403]),
        // The certificate comes first.
        (Some(&scheduler), "bad", [200, 200, 200, 403]),
        (Some(&master), "none", [200, 200, 200, 200]),
        (Some(&stranger), "none", [0, 0, 0, 0]),
    ] {
        let mut codes = [0; 4];
        let uris = ["/version", "/api", "/api/v1/pods", "/api/v1/secrets"];
        if let Ok(mut connection) = connect(&served, &identity, client).await {
            for (code, uri) in codes.iter_mut().zip(uris) {
                let mut request = request(uri, token);
                if token == "none" {
                    request.headers_mut().remove("authorization");
                }
                let Ok(answer) = connection.send_request(request).await else { break };
                *code = answer.status().as_u16();
                answer.into_body().collect().await.unwrap();
            }
        }
        assert_eq!(codes, expected, "{token}");
    }
    served.stop.send(()).unwrap();
    timeout(LIMIT, served.ended).await.unwrap().unwrap().unwrap();
}

type Client = hyper::client::conn::http1::SendRequest<Empty<Bytes>>;

/// Connects to a server, perhaps with a certificate.
async fn connect(
    served: &Served,
    identity: &Identity,
    client: Option<&ClientIdentity>,
) -> Result<Client, Box<dyn std::error::Error>> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(identity.ca_pem.as_bytes())?)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots);
    let config = match client {
        None => config.with_no_client_auth(),
        Some(client) => config.with_client_auth_cert(
            vec![CertificateDer::from_pem_slice(client.cert_pem.as_bytes())?],
            PrivateKeyDer::from_pem_slice(client.key_pem.as_bytes())?,
        )?,
    };
    let stream = TcpStream::connect(served.address).await?;
    let name = ServerName::try_from("localhost")?;
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
    let (client, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    Ok(client)
}

#[tokio::test]
async fn a_watch_ends_when_the_server_does() {
    let served = serve(Tls::Off, Auth::trusting()).await;
    served.harness.config_maps(&["a"]).await;
    let stream = TcpStream::connect(served.address).await.unwrap();
    let (mut client, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    let connection = tokio::spawn(connection);
    let watch = request(&format!("{CONFIG_MAPS}?watch=1"), "");
    let mut body = client.send_request(watch).await.unwrap().into_body();
    let first = timeout(LIMIT, body.frame()).await.unwrap().unwrap().unwrap();
    let event: Value = serde_json::from_slice(&first.into_data().unwrap()).unwrap();
    assert_eq!(event["object"]["metadata"]["name"], "a");
    served.stop.send(()).unwrap();
    assert!(timeout(LIMIT, body.frame()).await.unwrap().is_none());
    timeout(LIMIT, served.ended).await.unwrap().unwrap().unwrap();
    timeout(LIMIT, connection).await.unwrap().unwrap().unwrap();
    assert!(TcpStream::connect(served.address).await.is_err());
}

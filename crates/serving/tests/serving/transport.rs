//! Certificates, versions, ports, the end.

use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use steersman_serving::{
    Access, Certificate, MinVersion, Server, ServerError, ServerOptions, Site, SniPair, TlsError,
    TlsOptions, Transport,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use crate::bench::{Bench, Gate, Gated, PATIENCE, site, write_pair};
use crate::client::Client;
use crate::pki::{Authority, Directory};

fn tls(options: &mut ServerOptions) -> &mut TlsOptions {
    match &mut options.transport {
        Transport::Tls(tls) => tls,
        Transport::Plain => panic!("the bench serves TLS"),
    }
}

/// The certificate that the server shows.
async fn shown(client: &Client) -> Vec<u8> {
    let stream = client.connect().await.unwrap();
    stream.get_ref().1.peer_certificates().unwrap()[0].to_vec()
}

fn der(pem: &str) -> Vec<u8> {
    CertificateDer::from_pem_slice(pem.as_bytes()).unwrap().to_vec()
}

async fn bind(options: TlsOptions) -> Result<Server, ServerError> {
    let mut server = ServerOptions::new("127.0.0.1:0".parse().unwrap());
    server.transport = Transport::Tls(options);
    Server::bind(server).await
}

#[tokio::test]
async fn certificates_follow_their_files() {
    let bench =
        Bench::open(site(), |options| tls(options).reload_every = Duration::from_millis(20)).await;
    let client = bench.client();
    let first = shown(&client).await;
    let next = bench.authority.server(&["127.0.0.1"]);
    // Half a rotation: certificate and key do not fit, and the old pair stays.
    bench.directory.write("server.crt", &next.certificate);
    // Real time: long enough for the server to look at real files.
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(shown(&client).await, first);
    bench.directory.write("server.key", &next.key);
    let followed = async {
        while shown(&client).await != der(&next.certificate) {
            // Real time: the server looks at real files.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, followed).await.unwrap();
    assert_eq!(client.get("/healthz").await.status, 200);
}

#[tokio::test]
async fn the_name_that_a_client_asks_for_chooses() {
    let directory = Directory::new();
    let authority = Authority::new("sni-ca");
    let pair = |name: &str, names: &[&str], given: &str| {
        let pair = authority.server(names);
        let Certificate::Files { certificate, key } = write_pair(&directory, name, &pair) else {
            panic!("files were written");
        };
        let text = format!("{},{}{given}", certificate.display(), key.display());
        (text.parse::<SniPair>().unwrap(), der(&pair.certificate))
    };
    let (own, own_der) = pair("own", &["a.example.com"], "");
    let (wild, wild_der) = pair("wild", &["a.example.com", "b.example.com"], ":*.example.com");
    let (ip, ip_der) = pair("ip", &["127.0.0.1"], ":127.0.0.1");
    let bench = Bench::open(site(), |options| tls(options).sni = vec![own, wild, ip]).await;
    let client = |name| Client::new(bench.address, &authority.pem).named(name);
    assert_eq!(shown(&client("a.example.com")).await, own_der);
    assert_eq!(shown(&client("b.example.com")).await, wild_der);
    assert_eq!(shown(&Client::new(bench.address, &authority.pem)).await, ip_der, "no name");
    assert_eq!(bench.client().named("localhost").get("/healthz").await.status, 200, "another");
}

#[tokio::test]
async fn without_files_the_certificate_is_self_signed() {
    let directory = Directory::new();
    let place = |name: &str| Certificate::Directory {
        directory: directory.path("certs"),
        name: name.to_owned(),
    };
    let options = |certificate| TlsOptions { certificate, ..TlsOptions::default() };
    bind(options(Certificate::InMemory)).await.unwrap();
    let server = bind(options(place("kube-scheduler"))).await.unwrap();
    let address = server.local_addr();
    let stop = CancellationToken::new();
    let serving = tokio::spawn(server.serve(site(), Access::Everyone, stop.clone()));
    let certificate = directory.path("certs/kube-scheduler.crt");
    let pem = std::fs::read_to_string(&certificate).unwrap();
    // The second of the file's certificates vouches for the first.
    let authority = pem.split_inclusive("-----END CERTIFICATE-----").nth(1).unwrap();
    for name in ["127.0.0.1", "localhost"] {
        assert_eq!(Client::new(address, authority).named(name).get("/healthz").await.status, 200);
    }
    stop.cancel();
    serving.await.unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let key = std::fs::metadata(directory.path("certs/kube-scheduler.key")).unwrap();
        assert_eq!(key.permissions().mode() & 0o777, 0o600);
    }
    bind(options(place("kube-scheduler"))).await.unwrap();
    assert_eq!(std::fs::read_to_string(&certificate).unwrap(), pem, "it is used again");
    std::fs::remove_file(directory.path("certs/kube-scheduler.key")).unwrap();
    let error = bind(options(place("kube-scheduler"))).await.err().unwrap();
    assert!(matches!(error, ServerError::Tls(TlsError::Half { .. })), "{error}");
}

#[tokio::test]
async fn bad_files_are_named() {
    let directory = Directory::new();
    let authority = Authority::new("ca");
    let (one, two) = (authority.server(&["a.com"]), authority.server(&["a.com"]));
    let certificate = directory.write("tls.crt", &one.certificate);
    let check = async |key: std::path::PathBuf, expected: &str| {
        let files = Certificate::Files { certificate: certificate.clone(), key };
        let options = TlsOptions { certificate: files, ..TlsOptions::default() };
        let Some(ServerError::Tls(error)) = bind(options).await.err() else {
            panic!("expected an error that holds {expected}");
        };
        assert!(error.to_string().contains(expected), "{error}");
    };
    check(directory.path("missing.key"), "missing.key").await;
    check(directory.write("text.key", "nonsense"), "text.key holds no private key").await;
    check(directory.write("other.key", &two.key), "other.key").await;
}

#[tokio::test]
async fn old_versions_and_http2_can_be_refused() {
    let bench = Bench::open(site(), |options| {
        let tls = tls(options);
        tls.min_version = MinVersion::Tls13;
        tls.http2 = false;
    });
    let bench = bench.await;
    let client =
        |version| Client::with_versions(bench.address, &bench.authority.pem, None, &[version]);
    assert_eq!(client(&rustls::version::TLS13).get("/healthz").await.status, 200);
    assert!(client(&rustls::version::TLS12).connect().await.is_err());
    let stream = bench.client().connect().await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), None);
}

#[tokio::test]
async fn a_taken_port_is_an_error_unless_shared() {
    let directory = Directory::new();
    let first = Bench::open(site(), |_| {}).await;
    let mut options = ServerOptions::new(first.address);
    let error = Server::bind(options.clone()).await.err().unwrap();
    assert!(error.to_string().contains(&first.address.to_string()), "{error}");
    drop(directory);
    options.bind.set_port(0);
    options.permit_port_sharing = true;
    let one = Server::bind(options.clone()).await.unwrap();
    options.bind = one.local_addr();
    Server::bind(options).await.unwrap();
}

#[tokio::test]
async fn the_unspecified_address_means_every_address() {
    let mut options = ServerOptions::new("0.0.0.0:0".parse().unwrap());
    options.transport = Transport::Plain;
    let server = Server::bind(options).await.unwrap();
    let port = server.local_addr().port();
    let has_ipv6 = server.local_addr().is_ipv6();
    let stop = CancellationToken::new();
    let serving = tokio::spawn(server.serve(site(), Access::Everyone, stop.clone()));
    let mut hosts = vec!["127.0.0.1"];
    hosts.extend(has_ipv6.then_some("::1"));
    for host in hosts {
        let mut stream = TcpStream::connect((host, port)).await.unwrap();
        let get = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        stream.write_all(get).await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        assert!(text.starts_with("HTTP/1.1 200 OK\r\n") && text.ends_with("\r\n\r\nok"), "{text}");
    }
    stop.cancel();
    serving.await.unwrap();
}

#[tokio::test]
async fn requests_under_way_end_before_the_server_does() {
    let gate = Arc::new(Gate::default());
    let site = Site::new().page("/slow", Arc::new(Gated(gate.clone()))).unwrap();
    let mut bench = Bench::open(site, |_| {}).await;
    let client = bench.client();
    let asking = tokio::spawn(async move { client.get("/slow").await });
    let _ = gate.reached.acquire().await;
    bench.stop.cancel();
    let refused = async {
        while TcpStream::connect(bench.address).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, refused).await.unwrap();
    assert!(!bench.serving.is_finished());
    gate.open.add_permits(1);
    assert_eq!(asking.await.unwrap().text(), "at last");
    tokio::time::timeout(PATIENCE, &mut bench.serving).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_request_that_never_ends_does_not_hold_the_server() {
    let gate = Arc::new(Gate::default());
    let site = Site::new().page("/slow", Arc::new(Gated(gate.clone()))).unwrap();
    let shutdown = Duration::from_millis(50);
    let mut bench = Bench::open(site, |options| options.limits.shutdown = shutdown).await;
    let stream = bench.client().connect().await.unwrap();
    let (mut reader, mut writer) = tokio::io::split(stream);
    writer.write_all(b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let _ = gate.reached.acquire().await;
    bench.stop.cancel();
    tokio::time::timeout(PATIENCE, &mut bench.serving).await.unwrap().unwrap();
    let mut rest = Vec::new();
    let _ = tokio::time::timeout(PATIENCE, reader.read_to_end(&mut rest)).await.unwrap();
    assert!(rest.is_empty());
}

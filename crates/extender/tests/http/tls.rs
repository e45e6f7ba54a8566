//! HTTPS, and what is wrong with configurations.

use std::error::Error as _;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
};
use serde_json::json;
use steersman_config::config::{ExtenderConfig, ExtenderTls};
use steersman_extender::{Error, Files, examine};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig, crypto::ring};

use crate::lab::{Lab, a_pod, config, nodes, secure};
use crate::server::Does;

/// An authority, and what it has issued, in PEM.
struct Issued {
    authority: String,
    name: String,
    key: String,
    der: (CertificateDer<'static>, Vec<u8>, CertificateDer<'static>),
}

fn issue(name: &str, purpose: ExtendedKeyUsagePurpose) -> Issued {
    let mut params = CertificateParams::new([]).expect("no names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key"))
        .expect("an authority");
    let key = KeyPair::generate().expect("a key");
    let mut params = CertificateParams::new([name.to_owned()]).expect("a name");
    params.extended_key_usages = vec![purpose];
    let certificate = params.signed_by(&key, &authority).expect("a certificate");
    Issued {
        authority: authority.pem(),
        name: certificate.pem(),
        key: key.serialize_pem(),
        der: (certificate.der().clone(), key.serialize_der(), authority.der().clone()),
    }
}

fn acceptor(server: &Issued, clients: Option<&Issued>) -> TlsAcceptor {
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .expect("versions");
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(clients) => {
            let mut roots = RootCertStore::empty();
            roots.add(clients.der.2.clone()).expect("an authority");
            let verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
            builder.with_client_cert_verifier(verifier.expect("a verifier"))
        }
    };
    let key = PrivateKeyDer::try_from(server.der.1.clone()).expect("a key");
    let config = builder.with_single_cert(vec![server.der.0.clone()], key).expect("a pair");
    TlsAcceptor::from(Arc::new(config))
}

/// Whether a filter call comes through; otherwise why not.
fn call(server: &Issued, clients: Option<&Issued>, tls: ExtenderTls) -> Result<(), String> {
    let lab = Lab::new();
    let server = lab.tls_server(acceptor(server, clients), Does::Says(json!({}).to_string()));
    let extender = lab.connect(&secure(server.port, tls)).map_err(|error| error.to_string())?;
    let one = nodes(&["n1"]);
    let answer = extender.filter(&a_pod(), &one.iter().collect::<Vec<_>>());
    answer.map(drop).map_err(|error| error.to_string())
}

fn server_of(name: &str) -> Issued {
    issue(name, ExtendedKeyUsagePurpose::ServerAuth)
}

const UNTRUSTED: &str = "the extender's certificate is issued by an authority that is not trusted: \
                         tlsConfig.caFile or caData has to hold that authority";

#[test]
fn servers_prove_who_they_are() {
    let local = server_of("localhost");
    let trusting = |issued: &Issued| ExtenderTls {
        ca_data: issued.authority.clone().into_bytes(),
        ..ExtenderTls::default()
    };
    assert_eq!(call(&local, None, trusting(&local)), Ok(()));
    let stranger = server_of("localhost");
    let error = call(&local, None, trusting(&stranger)).unwrap_err();
    assert!(
        error.contains("/filter\": the extender's certificate is ")
            && error.contains("tlsConfig.caFile or caData"),
        "{error}"
    );
    // Without authorities the system's count, though enableHTTPS is set.
    let error = call(&local, None, ExtenderTls::default()).unwrap_err();
    assert!(error.ends_with(UNTRUSTED), "{error}");
    let insecure = ExtenderTls { insecure: true, ..ExtenderTls::default() };
    assert_eq!(call(&local, None, insecure), Ok(()));
}

#[test]
fn another_name_can_be_expected() {
    let named = server_of("gpus.example");
    let tls = |server_name: Option<&str>| ExtenderTls {
        server_name: server_name.map(str::to_owned),
        ca_data: named.authority.clone().into_bytes(),
        ..ExtenderTls::default()
    };
    let error = call(&named, None, tls(None)).unwrap_err();
    let expected = "the extender's certificate is for gpus.example, not for localhost: if that is \
                    right, tlsConfig.serverName has to say which name it is for";
    assert!(error.ends_with(expected), "{error}");
    assert_eq!(call(&named, None, tls(Some("gpus.example"))), Ok(()));
    assert!(call(&named, None, tls(Some("other.example"))).is_err());
}

/// A directory of the test's own.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("steersman-extender-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a directory");
        Self(path)
    }

    fn file(&self, name: &str, text: &str) -> Option<String> {
        let path = self.0.join(name);
        fs::write(&path, text).expect("a file");
        Some(path.to_str().expect("a plain path").to_owned())
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn clients_prove_who_they_are_from_files_and_data() {
    let server = server_of("localhost");
    let client = issue("scheduler", ExtendedKeyUsagePurpose::ClientAuth);
    let directory = Directory::new("client");
    let files = ExtenderTls {
        ca_file: directory.file("ca.pem", &server.authority),
        cert_file: directory.file("cert.pem", &client.name),
        key_file: directory.file("key.pem", &client.key),
        ..ExtenderTls::default()
    };
    assert_eq!(call(&server, Some(&client), files.clone()), Ok(()));
    // Data counts more than files.
    let data = ExtenderTls {
        ca_data: server.authority.clone().into_bytes(),
        cert_data: client.name.clone().into_bytes(),
        key_data: client.key.clone().into_bytes(),
        ca_file: Some("/does/not/exist".to_owned()),
        cert_file: Some("/does/not/exist".to_owned()),
        key_file: Some("/does/not/exist".to_owned()),
        ..ExtenderTls::default()
    };
    assert_eq!(call(&server, Some(&client), data), Ok(()));
    let nobody = ExtenderTls { cert_file: None, key_file: None, ..files };
    let error = call(&server, Some(&client), nobody.clone()).unwrap_err();
    let wanted =
        "the extender wants a certificate of this scheduler: tlsConfig.certFile and keyFile";
    assert!(error.contains(wanted), "{error}");
    let stranger = issue("scheduler", ExtendedKeyUsagePurpose::ClientAuth);
    let unknown = ExtenderTls {
        cert_data: stranger.name.into_bytes(),
        key_data: stranger.key.into_bytes(),
        ..nobody
    };
    let error = call(&server, Some(&client), unknown).unwrap_err();
    assert!(error.contains("the extender refuses the certificate of this scheduler, "), "{error}");
}

#[test]
fn tls_errors_are_told_in_words() {
    // A server that shows the certificate of an authority.
    let mut authority = server_of("localhost");
    let mut params = CertificateParams::new(["localhost".to_owned()]).expect("a name");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    let own = params.self_signed(&key).expect("a certificate");
    authority.der.0 = own.der().clone();
    authority.der.1 = key.serialize_der();
    let tls = ExtenderTls { ca_data: own.pem().into_bytes(), ..ExtenderTls::default() };
    let error = call(&authority, None, tls).unwrap_err();
    assert!(error.contains("the extender's certificate is the one of an authority: "), "{error}");

    let lab = Lab::new();
    let port = lab.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await?;
            stream.read_buf(&mut Vec::new()).await?;
            stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await
        });
        port
    });
    let insecure = ExtenderTls { insecure: true, ..ExtenderTls::default() };
    let extender = lab.connect(&secure(port, insecure)).expect("a good configuration");
    let error = extender.filter(&a_pod(), &[]).unwrap_err();
    assert!(error.0.ends_with("if it speaks plain HTTP, urlPrefix begins with http://"), "{error}");
}

/// PEM of something that is no certificate.
const GARBAGE: &str = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";

#[test]
fn all_that_is_wrong_is_found_at_once_and_files_only_if_they_are_opened() {
    let directory = Directory::new("examine");
    let client = issue("scheduler", ExtendedKeyUsagePurpose::ClientAuth);
    let tls = ExtenderTls {
        server_name: Some("no name".to_owned()),
        ca_file: Some("/does/not/exist".to_owned()),
        cert_file: directory.file("cert.pem", GARBAGE),
        key_data: b"secret nonsense".to_vec(),
        ..ExtenderTls::default()
    };
    let broken = ExtenderConfig { bind_verb: Some("bi nd".to_owned()), ..secure(1, tls) };
    let only_half = ExtenderTls {
        cert_file: directory.file("half.pem", &client.name),
        ..ExtenderTls::default()
    };
    let extenders = [config(1), broken, secure(1, only_half)];
    let found = |files| -> Vec<String> {
        let at = |error: &Error| error.to_problem().path.to_string();
        examine(&extenders, files).iter().map(at).collect()
    };
    let expected = [
        "extenders[1].bindVerb",
        "extenders[1].tlsConfig.serverName",
        "extenders[1].tlsConfig.caFile",
        "extenders[1].tlsConfig.keyData",
        "extenders[2].tlsConfig.certFile",
    ];
    assert_eq!(found(Files::Open), expected);
    let without_files: Vec<_> = expected.into_iter().filter(|at| !at.ends_with("caFile")).collect();
    assert_eq!(found(Files::Leave), without_files);

    let missing: Vec<_> = examine(&extenders, Files::Open)
        .into_iter()
        .filter(Error::is_missing_file)
        .map(|error| error.to_problem().message)
        .collect();
    assert_eq!(missing.len(), 1);
    assert!(missing[0].starts_with("cannot read \"/does/not/exist\": No such file"), "{missing:?}");
}

#[track_caller]
fn check_refused(config: &ExtenderConfig, expected: &str) {
    let Err(error) = Lab::new().connect(config) else { panic!("{config:?} is accepted") };
    assert_eq!(error.to_string(), expected);
    assert_eq!(error.source().is_some(), matches!(error, Error::Read { .. }));
    let found = examine(std::slice::from_ref(config), Files::Open);
    let found: Vec<_> = found.iter().map(ToString::to_string).collect();
    assert_eq!(found, [expected], "looking and setting up must agree");
}

#[test]
fn bad_configurations_are_refused_with_their_place() {
    let tls = |tls: ExtenderTls| secure(1, tls);
    let (nothing, text) = (ExtenderTls::default(), |text: &str| text.as_bytes().to_vec());
    let client = issue("scheduler", ExtendedKeyUsagePurpose::ClientAuth);
    let stranger = issue("scheduler", ExtendedKeyUsagePurpose::ClientAuth);
    let cases = [
        (
            ExtenderTls { ca_file: Some("/does/not/exist".to_owned()), ..nothing.clone() },
            "extenders[0].tlsConfig.caFile: cannot read \"/does/not/exist\"",
        ),
        (
            ExtenderTls { ca_file: Some("/dev/zero".to_owned()), ..nothing.clone() },
            "extenders[0].tlsConfig.caFile: \"/dev/zero\": has more than 16 MiB",
        ),
        (
            ExtenderTls { ca_data: text("nonsense"), ..nothing.clone() },
            "extenders[0].tlsConfig.caData: found no certificate, allowed: PEM with at least one",
        ),
        (
            ExtenderTls { cert_data: text(&client.name), insecure: true, ..nothing.clone() },
            "extenders[0].tlsConfig.certData: there is no key for it",
        ),
        (
            ExtenderTls { key_data: text(&client.key), insecure: true, ..nothing.clone() },
            "extenders[0].tlsConfig.keyData: there is no certificate for it",
        ),
        (
            ExtenderTls {
                cert_data: text(&client.name),
                key_data: text("secret nonsense"),
                insecure: true,
                ..nothing.clone()
            },
            "extenders[0].tlsConfig.keyData: found no private key, allowed: PEM with one",
        ),
        (
            ExtenderTls {
                cert_data: text(&client.name),
                key_data: text(&stranger.key),
                insecure: true,
                ..nothing.clone()
            },
            "extenders[0].tlsConfig.keyData: is not the key of the certificate",
        ),
        (
            ExtenderTls {
                cert_data: text(GARBAGE),
                key_data: text(&stranger.key),
                insecure: true,
                ..nothing.clone()
            },
            "extenders[0].tlsConfig.certData: the first certificate cannot be decoded",
        ),
        (
            ExtenderTls { ca_data: text(GARBAGE), ..nothing.clone() },
            "extenders[0].tlsConfig.caData: certificate 1 in it cannot be decoded",
        ),
        (
            ExtenderTls { server_name: Some("no name".to_owned()), insecure: true, ..nothing },
            "extenders[0].tlsConfig.serverName: found \"no name\", allowed: a DNS name or an IP address",
        ),
    ];
    for (given, expected) in cases {
        check_refused(&tls(given), expected);
    }
}

#[test]
fn bad_urls_are_refused_with_their_place() {
    let allowed =
        "allowed: http:// or https://, a host, and a path if need be; no user or password";
    for (prefix, found) in [
        ("", "\"\""),
        ("gpus.example", "\"gpus.example\""),
        ("ftp://gpus.example", "\"ftp://gpus.example\""),
        ("http://", "\"http://\""),
        ("/path", "\"/path\""),
        ("http://a b/", "\"http://a b/\""),
        ("http://me:secret@gpus.example/", "\"a URL with a user or a password\""),
    ] {
        let config = ExtenderConfig { url_prefix: prefix.to_owned(), ..config(1) };
        check_refused(&config, &format!("extenders[0].urlPrefix: found {found}, {allowed}"));
    }
    let config = ExtenderConfig { bind_verb: Some("bi nd".to_owned()), ..config(1) };
    check_refused(
        &config,
        "extenders[0].bindVerb: found \"bi nd\", allowed: a path, escaped as in URLs",
    );
}

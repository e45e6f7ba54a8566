//! Transport security: certificates, versions, suites.

mod certificate;
mod client;
mod self_signed;
mod sni;
mod store;
mod suites;

pub use sni::{SniPair, SniPairError};
pub use suites::{MinVersion, SuiteError, allowed_suites};

pub(crate) use certificate::read_certificates;
pub(crate) use store::Store;

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use thiserror::Error;

/// How connections are protected. The defaults are kube-scheduler's.
#[derive(Clone, Debug)]
pub struct TlsOptions {
    /// Where the certificate comes from.
    pub certificate: Certificate,
    /// Further certificates, by the name that clients ask for.
    /// (`--tls-sni-cert-key`)
    pub sni: Vec<SniPair>,
    /// The oldest version that is spoken. (`--tls-min-version`)
    pub min_version: MinVersion,
    /// Suites for TLS 1.2, by Go's names; none means all. TLS 1.3's suites are
    /// always on, as in Go. (`--tls-cipher-suites`)
    pub cipher_suites: Vec<String>,
    /// Key exchange groups by their IANA numbers, best first; none means all.
    /// (`--tls-curve-preferences`)
    pub curves: Vec<u16>,
    /// Whether HTTP/2 is offered. (not `--disable-http2-serving`)
    pub http2: bool,
    /// How often files are looked at for changes.
    pub reload_every: Duration,
}

impl Default for TlsOptions {
    fn default() -> Self {
        Self {
            certificate: Certificate::InMemory,
            sni: Vec::new(),
            min_version: MinVersion::default(),
            cipher_suites: Vec::new(),
            curves: Vec::new(),
            http2: true,
            reload_every: Duration::from_secs(10),
        }
    }
}

/// Where a certificate comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Certificate {
    /// PEM files: the certificate with those that vouch for it below, and its
    /// key. Read again when they change. (`--tls-cert-file`,
    /// `--tls-private-key-file`)
    Files {
        /// The certificates.
        certificate: PathBuf,
        /// The key.
        key: PathBuf,
    },
    /// `NAME.crt` and `NAME.key` in a directory; made there, self-signed, when
    /// they are missing. (`--cert-dir`)
    Directory {
        /// The directory; made when it is missing.
        directory: PathBuf,
        /// The name, as `kube-scheduler`.
        name: String,
    },
    /// A self-signed one that is never written anywhere.
    InMemory,
}

/// Why connections cannot be protected.
#[derive(Debug, Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A file or directory cannot be written.
    #[error("cannot write {}", .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A file holds no PEM of the kind that is wanted.
    #[error("{} holds no {wanted} in PEM format", .path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// What was looked for.
        wanted: &'static str,
    },
    /// Certificate and key do not belong together, or the key is of a kind that
    /// is not supported (RSA, ECDSA P-256 and P-384, and Ed25519 are).
    #[error("cannot serve with {} and {}", .certificate.display(), .key.display())]
    Pair {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// Why.
        #[source]
        source: rustls::Error,
    },
    /// Of a pair of files only one is there.
    #[error("{} is there but {} is not: both must be there, or neither", .present.display(), .missing.display())]
    Half {
        /// The one.
        present: PathBuf,
        /// The other.
        missing: PathBuf,
    },
    /// No certificate could be made.
    #[error("cannot make a self-signed certificate")]
    Generate(#[source] rcgen::Error),
    /// The self-signed certificate does not serve.
    #[error("cannot serve with the self-signed certificate")]
    SelfSigned(#[source] rustls::Error),
    /// A suite or group is unknown.
    #[error("cannot choose the cryptography")]
    Suites(#[source] SuiteError),
    /// Versions and suites do not fit.
    #[error("the TLS versions, suites and groups leave nothing to speak")]
    Nothing(#[source] rustls::Error),
}

/// Certificates that follow their files, and all else of the configuration.
pub(crate) struct Tls {
    pub(crate) store: Arc<Store>,
    pub(crate) reload_every: Duration,
    base: ServerConfig,
}

impl Tls {
    /// Reads the certificates; `bind` is a name of a self-signed one.
    pub(crate) fn new(options: &TlsOptions, bind: IpAddr) -> Result<Self, TlsError> {
        let provider = Arc::new(
            suites::provider(&options.cipher_suites, &options.curves).map_err(TlsError::Suites)?,
        );
        let store = Arc::new(Store::load(options, bind, provider.clone())?);
        let versions = options.min_version.versions(&provider);
        let mut base = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(versions)
            .map_err(TlsError::Nothing)?
            .with_client_cert_verifier(client::AnyClient::new(provider))
            .with_cert_resolver(Arc::new(store::ForAddress::new(store.clone(), None)));
        base.alpn_protocols = match options.http2 {
            true => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
            false => vec![b"http/1.1".to_vec()],
        };
        Ok(Self { store, reload_every: options.reload_every, base })
    }

    /// The configuration of a connection that came to this address, which names
    /// the certificate when the client names no host.
    pub(crate) fn for_connection(&self, local: Option<IpAddr>) -> Arc<ServerConfig> {
        let mut config = self.base.clone();
        config.cert_resolver = Arc::new(store::ForAddress::new(self.store.clone(), local));
        Arc::new(config)
    }
}

/// The cryptography of everything in this crate.
pub(crate) fn default_provider() -> CryptoProvider {
    rustls::crypto::ring::default_provider()
}

//! A certificate authority of the server's own, and a certificate from it.

use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use thiserror::Error;

pub(crate) mod certificate;

/// How connections are protected.
#[derive(Clone)]
pub enum Tls {
    /// Not at all.
    Off,
    /// With this certificate.
    On(Arc<rustls::ServerConfig>),
}

/// A server's certificate, its key, and the authority that vouches for it.
pub struct Identity {
    /// The authority's certificate, for `certificate-authority-data`.
    pub ca_pem: String,
    issuer: Issuer<'static, KeyPair>,
    cert_pem: String,
    key_pem: String,
}

/// A certificate with its key, with which somebody shows who they are.
pub struct ClientIdentity {
    /// For `client-certificate-data`.
    pub cert_pem: String,
    /// For `client-key-data`. It is a secret.
    pub key_pem: String,
}

/// Why there is no certificate.
#[derive(Debug, Error)]
pub enum TlsError {
    /// It could not be made.
    #[error("cannot make a certificate")]
    Generate(#[source] rcgen::Error),
    /// The text is no certificate or no key.
    #[error("cannot read a certificate or its key")]
    Pem(#[source] rustls::pki_types::pem::Error),
    /// Certificate and key do not serve.
    #[error("cannot serve with this certificate")]
    Config(#[source] rustls::Error),
    /// Certificates of clients cannot be checked against the authority.
    #[error("cannot check the certificates of clients")]
    Clients(#[source] rustls::server::VerifierBuilderError),
}

/// Names that every certificate is good for.
const LOCAL_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];
const CLUSTER_NAMES: [&str; 4] = [
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];

impl Identity {
    /// Makes an authority and a certificate for this machine and further names
    /// or addresses, good for a year from `now`.
    ///
    /// # Errors
    /// When a name is none.
    pub fn generate(names: &[String], now: Timestamp) -> Result<Self, TlsError> {
        Self::try_generate(names, now).map_err(TlsError::Generate)
    }

    /// Makes a certificate for a user, who may belong to one group, good for a
    /// year from `now`. A server with [`Self::tls`] takes who shows it for that
    /// user.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn client(
        &self,
        user: &str,
        group: Option<&str>,
        now: Timestamp,
    ) -> Result<ClientIdentity, TlsError> {
        let make = || {
            let mut params = CertificateParams::new(Vec::new())?;
            params.distinguished_name = named(user);
            if let Some(group) = group {
                params.distinguished_name.push(DnType::OrganizationName, group);
            }
            params.key_usages =
                vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
            params.use_authority_key_identifier_extension = true;
            set_validity(&mut params, now);
            let key = KeyPair::generate()?;
            let cert_pem = params.signed_by(&key, &self.issuer)?.pem();
            Ok(ClientIdentity { cert_pem, key_pem: key.serialize_pem() })
        };
        make().map_err(TlsError::Generate)
    }

    /// The protection that serves with it. Clients may show a certificate of
    /// the same authority.
    ///
    /// # Errors
    /// When certificate and key do not fit.
    pub fn tls(&self) -> Result<Tls, TlsError> {
        let certs: Result<Vec<_>, _> =
            CertificateDer::pem_slice_iter(self.cert_pem.as_bytes()).collect();
        let key = PrivateKeyDer::from_pem_slice(self.key_pem.as_bytes()).map_err(TlsError::Pem)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        let authority =
            CertificateDer::from_pem_slice(self.ca_pem.as_bytes()).map_err(TlsError::Pem)?;
        roots.add(authority).map_err(TlsError::Config)?;
        let clients =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
                .allow_unauthenticated()
                .build()
                .map_err(TlsError::Clients)?;
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Config)?
            .with_client_cert_verifier(clients)
            .with_single_cert(certs.map_err(TlsError::Pem)?, key)
            .map_err(TlsError::Config)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Tls::On(Arc::new(config)))
    }

    fn try_generate(names: &[String], now: Timestamp) -> Result<Self, rcgen::Error> {
        let mut authority = CertificateParams::new(Vec::new())?;
        authority.distinguished_name = named("steersman-ca");
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.key_usages = vec![
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::CrlSign,
            KeyUsagePurpose::DigitalSignature,
        ];
        set_validity(&mut authority, now);
        let authority_key = KeyPair::generate()?;
        let ca_pem = authority.self_signed(&authority_key)?.pem();

        let local = LOCAL_NAMES.iter().chain(&CLUSTER_NAMES).map(|name| (*name).to_owned());
        let mut all: Vec<String> = local.chain(names.iter().cloned()).collect();
        all.sort();
        all.dedup();
        let mut server = CertificateParams::new(all)?;
        server.distinguished_name = named("kube-apiserver");
        server.key_usages =
            vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
        server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        server.use_authority_key_identifier_extension = true;
        set_validity(&mut server, now);
        let server_key = KeyPair::generate()?;
        let issuer = Issuer::new(authority, authority_key);
        let cert_pem = server.signed_by(&server_key, &issuer)?.pem();
        Ok(Self { ca_pem, issuer, cert_pem, key_pem: server_key.serialize_pem() })
    }
}

const DAY: jiff::SignedDuration = jiff::SignedDuration::from_hours(24);
const YEAR: jiff::SignedDuration = jiff::SignedDuration::from_hours(365 * 24);

fn named(common_name: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common_name);
    name
}

/// Sets from when and until when a certificate is good, to the day.
fn set_validity(params: &mut CertificateParams, now: Timestamp) {
    let part = |number: i8| u8::try_from(number).expect("months and days are positive");
    let (from, until) = (now - DAY, now + YEAR);
    let from = from.to_zoned(TimeZone::UTC).date();
    let until = until.to_zoned(TimeZone::UTC).date();
    params.not_before =
        rcgen::date_time_ymd(i32::from(from.year()), part(from.month()), part(from.day()));
    params.not_after =
        rcgen::date_time_ymd(i32::from(until.year()), part(until.month()), part(until.day()));
}

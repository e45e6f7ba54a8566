//! Whom to trust and how to prove who we are, from `tlsConfig`.

use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;

use hyper_rustls::ConfigBuilderExt;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use steersman_api::problem::FieldPath;
use steersman_config::config::ExtenderTls;

use crate::error::Error;
use crate::examine::Files;

/// The side of TLS that calls an extender; `at` is where `tls` stands. Without
/// authorities of its own the system's are trusted.
pub(crate) fn client_config(tls: &ExtenderTls, at: &FieldPath) -> Result<ClientConfig, Error> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::Tls { at: at.clone(), what: error.to_string() })?;
    let given = Given::of(tls, at);
    let authorities = given.authorities.map(Source::open).transpose()?;
    let builder = match authorities {
        _ if tls.insecure => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Unverified(provider.clone()))),
        Some(text) => builder.with_root_certificates(text.authorities()?),
        None => builder
            .with_native_roots()
            .map_err(|source| Error::SystemAuthorities { at: at.clone(), source })?,
    };
    match (given.certificate, given.key) {
        (Some(certificate), Some(key)) => {
            let identity = identity(&certificate.open()?, &key.open()?, &provider)?;
            Ok(builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(identity))))
        }
        (certificate, key) => match half(certificate.as_ref(), key.as_ref()) {
            Some(error) => Err(error),
            None => Ok(builder.with_no_client_auth()),
        },
    }
}

/// Everything for which [`client_config`] would refuse `tls`, apart from what
/// this machine trusts. What stands in files counts only if they are opened.
pub(crate) fn problems(tls: &ExtenderTls, at: &FieldPath, files: Files) -> Vec<Error> {
    let Given { authorities, certificate, key } = Given::of(tls, at);
    let mut errors = Vec::from_iter(half(certificate.as_ref(), key.as_ref()));
    let mut open = |source: Option<Source>| {
        let source = source.filter(|it| files == Files::Open || it.path.is_none())?;
        source.open().map_err(|error| errors.push(error)).ok()
    };
    let (authorities, certificate, key) = (open(authorities), open(certificate), open(key));
    // Whoever trusts everybody looks at no authorities.
    if let Some(text) = authorities.filter(|_| !tls.insecure) {
        errors.extend(text.authorities().err());
    }
    let unreadable: Vec<Error> = [
        certificate.as_ref().and_then(|text| text.certificates().err()),
        key.as_ref().and_then(|text| text.private_key().err()),
    ]
    .into_iter()
    .flatten()
    .collect();
    if let (Some(certificate), Some(key), []) = (&certificate, &key, &*unreadable) {
        errors.extend(identity(certificate, key, &ring::default_provider()).err());
    }
    errors.extend(unreadable);
    errors
}

/// Where the parts of a `tlsConfig` stand that are given.
struct Given {
    authorities: Option<Source>,
    certificate: Option<Source>,
    key: Option<Source>,
}

impl Given {
    fn of(tls: &ExtenderTls, at: &FieldPath) -> Self {
        Self {
            authorities: Source::of(&tls.ca_data, tls.ca_file.as_ref(), at, "ca"),
            certificate: Source::of(&tls.cert_data, tls.cert_file.as_ref(), at, "cert"),
            key: Source::of(&tls.key_data, tls.key_file.as_ref(), at, "key"),
        }
    }
}

/// What is wrong when only one half of a pair is given.
fn half(certificate: Option<&Source>, key: Option<&Source>) -> Option<Error> {
    match (certificate, key) {
        (Some(certificate), None) => Some(certificate.error("there is no key for it")),
        (None, Some(key)) => Some(key.error("there is no certificate for it")),
        _ => None,
    }
}

/// What this side proves who it is with.
fn identity(
    certificate: &Pem,
    key: &Pem,
    provider: &CryptoProvider,
) -> Result<CertifiedKey, Error> {
    let (chain, secret) = (certificate.certificates()?, key.private_key()?);
    CertifiedKey::from_der(chain, secret, provider).map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => key.source.error("is not the key of the certificate"),
        rustls::Error::InvalidCertificate(_) => {
            certificate.source.error("the first certificate cannot be decoded")
        }
        // What the library says is about the kind of key, not about the key.
        _ => key.source.error(
            "found a key that cannot be used, allowed: RSA, ECDSA with P-256 or P-384, Ed25519",
        ),
    })
}

/// The name to expect in the certificate instead of the URL's.
pub(crate) fn server_name(
    tls: &ExtenderTls,
    at: &FieldPath,
) -> Result<Option<ServerName<'static>>, Error> {
    let Some(name) = &tls.server_name else { return Ok(None) };
    match ServerName::try_from(name.clone()) {
        Ok(name) => Ok(Some(name)),
        Err(_) => Err(Error::Invalid {
            at: at.field("serverName"),
            found: format!("{name:?}"),
            allowed: "a DNS name or an IP address",
        }),
    }
}

/// Where PEM is to be had.
struct Source {
    at: FieldPath,
    /// The file; `None` for data.
    path: Option<String>,
    data: Vec<u8>,
}

/// PEM, and where it came from.
struct Pem {
    text: Vec<u8>,
    source: Source,
}

impl Source {
    /// The data or, without data, the file.
    fn of(data: &[u8], file: Option<&String>, at: &FieldPath, what: &str) -> Option<Self> {
        if !data.is_empty() {
            let at = at.field(&format!("{what}Data"));
            return Some(Self { at, path: None, data: data.to_vec() });
        }
        let at = at.field(&format!("{what}File"));
        file.map(|path| Self { at, path: Some(path.clone()), data: Vec::new() })
    }

    fn open(mut self) -> Result<Pem, Error> {
        let text = match &self.path {
            None => std::mem::take(&mut self.data),
            Some(path) => match read(path) {
                Ok(text) => text,
                Err(source) => {
                    return Err(Error::Read { at: self.at, path: path.clone(), source });
                }
            },
        };
        if text.len() as u64 > LONGEST_FILE {
            return Err(self.error(format_args!("has more than {} MiB", LONGEST_FILE >> 20)));
        }
        Ok(Pem { text, source: self })
    }

    fn error(&self, what: impl std::fmt::Display) -> Error {
        let what = match &self.path {
            Some(path) => format!("{path:?}: {what}"),
            None => what.to_string(),
        };
        Error::Tls { at: self.at.clone(), what }
    }
}

/// The largest bundle of authorities is far below. Devices have no end.
const LONGEST_FILE: u64 = 16 << 20;

/// What stands in a file, and no more than a little too much of it.
fn read(path: &str) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    File::open(path)?.take(LONGEST_FILE + 1).read_to_end(&mut text)?;
    Ok(text)
}

impl Pem {
    fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, Error> {
        let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&self.text).collect();
        match read {
            Ok(certificates) if certificates.is_empty() => {
                Err(self.source.error("found no certificate, allowed: PEM with at least one"))
            }
            Ok(certificates) => Ok(certificates),
            Err(error) => Err(self.source.error(format_args!("is no PEM: {error}"))),
        }
    }

    fn authorities(&self) -> Result<RootCertStore, Error> {
        let mut store = RootCertStore::empty();
        for (i, certificate) in (1..).zip(self.certificates()?) {
            store.add(certificate).map_err(|_| {
                self.source.error(format_args!("certificate {i} in it cannot be decoded"))
            })?;
        }
        Ok(store)
    }

    /// The texts say nothing of what stands in the key.
    fn private_key(&self) -> Result<PrivateKeyDer<'static>, Error> {
        PrivateKeyDer::from_pem_slice(&self.text)
            .map_err(|_| self.source.error("found no private key, allowed: PEM with one"))
    }
}

/// Takes any certificate: `tlsConfig.insecure`.
#[derive(Debug)]
struct Unverified(Arc<CryptoProvider>);

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

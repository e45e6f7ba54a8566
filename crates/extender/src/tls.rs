//! Whom to trust and how to prove who we are, from `tlsConfig`.

use std::fs;
use std::sync::Arc;

use hyper_rustls::ConfigBuilderExt;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use steersman_api::problem::FieldPath;
use steersman_config::config::ExtenderTls;

use crate::error::Error;

/// The side of TLS that calls an extender; `at` is where `tls` stands. Without
/// authorities of its own the system's are trusted.
pub(crate) fn client_config(tls: &ExtenderTls, at: &FieldPath) -> Result<ClientConfig, Error> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| tls_error(at, error))?;
    let authorities = pem(&tls.ca_data, tls.ca_file.as_deref(), at, "ca")?;
    let builder = match authorities {
        _ if tls.insecure => {
            builder.dangerous().with_custom_certificate_verifier(Arc::new(Unverified(provider)))
        }
        Some(text) => builder.with_root_certificates(text.authorities()?),
        None => builder
            .with_native_roots()
            .map_err(|source| Error::SystemAuthorities { at: at.clone(), source })?,
    };
    let certificate = pem(&tls.cert_data, tls.cert_file.as_deref(), at, "cert")?;
    let key = pem(&tls.key_data, tls.key_file.as_deref(), at, "key")?;
    match (certificate, key) {
        (None, None) => Ok(builder.with_no_client_auth()),
        (Some(certificate), Some(key)) => {
            let chain = certificate.certificates()?;
            builder
                .with_client_auth_cert(chain, key.private_key()?)
                .map_err(|error| key.error(format!("does not go with the certificate: {error}")))
        }
        (Some(certificate), None) => Err(certificate.error("there is no key for it".to_owned())),
        (None, Some(key)) => Err(key.error("there is no certificate for it".to_owned())),
    }
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

/// PEM, and where it came from.
struct Pem {
    text: Vec<u8>,
    at: FieldPath,
    /// The file; `None` for data.
    path: Option<String>,
}

/// What stands in the data or, without data, in the file.
fn pem(
    data: &[u8],
    file: Option<&str>,
    at: &FieldPath,
    what: &'static str,
) -> Result<Option<Pem>, Error> {
    if !data.is_empty() {
        let at = at.field(&format!("{what}Data"));
        return Ok(Some(Pem { text: data.to_vec(), at, path: None }));
    }
    let Some(path) = file else { return Ok(None) };
    let at = at.field(&format!("{what}File"));
    match fs::read(path) {
        Ok(text) => Ok(Some(Pem { text, at, path: Some(path.to_owned()) })),
        Err(source) => Err(Error::Read { at, path: path.to_owned(), source }),
    }
}

impl Pem {
    fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, Error> {
        let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&self.text).collect();
        match read {
            Ok(certificates) if certificates.is_empty() => {
                Err(self.error("found no certificate, allowed: PEM with at least one".to_owned()))
            }
            Ok(certificates) => Ok(certificates),
            Err(error) => Err(self.error(format!("is no PEM: {error}"))),
        }
    }

    fn authorities(&self) -> Result<RootCertStore, Error> {
        let mut store = RootCertStore::empty();
        for certificate in self.certificates()? {
            store
                .add(certificate)
                .map_err(|error| self.error(format!("a certificate cannot be used: {error}")))?;
        }
        Ok(store)
    }

    /// The texts say nothing of what stands in the key.
    fn private_key(&self) -> Result<PrivateKeyDer<'static>, Error> {
        PrivateKeyDer::from_pem_slice(&self.text)
            .map_err(|_| self.error("found no private key, allowed: PEM with one".to_owned()))
    }

    fn error(&self, what: String) -> Error {
        let what = match &self.path {
            Some(path) => format!("{path:?}: {what}"),
            None => what,
        };
        Error::Tls { at: self.at.clone(), what }
    }
}

fn tls_error(at: &FieldPath, error: impl std::fmt::Display) -> Error {
    Error::Tls { at: at.clone(), what: error.to_string() }
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

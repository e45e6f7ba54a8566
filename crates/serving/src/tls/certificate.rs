//! Certificates and keys from files.

use std::path::Path;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

use super::TlsError;

/// The text of a certificate file and of a key file.
pub(super) struct PairText {
    pub(super) certificate: Vec<u8>,
    pub(super) key: Vec<u8>,
}

impl PairText {
    pub(super) fn read(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        Ok(Self { certificate: read(certificate)?, key: read(key)? })
    }

    /// A digest, to see whether anything changed without keeping the key.
    pub(super) fn digest(&self) -> Vec<u8> {
        let mut context = ring::digest::Context::new(&ring::digest::SHA256);
        context.update(&self.certificate);
        context.update(&[0]);
        context.update(&self.key);
        context.finish().as_ref().to_vec()
    }

    /// Both, ready to serve with. The paths are for errors.
    pub(super) fn pair(
        &self,
        certificate: &Path,
        key: &Path,
        provider: &CryptoProvider,
    ) -> Result<CertifiedKey, TlsError> {
        let chain = parse_certificates(&self.certificate, certificate)?;
        let private = PrivateKeyDer::from_pem_slice(&self.key)
            .map_err(|_| TlsError::Pem { path: key.to_owned(), wanted: "private key" })?;
        CertifiedKey::from_der(chain, private, provider).map_err(|source| TlsError::Pair {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
            source,
        })
    }
}

/// The certificates of a file: at least one.
pub(crate) fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    parse_certificates(&read(path)?, path)
}

fn parse_certificates(text: &[u8], path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let no_pem = || TlsError::Pem { path: path.to_owned(), wanted: "certificate" };
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
    chain.ok().filter(|chain| !chain.is_empty()).ok_or_else(no_pem)
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    std::fs::read(path).map_err(|source| TlsError::Read { path: path.to_owned(), source })
}

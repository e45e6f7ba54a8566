//! Certificates by the name that a client asks for.

use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;

use rustls::pki_types::CertificateDer;
use thiserror::Error;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer;

/// A value of `--tls-sni-cert-key`: `CERT,KEY` or `CERT,KEY:NAME,NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SniPair {
    /// The certificate's file.
    pub certificate: PathBuf,
    /// The key's file.
    pub key: PathBuf,
    /// Domain names (with `*.` before for all right below) or addresses for
    /// which it serves; none means those that stand in the certificate.
    pub names: Vec<String>,
}

/// Why a value is no pair.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum SniPairError {
    /// There are not two files.
    #[error("{0:?}: expected CERT,KEY or CERT,KEY:NAME,...")]
    Files(String),
    /// A name is empty or has a star elsewhere than as its first part.
    #[error("{0:?} is no domain name or address: a * may only stand for the first part")]
    Name(String),
}

impl FromStr for SniPair {
    type Err = SniPairError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = || SniPairError::Files(text.to_owned());
        let (certificate, rest) = text.split_once(',').ok_or_else(bad)?;
        let (key, names) = match rest.split_once(':') {
            Some((key, names)) => (key, names.split(',').collect()),
            None => (rest, Vec::new()),
        };
        let is_file = |path: &str| !path.trim().is_empty() && !path.contains(',');
        if !is_file(certificate) || !is_file(key) {
            return Err(bad());
        }
        let names: Result<Vec<String>, _> = names.into_iter().map(checked_name).collect();
        Ok(Self { certificate: certificate.trim().into(), key: key.trim().into(), names: names? })
    }
}

fn checked_name(name: &str) -> Result<String, SniPairError> {
    let bare = name.trim();
    if bare.parse::<IpAddr>().is_ok() {
        return Ok(bare.to_owned());
    }
    let host = bare.strip_prefix("*.").unwrap_or(bare);
    let is_part = |part: &str| {
        !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
    };
    if host.split('.').all(is_part) {
        return Ok(bare.to_ascii_lowercase());
    }
    Err(SniPairError::Name(name.to_owned()))
}

/// The names for which a certificate is good: the alternative ones, else the
/// common name.
pub(super) fn names_of(certificate: &CertificateDer<'_>) -> Vec<String> {
    let Ok((_, parsed)) = X509Certificate::from_der(certificate) else {
        return Vec::new();
    };
    let alternatives = parsed.subject_alternative_name().ok().flatten();
    let names: Vec<String> = alternatives
        .iter()
        .flat_map(|extension| &extension.value.general_names)
        .filter_map(|name| match name {
            GeneralName::DNSName(name) => Some(name.to_ascii_lowercase()),
            GeneralName::IPAddress(bytes) => address(bytes).map(|address| address.to_string()),
            _ => None,
        })
        .collect();
    if !names.is_empty() {
        return names;
    }
    let common = parsed.subject().iter_common_name().filter_map(|name| name.as_str().ok());
    common.map(str::to_ascii_lowercase).collect()
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    match bytes.len() {
        4 => <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from),
        16 => <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Result<(&str, &str, &[&str]), SniPairError>) {
        let expected = expected.map(|(certificate, key, names)| SniPair {
            certificate: certificate.into(),
            key: key.into(),
            names: names.iter().map(|name| (*name).to_owned()).collect(),
        });
        assert_eq!(text.parse::<SniPair>(), expected);
    }

    #[test]
    fn pairs() {
        check("a.crt,a.key", Ok(("a.crt", "a.key", &[])));
        check("a.crt,a.key:*.Foo.com,foo.com", Ok(("a.crt", "a.key", &["*.foo.com", "foo.com"])));
        check("a.crt,a.key:::1,10.0.0.1", Ok(("a.crt", "a.key", &["::1", "10.0.0.1"])));
        for text in ["", "a.crt", "a.crt,", ",a.key", "a,b,c"] {
            check(text, Err(SniPairError::Files(text.to_owned())));
        }
        for name in ["", "a.*.b", "*", "*a.b", "a..b", "a b"] {
            check(&format!("a.crt,a.key:{name}"), Err(SniPairError::Name(name.to_owned())));
        }
    }
}

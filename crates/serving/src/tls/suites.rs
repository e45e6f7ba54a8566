//! Versions, suites and groups, by the names that kube-scheduler's flags use.

use std::str::FromStr;

use rustls::crypto::ring::kx_group::{SECP256R1, SECP384R1, X25519};
use rustls::crypto::{CryptoProvider, SupportedKxGroup};
use rustls::{CipherSuite, SupportedCipherSuite, SupportedProtocolVersion};
use thiserror::Error;

/// The oldest version of TLS that is spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MinVersion {
    /// TLS 1.2.
    #[default]
    Tls12,
    /// TLS 1.3.
    Tls13,
}

/// Why suites, groups or a version cannot be had.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum SuiteError {
    /// The suite is unknown or left out as insecure.
    #[error("cipher suite {0:?} is not supported; allowed are {list}", list = allowed_suites().join(", "))]
    Suite(String),
    /// The group is not supported.
    #[error(
        "key exchange group {0} is not supported; allowed are 23 (P-256), 24 (P-384) and 29 (X25519)"
    )]
    Group(u16),
    /// The version is unknown, or too old.
    #[error("TLS version {0:?} is not supported; allowed are VersionTLS12 and VersionTLS13")]
    Version(String),
}

impl FromStr for MinVersion {
    type Err = SuiteError;

    /// Reads a value of `--tls-min-version`; empty is the default.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "" | "VersionTLS12" => Ok(Self::Tls12),
            "VersionTLS13" => Ok(Self::Tls13),
            _ => Err(SuiteError::Version(text.to_owned())),
        }
    }
}

const BOTH: [&SupportedProtocolVersion; 2] = [&rustls::version::TLS13, &rustls::version::TLS12];

impl MinVersion {
    /// The versions to speak. Without any suite for it, TLS 1.2 is none.
    pub(super) fn versions(
        self,
        provider: &CryptoProvider,
    ) -> &'static [&'static SupportedProtocolVersion] {
        let has_old = provider.cipher_suites.iter().any(|suite| suite.tls13().is_none());
        match self {
            Self::Tls12 if has_old => &BOTH,
            Self::Tls12 | Self::Tls13 => &BOTH[..1],
        }
    }
}

/// The suites by Go's names, TLS 1.3's first.
const SUITES: [(&str, CipherSuite); 9] = [
    ("TLS_AES_128_GCM_SHA256", CipherSuite::TLS13_AES_128_GCM_SHA256),
    ("TLS_AES_256_GCM_SHA384", CipherSuite::TLS13_AES_256_GCM_SHA384),
    ("TLS_CHACHA20_POLY1305_SHA256", CipherSuite::TLS13_CHACHA20_POLY1305_SHA256),
    (
        "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
    ),
    (
        "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
    ),
    (
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
        CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
    ),
    ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256),
    ("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384),
    (
        "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
        CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
    ),
];

/// Older names of suites, without the digest.
const OLD_NAMES: [&str; 2] =
    ["TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305", "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305"];

/// The names that `--tls-cipher-suites` takes.
#[must_use]
pub fn allowed_suites() -> Vec<&'static str> {
    SUITES.iter().map(|(name, _)| *name).collect()
}

/// The cryptography with these suites and groups; none of them means all.
pub(super) fn provider(suites: &[String], groups: &[u16]) -> Result<CryptoProvider, SuiteError> {
    let mut provider = super::default_provider();
    if !suites.is_empty() {
        let chosen: Result<Vec<_>, _> = suites.iter().map(|name| suite(name)).collect();
        let chosen = chosen?;
        let keep = |suite: &SupportedCipherSuite| {
            suite.tls13().is_some() || chosen.contains(&suite.suite())
        };
        provider.cipher_suites.retain(keep);
    }
    if !groups.is_empty() {
        let chosen: Result<Vec<_>, _> = groups.iter().map(|group| kx_group(*group)).collect();
        provider.kx_groups = chosen?;
    }
    Ok(provider)
}

fn suite(name: &str) -> Result<CipherSuite, SuiteError> {
    let full = match OLD_NAMES.contains(&name) {
        true => format!("{name}_SHA256"),
        false => name.to_owned(),
    };
    let found = SUITES.iter().find(|(known, _)| *known == full);
    found.map(|(_, suite)| *suite).ok_or_else(|| SuiteError::Suite(name.to_owned()))
}

fn kx_group(number: u16) -> Result<&'static dyn SupportedKxGroup, SuiteError> {
    match number {
        23 => Ok(SECP256R1),
        24 => Ok(SECP384R1),
        29 => Ok(X25519),
        _ => Err(SuiteError::Group(number)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(names: &[&str]) -> Result<CryptoProvider, SuiteError> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        provider(&names, &[])
    }

    #[test]
    fn every_suite_that_is_allowed_is_there() {
        let known: Vec<CipherSuite> =
            super::super::default_provider().cipher_suites.iter().map(|s| s.suite()).collect();
        assert_eq!(known.len(), SUITES.len());
        assert!(SUITES.iter().all(|(_, suite)| known.contains(suite)));
    }

    #[test]
    fn old_suites_are_chosen_and_new_ones_stay() {
        let some = chosen(&["TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305"]).unwrap();
        let old: Vec<CipherSuite> =
            some.cipher_suites.iter().filter(|s| s.tls13().is_none()).map(|s| s.suite()).collect();
        assert_eq!(old, [CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256]);
        assert_eq!(some.cipher_suites.len(), 4);
        assert_eq!(MinVersion::Tls12.versions(&some).len(), 2);
        let new = chosen(&["TLS_AES_128_GCM_SHA256"]).unwrap();
        assert_eq!(MinVersion::Tls12.versions(&new), [&rustls::version::TLS13]);
    }

    #[test]
    fn what_is_not_supported_is_named_with_what_is() {
        let error = chosen(&["TLS_RSA_WITH_AES_128_CBC_SHA"]).err().unwrap().to_string();
        assert!(error.contains("TLS_RSA_WITH_AES_128_CBC_SHA"), "{error}");
        assert!(error.contains("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"), "{error}");
        assert_eq!(provider(&[], &[25]).err(), Some(SuiteError::Group(25)));
        assert_eq!(provider(&[], &[29, 23]).unwrap().kx_groups.len(), 2);
        assert_eq!("".parse(), Ok(MinVersion::Tls12));
        assert_eq!("VersionTLS13".parse(), Ok(MinVersion::Tls13));
        let old = "VersionTLS11".parse::<MinVersion>();
        assert_eq!(old, Err(SuiteError::Version("VersionTLS11".to_owned())));
    }
}

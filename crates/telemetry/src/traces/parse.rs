//! Values of flags and configuration fields.

use std::fmt;
use std::str::FromStr;

use http::Uri;
use http::uri::Scheme;

use crate::ParseError;

/// A collector's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint(Uri);

impl Endpoint {
    pub(super) fn is_tls(&self) -> bool {
        self.0.scheme() == Some(&Scheme::HTTPS)
    }
}

/// From `http://host:4318` or `https://host/path`. Without a path, OTLP's
/// `/v1/traces` is meant.
impl FromStr for Endpoint {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let failed = || {
            let allowed = "an address of an OTLP/HTTP collector, such as http://localhost:4318 or https://collector/v1/traces";
            // An address may hold a password.
            ParseError::new("--tracing-endpoint", &without_user(text), allowed)
        };
        let uri: Uri = text.parse().map_err(|_| failed())?;
        let mut parts = uri.into_parts();
        let is_http = [Some(&Scheme::HTTP), Some(&Scheme::HTTPS)].contains(&parts.scheme.as_ref());
        let has_user = parts.authority.as_ref().is_none_or(|a| a.as_str().contains('@'));
        if !is_http || has_user {
            return Err(failed());
        }
        if parts.path_and_query.as_ref().is_none_or(|path| path == "/") {
            parts.path_and_query = Some(http::uri::PathAndQuery::from_static("/v1/traces"));
        }
        Uri::from_parts(parts).map(Self).map_err(|_| failed())
    }
}

fn without_user(text: &str) -> String {
    match text.rsplit_once('@') {
        Some((_, host)) => format!("...@{host}"),
        None => text.to_owned(),
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How many traces of a million are kept: 0 to 1000000.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SamplingRate(u32);

impl SamplingRate {
    const MILLION: u32 = 1_000_000;

    /// All traces.
    pub const ALL: Self = Self(Self::MILLION);

    /// So many of a million; `None` for more than all.
    pub fn per_million(n: u32) -> Option<Self> {
        (n <= Self::MILLION).then_some(Self(n))
    }

    /// How many of a million.
    pub fn get(self) -> u32 {
        self.0
    }

    pub(super) fn ratio(self) -> f64 {
        f64::from(self.0) / f64::from(Self::MILLION)
    }
}

impl FromStr for SamplingRate {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let failed = || {
            let flag = "--tracing-sampling-rate-per-million";
            ParseError::new(flag, text, "a number from 0 to 1000000")
        };
        text.parse().ok().and_then(Self::per_million).ok_or_else(failed)
    }
}

impl fmt::Display for SamplingRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::{Endpoint, SamplingRate};

    #[test]
    fn endpoints_are_http_addresses() {
        let cases = [
            ("http://localhost:4318", Some("http://localhost:4318/v1/traces")),
            ("http://localhost:4318/", Some("http://localhost:4318/v1/traces")),
            ("https://[::1]/otlp?x=1", Some("https://[::1]/otlp?x=1")),
            ("localhost:4318", None),
            ("dns://localhost:4317", None),
            ("/v1/traces", None),
            ("http://", None),
            ("", None),
        ];
        for (text, expected) in cases {
            let found = text.parse::<Endpoint>().ok().map(|endpoint| endpoint.to_string());
            assert_eq!(found.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn a_password_is_not_repeated() {
        let error = "http://me:secret@host".parse::<Endpoint>().unwrap_err().to_string();
        assert!(error.contains("\"...@host\"") && !error.contains("secret"), "{error}");
    }

    #[test]
    fn rates_go_up_to_a_million() {
        for (text, expected) in [
            ("0", Some(0)),
            ("1000000", Some(1_000_000)),
            ("1000001", None),
            ("-1", None),
            ("x", None),
        ] {
            assert_eq!(
                text.parse::<SamplingRate>().ok().map(SamplingRate::get),
                expected,
                "{text}"
            );
        }
    }
}

//! How the values of flags are written: as the reference's flag library takes
//! them, not as this one's does by itself.

use std::convert::Infallible;
use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use steersman_telemetry::ParseError;

/// A truth value in one of Go's spellings.
pub(super) fn truth(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err("allowed: true, false".to_owned()),
    }
}

/// A number of requests a second.
pub(super) fn rate(text: &str) -> Result<f32, String> {
    let rate = text.parse().ok().filter(|rate: &f32| rate.is_finite());
    rate.ok_or_else(|| "allowed: a finite number".to_owned())
}

/// What the crate for logs and traces reads by itself; its message without the
/// flag and what was found, which are named anyhow.
pub(super) fn told<T: FromStr<Err = ParseError>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: ParseError| format!("allowed: {}", error.allowed))
}

/// The path of a file. An empty one stands for none, so that a template can
/// pass the flag in any case.
pub(super) fn file(text: &str) -> Result<PathBuf, Infallible> {
    Ok(PathBuf::from(text))
}

/// The path that is given, if it is not empty.
pub(in crate::command::run) fn given(path: Option<&PathBuf>) -> Option<&Path> {
    path.map(PathBuf::as_path).filter(|path| !path.as_os_str().is_empty())
}

/// An address to listen at. An empty one stands for all.
pub(super) fn address(text: &str) -> Result<IpAddr, String> {
    match text.trim() {
        "" => Ok(IpAddr::from([0, 0, 0, 0])),
        text => text.parse().map_err(|_| "allowed: an IP address such as 127.0.0.1".to_owned()),
    }
}

/// A TCP port, 0 for none.
pub(super) fn port(text: &str) -> Result<u16, String> {
    text.parse()
        .map_err(|_| "allowed: 0 to 65535, of which 0 turns serving over HTTPS off".to_owned())
}

/// A list with commas between its elements; quotes keep commas in an element.
/// A flag that is repeated adds to the list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::command::run) struct CommaList(Vec<String>);

impl FromStr for CommaList {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        let mut elements = vec![String::new()];
        let mut quoted = false;
        for (i, c) in text.char_indices() {
            match c {
                '"' => quoted = !quoted,
                ',' if !quoted => elements.push(String::new()),
                c => elements.last_mut().expect("it begins with one").push(c),
            }
            if i + c.len_utf8() == text.len() && quoted {
                return Err("a quote is not closed".to_owned());
            }
        }
        Ok(Self(elements))
    }
}

impl CommaList {
    /// The elements of all occurrences of a flag, in order.
    pub(in crate::command::run) fn all(lists: &[Self]) -> Vec<String> {
        lists.iter().flat_map(|list| &list.0).cloned().collect()
    }
}

/// A version of Kubernetes, without what comes after the minor number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::command::run) struct Release {
    major: u16,
    minor: u16,
}

impl Release {
    /// The release whose scheduler this one stands in for.
    pub(in crate::command::run) const REFERENCE: Self = Self { major: 1, minor: 36 };

    /// So many minor versions before this one.
    pub(in crate::command::run) const fn before(self, minors: u16) -> Self {
        Self { major: self.major, minor: self.minor.saturating_sub(minors) }
    }
}

impl FromStr for Release {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let allowed = || format!("found {text:?}, allowed: a version such as {}", Self::REFERENCE);
        let (major, minor) =
            text.strip_prefix('v').unwrap_or(text).split_once('.').ok_or_else(allowed)?;
        match (major.parse(), minor.parse()) {
            (Ok(major), Ok(minor)) => Ok(Self { major, minor }),
            _ => Err(allowed()),
        }
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_split_at_commas_outside_of_quotes() {
        let list = |text: &str| text.parse::<CommaList>().map(|list| list.0);
        assert_eq!(list("").unwrap(), [""; 0]);
        assert_eq!(list("a").unwrap(), ["a"]);
        assert_eq!(list("a,b,").unwrap(), ["a", "b", ""]);
        assert_eq!(list("\"a,b\",c").unwrap(), ["a,b", "c"]);
        assert!(list("\"a,b").is_err());
        let both = ["a,b".parse().unwrap(), CommaList::default(), "c".parse().unwrap()];
        assert_eq!(CommaList::all(&both), ["a", "b", "c"]);
    }

    #[test]
    fn numbers_and_addresses_keep_to_their_ranges() {
        assert_eq!(address(""), address("0.0.0.0"));
        assert!(address("localhost").is_err());
        assert!(port("65536").is_err());
        assert_eq!("v1.36".parse(), Ok(Release::REFERENCE));
        assert_eq!(Release::REFERENCE.before(3).to_string(), "1.33");
        assert!("1.36.2".parse::<Release>().is_err() && "1".parse::<Release>().is_err());
        assert_eq!((truth("T"), truth("0")), (Ok(true), Ok(false)));
        assert!(truth("yes").is_err());
    }
}

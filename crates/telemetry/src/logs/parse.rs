//! Values of flags.

use std::fmt;
use std::str::FromStr;

use super::{Format, Verbosity};

/// A flag's value that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{flag}: {found:?} is not {allowed}")]
pub struct ParseError {
    /// The flag, with its dashes.
    pub flag: &'static str,
    /// What was given.
    pub found: String,
    /// What can be given.
    pub allowed: &'static str,
}

impl ParseError {
    pub(crate) fn new(flag: &'static str, found: &str, allowed: &'static str) -> Self {
        Self { flag, found: found.to_owned(), allowed }
    }
}

impl FromStr for Format {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            "human" => Ok(Self::Human),
            _ => Err(ParseError::new(
                "--logging-format",
                text,
                "one of \"text\", \"json\", \"human\"",
            )),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "text",
            Self::Json => "json",
            Self::Human => "human",
        })
    }
}

impl FromStr for Verbosity {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let allowed = "a number from 0 to 2147483647";
        level(text).map(Self).ok_or_else(|| ParseError::new("--v", text, allowed))
    }
}

/// klog's verbosities fit into 31 bits and have no sign.
pub(super) fn level(text: &str) -> Option<u32> {
    let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|&n: &u32| is_number && i32::try_from(n).is_ok())
}

/// A number of bytes, two gibibytes at the most: more is cut, as the reference
/// does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(u64);

impl Size {
    const MAX: u64 = 2 << 30;

    /// So many bytes.
    pub fn bytes(n: u64) -> Self {
        Self(n.min(Self::MAX))
    }

    /// How many bytes.
    pub fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// From a number of bytes with an optional unit: `512`, `1K`, `2Ki`, `3M`.
impl FromStr for Size {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        const ALLOWED: &str = "a number of bytes such as 512, 1K, 2Ki, 3M or 5Mi";
        let failed = || {
            ParseError::new(
                "--log-text-info-buffer-size or --log-json-info-buffer-size",
                text,
                ALLOWED,
            )
        };
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at(digits);
        let factor: u64 = match unit {
            "" => 1,
            "k" | "K" => 1000,
            "Ki" => 1 << 10,
            "M" => 1_000_000,
            "Mi" => 1 << 20,
            "G" => 1_000_000_000,
            "Gi" => 1 << 30,
            _ => return Err(failed()),
        };
        let number: u64 = number.parse().map_err(|_| failed())?;
        Ok(Self::bytes(number.saturating_mul(factor)))
    }
}

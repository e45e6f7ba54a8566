//! Durations the way Kubernetes' configuration writes them: `15s`, `1m30s`.
//!
//! Source: the documentation of Go's `time.ParseDuration` and
//! `time.Duration.String`, which `metav1.Duration` uses.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use thiserror::Error;

/// A signed span of time in nanoseconds; about 292 years at the most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GoDuration {
    nanos: i64,
}

/// The text is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("found {0:?}, allowed: a duration such as \"1m30s\"")]
pub struct ParseDurationError(pub String);

const SECOND: i64 = 1_000_000_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;

/// The units and their lengths in nanoseconds. The two spellings of `µs` are
/// the micro sign and the Greek letter.
const UNITS: [(&str, i64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("s", SECOND),
    ("m", MINUTE),
    ("h", HOUR),
];

impl GoDuration {
    /// No time at all.
    pub const ZERO: Self = Self { nanos: 0 };

    /// A number of seconds; at most the longest duration there is.
    pub const fn from_secs(secs: i64) -> Self {
        Self { nanos: secs.saturating_mul(SECOND) }
    }

    /// The length in nanoseconds.
    pub const fn as_nanos(self) -> i64 {
        self.nanos
    }

    /// The same span as an unsigned duration; a negative one becomes zero.
    pub fn to_std(self) -> Duration {
        Duration::from_nanos(u64::try_from(self.nanos).unwrap_or(0))
    }
}

impl From<Duration> for GoDuration {
    /// At most the longest duration there is.
    fn from(duration: Duration) -> Self {
        Self { nanos: i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX) }
    }
}

impl FromStr for GoDuration {
    type Err = ParseDurationError;

    fn from_str(text: &str) -> Result<Self, ParseDurationError> {
        parse(text).map(|nanos| Self { nanos }).ok_or_else(|| ParseDurationError(text.to_owned()))
    }
}

fn parse(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let (part, after) = parse_part(rest)?;
        total = total.checked_add(part)?;
        rest = after;
    }
    i64::try_from(if negative { -total } else { total }).ok()
}

/// Reads one number with its unit: nanoseconds and what follows.
fn parse_part(text: &str) -> Option<(i128, &str)> {
    let (whole, rest) = split_digits(text);
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(rest) => split_digits(rest),
        None => ("", rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let unit_len = rest.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(unit_len);
    let scale = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, nanos)| *nanos)?;
    let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let nanos = whole.checked_mul(i128::from(scale))?;
    Some((nanos.checked_add(fraction_of(fraction, scale))?, rest))
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

/// `0.<digits>` of `scale`, rounded down to nanoseconds. More digits than a
/// nanosecond of an hour can tell apart change nothing.
fn fraction_of(digits: &str, scale: i64) -> i128 {
    let mut unit = i128::from(scale) * 1_000_000_000;
    let mut nanos = 0;
    for digit in digits.bytes().take(18) {
        unit /= 10;
        nanos += unit * i128::from(digit - b'0');
    }
    nanos / 1_000_000_000
}

impl fmt::Display for GoDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.nanos.unsigned_abs();
        if self.nanos < 0 {
            f.write_str("-")?;
        }
        let (second, minute, hour) =
            (SECOND.unsigned_abs(), MINUTE.unsigned_abs(), HOUR.unsigned_abs());
        match nanos {
            0 => f.write_str("0s"),
            1..1_000 => write!(f, "{nanos}ns"),
            1_000..1_000_000 => write_decimal(f, nanos, 1_000, "\u{b5}s"),
            1_000_000..1_000_000_000 => write_decimal(f, nanos, 1_000_000, "ms"),
            _ => {
                if nanos >= hour {
                    write!(f, "{}h", nanos / hour)?;
                }
                if nanos >= minute {
                    write!(f, "{}m", nanos % hour / minute)?;
                }
                write_decimal(f, nanos % minute, second, "s")
            }
        }
    }
}

/// Writes `nanos / unit` without trailing zeros.
fn write_decimal(f: &mut fmt::Formatter<'_>, nanos: u64, unit: u64, name: &str) -> fmt::Result {
    write!(f, "{}", nanos / unit)?;
    let fraction = nanos % unit;
    if fraction > 0 {
        // The unit is a power of ten, so its zeros are the digits to show.
        let digits = unit.ilog10() as usize;
        let text = format!("{fraction:0digits$}");
        write!(f, ".{}", text.trim_end_matches('0'))?;
    }
    f.write_str(name)
}

impl Serialize for GoDuration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for GoDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, nanos: Option<i64>) {
        assert_eq!(text.parse::<GoDuration>().ok().map(GoDuration::as_nanos), nanos, "{text:?}");
    }

    #[test]
    fn reads_go_syntax() {
        check("0", Some(0));
        check("-0s", Some(0));
        check("15s", Some(15 * SECOND));
        check("+1h2m3s", Some(HOUR + 2 * MINUTE + 3 * SECOND));
        check("-1.5h", Some(-HOUR - 30 * MINUTE));
        check(".5s", Some(SECOND / 2));
        check("5.s", Some(5 * SECOND));
        check("1ns2us3ms", Some(3_002_001));
        check("1\u{b5}s", Some(1_000));
        check("1\u{3bc}s", Some(1_000));
        check("9223372036854775807ns", Some(i64::MAX));
        check("-9223372036854775808ns", Some(i64::MIN));
    }

    #[test]
    fn refuses_everything_else() {
        let long = "9".repeat(100) + "h";
        for text in [
            "",
            "-",
            "15",
            "1.2.3s",
            "s",
            ".s",
            "1 s",
            "1d",
            "1S",
            "1s-2s",
            "--1s",
            "é",
            "9223372036854775808ns",
            "2562048h",
            &long,
        ] {
            check(text, None);
        }
    }

    #[test]
    fn writes_go_syntax() {
        for text in [
            "0s",
            "1ns",
            "1.1\u{b5}s",
            "2.2ms",
            "15s",
            "1m0s",
            "10m0s",
            "1m30s",
            "1h0m0s",
            "1h15m30.918273645s",
            "-2s",
            "2540400h10m10s",
            "2562047h47m16.854775807s",
        ] {
            let parsed: GoDuration = text.parse().expect("a duration");
            assert_eq!(parsed.to_string(), text);
        }
        assert_eq!(GoDuration::from_secs(600).to_string(), "10m0s");
        assert_eq!(GoDuration { nanos: i64::MIN }.to_string(), "-2562047h47m16.854775808s");
    }
}

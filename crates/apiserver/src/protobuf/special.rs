//! Messages that JSON writes in a way of their own.

use jiff::Timestamp;
use serde_json::Value;

use super::ProtobufError;
use super::wire::Reader;

/// A type that is no object in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Special {
    Quantity,
    IntOrString,
    Time,
    MicroTime,
    Duration,
    /// JSON inside of protobuf.
    Raw,
}

impl Special {
    pub(super) fn of(name: &str) -> Option<Self> {
        Some(match name {
            "quantity" => Self::Quantity,
            "int-or-string" => Self::IntOrString,
            "time" => Self::Time,
            "micro-time" => Self::MicroTime,
            "duration" => Self::Duration,
            "raw" => Self::Raw,
            _ => return None,
        })
    }

    /// Its value in JSON; null for what JSON leaves out.
    pub(super) fn read(self, bytes: &[u8]) -> Result<Value, ProtobufError> {
        let (mut numbers, mut text) = ([0_i64; 4], &[][..]);
        let mut reader = Reader::new(bytes);
        let is_empty = reader.is_empty();
        while let Some((number, wire)) = reader.field()? {
            match wire.bytes() {
                Ok(bytes) => text = bytes,
                Err(_) => {
                    let place = usize::try_from(number).ok().and_then(|at| numbers.get_mut(at));
                    if let Some(place) = place {
                        *place = wire.varint()?.cast_signed();
                    }
                }
            }
        }
        let as_text = || std::str::from_utf8(text).map_err(|_| ProtobufError::Text);
        Ok(match self {
            Self::Quantity => Value::from(if text.is_empty() { "0" } else { as_text()? }),
            // Field 1 says which of the two it is.
            Self::IntOrString if numbers[1] == 1 => Value::from(as_text()?),
            Self::IntOrString => Value::from(numbers[2]),
            Self::Time | Self::MicroTime if is_empty => Value::Null,
            Self::Time => {
                timestamp(numbers[1], 0).map_or(Value::Null, |time| Value::from(time.to_string()))
            }
            Self::MicroTime => timestamp(numbers[1], numbers[2])
                .map_or(Value::Null, |time| Value::from(format!("{time:.6}"))),
            Self::Duration => Value::from(duration(numbers[1])),
            Self::Raw if text.is_empty() => Value::Null,
            Self::Raw => serde_json::from_slice(text)
                .map_err(|_| ProtobufError::Type("JSON inside of protobuf"))?,
        })
    }
}

fn timestamp(seconds: i64, nanoseconds: i64) -> Option<Timestamp> {
    Timestamp::new(seconds, i32::try_from(nanoseconds).ok()?).ok()
}

/// Nanoseconds as `1h2m3.5s`, in the units that are there.
fn duration(nanoseconds: i64) -> String {
    let sign = if nanoseconds < 0 { "-" } else { "" };
    let all = nanoseconds.unsigned_abs();
    let (hours, rest) = (all / 3_600_000_000_000, all % 3_600_000_000_000);
    let (minutes, rest) = (rest / 60_000_000_000, rest % 60_000_000_000);
    let fraction = format!("{:09}", rest % 1_000_000_000);
    let fraction = fraction.trim_end_matches('0');
    let point = if fraction.is_empty() { "" } else { "." };
    let seconds = format!("{}{point}{fraction}s", rest / 1_000_000_000);
    match (hours, minutes) {
        (0, 0) => format!("{sign}{seconds}"),
        (0, minutes) => format!("{sign}{minutes}m{seconds}"),
        (hours, minutes) => format!("{sign}{hours}h{minutes}m{seconds}"),
    }
}

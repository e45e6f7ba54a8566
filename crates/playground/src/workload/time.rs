//! Times that objects ask for, which may be beyond all that a clock can show.

use jiff::{SignedDuration, Timestamp};

/// So many seconds after `at`, or before it; at the end of all time if that is
/// beyond it.
pub(crate) fn later(at: Timestamp, seconds: i64) -> Timestamp {
    later_by(at, SignedDuration::from_secs(seconds))
}

/// So long after `at`, or before it; at the end of all time if that is beyond
/// it.
pub(crate) fn later_by(at: Timestamp, by: SignedDuration) -> Timestamp {
    let end = if by.is_negative() { Timestamp::MIN } else { Timestamp::MAX };
    at.checked_add(by).unwrap_or(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_beyond_the_end_are_the_end() {
        let at = Timestamp::UNIX_EPOCH;
        let cases = [
            (at, 60, Timestamp::from_second(60).expect("a time")),
            (at, -60, Timestamp::from_second(-60).expect("a time")),
            (at, i64::MAX, Timestamp::MAX),
            (at, i64::MIN, Timestamp::MIN),
            (Timestamp::MAX, 1, Timestamp::MAX),
            (Timestamp::MIN, -1, Timestamp::MIN),
        ];
        for (at, seconds, expected) in cases {
            assert_eq!(later(at, seconds), expected, "{at} and {seconds} s");
        }
    }
}

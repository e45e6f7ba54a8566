//! What time it is.

use jiff::Timestamp;

/// Tells the time to the server.
pub trait Clock: Send + Sync {
    /// The time now.
    fn now(&self) -> Timestamp;
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// A time as objects hold it: whole seconds, in UTC.
pub(crate) fn rfc3339(time: Timestamp) -> String {
    Timestamp::from_second(time.as_second()).map_or_else(|_| time.to_string(), |s| s.to_string())
}

//! The time of log lines.

use std::fmt;
use std::sync::Arc;

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// Where lines get their time.
#[derive(Clone)]
pub struct Clock {
    read: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    zone: TimeZone,
}

impl Clock {
    /// The system's clock and time zone: klog writes local time.
    pub fn system() -> Self {
        Self { read: Arc::new(Timestamp::now), zone: TimeZone::system() }
    }

    /// Another clock, for tests and simulations.
    pub fn new(read: impl Fn() -> Timestamp + Send + Sync + 'static, zone: TimeZone) -> Self {
        Self { read: Arc::new(read), zone }
    }

    pub(crate) fn now(&self) -> Zoned {
        (self.read)().to_zoned(self.zone.clone())
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clock").field("zone", &self.zone).finish_non_exhaustive()
    }
}

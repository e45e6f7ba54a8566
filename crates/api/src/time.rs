//! Time as the core sees it: numbers that a driver hands in.

use std::fmt;
use std::time::Duration;

/// A moment on the driver's monotonic clock, in nanoseconds since a start that
/// the driver chose. Virtual in the simulator and in tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// The start of the driver's clock.
    pub const ZERO: Self = Self(0);

    /// The moment `since_start` after the start.
    pub fn from_start(since_start: Duration) -> Self {
        Self(u64::try_from(since_start.as_nanos()).unwrap_or(u64::MAX))
    }

    /// How long after the start this is.
    pub fn since_start(self) -> Duration {
        Duration::from_nanos(self.0)
    }

    /// The moment `duration` later; the end of time when that overflows.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// The moment `duration` earlier; `None` when that is before the start.
    pub fn before(self, duration: Duration) -> Option<Self> {
        Some(Self(self.0.checked_sub(u64::try_from(duration.as_nanos()).ok()?)?))
    }

    /// How long ago `earlier` was; zero when it is not earlier.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// A wall-clock time of an object (`creationTimestamp` and the like), in whole
/// seconds since 1970. Only ever compared with times of other objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WallTime(pub i64);

impl fmt::Display for WallTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}s", self.0)
    }
}

impl From<&k8s_openapi::apimachinery::pkg::apis::meta::v1::Time> for WallTime {
    fn from(time: &k8s_openapi::apimachinery::pkg::apis::meta::v1::Time) -> Self {
        Self(time.0.as_second())
    }
}

//! Time, as an election needs it.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;

/// Tells the time.
pub trait Clock: fmt::Debug + Send + Sync {
    /// Time since some moment that stays the same; never goes back, and goes on
    /// while the machine sleeps. All decisions are made by it.
    fn elapsed(&self) -> Duration;

    /// The time of day, for what people read in the lock.
    fn wall(&self) -> Timestamp;
}

/// The machine's own clocks.
///
/// On Linux time passes while the machine is suspended, too: the leases of
/// others ran on meanwhile. On other systems it may not, and a machine that
/// wakes up may for a moment hold itself for the leader; the API server's
/// compare and swap still keeps it from renewing.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[cfg(target_os = "linux")]
    fn elapsed(&self) -> Duration {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let (secs, nanos) = (u64::try_from(time.tv_sec), u32::try_from(time.tv_nsec));
        Duration::new(secs.unwrap_or_default(), nanos.unwrap_or_default())
    }

    #[cfg(not(target_os = "linux"))]
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the clock")]
    fn elapsed(&self) -> Duration {
        use std::sync::LazyLock;
        use std::time::Instant;

        static START: LazyLock<Instant> = LazyLock::new(Instant::now);
        START.elapsed()
    }

    fn wall(&self) -> Timestamp {
        Timestamp::now()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_clock_does_not_go_back() {
        let times: Vec<Duration> = (0..1000).map(|_| SystemClock.elapsed()).collect();
        assert!(times.is_sorted());
        assert!(times[999] > Duration::ZERO);
    }
}

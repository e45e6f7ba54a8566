//! The token that says whether a term still runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::clock::Clock;
use crate::fence::Fence;

/// Says whether this process is still the leader for certain. Cheap to clone and
/// to ask: an atomic and a clock.
///
/// It says no as soon as the last renewal that succeeded was sent longer ago than
/// the renew deadline, whether or not anything in this process noticed: also
/// right after the process, or the machine, was frozen and goes on. It never says
/// yes again; the next term has a token of its own.
#[derive(Clone, Debug)]
pub struct Leadership {
    /// When it ends, in nanoseconds of the clock; 0 when it has.
    until: Arc<AtomicU64>,
    clock: Arc<dyn Clock>,
}

impl Leadership {
    pub(crate) fn new(clock: Arc<dyn Clock>, until: Duration) -> Self {
        Self { until: Arc::new(AtomicU64::new(nanos(until))), clock }
    }

    /// Whether nobody else can lead at this moment.
    pub fn still_valid(&self) -> bool {
        !self.remaining().is_zero()
    }

    /// For how long nobody else can lead, even if no renewal succeeds any more.
    pub fn remaining(&self) -> Duration {
        let until = Duration::from_nanos(self.until.load(Ordering::Acquire));
        until.saturating_sub(self.clock.elapsed())
    }

    /// A layer for HTTP clients that lets writes pass only while this is valid.
    pub fn fence(&self) -> Fence {
        Fence::new(self.clone())
    }

    /// Moves the end. An ended term stays ended.
    pub(crate) fn extend(&self, until: Duration) {
        let later = |old: u64| (old != 0).then(|| nanos(until).max(old));
        let _ = self.until.fetch_update(Ordering::AcqRel, Ordering::Acquire, later);
    }

    pub(crate) fn end(&self) {
        self.until.store(0, Ordering::Release);
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

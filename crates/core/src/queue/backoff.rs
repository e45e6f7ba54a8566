//! How long a pod waits after a failed attempt.

use std::time::Duration;

use steersman_api::time::Time;

/// The first and the longest wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backoff {
    pub(crate) initial: Duration,
    pub(crate) max: Duration,
}

/// Waits end together at whole windows, so that among pods whose waits end at
/// about the same time priority decides, not the millisecond.
const WINDOW: Duration = Duration::from_secs(1);

impl Backoff {
    /// When a pod that failed at `since`, for the `failures`-th time in a row,
    /// may be tried again: the wait doubles each time, and ends with its window.
    pub(crate) fn until(&self, since: Time, failures: u32) -> Time {
        if failures == 0 {
            return since;
        }
        let doublings = failures.saturating_sub(1).min(31);
        let wait = self.initial.saturating_mul(1 << doublings).min(self.max);
        if wait.is_zero() {
            return since;
        }
        end_of_window(since.after(wait))
    }
}

fn end_of_window(at: Time) -> Time {
    let windows = at.since_start().as_nanos().div_ceil(WINDOW.as_nanos());
    let seconds = u64::try_from(windows).unwrap_or(u64::MAX);
    Time::from_start(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(since_ms: u64, failures: u32, until_s: u64) {
        let backoff = Backoff { initial: Duration::from_secs(1), max: Duration::from_secs(10) };
        let since = Time::from_start(Duration::from_millis(since_ms));
        let until = backoff.until(since, failures).since_start();
        assert_eq!(until, Duration::from_secs(until_s), "{failures} failures at {since_ms} ms");
    }

    #[test]
    fn wait_doubles_up_to_the_longest_and_ends_with_its_window() {
        check(0, 0, 0);
        check(0, 1, 1);
        check(0, 2, 2);
        check(0, 3, 4);
        check(0, 4, 8);
        check(0, 5, 10);
        check(0, u32::MAX, 10);
        check(500, 1, 2);
        check(1000, 1, 2);
    }
}

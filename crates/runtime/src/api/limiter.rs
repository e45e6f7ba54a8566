//! The client's own limit on how many requests go out.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};

/// Lets `burst` requests go at once and after them `qps` a second, in the order
/// in which they asked.
#[derive(Debug)]
pub(crate) struct Limiter {
    rate: Option<Rate>,
}

#[derive(Debug)]
struct Rate {
    /// One request's share of a second.
    share: Duration,
    /// How far ahead of the steady rate requests may run.
    slack: Duration,
    /// When the steady rate would have sent everything that was let go so far.
    paid_until: Mutex<Instant>,
}

impl Limiter {
    /// No limit when `qps` is missing, not a number, or not positive.
    pub(crate) fn new(qps: Option<f32>, burst: u32) -> Self {
        let rate = qps.filter(|qps| *qps > 0.0 && qps.is_finite()).map(|qps| {
            // A share that long is as good as never; it must not overflow.
            let share = Duration::from_secs_f64((1.0 / f64::from(qps)).min(86_400.0));
            Rate {
                share,
                slack: share.saturating_mul(burst.max(1) - 1),
                paid_until: Mutex::new(Instant::now()),
            }
        });
        Self { rate }
    }

    /// Waits for this request's turn.
    pub(crate) async fn turn(&self) {
        let Some(rate) = &self.rate else { return };
        let at = rate.reserve(Instant::now());
        if at > Instant::now() {
            sleep_until(at).await;
        }
    }
}

impl Rate {
    fn reserve(&self, now: Instant) -> Instant {
        let mut paid_until = self.paid_until.lock();
        let start = (*paid_until).max(now);
        *paid_until = start + self.share;
        start.checked_sub(self.slack).unwrap_or(now).max(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When each of `n` requests that come at once may go, in milliseconds.
    async fn turns(qps: Option<f32>, burst: u32, n: usize) -> Vec<u128> {
        let limiter = Limiter::new(qps, burst);
        let start = Instant::now();
        let mut turns = Vec::new();
        for _ in 0..n {
            limiter.turn().await;
            turns.push(start.elapsed().as_millis());
        }
        turns
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_goes_at_once_and_the_rest_at_the_rate() {
        assert_eq!(turns(Some(10.0), 3, 6).await, [0, 0, 0, 100, 200, 300]);
        assert_eq!(turns(Some(10.0), 0, 3).await, [0, 100, 200]);
    }

    #[tokio::test(start_paused = true)]
    async fn no_positive_rate_is_no_limit() {
        for qps in [None, Some(0.0), Some(-1.0), Some(f32::NAN)] {
            assert_eq!(turns(qps, 1, 100).await, [0; 100], "{qps:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn idle_time_gives_back_the_burst_and_no_more() {
        let limiter = Limiter::new(Some(10.0), 2);
        limiter.turn().await;
        limiter.turn().await;
        tokio::time::advance(Duration::from_secs(60)).await;
        let start = Instant::now();
        for _ in 0..3 {
            limiter.turn().await;
        }
        assert_eq!(start.elapsed().as_millis(), 100);
    }
}

//! The client's own limit on how many requests go out.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};

/// Lets `burst` requests go at once and after them `qps` a second, in the order
/// in which they asked. Says so when one of them has to wait for long: a limit
/// that is much too low looks like a program that does nothing.
#[derive(Debug)]
pub(crate) struct Limiter {
    rate: Option<Rate>,
}

#[derive(Debug)]
struct Rate {
    qps: f32,
    burst: u32,
    /// One request's share of a second.
    share: Duration,
    /// How far ahead of the steady rate requests may run.
    slack: Duration,
    /// When the steady rate would have sent everything that was let go so far.
    paid_until: Mutex<Instant>,
    /// How many requests wait for their turn.
    n_waiting: AtomicUsize,
    /// When the log said so the last time.
    said: Mutex<Option<Instant>>,
}

/// One more request that waits, until it is dropped.
struct Waiting<'a>(&'a AtomicUsize);

/// A wait that long is worth a line in the log, like client-go's.
const LONG: Duration = Duration::from_secs(1);
/// There is no more than one such line in so long.
const REMINDER: Duration = Duration::from_secs(60);

impl Limiter {
    /// No limit when `qps` is missing, not a number, or not positive.
    pub(crate) fn new(qps: Option<f32>, burst: u32) -> Self {
        let rate = qps.filter(|qps| *qps > 0.0 && qps.is_finite()).map(|qps| {
            // A share that long is as good as never; it must not overflow.
            let share = Duration::from_secs_f64((1.0 / f64::from(qps)).min(86_400.0));
            Rate {
                qps,
                burst: burst.max(1),
                share,
                slack: share.saturating_mul(burst.max(1) - 1),
                paid_until: Mutex::new(Instant::now()),
                n_waiting: AtomicUsize::new(0),
                said: Mutex::new(None),
            }
        });
        Self { rate }
    }

    /// Waits for this request's turn.
    pub(crate) async fn turn(&self) {
        let Some(rate) = &self.rate else { return };
        let at = rate.reserve(Instant::now());
        if at <= Instant::now() {
            return;
        }
        let _waiting = Waiting::new(&rate.n_waiting);
        loop {
            let now = Instant::now();
            let left = at.saturating_duration_since(now);
            if left.is_zero() {
                return;
            }
            if left >= LONG {
                rate.complain(left, now);
            }
            // Whoever waits for long says so again, also when no others come.
            sleep_until(at.min(now + REMINDER)).await;
        }
    }
}

impl<'a> Waiting<'a> {
    fn new(n_waiting: &'a AtomicUsize) -> Self {
        n_waiting.fetch_add(1, Ordering::Relaxed);
        Self(n_waiting)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Rate {
    fn reserve(&self, now: Instant) -> Instant {
        let mut paid_until = self.paid_until.lock();
        let start = (*paid_until).max(now);
        *paid_until = start + self.share;
        start.checked_sub(self.slack).unwrap_or(now).max(now)
    }

    /// Says that a request has to wait, unless that was said not long ago.
    fn complain(&self, wait: Duration, now: Instant) {
        {
            let mut said = self.said.lock();
            if said.is_some_and(|at| now.duration_since(at) < REMINDER) {
                return;
            }
            *said = Some(now);
        }
        let waiting = self.n_waiting.load(Ordering::Relaxed);
        let Self { qps, burst, .. } = self;
        tracing::warn!(
            %qps,
            burst,
            waiting,
            wait_seconds = wait.as_secs(),
            "requests to the API server are held back by this side's own limit; raise or leave \
             out clientConnection.qps and burst (--kube-api-qps, --kube-api-burst)"
        );
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::task::JoinSet;
    use tokio::time::sleep;

    use super::*;
    use crate::logged::Logged;

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

    #[tokio::test(start_paused = true)]
    async fn a_tiny_rate_is_told_once_a_minute_with_the_number_of_requests_that_wait() {
        let (log, _guard) = Logged::start();
        // One request goes at once, the others wait for hours.
        let limiter = Arc::new(Limiter::new(Some(0.0001), 1));
        let mut waiting = JoinSet::new();
        for _ in 0..4 {
            let limiter = limiter.clone();
            waiting.spawn(async move { limiter.turn().await });
        }
        sleep(Duration::from_secs(1)).await;
        let lines = log.take();
        assert_eq!(lines.len(), 1, "{lines:?}");
        let parts = ["WARN", "qps=0.0001", "burst=1", "waiting=1", "wait_seconds=10000"];
        for part in parts.into_iter().chain(["clientConnection.qps", "--kube-api-burst"]) {
            assert!(lines[0].contains(part), "{part} is not in {lines:?}");
        }
        sleep(Duration::from_secs(120)).await;
        let lines = log.take();
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines.iter().all(|line| line.contains("waiting=3")), "{lines:?}");
        // Requests that are given up do not count.
        waiting.shutdown().await;
        sleep(Duration::from_secs(120)).await;
        assert_eq!(log.take(), Vec::<String>::new());
        assert_eq!(limiter.rate.as_ref().unwrap().n_waiting.load(Ordering::Relaxed), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn short_waits_are_not_worth_a_line() {
        let (log, _guard) = Logged::start();
        assert_eq!(turns(Some(10.0), 1, 30).await.last(), Some(&2900));
        assert_eq!(log.take(), Vec::<String>::new());
    }
}

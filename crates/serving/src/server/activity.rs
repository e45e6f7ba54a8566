//! Whether a connection does anything.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// The requests of a connection.
pub(super) struct Activity(Mutex<State>);

struct State {
    under_way: usize,
    last: Instant,
}

/// A request under way, until it is dropped.
pub(super) struct UnderWay<'a>(&'a Activity);

impl Activity {
    pub(super) fn new() -> Self {
        Self(Mutex::new(State { under_way: 0, last: Instant::now() }))
    }

    pub(super) fn start(&self) -> UnderWay<'_> {
        self.0.lock().under_way += 1;
        UnderWay(self)
    }

    /// For how long no request has been under way.
    pub(super) fn quiet(&self) -> Option<Duration> {
        let state = self.0.lock();
        (state.under_way == 0).then(|| state.last.elapsed())
    }

    /// Ends when no request has been under way for so long.
    pub(super) async fn idle(&self, limit: Duration) {
        loop {
            let (under_way, since) = {
                let state = self.0.lock();
                (state.under_way, state.last)
            };
            let now = Instant::now();
            let until = if under_way > 0 { now + limit } else { since + limit };
            if until <= now {
                return;
            }
            tokio::time::sleep_until(until).await;
        }
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let mut state = self.0.0.lock();
        state.under_way -= 1;
        state.last = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(90);

    #[tokio::test(start_paused = true)]
    async fn idle_is_counted_from_the_last_request() {
        let start = Instant::now();
        let activity = Activity::new();
        let request = activity.start();
        let at = |seconds| start + Duration::from_secs(seconds);
        assert!(tokio::time::timeout_at(at(200), activity.idle(LIMIT)).await.is_err());
        assert_eq!(activity.quiet(), None);
        drop(request);
        assert_eq!(activity.quiet(), Some(Duration::ZERO));
        activity.idle(LIMIT).await;
        assert_eq!(start.elapsed(), Duration::from_secs(290));
    }
}

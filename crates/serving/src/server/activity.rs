//! Whether a connection does anything.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

/// The requests of a connection.
pub(super) struct Activity {
    state: Mutex<State>,
    /// Told when a request has ended.
    changed: Arc<Notify>,
}

struct State {
    /// Requests under way.
    under_way: usize,
    /// Those of them that may be made: whoever asks is known and let.
    admitted: usize,
    /// Whether there has been a request at all.
    has_asked: bool,
    /// When the connection was taken, or a request last began or ended.
    last: Instant,
}

/// A request under way, until it is dropped.
pub(super) struct UnderWay<'a> {
    activity: &'a Activity,
    is_admitted: bool,
}

impl Activity {
    pub(super) fn new(changed: Arc<Notify>) -> Self {
        let last = Instant::now();
        let state = State { under_way: 0, admitted: 0, has_asked: false, last };
        Self { state: Mutex::new(state), changed }
    }

    pub(super) fn start(&self) -> UnderWay<'_> {
        let mut state = self.state.lock();
        state.under_way += 1;
        state.has_asked = true;
        state.last = Instant::now();
        UnderWay { activity: self, is_admitted: false }
    }

    /// Since when nothing has happened that a client must be let to finish;
    /// `None` while a request is under way that may be made.
    pub(super) fn quiet_since(&self) -> Option<Instant> {
        let state = self.state.lock();
        (state.admitted == 0).then_some(state.last)
    }

    /// Ends when no request has been under way for so long.
    pub(super) async fn idle(&self, limit: Duration) {
        loop {
            let (under_way, since) = {
                let state = self.state.lock();
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

    /// Ends when the head of the first request has not come in so long from now.
    pub(super) async fn silent(&self, limit: Duration) {
        tokio::time::sleep(limit).await;
        if self.state.lock().has_asked {
            std::future::pending().await
        }
    }
}

impl UnderWay<'_> {
    /// The request may be made: its connection stays until it is answered.
    pub(super) fn admit(&mut self) {
        if !std::mem::replace(&mut self.is_admitted, true) {
            self.activity.state.lock().admitted += 1;
        }
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let mut state = self.activity.state.lock();
        state.under_way -= 1;
        state.admitted -= usize::from(self.is_admitted);
        state.last = Instant::now();
        drop(state);
        self.activity.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(90);

    fn activity() -> Activity {
        Activity::new(Arc::default())
    }

    #[tokio::test(start_paused = true)]
    async fn idle_is_counted_from_the_last_request() {
        let start = Instant::now();
        let activity = activity();
        let request = activity.start();
        let at = |seconds| start + Duration::from_secs(seconds);
        assert!(tokio::time::timeout_at(at(200), activity.idle(LIMIT)).await.is_err());
        drop(request);
        activity.idle(LIMIT).await;
        assert_eq!(start.elapsed(), Duration::from_secs(290));
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_keeps_its_connection_from_when_it_is_admitted() {
        let activity = activity();
        let mut request = activity.start();
        let begun = Instant::now();
        tokio::time::advance(LIMIT).await;
        assert_eq!(activity.quiet_since(), Some(begun));
        request.admit();
        assert_eq!(activity.quiet_since(), None);
        drop(request);
        assert_eq!(activity.quiet_since(), Some(begun + LIMIT));
    }

    #[tokio::test(start_paused = true)]
    async fn only_who_has_never_asked_is_silent() {
        let start = Instant::now();
        let activity = activity();
        activity.silent(LIMIT).await;
        assert_eq!(start.elapsed(), LIMIT);
        drop(activity.start());
        assert!(tokio::time::timeout(LIMIT * 2, activity.silent(LIMIT)).await.is_err());
    }
}

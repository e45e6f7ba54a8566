//! What all reflectors know about an API server that does not answer.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Since when a line in the log says that the server cannot be reached.
#[derive(Debug, Default)]
pub(crate) struct Outage(Mutex<Option<Instant>>);

/// An outage that lasts is logged again after so long.
const REMINDER: Duration = Duration::from_secs(30);

impl Outage {
    /// Whether nobody has said it, or not for a while.
    pub(super) fn is_worth_a_line(&self) -> bool {
        let mut said = self.0.lock();
        if said.is_some_and(|at| at.elapsed() < REMINDER) {
            return false;
        }
        *said = Some(Instant::now());
        true
    }

    /// The server answers.
    pub(super) fn end(&self) {
        if self.0.lock().take().is_some() {
            tracing::info!("the API server answers again");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_outage_is_told_once_and_again_after_a_while() {
        let outage = Outage::default();
        assert!(outage.is_worth_a_line());
        assert!(!outage.is_worth_a_line());
        tokio::time::advance(REMINDER).await;
        assert!(outage.is_worth_a_line());
        outage.end();
        assert!(outage.is_worth_a_line(), "another outage");
    }
}

//! The tasks that a playground is made of. None of them ends before it is told
//! to; if one does, the playground is broken and somebody has to know.

use std::panic::AssertUnwindSafe;

use futures::FutureExt;
use thiserror::Error;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// A part of the playground ended without having been told to.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{part} ended unexpectedly")]
pub struct Failed {
    /// What it was.
    pub part: &'static str,
}

/// Tasks that end together. Dropping them ends them at once.
pub(super) struct Parts {
    stop: CancellationToken,
    tasks: JoinSet<()>,
    failed: watch::Sender<Option<Failed>>,
}

impl Parts {
    pub(super) fn new(stop: CancellationToken) -> Self {
        Self { stop, tasks: JoinSet::new(), failed: watch::Sender::new(None) }
    }

    /// Runs a part until it ends.
    pub(super) fn spawn(
        &mut self,
        part: &'static str,
        work: impl Future<Output = ()> + Send + 'static,
    ) {
        let (stop, failed) = (self.stop.clone(), self.failed.clone());
        let work = Box::pin(AssertUnwindSafe(work).catch_unwind());
        self.tasks.spawn(async move {
            let panicked = work.await.is_err();
            if panicked || !stop.is_cancelled() {
                tracing::error!(part, panicked, "a part of the playground ended");
                failed.send_if_modified(|first| {
                    let is_first = first.is_none();
                    first.get_or_insert(Failed { part });
                    is_first
                });
            }
        });
    }

    /// Waits until a part ends that should not have; the first one that did.
    pub(super) async fn failed(&self) -> Failed {
        let mut told = self.failed.subscribe();
        match told.wait_for(Option::is_some).await.map(|failed| failed.clone()) {
            Ok(Some(failed)) => failed,
            // The sender is here, so there is always something to wait for.
            Ok(None) | Err(_) => std::future::pending().await,
        }
    }

    /// Ends all parts, and waits until they have.
    pub(super) async fn shutdown(mut self) {
        self.stop.cancel();
        while self.tasks.join_next().await.is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn part_that_ends_by_itself_is_told() {
        for panics in [false, true] {
            let stop = CancellationToken::new();
            let mut parts = Parts::new(stop.clone());
            parts.spawn("the steady part", stop.cancelled_owned());
            assert_eq!(parts.failed().now_or_never(), None);
            parts.spawn("the other part", async move { assert!(!panics, "a bug") });
            // It can be waited for in any task.
            let _: Box<dyn Future<Output = Failed> + Send + '_> = Box::new(parts.failed());
            // Whoever asks later is told, too.
            for _ in 0..2 {
                let failed = parts.failed().await;
                assert_eq!(failed.to_string(), "the other part ended unexpectedly");
            }
            parts.shutdown().await;
        }
    }

    #[tokio::test]
    async fn parts_that_are_told_to_end_have_not_failed() {
        let stop = CancellationToken::new();
        let mut parts = Parts::new(stop.clone());
        let failed = parts.failed.subscribe();
        parts.spawn("a part", stop.cancelled_owned());
        parts.shutdown().await;
        assert_eq!(*failed.borrow(), None);
    }
}

//! What a running scheduler thinks right now, for people who look: queue,
//! nominations, bindings, nodes. Every answer is computed by the scheduling
//! thread between two attempts, so it is bounded in size ([`Limit`]) and says
//! how much there is in all.
//!
//! Times are seconds before the answer, on the driver's clock.

mod cluster;
mod dump;
mod health;
mod queue;
mod text;

use std::time::Duration;

use serde::Serialize;
use thiserror::Error;
use tokio::time::timeout;

pub use cluster::{AssumedPod, ClusterView, NodeDetail, NodeSummary, PodOnNode, Requests};
pub use dump::{Difference, Listed, compare};
pub use health::{Sync, Unsynced, Watchdog};
pub use queue::{
    BindingPod, BindingsView, NominatedPod, NominationsView, QueueView, QueuedPod, Wait,
};

use crate::inspect::{Inspector, Moment};

/// How many entries an answer may have at the most: 1 to [`Limit::MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit(usize);

impl Limit {
    /// The most that can be asked for: about what is gathered in a millisecond.
    pub const MAX: usize = 5000;

    /// So many, or as many as can be had.
    pub fn new(limit: usize) -> Self {
        Self(limit.clamp(1, Self::MAX))
    }

    pub(crate) fn get(self) -> usize {
        self.0
    }
}

impl Default for Limit {
    fn default() -> Self {
        Self(500)
    }
}

/// Some of what there is.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Page<T> {
    /// How much there is in all.
    pub total: usize,
    /// Whether something was left out.
    pub truncated: bool,
    /// The first of it.
    pub items: Vec<T>,
}

impl<T> Page<T> {
    pub(crate) fn of(total: usize, limit: Limit, items: impl Iterator<Item = T>) -> Self {
        let items: Vec<T> = items.take(limit.get()).collect();
        Self { total, truncated: items.len() < total, items }
    }
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum AskError {
    /// No scheduler runs: it has not been started, or has ended.
    #[error("no scheduler is running here")]
    NotRunning,
    /// The scheduling thread did not come to answer.
    #[error("the scheduling thread was busy for {0:?} and did not answer")]
    Busy(Duration),
}

/// How long a question may wait for an answer unless the caller says otherwise.
pub const PATIENCE: Duration = Duration::from_secs(5);

impl Inspector {
    /// Has the scheduling thread answer, within `patience`. The answer must not
    /// take long: nothing is scheduled meanwhile.
    ///
    /// # Errors
    /// When no scheduler runs, or it does not come to answer in time.
    pub async fn answer<T: Send + 'static>(
        &self,
        patience: Duration,
        answer: impl FnOnce(Moment<'_>) -> T + Send + 'static,
    ) -> Result<T, AskError> {
        match timeout(patience, self.ask(answer)).await {
            Ok(Some(answer)) => Ok(answer),
            Ok(None) => Err(AskError::NotRunning),
            Err(_) => Err(AskError::Busy(patience)),
        }
    }
}

#[cfg(test)]
mod tests;

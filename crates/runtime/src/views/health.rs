//! Whether the scheduler knows the cluster, and whether it answers at all: for
//! readiness and liveness checks.

use std::fmt;
use std::time::Duration;

use thiserror::Error;

use super::AskError;
use crate::inspect::Inspector;

/// Tells whether everything that is watched is known completely: the
/// reference's readiness check `sched-handler-sync`. Never waits.
#[derive(Clone, Debug)]
pub struct Sync {
    inspector: Inspector,
    /// Whether a process that schedules nothing (it stands by for another one)
    /// counts as ready.
    standby_is_ready: bool,
}

/// What is missing.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Unsynced {
    /// No scheduler has begun to watch.
    #[error("the scheduler has not started to watch the cluster")]
    NotStarted,
    /// These kinds are not known completely.
    #[error("not known completely yet: {}", Kinds(.0))]
    Missing(Vec<&'static str>),
}

struct Kinds<'a>(&'a [&'static str]);

impl fmt::Display for Kinds<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(", "))
    }
}

impl Sync {
    /// Not ready while no scheduler runs.
    pub fn new(inspector: Inspector) -> Self {
        Self { inspector, standby_is_ready: false }
    }

    /// The same, and ready while no scheduler runs.
    #[must_use]
    pub fn ready_on_standby(self) -> Self {
        Self { standby_is_ready: true, ..self }
    }

    /// Whether all is known.
    ///
    /// # Errors
    /// When something is missing.
    pub fn check(&self) -> Result<(), Unsynced> {
        match self.inspector.unsynced() {
            None if self.standby_is_ready => Ok(()),
            None => Err(Unsynced::NotStarted),
            Some(missing) if missing.is_empty() => Ok(()),
            Some(missing) => Err(Unsynced::Missing(missing)),
        }
    }
}

/// Tells whether the scheduling thread still answers.
#[derive(Clone, Debug)]
pub struct Watchdog {
    inspector: Inspector,
    patience: Duration,
}

impl Watchdog {
    /// One that waits for `patience` at the most. An attempt on a large cluster
    /// takes milliseconds; many seconds mean that a plugin or an extender hangs.
    pub fn new(inspector: Inspector, patience: Duration) -> Self {
        Self { inspector, patience }
    }

    /// Whether the thread answers. A process that schedules nothing is alive.
    ///
    /// # Errors
    /// When it does not come to answer in time.
    pub async fn check(&self) -> Result<(), AskError> {
        match self.inspector.answer(self.patience, |_| ()).await {
            Ok(()) | Err(AskError::NotRunning) => Ok(()),
            Err(busy @ AskError::Busy(_)) => Err(busy),
        }
    }
}

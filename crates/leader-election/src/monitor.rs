//! What others may know about an election.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use thiserror::Error;

use crate::clock::Clock;

/// A view of one election, for metrics, health checks and curiosity. It answers
/// from before the first try, when nothing is known yet and the process is a
/// candidate like any other, and goes on to answer when the election is over.
#[derive(Clone, Debug)]
pub struct Monitor {
    name: Arc<str>,
    lease_duration: Duration,
    clock: Arc<dyn Clock>,
    state: Arc<Mutex<State>>,
}

/// Numbers of an election, to be published under the names that are given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Metrics {
    /// Whether this process leads: `leader_election_master_status`.
    pub is_leader: bool,
    /// How often the lock had to be read again before it could be renewed:
    /// `leader_election_slowpath_total`.
    pub slowpath: u64,
    /// How often the lock changed hands, as it says itself.
    pub transitions: i32,
}

/// The process leads by its own account, and has not renewed for too long.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("failed election to renew leadership on lease {lease}")]
pub struct Overdue {
    /// The lock.
    pub lease: String,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    pub(crate) metrics: Metrics,
    pub(crate) leader: String,
    /// When the lock was last seen to change.
    pub(crate) observed: Duration,
}

impl Monitor {
    /// What Kubernetes' components call the health check that [`check`](Self::check)
    /// answers.
    pub const CHECK_NAME: &'static str = "leaderElection";

    /// How much longer than the lease duration Kubernetes' components let pass.
    pub const TOLERANCE: Duration = Duration::from_secs(20);

    pub(crate) fn new(name: &str, lease_duration: Duration, clock: Arc<dyn Clock>) -> Self {
        Self { name: name.into(), lease_duration, clock, state: Arc::default() }
    }

    /// The name of the lock: the label `name` of its metrics.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether this process takes itself for the leader. For people and metrics:
    /// who wants to know whether to act asks [`Leadership`](crate::Leadership).
    pub fn is_leader(&self) -> bool {
        self.state.lock().metrics.is_leader
    }

    /// The holder of the lock when it was last seen; `None` when it had none.
    /// For people: who wants to know whether to act asks
    /// [`Leadership`](crate::Leadership).
    pub fn leader(&self) -> Option<String> {
        let state = self.state.lock();
        (!state.leader.is_empty()).then(|| state.leader.clone())
    }

    /// The numbers of this moment.
    pub fn metrics(&self) -> Metrics {
        self.state.lock().metrics
    }

    /// Fails when this process took itself for the leader and did not renew for
    /// longer than the lease duration and `tolerance` together. It should have
    /// given up long before; that it has not means that something is stuck, and
    /// only a restart helps. Who stands by is healthy, however long it takes.
    /// [`TOLERANCE`](Self::TOLERANCE) is what others use.
    ///
    /// # Errors
    /// See above.
    pub fn check(&self, tolerance: Duration) -> Result<(), Overdue> {
        let state = self.state.lock();
        let age = self.clock.elapsed().saturating_sub(state.observed);
        if state.metrics.is_leader && age > self.lease_duration + tolerance {
            return Err(Overdue { lease: self.name.as_ref().to_owned() });
        }
        Ok(())
    }

    /// Changes the state; `true` when another leader, not none, is there now.
    pub(crate) fn update(&self, state: State) -> bool {
        let mut old = self.state.lock();
        let is_new = !state.leader.is_empty() && state.leader != old.leader;
        *old = state;
        is_new
    }

    pub(crate) fn stop_leading(&self) {
        self.state.lock().metrics.is_leader = false;
    }
}

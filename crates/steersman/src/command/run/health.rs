//! Whether this replica is well, as probes ask.

use std::sync::Arc;
use std::time::Duration;

use steersman_leader_election::Monitor;
use steersman_runtime::Inspector;
use steersman_runtime::views::Sync;
use steersman_serving::{Check, check, shutdown};
use tokio_util::sync::CancellationToken;

/// A leader that is so late with its renewal is not well.
const TOLERANCE: Duration = Duration::from_secs(20);

/// The checks behind one path each, by kube-scheduler's names.
pub(super) struct Checks {
    pub(super) healthz: Vec<Arc<dyn Check>>,
    pub(super) readyz: Vec<Arc<dyn Check>>,
}

impl Checks {
    /// Checks of a replica; `stop` is cancelled when it is to end. A replica
    /// that stands by is ready.
    pub(super) fn new(
        monitor: Option<Monitor>,
        stop: CancellationToken,
        inspector: Inspector,
    ) -> Self {
        let election = monitor.map(|monitor| {
            check("leaderElection", move || {
                monitor.check(TOLERANCE).map_err(|overdue| overdue.to_string())
            })
        });
        let sync = Sync::new(inspector).ready_on_standby();
        let synced = check("sched-handler-sync", move || {
            sync.check().map_err(|unsynced| unsynced.to_string())
        });
        let healthz: Vec<_> = election.clone().into_iter().collect();
        let readyz = election.into_iter().chain([shutdown(stop), synced]).collect();
        Self { healthz, readyz }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replica_that_stands_by_is_ready_until_it_is_to_end() {
        let stop = CancellationToken::new();
        let checks = Checks::new(None, stop.clone(), Inspector::default());
        let ready = || {
            let results = checks.readyz.iter().map(|check| match check.check() {
                Ok(()) => format!("{} ok", check.name()),
                Err(_) => format!("{} not ok", check.name()),
            });
            results.collect::<Vec<_>>().join(", ")
        };
        assert!(checks.healthz.is_empty());
        assert_eq!(ready(), "shutdown ok, sched-handler-sync ok");
        stop.cancel();
        assert_eq!(ready(), "shutdown not ok, sched-handler-sync ok");
    }
}

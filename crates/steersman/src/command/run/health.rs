//! Whether this replica is well, as probes ask.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use steersman_config::Config;
use steersman_leader_election::Monitor;
use steersman_runtime::Inspector;
use steersman_runtime::views::{Sync, Watchdog};
use steersman_serving::{Check, check, ping, shutdown};
use tokio::sync::watch;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::settled::Settled;

/// A leader that is so late with its renewal is not well.
const TOLERANCE: Duration = Duration::from_secs(20);

/// For so long the scheduling thread may be deaf, extenders aside: an attempt in
/// a large cluster takes milliseconds.
const DEAF: Duration = Duration::from_secs(60);
/// What an extender may take beyond its `httpTimeout`.
const GRACE: Duration = Duration::from_secs(1);
/// How often one attempt may ask an extender and wait: filter, for the nominated
/// node and for all, prioritize, preempt.
const QUESTIONS: u32 = 4;
/// How often the thread is asked.
const PAUSE: Duration = Duration::from_secs(5);

/// The checks behind one path each, by kube-scheduler's names, and of our own
/// whether the scheduling thread answers.
pub(super) struct Checks {
    pub(super) healthz: Vec<Arc<dyn Check>>,
    pub(super) livez: Vec<Arc<dyn Check>>,
    pub(super) readyz: Vec<Arc<dyn Check>>,
}

impl Checks {
    /// Checks of a replica; `stop` is cancelled when it is to end. A replica
    /// that stands by is ready.
    pub(super) fn new(
        monitor: Option<Monitor>,
        stop: CancellationToken,
        inspector: Inspector,
        verdict: &Verdict,
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
        let verdict = verdict.clone();
        let answers = check("scheduling-thread", move || verdict.get());
        let first = election.clone().unwrap_or_else(ping);
        let healthz = vec![first, answers.clone()];
        let livez = vec![ping(), answers];
        let readyz = election.into_iter().chain([shutdown(stop), synced]).collect();
        Self { healthz, livez, readyz }
    }
}

/// Whether the scheduling thread answered when it was asked the last time. Probes
/// are not to wait for as long as it may take.
#[derive(Clone, Default)]
pub(super) struct Verdict(Arc<Mutex<Option<String>>>);

impl Verdict {
    fn get(&self) -> Result<(), String> {
        match &*self.0.lock() {
            None => Ok(()),
            Some(reason) => Err(reason.clone()),
        }
    }
}

/// Asks the scheduling thread again and again whether it is there.
pub(super) async fn watch(
    inspector: Inspector,
    configs: watch::Receiver<Arc<Settled>>,
    verdict: Verdict,
) -> anyhow::Result<Infallible> {
    loop {
        let limit = patience(&configs.borrow().config);
        let answer = Watchdog::new(inspector.clone(), limit).check().await;
        let reason = answer.err().map(|busy| busy.to_string());
        if let Some(reason) = &reason {
            tracing::error!("{reason}: it hangs in a plugin, or an extender, or is starved");
        }
        *verdict.0.lock() = reason;
        sleep(PAUSE).await;
    }
}

/// How long the scheduling thread may be deaf. Extenders that use up their time
/// are slow, but nothing hangs.
fn patience(config: &Config) -> Duration {
    let extenders = config.extenders.iter();
    let slow: Duration = extenders.map(|it| it.http_timeout.saturating_add(GRACE)).sum();
    DEAF.saturating_add(slow.saturating_mul(QUESTIONS))
}

#[cfg(test)]
mod tests {
    use steersman_metrics::{Options, SchedulerMetrics};
    use steersman_runtime::Desk;
    use steersman_runtime::views::AskError;

    use super::*;
    use crate::command::run::measured;

    fn results(checks: &[Arc<dyn Check>]) -> String {
        let results = checks.iter().map(|check| match check.check() {
            Ok(()) => format!("{} ok", check.name()),
            Err(_) => format!("{} not ok", check.name()),
        });
        results.collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn a_replica_that_stands_by_is_ready_until_it_is_to_end() {
        let stop = CancellationToken::new();
        let verdict = Verdict::default();
        let checks = Checks::new(None, stop.clone(), Inspector::default(), &verdict);
        assert_eq!(results(&checks.healthz), "ping ok, scheduling-thread ok");
        assert_eq!(results(&checks.readyz), "shutdown ok, sched-handler-sync ok");
        stop.cancel();
        assert_eq!(results(&checks.readyz), "shutdown not ok, sched-handler-sync ok");
        assert_eq!(results(&checks.livez), "ping ok, scheduling-thread ok");
    }

    fn settled(extenders: &str) -> Arc<Settled> {
        let text = format!(
            "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n{extenders}"
        );
        let loaded = steersman_config::load(&text, &steersman_plugins::table::in_tree()).unwrap();
        let steersman_config::Loaded { config, document, .. } = loaded;
        Arc::new(Settled { config, document, qps: None, warnings: Vec::new() })
    }

    #[tokio::test(start_paused = true)]
    async fn a_scheduling_thread_that_hangs_longer_than_extenders_may_is_not_alive() {
        let slow = "extenders: [{urlPrefix: 'http://e', filterVerb: f, httpTimeout: 29s}]";
        let (_sender, configs) = watch::channel(settled(slow));
        let inspector = Inspector::default();
        let mut desk: Desk = inspector.desk();
        let verdict = Verdict::default();
        let metrics = SchedulerMetrics::new(Options::default());
        let stop = CancellationToken::new();
        let checks = Checks::new(None, stop, inspector.clone(), &verdict);
        let livez = measured::counted("livez", checks.livez, &metrics);
        tokio::spawn(watch(inspector.clone(), configs, verdict.clone()));
        // 60 seconds, and four times 30 for the extender.
        sleep(Duration::from_secs(179)).await;
        assert_eq!(results(&livez), "ping ok, scheduling-thread ok");
        sleep(Duration::from_secs(2)).await;
        assert_eq!(results(&livez), "ping ok, scheduling-thread not ok");
        let page = metrics.render_slis();
        let failed = "{name=\"scheduling-thread\",status=\"error\",type=\"livez\"} 1";
        assert!(page.contains(failed), "{page}");

        // It answers again.
        let config = settled("").config.clone();
        let registry = steersman_plugins::table::in_tree();
        let setup = steersman_core::Setup::new(&config, &registry);
        let (scheduler, _) = steersman_core::Scheduler::new(setup).unwrap();
        let now = steersman_api::time::Time::from_start(Duration::ZERO);
        for _ in 0..20 {
            sleep(Duration::from_secs(1)).await;
            desk.answer(steersman_runtime::Moment { scheduler: &scheduler, now });
        }
        assert_eq!(results(&livez), "ping ok, scheduling-thread ok");
        drop(desk);
        let gone = inspector.answer(Duration::from_secs(1), |_| ()).await;
        assert_eq!(gone, Err(AskError::NotRunning));
    }
}

//! Leading and scheduling, from the first configuration to the last.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use kube::config::Config as KubeConfig;
use steersman_api::name::Name;
use steersman_config::Config;
use steersman_core::{Scheduler, Setup};
use steersman_extender::Permission;
use steersman_framework::extender::Extender;
use steersman_framework::registry::Registry;
use steersman_leader_election::{Election, Leadership, Term};
use steersman_metrics::SchedulerMetrics;
use steersman_runtime::{
    Counters, Inspector, Options, Scheduling, Several, Spans, Summary, Traced,
};
use steersman_telemetry::traces;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::client;
use super::settled::Settled;

/// How long a configuration is in force at the least, once the cluster is known.
const LEAST_SHIFT: Duration = Duration::from_secs(2);
/// How long knowing the cluster may take before another configuration is tried.
const LEARNING: Duration = Duration::from_secs(60);
/// How often is looked whether it is known.
const LOOK: Duration = Duration::from_millis(100);

/// What stays the same while configurations come and go.
pub(super) struct Shift<'a> {
    pub(super) registry: &'a Registry,
    pub(super) kube: KubeConfig,
    /// `None` to schedule without asking anybody.
    pub(super) election: Option<Election>,
    pub(super) options: Options,
    pub(super) configs: watch::Receiver<Arc<Settled>>,
    pub(super) counters: Arc<Counters>,
    pub(super) inspector: Inspector,
    pub(super) metrics: Arc<SchedulerMetrics>,
    pub(super) stop: CancellationToken,
}

/// Schedules until told to stop, as soon as this replica leads. `None` when it
/// never did.
pub(super) async fn work(mut shift: Shift<'_>) -> anyhow::Result<Option<Summary>> {
    let Some(election) = shift.election.take() else {
        let client = client::connect(shift.kube.clone(), None, &shift.metrics)?;
        return Box::pin(schedule(&mut shift, client, None)).await.map(Some);
    };
    let Some(mut term) = lead(election, &shift.stop).await else { return Ok(None) };
    let leadership = term.leadership();
    let client = client::connect(shift.kube.clone(), Some(leadership.fence()), &shift.metrics)?;
    let work = Box::pin(schedule(&mut shift, client, Some(&leadership)));
    let summary = match term.hold(work).await {
        Ok(summary) => summary?,
        // The fence keeps in what is still under way.
        Err(lost) => return Err(anyhow!(lost).context("leader election lost")),
    };
    term.release().await;
    Ok(Some(summary))
}

/// Waits for the leadership; `None` if the program is to end before.
async fn lead(election: Election, stop: &CancellationToken) -> Option<Term> {
    tokio::select! {
        term = Box::pin(election.acquire()) => Some(term),
        () = stop.cancelled() => None,
    }
}

/// Schedules under one configuration after the other.
async fn schedule(
    shift: &mut Shift<'_>,
    client: kube::Client,
    leadership: Option<&Leadership>,
) -> anyhow::Result<Summary> {
    loop {
        let current = shift.configs.borrow_and_update().clone();
        let config = &current.config;
        shift.metrics.serves(config.profiles.iter().map(|it| Name::from(&*it.scheduler_name)));
        let traced = Traced::new(Spans::new(traces::is_sampled));
        let scheduling = Scheduling {
            options: shift.options.clone(),
            extenders: shift.metrics.extenders(extenders(config, leadership)?),
            listener: Box::new(Several(vec![shift.metrics.listener(), Box::new(traced)])),
            counters: shift.counters.clone(),
            desk: shift.inspector.desk(),
            ..Scheduling::new(client.clone(), config, shift.registry)
        };
        let generation = shift.stop.child_token();
        let mut running = Box::pin(steersman_runtime::run(scheduling, generation.clone()));
        tokio::select! {
            summary = &mut running => return Ok(summary?),
            Ok(()) = superseded(&mut shift.configs, &shift.inspector) => {
                generation.cancel();
                let summary = running.await?;
                if shift.stop.is_cancelled() {
                    return Ok(summary);
                }
                tracing::info!("scheduling goes on with another configuration");
            }
        }
    }
}

/// Waits for another configuration, and until the present one has had its time:
/// each has to learn the cluster anew, and a file that changes again and again
/// must not leave pods waiting for ever.
async fn superseded(
    configs: &mut watch::Receiver<Arc<Settled>>,
    inspector: &Inspector,
) -> Result<(), watch::error::RecvError> {
    let shift = async {
        let knows = || inspector.unsynced().is_some_and(|missing| missing.is_empty());
        let learning = async {
            while !knows() {
                sleep(LOOK).await;
            }
        };
        // A cluster that cannot be learned may need the new configuration.
        let _ = timeout(LEARNING, learning).await;
        sleep(LEAST_SHIFT).await;
    };
    let (changed, ()) = tokio::join!(configs.changed(), shift);
    changed
}

/// Sets up all that a configuration asks for and drops it again.
///
/// # Errors
/// When it cannot be run with.
pub(super) fn rehearse(config: &Config, registry: &Registry) -> anyhow::Result<()> {
    let extenders = extenders(config, None)?;
    Scheduler::new(Setup { extenders: &extenders, ..Setup::new(config, registry) })?;
    Ok(())
}

/// Extenders bind for whoever leads, and for nobody else.
fn extenders(
    config: &Config,
    leadership: Option<&Leadership>,
) -> anyhow::Result<Vec<Arc<dyn Extender>>> {
    let may_bind = leadership.cloned().map(|it| Permission::new(move || it.still_valid()));
    let options = steersman_extender::Options {
        traceparent: Some(traces::current_traceparent),
        may_bind,
        ..steersman_extender::Options::default()
    };
    steersman_extender::connect(&config.extenders, &Handle::current(), &options)
        .context("the extenders cannot be used")
}

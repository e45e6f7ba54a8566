//! Leading and scheduling, from the first configuration to the last.

use std::sync::Arc;

use anyhow::{Context, anyhow};
use kube::config::Config as KubeConfig;
use steersman_config::Config;
use steersman_core::{Scheduler, Setup};
use steersman_framework::extender::Extender;
use steersman_framework::registry::Registry;
use steersman_leader_election::{Election, Term};
use steersman_metrics::SchedulerMetrics;
use steersman_runtime::{
    Counters, Inspector, Options, Scheduling, Several, Spans, Summary, Traced,
};
use steersman_telemetry::traces;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::client;
use super::settled::Settled;

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
        return Box::pin(schedule(&mut shift, client)).await.map(Some);
    };
    let Some(mut term) = lead(election, &shift.stop).await else { return Ok(None) };
    let client = {
        let fence = term.leadership().fence();
        client::connect(shift.kube.clone(), Some(fence), &shift.metrics)?
    };
    let summary = match term.hold(Box::pin(schedule(&mut shift, client))).await {
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
async fn schedule(shift: &mut Shift<'_>, client: kube::Client) -> anyhow::Result<Summary> {
    loop {
        let current = shift.configs.borrow_and_update().clone();
        let config = &current.config;
        let traced = Traced::new(Spans::new(traces::is_sampled));
        let scheduling = Scheduling {
            options: shift.options.clone(),
            extenders: shift.metrics.extenders(extenders(config)?),
            listener: Box::new(Several(vec![shift.metrics.listener(), Box::new(traced)])),
            counters: shift.counters.clone(),
            desk: shift.inspector.desk(),
            ..Scheduling::new(client.clone(), config, shift.registry)
        };
        let generation = shift.stop.child_token();
        let mut running = Box::pin(steersman_runtime::run(scheduling, generation.clone()));
        tokio::select! {
            summary = &mut running => return Ok(summary?),
            Ok(()) = shift.configs.changed() => {
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

/// Sets up all that a configuration asks for and drops it again.
///
/// # Errors
/// When it cannot be run with.
pub(super) fn rehearse(config: &Config, registry: &Registry) -> anyhow::Result<()> {
    let extenders = extenders(config)?;
    Scheduler::new(Setup { extenders: &extenders, ..Setup::new(config, registry) })?;
    Ok(())
}

fn extenders(config: &Config) -> anyhow::Result<Vec<Arc<dyn Extender>>> {
    let options = steersman_extender::Options {
        traceparent: Some(traces::current_traceparent),
        ..steersman_extender::Options::default()
    };
    steersman_extender::connect(&config.extenders, &Handle::current(), &options)
        .context("the extenders cannot be used")
}

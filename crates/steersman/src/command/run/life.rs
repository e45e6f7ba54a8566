//! The program's life: what is started, and in which order it ends.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use steersman_leader_election::Election;
use steersman_runtime::{Counters, Inspector, Options, Summary};
use steersman_telemetry::logs::Control;
use tokio_util::sync::CancellationToken;

use super::dump::Dumper;
use super::flags::Checked;
use super::health::{self, Checks, Verdict};
use super::measured::{self, Reloads};
use super::reload::Reloader;
use super::schedule::{self, Shift};
use super::serving::{self, Serving};
use super::settled::{Settled, Source};
use super::signals::Signals;
use super::site::Shown;
use super::{client, identity};

/// What a life begins with.
pub(super) struct Start {
    pub(super) source: Source,
    pub(super) checked: Checked,
    /// The text of the configuration file, and what it came to.
    pub(super) text: Option<String>,
    pub(super) settled: Settled,
    /// All flags as text, by name.
    pub(super) flags: BTreeMap<String, String>,
    pub(super) logs: Control,
    pub(super) signals: Signals,
}

/// Serves, leads and schedules until a signal comes.
pub(super) async fn live(start: Start) -> anyhow::Result<()> {
    let Start { source, checked, text, settled, flags, logs, signals } = start;
    let Signals { end, reread, dump } = signals;
    let stop = CancellationToken::new();
    // Before anything else: whether the port can be had.
    let server = match checked.serving {
        Some(options) => Some(serving::bind(options).await?),
        None => None,
    };
    let connection = &settled.config.client_connection;
    let kube = client::find(&connection.kubeconfig, source.flags.misc.master.as_deref()).await?;
    starting(&settled, &client::server(&kube));
    let metrics = measured::metrics(checked.metrics, &source.gates);
    let client = client::connect(kube.clone(), None, &metrics)?;
    let election = election(&source, &settled, client.clone())?;
    let monitor = election.as_ref().map(Election::monitor);
    let (inspector, counters) = (Inspector::default(), Arc::<Counters>::default());
    metrics.attach(inspector.clone(), counters.clone());
    let verdict = Verdict::default();
    let checks = Checks::new(monitor.clone(), stop.clone(), inspector.clone(), &verdict);
    let options =
        Options { max_unschedulable: checked.max_unschedulable, ..identity::options(&settled) };
    let source = Arc::new(source);
    let (reloader, configs) =
        Reloader::new(source.clone(), text, settled, Arc::new(Reloads(metrics.clone())));
    let shown = Shown {
        checks,
        metrics: metrics.clone(),
        monitor,
        inspector: inspector.clone(),
        configs: configs.clone(),
        flags,
        gates: source.gates.clone(),
        logs,
        started: Timestamp::now(),
    };
    let watching = health::watch(inspector.clone(), configs.clone(), verdict);
    let (seen, asked) = (configs.clone(), dump);
    let dumper =
        Dumper { inspector: inspector.clone(), client: client.clone(), configs: seen, asked };
    let shift = Shift {
        registry: &source.registry,
        kube,
        election,
        options,
        configs,
        counters,
        inspector,
        metrics: metrics.clone(),
        stop: stop.clone(),
    };
    let work = async {
        let serving = match server {
            Some(server) => {
                let (who, what) = (checked.authentication, checked.authorization);
                let access = serving::access(&source.flags, who, what, client, &metrics).await?;
                Some(Serving::start(server, shown.site()?, access))
            }
            None => None,
        };
        let summary = tokio::select! {
            summary = Box::pin(schedule::work(shift)) => summary?,
            never = reloader.run(reread) => match never? {},
            never = dumper.run() => match never? {},
            never = watching => match never? {},
        };
        if let Some(serving) = serving {
            serving.end().await;
        }
        Ok(summary)
    };
    let summary = end.heed(stop, Box::pin(work)).await?;
    stopped(summary);
    Ok(())
}

fn stopped(summary: Option<Summary>) {
    match summary {
        Some(summary) => tracing::info!(
            attempts = summary.attempts,
            bound = summary.bound,
            unschedulable = summary.unschedulable,
            errors = summary.errors,
            "stopped"
        ),
        None => tracing::info!("stopped without having led"),
    }
}

fn starting(settled: &Settled, server: &str) {
    let profiles = &settled.config.profiles;
    let names: Vec<&str> = profiles.iter().map(|p| p.scheduler_name.as_str()).collect();
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        server,
        schedulers = names.join(","),
        "starting"
    );
}

/// The election to take part in, if there is to be one.
fn election(
    source: &Source,
    settled: &Settled,
    client: kube::Client,
) -> anyhow::Result<Option<Election>> {
    let config = &settled.config;
    if !config.leader_election.leader_elect {
        return Ok(None);
    }
    let component = config.profiles.first().map_or("steersman", |p| p.scheduler_name.as_str());
    let host = identity::host_name();
    let election =
        source.flags.election.election(&config.leader_election, client, &host, component)?;
    Ok(Some(election))
}

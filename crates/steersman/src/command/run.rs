//! `steersman run`.

use std::collections::hash_map::RandomState;
use std::fs;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use kube::client::{Body, ClientBuilder};
use kube::config::{Config as KubeConfig, KubeConfigOptions, Kubeconfig};
use serde_json::Value;
use steersman_config::Config;
use steersman_framework::registry::Registry;
use steersman_leader_election::{Fence, Term};
use steersman_runtime::{Counters, Options, Scheduling, Summary};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tower::util::{MapRequestLayer, option_layer};
use tracing_subscriber::EnvFilter;

use super::SUCCESS;
use super::election::ElectionArgs;
use super::token_file::TokenFile;

const EXAMPLES: &str = "\
Examples:
  # Schedule pods that ask for the default scheduler, with a kubeconfig
  steersman run --kubeconfig ~/.kube/config

  # In a cluster, with a configuration of your own and a line per attempt
  steersman run --config /etc/kubernetes/scheduler.yaml -v 4

SIGTERM and SIGINT let bindings under way finish, for up to 10 seconds.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// A KubeSchedulerConfiguration; the defaults if not given.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// How to reach the API server. Without it: the configuration's
    /// clientConnection.kubeconfig, $KUBECONFIG, ~/.kube/config, and last the
    /// service account of the pod that this runs in.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The API server's address, instead of the kubeconfig's.
    #[arg(long, value_name = "URL")]
    master: Option<String>,
    /// Requests a second to the API server. Without it, the configuration's
    /// clientConnection.qps; when that is not set either, or 0 or less, any
    /// number.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    kube_api_qps: Option<f32>,
    /// How many requests may go out at once before --kube-api-qps counts.
    #[arg(long, value_name = "N")]
    kube_api_burst: Option<u32>,
    /// Accepted for compatibility: requests and answers are JSON.
    #[arg(long, value_name = "TYPE")]
    kube_api_content_type: Option<String>,
    /// How much to log: from 4 on every attempt, from 7 on every detail.
    #[arg(short = 'v', long = "v", value_name = "LEVEL", default_value_t = 2)]
    verbosity: u8,
    #[command(flatten)]
    election: ElectionArgs,
}

/// A second signal that comes sooner after the first one is part of it.
const IMPATIENCE: Duration = Duration::from_millis(500);

pub(super) fn run(registry: &Registry, args: &Args) -> anyhow::Result<u8> {
    start_logging(args.verbosity)?;
    let (config, text) = super::config_file::load(args.config.as_deref(), registry)?;
    let options = options(args, &config, text.as_deref());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the asynchronous runtime")?;
    runtime.block_on(Box::pin(serve(registry, args, &config, options)))?;
    Ok(SUCCESS)
}

async fn serve(
    registry: &Registry,
    args: &Args,
    config: &Config,
    options: Options,
) -> anyhow::Result<()> {
    let kube = kube_config(args, config).await?;
    // Without what else may stand in an address, such as a password.
    let host = kube.cluster_url.host().unwrap_or_default();
    let server = match kube.cluster_url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    };
    let unusable = || format!("cannot make a client for the API server at {server}");
    let names: Vec<&str> = config.profiles.iter().map(|p| p.scheduler_name.as_str()).collect();
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        server,
        schedulers = names.join(","),
        "starting"
    );
    let mut signals = Signals::new().context("cannot listen to signals")?;
    let mut term = None;
    if args.election.elects(&config.leader_election) {
        let client = client(kube.clone(), None).with_context(unusable)?;
        match lead(args, config, client, &mut signals).await? {
            Some(won) => term = Some(won),
            None => return Ok(()),
        }
    }
    let fence = term.as_ref().map(|term| term.leadership().fence());
    let client = client(kube, fence).with_context(unusable)?;
    let work = Box::pin(schedule(registry, config, options, client, signals));
    let summary = match &mut term {
        Some(term) => match term.hold(work).await {
            Ok(summary) => summary?,
            // The fence keeps in what is still under way.
            Err(lost) => return Err(anyhow!(lost).context("leader election lost")),
        },
        None => work.await?,
    };
    tracing::info!(
        attempts = summary.attempts,
        bound = summary.bound,
        unschedulable = summary.unschedulable,
        errors = summary.errors,
        "stopped"
    );
    if let Some(term) = term {
        term.release().await;
    }
    Ok(())
}

/// Waits for the leadership; `None` if the program is to end before.
async fn lead(
    args: &Args,
    config: &Config,
    client: kube::Client,
    signals: &mut Signals,
) -> anyhow::Result<Option<Term>> {
    let component = config.profiles.first().map_or("steersman", |p| p.scheduler_name.as_str());
    let election =
        args.election.election(&config.leader_election, client, &host_name(), component)?;
    tokio::select! {
        term = Box::pin(election.acquire()) => Ok(Some(term)),
        name = signals.next() => {
            tracing::info!("{name}: stopped without having led");
            Ok(None)
        }
    }
}

/// Schedules until a signal comes.
async fn schedule(
    registry: &Registry,
    config: &Config,
    options: Options,
    client: kube::Client,
    mut signals: Signals,
) -> anyhow::Result<Summary> {
    let shutdown = CancellationToken::new();
    let counters = Arc::new(Counters::default());
    let scheduling =
        Scheduling { options, counters, ..Scheduling::new(client, config, registry) };
    let running = Box::pin(steersman_runtime::run(scheduling, shutdown.clone()));
    tokio::pin!(running);
    tokio::select! {
        summary = &mut running => Ok(summary?),
        name = signals.next() => {
            tracing::info!("{name}: letting bindings under way finish");
            shutdown.cancel();
            // Whoever ends a process and its group at once sends two signals
            // and means one.
            let repeats_count_from = Instant::now() + IMPATIENCE;
            loop {
                tokio::select! {
                    summary = &mut running => return Ok(summary?),
                    name = signals.next() => if Instant::now() >= repeats_count_from {
                        bail!("{name} again: stopped at once");
                    }
                }
            }
        }
    }
}

/// The signals that end the program.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

fn start_logging(verbosity: u8) -> anyhow::Result<()> {
    let level = match verbosity {
        0..=3 => "info",
        4..=6 => "debug",
        _ => "trace",
    };
    let filter = EnvFilter::try_new(format!(
        "warn,kube_client=error,kube_client::client::builder=off,steersman={level}"
    ))
    .context("cannot set up the log filter")?;
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(io::IsTerminal::is_terminal(&io::stderr()));
    // A program that embeds this one may log in its own way already.
    let _ = subscriber.try_init();
    Ok(())
}

/// Where the API server is and who we are.
async fn kube_config(args: &Args, config: &Config) -> anyhow::Result<KubeConfig> {
    let configured = &config.client_connection.kubeconfig;
    let configured = (!configured.is_empty()).then(|| Path::new(configured));
    let file = args.kubeconfig.as_deref().or(configured);
    let address = |master: &str| {
        master.parse().with_context(|| format!("--master {master:?} is not an address"))
    };
    let mut kube = match (file, &args.master) {
        (Some(file), _) => from_file(file).await?,
        (None, Some(master)) => KubeConfig::new(address(master)?),
        (None, None) => match KubeConfig::infer().await {
            Ok(kube) => kube,
            // Errors of these types say their causes themselves.
            Err(error) => bail!(
                "no --kubeconfig or --master is given, and neither $KUBECONFIG, ~/.kube/config nor \
                 a pod's service account can be used: {error}"
            ),
        },
    };
    if let Some(master) = &args.master {
        kube.cluster_url = address(master)?;
    }
    kube.cluster_url = with_scheme(&kube)?;
    // The runtime repeats requests itself, where that is safe.
    kube.default_retry = false;
    let agent = concat!("steersman/", env!("CARGO_PKG_VERSION"));
    kube.headers.push(("user-agent".parse()?, agent.parse()?));
    Ok(kube)
}

/// A client; with a fence, one that writes only while this replica leads.
fn client(mut kube: KubeConfig, fence: Option<Fence>) -> anyhow::Result<kube::Client> {
    let auth = &mut kube.auth_info;
    // What comes before a token file, in the client library and elsewhere.
    let other = auth.token.is_some() || auth.username.is_some() || auth.auth_provider.is_some();
    let file = if other { None } else { auth.token_file.take() };
    let builder = match ClientBuilder::try_from(kube) {
        Ok(builder) => builder.with_layer(&option_layer(fence)),
        // Errors of this type say their causes themselves.
        Err(error) => bail!("{error}"),
    };
    let Some(file) = file else { return Ok(builder.build()) };
    let file = Arc::new(TokenFile::open(Path::new(&file))?);
    let sign = move |request: http::Request<Body>| file.sign(request);
    Ok(builder.with_layer(&MapRequestLayer::new(sign)).build())
}

/// The API server's address; one that does not say how to talk is taken as the
/// reference's client takes it: with TLS where TLS is set up.
fn with_scheme(kube: &KubeConfig) -> anyhow::Result<http::Uri> {
    let url = &kube.cluster_url;
    match url.scheme_str() {
        Some("http" | "https") => return Ok(url.clone()),
        Some(other) => {
            bail!("the API server's address begins with {other:?}, allowed: http, https")
        }
        None => {}
    }
    let has_certificate = kube.auth_info.client_certificate.is_some()
        || kube.auth_info.client_certificate_data.is_some();
    let is_tls = kube.root_cert.is_some() || kube.accept_invalid_certs || has_certificate;
    let scheme = if is_tls { "https" } else { "http" };
    let text = format!("{scheme}://{url}");
    text.parse().with_context(|| format!("{url} is not the address of an API server"))
}

async fn from_file(file: &Path) -> anyhow::Result<KubeConfig> {
    let name = file.display();
    // Errors of this type say their causes themselves.
    let kubeconfig = match Kubeconfig::read_from(file) {
        Ok(kubeconfig) => kubeconfig,
        Err(error) => bail!("cannot read kubeconfig {name}: {error}"),
    };
    match KubeConfig::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await {
        Ok(config) => Ok(config),
        Err(error) => bail!("kubeconfig {name} cannot be used: {error}"),
    }
}

fn options(args: &Args, config: &Config, text: Option<&str>) -> Options {
    let connection = &config.client_connection;
    // Only a rate that somebody asked for limits: otherwise the API server's
    // own fairness governs, and not the default of client libraries.
    let asked = text.is_some_and(sets_qps).then_some(connection.qps);
    Options {
        qps: args.kube_api_qps.or(asked),
        burst: args.kube_api_burst.unwrap_or(connection.burst),
        seed: RandomState::new().build_hasher().finish(),
        identity: host_name(),
        ..Options::default()
    }
}

/// Whether a configuration, which is known to be good, sets a rate itself.
fn sets_qps(text: &str) -> bool {
    let document: Option<Value> = serde_saphyr::from_str(text).ok();
    document.is_some_and(|d| d["clientConnection"]["qps"].as_f64().is_some_and(|qps| qps != 0.0))
}

#[expect(clippy::disallowed_methods, reason = "the program may read its environment")]
fn host_name() -> String {
    let from_kernel = fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let name = from_kernel.or_else(|| std::env::var("HOSTNAME").ok()).unwrap_or_default();
    match name.trim() {
        "" => "localhost".to_owned(),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_without_a_scheme_is_completed_and_a_foreign_one_refused() {
        let with = |url: &str, insecure: bool| {
            let mut kube = KubeConfig::new(url.parse().unwrap());
            kube.accept_invalid_certs = insecure;
            with_scheme(&kube).map_or_else(|error| error.to_string(), |url| url.to_string())
        };
        assert_eq!(with("127.0.0.1:8080", false), "http://127.0.0.1:8080/");
        assert_eq!(with("host", true), "https://host/");
        assert_eq!(with("https://host:1/path", false), "https://host:1/path");
        assert!(with("ftp://host", false).contains("\"ftp\", allowed: http, https"));
    }

    #[test]
    fn only_a_rate_that_is_written_down_limits() {
        assert!(sets_qps("clientConnection: {qps: 20}"));
        assert!(sets_qps("{\"clientConnection\": {\"qps\": -1.5}}"));
        assert!(!sets_qps("clientConnection: {burst: 20}"));
        assert!(!sets_qps("clientConnection: {qps: 0}"));
        assert!(!sets_qps("parallelism: 3"));
    }
}

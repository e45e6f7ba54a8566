//! `steersman playground`.

mod screen;

use std::collections::hash_map::RandomState;
use std::fs;
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use steersman_framework::registry::Registry;
use steersman_playground::engine::plan::Settings;
use steersman_playground::manifests::{self, Manifest};
use steersman_playground::{
    CONTEXT, Config, Decision, Running, SchedulerConfig, decisions, demo, start,
};
use steersman_runtime::{Deaf, Listener};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tracing_subscriber::EnvFilter;

use super::SUCCESS;
use screen::Screen;

const EXAMPLES: &str = "\
Examples:
  # A cluster to look at, and where each pod went and why
  steersman playground --demo

  # Twenty nodes for workloads of your own
  steersman playground --nodes 20 -f workloads/

  # The nodes of a real cluster
  kubectl get nodes -o yaml > nodes.yaml
  steersman playground --nodes-from nodes.yaml

  # A cluster that goes on where it stopped
  steersman playground --nodes 3 --save cluster.yaml
  steersman playground -f cluster.yaml --save cluster.yaml

Annotations steer what is simulated:
  on a node  playground.steersman.dev/ready=false         it is not ready
             playground.steersman.dev/heartbeat=stopped   it falls silent
  on a pod   playground.steersman.dev/run-seconds=N       it ends after N seconds
             playground.steersman.dev/exit-code=N         with this code";

type News = mpsc::UnboundedReceiver<Decision>;

/// Nodes if nothing says how many.
const NODES: usize = 6;
/// The demo is shown as far as it is after this time.
const DEMO_TIME: Duration = Duration::from_secs(30);
/// How often progress is shown, if there is any.
const GLANCE: Duration = Duration::from_secs(1);

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// How many simulated nodes to start with [default: 6, or none if the
    /// manifests have nodes].
    #[arg(allow_negative_numbers = true, long, value_name = "N", conflicts_with = "nodes_from")]
    nodes: Option<usize>,
    /// Simulate the nodes in this file: the output of
    /// `kubectl get nodes -o yaml`.
    #[arg(long, value_name = "FILE")]
    nodes_from: Option<PathBuf>,
    /// Manifests to start with: a file, a directory or `-` for stdin. May be
    /// given several times.
    #[arg(short = 'f', long = "filename", value_name = "PATH")]
    filenames: Vec<PathBuf>,
    /// A KubeSchedulerConfiguration; the defaults if not given.
    #[arg(long, value_name = "FILE", conflicts_with = "no_scheduler")]
    config: Option<PathBuf>,
    /// Where to write the kubeconfig.
    #[arg(long, value_name = "OUT", default_value = "steersman-playground.kubeconfig")]
    kubeconfig: PathBuf,
    /// The API server's port; any free one if not given.
    #[arg(long, value_name = "P", default_value_t = 0)]
    port: u16,
    /// The address to listen at. Anything but a loopback address opens the
    /// playground to the network; its token is all that protects it then.
    #[arg(long, value_name = "IP", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    listen: IpAddr,
    /// Apply a small workload and show where each pod went and why.
    #[arg(long)]
    demo: bool,
    /// End when the start, or the demo, is done instead of waiting for Ctrl-C.
    #[arg(long)]
    no_wait: bool,
    /// Write everything in the cluster to this file at the end.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Leave pods to a scheduler that you run yourself.
    #[arg(long)]
    no_scheduler: bool,
    /// How long pods take to start, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 0.5)]
    start_delay: f64,
    /// For names and for drawing among equally good nodes; random if not given.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// How much to log: from 4 on every detail of the scheduler.
    #[arg(short = 'v', long = "v", value_name = "LEVEL", default_value_t = 0)]
    verbosity: u8,
}

pub(super) fn run(registry: &Registry, args: &Args) -> anyhow::Result<u8> {
    start_logging(args.verbosity)?;
    let (config, news) = config(registry, args)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the asynchronous runtime")?;
    runtime.block_on(Box::pin(play(args, config, news)))?;
    Ok(SUCCESS)
}

async fn play(args: &Args, config: Config, news: News) -> anyhow::Result<()> {
    check_kubeconfig(&args.kubeconfig)?;
    let nodes = config.manifests.iter().chain(&config.nodes_from).filter(|m| is_node(m));
    let n_nodes = config.n_nodes + nodes.count();
    let screen = Screen::new(args.no_scheduler);
    let running = Box::pin(start(config)).await.context("cannot start the playground")?;
    // Before this, a signal ends the program as usual: loading many objects may
    // take a while, and there is nothing to save or to tidy up yet.
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen to signals")?;
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen to signals")?;
    write_secret(&args.kubeconfig, &running.kubeconfig)?;
    screen.started(&running.url, n_nodes, &args.kubeconfig)?;
    let played = tokio::select! {
        played = Box::pin(show(args, &running, news, &screen)) => played,
        _ = interrupt.recv() => Ok(()),
        _ = terminate.recv() => Ok(()),
    };
    let saved = save(args, &running);
    let kubeconfig = running.kubeconfig.clone();
    tokio::select! {
        () = Box::pin(running.shutdown()) => {}
        // Once more means now.
        _ = interrupt.recv() => {}
    }
    // The token in it is worth nothing any more. Another playground may have
    // put its own there.
    if fs::read_to_string(&args.kubeconfig).is_ok_and(|text| text == kubeconfig) {
        let _ = fs::remove_file(&args.kubeconfig);
    }
    played.and(saved)
}

/// Shows what there is to show, until the end or for ever.
async fn show(
    args: &Args,
    running: &Running,
    mut news: News,
    screen: &Screen,
) -> anyhow::Result<()> {
    if args.demo {
        let n_known = running.add_missing(demo::workload()?).context("the demo was refused")?;
        screen.demo(n_known)?;
        if !args.no_scheduler {
            show_demo(running, &mut news, screen).await?;
        }
    }
    screen.commands(&args.kubeconfig, args.demo)?;
    if args.no_wait {
        return Ok(());
    }
    let mut summary = running.counters.summary();
    let mut glance = tokio::time::interval(GLANCE);
    loop {
        tokio::select! {
            Some(decision) = news.recv() => screen.tell(&decision)?,
            _ = glance.tick(), if !args.demo => {
                let now = running.counters.summary();
                if (now.bound, now.unschedulable) != (summary.bound, summary.unschedulable) {
                    screen.summary(&now)?;
                    summary = now;
                }
            }
            // Nobody decides anything here.
            else => std::future::pending().await,
        }
    }
}

/// Shows decisions until there are no more to expect.
async fn show_demo(running: &Running, news: &mut News, screen: &Screen) -> anyhow::Result<()> {
    let settled = tokio::time::timeout(DEMO_TIME, Box::pin(demo::settle(&running.client)));
    tokio::pin!(settled);
    loop {
        tokio::select! {
            Some(decision) = news.recv() => screen.tell(&decision)?,
            _ = &mut settled => break,
        }
    }
    while let Ok(decision) = news.try_recv() {
        screen.tell(&decision)?;
    }
    screen.summary(&running.counters.summary())
}

fn config(registry: &Registry, args: &Args) -> anyhow::Result<(Config, News)> {
    let manifests = manifests::read(&args.filenames, &mut io::stdin())?;
    let nodes_from = match &args.nodes_from {
        Some(path) => {
            let found = manifests::read(std::slice::from_ref(path), &mut io::stdin())?;
            if !found.iter().any(is_node) {
                bail!("there are no nodes in {}", path.display());
            }
            found
        }
        None => Vec::new(),
    };
    let has_nodes = args.nodes_from.is_some() || manifests.iter().any(is_node);
    let n_nodes = args.nodes.unwrap_or(if has_nodes { 0 } else { NODES });
    // Nobody would take the decisions if they are not to be shown.
    let (listener, news) = if args.demo {
        decisions()
    } else {
        (Box::new(Deaf) as Box<dyn Listener>, mpsc::unbounded_channel().1)
    };
    let scheduler = if args.no_scheduler {
        None
    } else {
        let (config, _) = super::config_file::load(args.config.as_deref(), registry)?;
        Some(SchedulerConfig { config, registry: registry.clone(), listener })
    };
    let delay = Duration::try_from_secs_f64(args.start_delay)
        .with_context(|| format!("--start-delay {} is no time", args.start_delay))?;
    let start_delay =
        delay.try_into().with_context(|| format!("--start-delay {delay:?} is too long"))?;
    let config = Config {
        listen: SocketAddr::new(args.listen, args.port),
        names: names(args.listen),
        n_nodes,
        nodes_from,
        manifests,
        settings: Settings { start_delay, ..Settings::default() },
        scheduler,
        seed: args.seed.unwrap_or_else(|| RandomState::new().build_hasher().finish()),
    };
    Ok((config, news))
}

fn is_node(manifest: &Manifest) -> bool {
    manifest.object["kind"] == "Node" && manifest.object["apiVersion"] == "v1"
}

/// The certificate is good for the address that is listened at.
fn names(listen: IpAddr) -> Vec<String> {
    if listen.is_unspecified() || listen.is_loopback() && listen == Ipv4Addr::LOCALHOST {
        Vec::new()
    } else {
        vec![listen.to_string()]
    }
}

fn save(args: &Args, running: &Running) -> anyhow::Result<()> {
    let Some(path) = &args.save else { return Ok(()) };
    let name = path.display();
    let text = manifests::write(&running.dump())
        .with_context(|| format!("the cluster cannot be written to {name}"))?;
    // A file that is there stays whole until the new one is.
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".new");
    write_secret(Path::new(&temporary), &text)?;
    fs::rename(&temporary, path).with_context(|| format!("cannot write {name}"))
}

/// A kubeconfig of somebody else is not overwritten.
fn check_kubeconfig(path: &Path) -> anyhow::Result<()> {
    match fs::read_to_string(path) {
        Ok(text) if text.contains(CONTEXT) || text.trim().is_empty() => Ok(()),
        Ok(_) => bail!(
            "{} exists and is no kubeconfig of a playground: name another file with --kubeconfig",
            path.display()
        ),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// Writes a file that nobody else can read: Secrets and tokens are in it.
fn write_secret(path: &Path, text: &str) -> anyhow::Result<()> {
    let write = || {
        let mut options = fs::OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(path)?;
        // It may have been there, readable by others.
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
        file.write_all(text.as_bytes())
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}

fn start_logging(verbosity: u8) -> anyhow::Result<()> {
    let level = match verbosity {
        0 => "warn",
        1..=3 => "info",
        4..=6 => "debug",
        _ => "trace",
    };
    let filter =
        EnvFilter::try_new(format!("warn,steersman={level}")).context("cannot set up the log")?;
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(io::IsTerminal::is_terminal(&io::stderr()));
    // A program that embeds this one may log in its own way already.
    let _ = subscriber.try_init();
    Ok(())
}

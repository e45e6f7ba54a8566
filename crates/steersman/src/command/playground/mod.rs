//! `steersman playground`.

mod screen;

use std::collections::hash_map::RandomState;
use std::fs;
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use serde_json::Value;
use steersman_framework::registry::Registry;
use steersman_playground::engine::plan::Settings;
use steersman_playground::manifests::{self, Manifest};
use steersman_playground::{
    Authorization, CONTEXT, Config, Decision, Running, SchedulerConfig, decisions, demo, start,
};
use steersman_runtime::{Deaf, Listener};
use tokio::runtime::Handle;
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

/// How long another playground may take to answer.
const REACH: Duration = Duration::from_millis(300);

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
    /// playground to the network; its token is all that protects it then. The
    /// certificate names this address and those of loopback: name the one that
    /// others use, not 0.0.0.0.
    #[arg(long, value_name = "IP", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    listen: IpAddr,
    /// Apply a small workload and show where each pod went and why.
    #[arg(long)]
    demo: bool,
    /// Show where each pod goes and why, as the demo does.
    #[arg(long, conflicts_with = "no_scheduler")]
    explain: bool,
    /// End when the start, or the demo, is done instead of waiting for Ctrl-C.
    #[arg(long)]
    no_wait: bool,
    /// Write everything in the cluster to this file at the end.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Leave pods to a scheduler that you run yourself.
    #[arg(long)]
    no_scheduler: bool,
    /// What decides whether a request is allowed: nothing, or the roles and
    /// bindings in the cluster. Those that every cluster has are there then.
    #[arg(long, value_name = "MODE", value_enum, default_value_t = Mode::AlwaysAllow)]
    authorization_mode: Mode,
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

/// The modes of kube-apiserver's flag of that name that are there.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Mode {
    #[value(name = "AlwaysAllow")]
    AlwaysAllow,
    #[value(name = "RBAC")]
    Rbac,
}

impl From<Mode> for Authorization {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::AlwaysAllow => Self::AlwaysAllow,
            Mode::Rbac => Self::Rbac,
        }
    }
}

impl Args {
    fn shows_decisions(&self) -> bool {
        self.demo || self.explain
    }
}

pub(super) fn run(registry: &Registry, args: &Args) -> anyhow::Result<u8> {
    start_logging(args.verbosity)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the asynchronous runtime")?;
    let (config, news) = config(registry, args, runtime.handle())?;
    runtime.block_on(Box::pin(play(args, config, news)))?;
    Ok(SUCCESS)
}

async fn play(args: &Args, config: Config, news: News) -> anyhow::Result<()> {
    check_kubeconfig(&args.kubeconfig)?;
    check_save(args.save.as_deref())?;
    let nodes = config.manifests.iter().chain(&config.nodes_from).filter(|m| is_node(m));
    let n_nodes = config.n_nodes + nodes.count();
    let screen = Screen::new(args.no_scheduler);
    let running = Box::pin(start(config)).await.context("cannot start the playground")?;
    // Before this, a signal ends the program as usual: loading many objects may
    // take a while, and there is nothing to save or to tidy up yet.
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen to signals")?;
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen to signals")?;
    let mut hangup = signal(SignalKind::hangup()).context("cannot listen to signals")?;
    write_secret(&args.kubeconfig, &running.kubeconfig)?;
    screen.started(&running.url, n_nodes, &args.kubeconfig)?;
    let played = tokio::select! {
        played = Box::pin(show(args, &running, news, &screen)) => played,
        _ = interrupt.recv() => Ok(()),
        _ = terminate.recv() => Ok(()),
        // The terminal was closed.
        _ = hangup.recv() => Ok(()),
        failed = running.failed() => Err(failed.into()),
    };
    let saved = save(args, &running, &screen);
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
            screen.headings()?;
            show_demo(running, &mut news, screen).await?;
        }
    }
    if args.no_wait {
        return Ok(());
    }
    screen.commands(&args.kubeconfig, args.demo)?;
    if args.explain && !args.demo {
        screen.headings()?;
    }
    let mut summary = running.counters.summary();
    let mut glance = tokio::time::interval(GLANCE);
    loop {
        tokio::select! {
            Some(decision) = news.recv() => screen.tell(&decision)?,
            _ = glance.tick(), if !args.shows_decisions() => {
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

fn config(registry: &Registry, args: &Args, io: &Handle) -> anyhow::Result<(Config, News)> {
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
    let (listener, news) = if args.shows_decisions() {
        decisions()
    } else {
        (Box::new(Deaf) as Box<dyn Listener>, mpsc::unbounded_channel().1)
    };
    let scheduler = if args.no_scheduler {
        None
    } else {
        let (config, _) = super::config_file::load(args.config.as_deref(), registry)?;
        let extenders = steersman_extender::connect(&config.extenders, io, &Default::default())
            .context("the extenders cannot be used")?;
        Some(SchedulerConfig { config, registry: registry.clone(), extenders, listener })
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
        authorization: args.authorization_mode.into(),
        audit: None,
    };
    Ok((config, news))
}

fn is_node(manifest: &Manifest) -> bool {
    manifest.object["kind"] == "Node" && manifest.object["apiVersion"] == "v1"
}

/// The certificate is good for the address that is listened at.
fn names(listen: IpAddr) -> Vec<String> {
    if listen.is_unspecified() || listen == Ipv4Addr::LOCALHOST {
        Vec::new()
    } else {
        vec![listen.to_string()]
    }
}

fn save(args: &Args, running: &Running, screen: &Screen) -> anyhow::Result<()> {
    let Some(path) = &args.save else { return Ok(()) };
    let name = path.display();
    let text = manifests::write(&running.dump())
        .with_context(|| format!("the cluster cannot be written to {name}"))?;
    // A file that is there stays whole until the new one is.
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".new");
    write_secret(Path::new(&temporary), &text)?;
    fs::rename(&temporary, path).with_context(|| format!("cannot write {name}"))?;
    screen.saved(path)
}

/// Better now than when there is a cluster to lose.
fn check_save(path: Option<&Path>) -> anyhow::Result<()> {
    let Some(path) = path else { return Ok(()) };
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    if !parent.unwrap_or(Path::new(".")).is_dir() {
        bail!("--save {}: there is no such directory", path.display());
    }
    if path.is_dir() {
        bail!("--save {}: this is a directory", path.display());
    }
    Ok(())
}

/// A kubeconfig of somebody else is not overwritten, nor one into which a
/// playground's was merged.
fn check_kubeconfig(path: &Path) -> anyhow::Result<()> {
    match fs::read_to_string(path) {
        Ok(text) if is_ours(&text) && is_served(&text) => bail!(
            "{} belongs to a playground that is running: name another file with --kubeconfig",
            path.display()
        ),
        Ok(text) if text.trim().is_empty() || is_ours(&text) => Ok(()),
        Ok(_) => bail!(
            "{} exists and is no kubeconfig of a playground: name another file with --kubeconfig",
            path.display()
        ),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// Whether a kubeconfig holds what a playground writes and nothing else.
fn is_ours(text: &str) -> bool {
    let Ok(config) = serde_saphyr::from_str::<Value>(text) else { return false };
    let only_ours = |list: &str| {
        let entries = config[list].as_array();
        entries.is_some_and(|all| !all.is_empty() && all.iter().all(|one| one["name"] == CONTEXT))
    };
    ["clusters", "contexts", "users"].into_iter().all(only_ours)
}

/// Whether something listens where the kubeconfig's server should be.
fn is_served(text: &str) -> bool {
    let config: Option<Value> = serde_saphyr::from_str(text).ok();
    let server =
        config.as_ref().and_then(|config| config["clusters"][0]["cluster"]["server"].as_str());
    let address = server.and_then(|server| server.strip_prefix("https://")?.parse().ok());
    address.is_some_and(|address| TcpStream::connect_timeout(&address, REACH).is_ok())
}

/// Writes a file that nobody else can read: Secrets and tokens are in it.
fn write_secret(path: &Path, text: &str) -> anyhow::Result<()> {
    let write = || {
        let mut options = fs::OpenOptions::new();
        // What is there may be readable by others, or a link to somewhere else.
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        options.write(true).create_new(true).mode(0o600).open(path)?.write_all(text.as_bytes())
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

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: &str = "{clusters: [{name: steersman-playground}], users: [{name: \
                        steersman-playground}], contexts: [{name: steersman-playground}]}";

    #[test]
    fn a_kubeconfig_with_a_playground_among_others_is_not_ours() {
        assert!(is_ours(OURS));
        let merged = OURS.replace("users: [", "users: [{name: production}, ");
        for other in [merged.as_str(), "# steersman-playground", "{clusters: []}", "a: [", ""] {
            assert!(!is_ours(other), "{other}");
        }
    }

    #[test]
    fn a_kubeconfig_of_a_running_playground_is_not_taken() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let server = format!("https://{}", listener.local_addr().unwrap());
        let text = format!("{{clusters: [{{cluster: {{server: \"{server}\"}}}}]}}");
        assert!(is_served(&text));
        drop(listener);
        assert!(!is_served(&text));
        assert!(!is_served(OURS));
    }

    #[test]
    fn a_secret_file_replaces_a_link_and_is_for_its_owner_alone() {
        use std::os::unix::fs::{MetadataExt, symlink};
        let directory = std::env::temp_dir().join(format!("steersman-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let (target, link) = (directory.join("target"), directory.join("link"));
        fs::write(&target, "theirs").unwrap();
        symlink(&target, &link).unwrap();
        write_secret(&link, "ours").unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "theirs");
        assert_eq!(fs::read_to_string(&link).unwrap(), "ours");
        assert_eq!(fs::metadata(&link).unwrap().mode() & 0o777, 0o600);
        fs::remove_dir_all(&directory).unwrap();
    }
}

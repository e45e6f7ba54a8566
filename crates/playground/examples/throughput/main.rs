//! How many pods a second the scheduler binds through the embedded API server:
//! `cargo run --release -p steersman-playground --example throughput -- 5000 10000`.
//!
//! Nodes are plain objects without kubelets. Pods are created by a number of
//! clients at once while the scheduler runs, or, with `--drain`, before it
//! starts. `--http` puts the API server behind a socket with TLS and on threads
//! of its own, as `steersman run` meets it. `--metrics` measures the scheduler and
//! its requests as `steersman run` does; without it nothing is measured but the
//! bindings. The table goes to standard output,
//! or JSON with `--output json`; the exit code is 1 when a pod is not bound or
//! a node has more than it can hold.
#![expect(clippy::print_stdout, reason = "it prints what it measured")]
#![expect(clippy::print_stderr, reason = "it tells how far it is")]
#![expect(clippy::disallowed_methods, reason = "it measures time and reads its arguments")]

mod cluster;
mod load;
mod meter;
mod process;
mod recorded;
mod report;
mod verify;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use steersman_config::Config;
use steersman_runtime::{Counters, Options, Scheduling, Several};
use tokio_util::sync::CancellationToken;

use crate::cluster::Cluster;
use crate::load::Load;
use crate::recorded::Recorded;
use crate::report::{Measured, Output};

type Failure = Box<dyn std::error::Error + Send + Sync>;

const USAGE: &str =
    "throughput [NODES] [PODS] [--http] [--drain] [--metrics] [--clients N] [--output json]";

/// What to measure.
struct Args {
    n_nodes: usize,
    n_pods: usize,
    /// The API server is behind a socket.
    http: bool,
    /// Pods are there before the scheduler.
    drain: bool,
    /// The scheduler's metrics are recorded.
    metrics: bool,
    /// How many clients create pods at the same time.
    n_clients: usize,
    output: Output,
}

/// Nothing takes longer than this unless it never comes.
const PATIENCE: Duration = Duration::from_secs(600);

fn main() -> ExitCode {
    match args(std::env::args().skip(1)).and_then(|args| measure(&args)) {
        Ok(measured) => {
            println!("{}", measured.text());
            ExitCode::from(u8::from(!measured.problems.is_empty()))
        }
        Err(error) => {
            eprintln!("error: {error}\nusage: {USAGE}");
            ExitCode::from(2)
        }
    }
}

fn args(mut given: impl Iterator<Item = String>) -> Result<Args, Failure> {
    let mut args = Args {
        n_nodes: 5000,
        n_pods: 10_000,
        http: false,
        drain: false,
        metrics: false,
        n_clients: 16,
        output: Output::Table,
    };
    let mut n_numbers = 0;
    while let Some(arg) = given.next() {
        let mut value = || given.next().ok_or(format!("{arg} needs a value"));
        match arg.as_str() {
            "--http" => args.http = true,
            "--drain" => args.drain = true,
            "--metrics" => args.metrics = true,
            "--clients" => args.n_clients = value()?.parse::<usize>()?.max(1),
            "--output" if value()? == "json" => args.output = Output::Json,
            number if n_numbers < 2 => {
                let number = number.parse().map_err(|_| format!("{arg:?} is not understood"))?;
                *[&mut args.n_nodes, &mut args.n_pods][n_numbers] = number;
                n_numbers += 1;
            }
            _ => return Err(format!("{arg:?} is not understood").into()),
        }
    }
    Ok(args)
}

fn measure(args: &Args) -> Result<Measured, Failure> {
    let io = process::runtime("io", 2)?;
    io.block_on(Box::pin(run(args)))
}

async fn run(args: &Args) -> Result<Measured, Failure> {
    eprintln!("{} nodes, {} pods", args.n_nodes, args.n_pods);
    let cluster = Cluster::start(args.n_nodes, args.http).await?;
    let load = Load::new(args.n_pods, args.n_clients);
    let counters = Arc::new(Counters::default());
    let stop = CancellationToken::new();
    let mut created = None;
    if args.drain {
        created = Some(load.create(cluster.client("load", None)?).await?);
        eprintln!("all pods are created, starting the scheduler");
    }

    let begin = (Instant::now(), process::Cpu::now());
    cluster.meter.reset();
    let recorded = args.metrics.then(|| Recorded::new(&counters));
    let client = cluster.client("scheduler", recorded.as_ref().map(|it| &it.metrics))?;
    let inspector = recorded.as_ref().map(|it| it.inspector.clone()).unwrap_or_default();
    let listeners = recorded.iter().map(|it| it.metrics.listener()).chain([load.listener()]);
    let listener = Box::new(Several(listeners.collect()));
    let (told, until) = (counters.clone(), stop.clone());
    let scheduler = tokio::spawn(async move {
        let registry = steersman_plugins::table::in_tree();
        let config = Config::default_for(&registry)?;
        let options = Options { seed: 1, ..Options::default() };
        let scheduling = Scheduling {
            options,
            listener,
            counters: told,
            desk: inspector.desk(),
            ..Scheduling::new(client, &config, &registry)
        };
        Box::pin(steersman_runtime::run(scheduling, until)).await.map_err(Failure::from)
    });

    let mut begin = begin;
    if created.is_none() {
        load.warm_up(cluster.client("load", None)?).await?;
        eprintln!("the scheduler is ready, creating pods");
        cluster.meter.reset();
        begin = (Instant::now(), process::Cpu::now());
        created = Some(load.create(cluster.client("load", None)?).await?);
        eprintln!("all pods are created");
    }
    let bound = tokio::select! {
        bound = tokio::time::timeout(PATIENCE, load.all_bound()) => bound.is_ok(),
        () = stopped_early(&scheduler) => false,
    };
    let took = begin.0.elapsed();
    let cpu = process::Cpu::now().since(&begin.1);
    let calls = cluster.meter.calls();
    // Checking reads the whole cluster at once, which takes much more.
    let peak_mib = process::peak_mib();
    stop.cancel();
    let summary = scheduler.await??;
    eprintln!("checking {} bindings", summary.bound);
    let mut problems = verify::problems(&cluster.server, args.n_pods);
    if let Some(recorded) = &recorded {
        problems.extend(recorded.problem(summary.bound).await);
    }
    if !bound {
        problems.insert(0, "not all pods were bound in time".to_owned());
    }
    Ok(Measured {
        n_nodes: args.n_nodes,
        n_pods: args.n_pods,
        http: args.http,
        drain: args.drain,
        metrics: args.metrics,
        output: args.output,
        created_in: created.unwrap_or_default(),
        took,
        latencies: load.latencies(),
        cpu,
        calls,
        peak_mib,
        summary,
        problems,
    })
}

/// Returns when the scheduler has ended although nobody told it to.
async fn stopped_early<T>(scheduler: &tokio::task::JoinHandle<T>) {
    let mut ticks = tokio::time::interval(Duration::from_millis(100));
    while !scheduler.is_finished() {
        ticks.tick().await;
    }
}

//! `steersman run`: from flags to a scheduler at work.

mod client;
mod debug;
mod dump;
mod flags;
mod health;
mod identity;
mod life;
mod logging;
mod measured;
mod proxy;
mod reload;
mod schedule;
mod serving;
mod settled;
mod shown;
mod signals;
mod site;
mod spelling;
mod token_file;
mod version;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::pin::Pin;

use anyhow::{Context, bail};
use clap::ArgMatches;
use steersman_framework::registry::Registry;

use super::SUCCESS;
use super::config_file::say;
use flags::Flags;
use life::Start;
use settled::{Settled, Source};
use signals::Signals;
pub(super) use spelling::spelled;

/// What comes of something in a while.
type Later<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

const EXAMPLES: &str = "\
Examples:
  # Schedule pods that ask for the default scheduler, with a kubeconfig, from a
  # machine where nothing is to be served
  steersman run --kubeconfig ~/.kube/config --secure-port 0

  # In a cluster, with a configuration of your own and a line per attempt
  steersman run --config /etc/kubernetes/scheduler.yaml -v 4

  # As the second scheduler of a cluster, with a lock of its own
  steersman run --config scheduler.yaml --leader-elect-resource-name steersman

  # The complete configuration that some flags come to
  steersman run --kube-api-qps 100 --write-config-to /dev/stdout

SIGTERM and SIGINT let bindings under way finish, for up to 10 seconds; SIGHUP
reads the file of --config again; SIGUSR2 writes into the log what the scheduler
knows, and where that differs from what the API server has.";

/// The flags, which are kube-scheduler's.
#[derive(Debug, clap::Args)]
#[command(args_override_self = true, after_help = EXAMPLES, after_long_help = long_help())]
pub(super) struct Args {
    #[command(flatten)]
    flags: Flags,
    /// All flags as text, by name.
    #[arg(skip)]
    shown: BTreeMap<String, String>,
}

impl Args {
    /// Takes over what a command line gave, for those who ask what it was.
    pub(super) fn remember(&mut self, command: &clap::Command, matches: &ArgMatches) {
        self.shown = shown::flags(command, matches);
    }
}

fn long_help() -> String {
    format!("{EXAMPLES}\n\nFeatures for --feature-gates:\n{}", flags::list_features())
}

pub(super) fn run(registry: &Registry, args: Args) -> anyhow::Result<u8> {
    let flags = args.flags;
    if version::print(flags.global.version)? {
        return Ok(SUCCESS);
    }
    let (gates, notices) = flags.features.gates()?;
    let guard = logging::start(&flags, &gates)?;
    for notice in notices {
        tracing::warn!("{notice}");
    }
    // As kube-scheduler does; an address may hold a password.
    for (name, value) in args.shown.iter().filter(|(name, _)| *name != "master") {
        tracing::info!(v = 1, "FLAG: --{name}={value:?}");
    }
    let checked = flags.check()?;
    for warning in &checked.warnings {
        tracing::warn!("{warning}");
    }
    let source = Source { flags, registry: registry.clone(), gates };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the asynchronous runtime")?;
    // Before anything that takes a while: until then they end the program.
    let signals = {
        let _entered = runtime.enter();
        Signals::new(source.file().is_some()).context("cannot listen to signals")?
    };
    let text = source.read()?;
    let settled = settle(&source, text.as_deref())?;
    if let Some(file) = flags::value::given(source.flags.misc.write_config_to.as_ref()) {
        write_config(file, &settled)?;
        return Ok(SUCCESS);
    }
    let logs = guard.logs().clone();
    let start = Start { source, checked, text, settled, flags: args.shown, logs, signals };
    runtime.block_on(Box::pin(life::live(start)))?;
    Ok(SUCCESS)
}

/// The configuration to begin with, with every problem on stderr.
fn settle(source: &Source, text: Option<&str>) -> anyhow::Result<Settled> {
    let name = source.file().map(|file| file.display().to_string());
    let prefix = name.as_ref().map(|name| format!("{name}: ")).unwrap_or_default();
    match source.settle(text) {
        Ok(settled) => {
            for warning in &settled.warnings {
                tracing::warn!("{prefix}{warning}");
            }
            Ok(settled)
        }
        Err(unusable) => {
            for problem in &unusable.problems {
                say("error", &format_args!("{prefix}{problem}"));
            }
            match name {
                Some(name) => bail!("{name} is not a usable configuration"),
                None => bail!("the flags do not make a usable configuration"),
            }
        }
    }
}

fn write_config(file: &Path, settled: &Settled) -> anyhow::Result<()> {
    let name = file.display();
    let text = steersman_config::to_yaml(&settled.document);
    fs::write(file, text).with_context(|| format!("cannot write {name}"))?;
    tracing::info!("wrote the configuration to {name}");
    Ok(())
}

//! The subcommands, one file each.

mod config_file;
mod conformance;
mod election;
mod output;
mod playground;
mod plugins;
mod progress;
mod run;
mod simulate;
mod token_file;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use steersman_framework::registry::{DuplicatePlugin, Registry};

/// All well: everything placed, everything passed.
const SUCCESS: u8 = 0;
/// Bad input or usage, or a failed check.
const FAILURE: u8 = 1;
/// The command did its work, and some pods have no node.
const SOME_UNPLACED: u8 = 2;

/// A Kubernetes scheduler.
#[derive(Debug, Parser)]
#[command(name = "steersman", version, about, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Schedule the pods of manifests on their nodes, offline, and say why.
    Simulate(simulate::Args),
    /// A cluster of simulated nodes on this machine, with this scheduler.
    Playground(playground::Args),
    /// Schedule the pods of a cluster, through its API server.
    Run(run::Args),
    /// Compare decisions and configurations with recorded ones.
    Conformance(conformance::Args),
    /// List the plugins, their extension points and default weights.
    Plugins(plugins::Args),
}

pub(crate) fn run(
    registry: &Registry,
    duplicates: &[DuplicatePlugin],
    args: impl IntoIterator<Item = OsString>,
) -> ExitCode {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    let result = match duplicates.first() {
        Some(duplicate) => Err(DuplicatePlugin::clone(duplicate).into()),
        None => match cli.command {
            Command::Simulate(args) => simulate::run(registry, &args),
            Command::Playground(args) => playground::run(registry, &args),
            Command::Run(args) => run::run(registry, &args),
            Command::Conformance(args) => conformance::run(&args),
            Command::Plugins(args) => plugins::run(registry, &args),
        },
    };
    match result {
        Ok(code) => ExitCode::from(code),
        // The reader of a pipe has seen enough: `steersman … | head`.
        Err(error) if is_broken_pipe(&error) => ExitCode::from(SUCCESS),
        Err(error) => {
            // Where errors go when stderr is gone as well is nowhere.
            let _ = writeln!(io::stderr(), "error: {error:#}");
            ExitCode::from(FAILURE)
        }
    }
}

/// Help and version are no errors; wrong usage is bad input, not "some pods
/// have no node", which clap's own exit code would mean here.
fn usage(error: &clap::Error) -> ExitCode {
    let code = if error.use_stderr() { FAILURE } else { SUCCESS };
    let _ = error.print();
    ExitCode::from(code)
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let mut causes = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
    causes.any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}

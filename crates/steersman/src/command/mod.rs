//! The subcommands, one file each.

mod config;
mod config_file;
mod conformance;
mod output;
mod playground;
mod plugins;
mod progress;
mod run;
mod simulate;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::{Args as _, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use steersman_framework::registry::{DuplicatePlugin, Registry};

/// All well: everything placed, everything passed.
const SUCCESS: u8 = 0;
/// Bad input or usage, or a failed check.
const FAILURE: u8 = 1;
/// The command did its work, and some pods have no node.
const SOME_UNPLACED: u8 = 2;

/// The name of the program that this one can stand in for.
const STAND_IN: &str = "kube-scheduler";
/// What `run` does.
const RUN: &str = "Schedule the pods of a cluster, through its API server";

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
    #[command(about = RUN)]
    Run(Box<run::Args>),
    /// Check, complete, migrate and compare configuration files.
    Config(config::Args),
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
    let command = match parse(args.into_iter().collect()) {
        Ok(command) => command,
        Err(error) => match error.downcast_ref() {
            Some(error) => return usage(error),
            None => return failure(&error),
        },
    };
    let result = match duplicates.first() {
        Some(duplicate) => Err(DuplicatePlugin::clone(duplicate).into()),
        None => match command {
            Command::Simulate(args) => simulate::run(registry, &args),
            Command::Playground(args) => playground::run(registry, &args),
            Command::Run(args) => run::run(registry, *args),
            Command::Config(args) => config::run(registry, &args),
            Command::Conformance(args) => conformance::run(&args),
            Command::Plugins(args) => plugins::run(registry, &args),
        },
    };
    match result {
        Ok(code) => ExitCode::from(code),
        // The reader of a pipe has seen enough: `steersman … | head`.
        Err(error) if is_broken_pipe(&error) => ExitCode::from(SUCCESS),
        Err(error) => failure(&error),
    }
}

/// What the arguments ask for, the program's name first. Under the name
/// `kube-scheduler` the program takes the arguments of `run`, so that it can
/// stand in for that one where its command line is written down.
fn parse(args: Vec<OsString>) -> anyhow::Result<Command> {
    let name = args.first().and_then(|program| Path::new(program).file_name());
    if name.is_some_and(|name| name == STAND_IN) {
        let args = run::spelled(args)?;
        let mut command = run::Args::augment_args(clap::Command::new(STAND_IN)).about(RUN);
        let matches = command.try_get_matches_from_mut(args)?;
        let mut args = run::Args::from_arg_matches(&matches)?;
        args.remember(&command, &matches);
        return Ok(Command::Run(Box::new(args)));
    }
    let args = if args.get(1).is_some_and(|command| command == "run") {
        run::spelled(args)?
    } else {
        args
    };
    let mut command = Cli::command();
    let matches = command.try_get_matches_from_mut(args)?;
    let mut asked = Cli::from_arg_matches(&matches)?.command;
    if let (Command::Run(args), Some((name, matches))) = (&mut asked, matches.subcommand())
        && let Some(command) = command.find_subcommand(name)
    {
        args.remember(command, matches);
    }
    Ok(asked)
}

fn failure(error: &anyhow::Error) -> ExitCode {
    // Where errors go when stderr is gone as well is nowhere.
    let _ = writeln!(io::stderr(), "error: {error:#}");
    ExitCode::from(FAILURE)
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

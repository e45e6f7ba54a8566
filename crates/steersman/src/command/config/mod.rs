//! `steersman config`: what configurations say, without running anything.

mod defaults;
mod diff;
mod migrate;
mod validate;

use std::io::{self, Write};

use anyhow::bail;
use clap::{Subcommand, ValueEnum};
use serde_json::Value;
use steersman_api::problem::Problem;
use steersman_config::FeatureGates;
use steersman_framework::registry::Registry;

use super::config_file::say;
use super::output::write_json;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Find everything that is wrong with configuration files.
    Validate(validate::Args),
    /// Print a configuration with all defaults filled in.
    Defaults(defaults::Args),
    /// Write a configuration of an older version as v1.
    Migrate(migrate::Args),
    /// Tell in what two configurations differ, whatever way they are written.
    Diff(diff::Args),
}

pub(super) fn run(registry: &Registry, args: &Args) -> anyhow::Result<u8> {
    match &args.command {
        Command::Validate(args) => validate::run(registry, args),
        Command::Defaults(args) => defaults::run(registry, args),
        Command::Migrate(args) => migrate::run(registry, args),
        Command::Diff(args) => diff::run(registry, args),
    }
}

/// How to print what was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Report {
    /// Lines for people.
    Text,
    Json,
}

/// How to write a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Yaml,
    Json,
}

/// Features that are on or off, as the scheduler's own flag.
#[derive(Debug, clap::Args)]
struct GateArgs {
    /// Features to switch: `Name=true,Other=false`. May be given several times.
    #[arg(long = "feature-gates", value_name = "GATES")]
    gates: Vec<String>,
}

impl GateArgs {
    /// The gates; says its notices.
    fn read(&self) -> anyhow::Result<FeatureGates> {
        match FeatureGates::parse(&self.gates.join(",")) {
            Ok((gates, notices)) => {
                notices.iter().for_each(|notice| say("note", notice));
                Ok(gates)
            }
            Err(errors) => {
                errors.errors().iter().for_each(|error| say("error", error));
                bail!("--feature-gates cannot be used")
            }
        }
    }
}

/// Writes a document.
fn write(out: &mut dyn Write, document: &Value, format: Format) -> anyhow::Result<()> {
    match format {
        Format::Json => write_json(out, document),
        Format::Yaml => Ok(out.write_all(steersman_config::to_yaml(document).as_bytes())?),
    }
}

/// Prints a document.
fn print(document: &Value, format: Format) -> anyhow::Result<()> {
    write(&mut io::stdout().lock(), document, format)
}

/// Problems and notices for machines.
fn rows(problems: &[Problem]) -> Value {
    let row = |problem: &Problem| serde_json::json!({"path": problem.path.as_str(), "message": problem.message});
    problems.iter().map(row).collect()
}

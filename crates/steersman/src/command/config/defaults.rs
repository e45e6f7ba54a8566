//! `steersman config defaults`.

use std::path::PathBuf;

use steersman_framework::registry::Registry;

use super::super::SUCCESS;
use super::super::config_file::{load_text, read_text};
use super::{Format, GateArgs, print};

const EXAMPLES: &str = "\
Examples:
  # What a scheduler without a configuration runs with
  steersman config defaults

  # What a file leaves to the defaults, filled in, as `run --write-config-to` does
  steersman config defaults scheduler.yaml

  # Without a plugin that comes with a feature, and the features that need it
  steersman config defaults --feature-gates \\
    NodeDeclaredFeatures=false,ExtendWebSocketsToKubelet=false,\\
  InPlacePodLevelResourcesVerticalScaling=false,\\
  InPlacePodVerticalScalingInitContainers=false,\\
  RestartAllContainersOnContainerExits=false";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// A KubeSchedulerConfiguration to complete; `-` is stdin. Without it, one
    /// that says nothing.
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    gates: GateArgs,
    /// How to write it.
    #[arg(short, long, value_enum, default_value_t = Format::Yaml)]
    output: Format,
}

pub(super) fn run(registry: &Registry, args: &Args) -> anyhow::Result<u8> {
    let gates = args.gates.read()?;
    let loaded = match &args.file {
        Some(file) => load_text(file, &read_text(file)?, registry, &gates)?,
        None => steersman_config::load_default(registry, &gates)?,
    };
    print(&loaded.document, args.output)?;
    Ok(SUCCESS)
}

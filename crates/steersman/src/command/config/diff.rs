//! `steersman config diff`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use steersman_config::{Change, Config, FeatureGates, Options};
use steersman_framework::registry::Registry;

use super::super::config_file::{read_text, refuse, say};
use super::super::output::write_json;
use super::{GateArgs, Report};

/// They mean the same.
const SAME: u8 = 0;
/// They do not.
const DIFFERENT: u8 = 1;
/// They could not be compared.
const TROUBLE: u8 = 2;

const EXAMPLES: &str = "\
Examples:
  # What would a new configuration change?
  steersman config diff /etc/kubernetes/scheduler.yaml new.yaml

  # What does it change of the defaults?
  steersman config defaults | steersman config diff - scheduler.yaml --output json

Compared is what runs where, in which order, with which weights and arguments,
and every other field after defaulting. How it is written does not count.

Exit codes, as of diff: 0 no difference, 1 some, 2 trouble.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The old KubeSchedulerConfiguration, of any version; `-` is stdin.
    #[arg(value_name = "OLD")]
    old: PathBuf,
    /// The new one.
    #[arg(value_name = "NEW")]
    new: PathBuf,
    #[command(flatten)]
    gates: GateArgs,
    /// How to print the differences.
    #[arg(short, long, value_enum, default_value_t = Report::Text)]
    output: Report,
}

pub(super) fn run(registry: &Registry, args: &Args) -> anyhow::Result<u8> {
    let compared = args.gates.read().and_then(|gates| {
        let old = load(&args.old, registry, &gates)?;
        let new = load(&args.new, registry, &gates)?;
        Ok(steersman_config::differences(&old, &new))
    });
    let changes = match compared {
        Ok(changes) => changes,
        // Other commands end with 1, which means something else here.
        Err(error) => {
            say("error", &format_args!("{error:#}"));
            return Ok(TROUBLE);
        }
    };
    let mut out = io::stdout().lock();
    match args.output {
        Report::Json => write_json(&mut out, &changes.iter().map(row).collect())?,
        Report::Text => changes.iter().try_for_each(|change| writeln!(out, "{change}"))?,
    }
    Ok(if changes.is_empty() { SAME } else { DIFFERENT })
}

/// Notices about either file are of no interest here.
fn load(file: &Path, registry: &Registry, gates: &FeatureGates) -> anyhow::Result<Config> {
    let options = Options { gates: gates.clone(), ..Options::default() };
    let loaded = steersman_config::load_with(&read_text(file)?, registry, &options);
    Ok(loaded.or_else(|errors| refuse(file, &errors))?.config)
}

fn row(change: &Change) -> Value {
    json!({"path": change.path, "old": change.old, "new": change.new})
}

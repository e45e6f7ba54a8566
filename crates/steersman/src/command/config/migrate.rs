//! `steersman config migrate`.

use std::fs;
use std::path::PathBuf;

use anyhow::Context;
use steersman_framework::registry::Registry;

use super::super::SUCCESS;
use super::super::config_file::{read_text, refuse, say};
use super::{Format, print, write};

const EXAMPLES: &str = "\
Examples:
  # A v1beta3 file as v1; what became of what is said on stderr
  steersman config migrate old.yaml > new.yaml

  # In place, and then a look at what both mean: nothing may differ
  steersman config migrate old.yaml --to new.yaml
  steersman config diff old.yaml new.yaml

What the file says is kept and nothing is added but what keeps its meaning, such
as weights that were the defaults of v1beta2. Comments are lost.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// A KubeSchedulerConfiguration of v1beta1, v1beta2, v1beta3 or v1; `-` is
    /// stdin.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Where to write it; stdout if not given.
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
    /// How to write it.
    #[arg(short, long, value_enum, default_value_t = Format::Yaml)]
    output: Format,
}

pub(super) fn run(registry: &Registry, args: &Args) -> anyhow::Result<u8> {
    let file = &args.file;
    let migrated = steersman_config::migrate(&read_text(file)?, registry);
    let migrated = migrated.or_else(|errors| refuse(file, &errors))?;
    for notice in &migrated.notices {
        say("note", &format_args!("{}: {notice}", file.display()));
    }
    match &args.to {
        None => print(&migrated.document, args.output)?,
        Some(to) => {
            let mut bytes = Vec::new();
            write(&mut bytes, &migrated.document, args.output)?;
            fs::write(to, bytes).with_context(|| format!("cannot write {}", to.display()))?;
        }
    }
    Ok(SUCCESS)
}

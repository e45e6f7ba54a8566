//! `steersman conformance`.

use std::io::{self, BufWriter, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::ValueEnum;
use steersman_conformance::{Field, Options, Show};

use super::output::write_json;
use super::{FAILURE, SUCCESS};

const EXAMPLES: &str = "\
Examples:
  # Decisions
  steersman conformance testdata/conformance/decisions/*.jsonl.gz

  # Configuration documents
  steersman conformance testdata/conformance/config/config.jsonl

Exit codes: 0 all passed, 1 some failed or a file cannot be read.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Corpora: JSON lines, gzip or not.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Fields not to compare; `preemption` leaves out `fullMessage` as well, which
    /// says what preemption found.
    #[arg(long, value_name = "FIELD", value_delimiter = ',')]
    ignore: Vec<Field>,
    /// How many threads to use; by default one a core.
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Show all failures instead of the first 20.
    #[arg(long)]
    all: bool,
    /// How to print the result.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    Text,
    Json,
}

pub(super) fn run(args: &Args) -> anyhow::Result<u8> {
    let options = Options { ignore: args.ignore.iter().copied().collect(), jobs: args.jobs };
    let report = steersman_conformance::run(&args.files, &options)?;
    let mut out = BufWriter::new(io::stdout().lock());
    match args.output {
        Output::Json => write_json(&mut out, &serde_json::to_value(&report)?)?,
        Output::Text => {
            let show = if args.all { Show::All } else { Show::default() };
            write!(out, "{}", report.render(show))?;
        }
    }
    out.flush()?;
    Ok(if report.failed() == 0 { SUCCESS } else { FAILURE })
}

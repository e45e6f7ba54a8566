//! Replays one history of the stress test (`tests/stress`), step by step if
//! asked to.

#[path = "../tests/stress/actions.rs"]
mod actions;
#[path = "../tests/stress/api.rs"]
mod api;
#[path = "../tests/stress/checks.rs"]
mod checks;
#[path = "../tests/stress/desk.rs"]
mod desk;
#[path = "../tests/stress/effects.rs"]
mod effects;
#[path = "../tests/stress/extenders.rs"]
mod extenders;
#[path = "../tests/stress/objects.rs"]
mod objects;
#[path = "../tests/stress/plugins.rs"]
mod plugins;
#[path = "../tests/stress/promises.rs"]
mod promises;
#[path = "../tests/stress/report.rs"]
mod report;
#[path = "../tests/stress/rng.rs"]
mod rng;
#[path = "../tests/stress/run.rs"]
mod run;
#[path = "../tests/stress/storage.rs"]
mod storage;
#[path = "../tests/stress/told.rs"]
mod told;

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::Parser;
use report::Totals;
use run::{Options, hush_planned_panics, run};

/// Replays histories of the stress test.
#[derive(Debug, Parser)]
struct Args {
    /// The first seed.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// How many seeds.
    #[arg(long, default_value_t = 1)]
    seeds: u64,
    /// How many events each.
    #[arg(long, default_value_t = 2500)]
    steps: usize,
    /// Print every event.
    #[arg(long)]
    trace: bool,
}

fn main() -> io::Result<ExitCode> {
    let args = Args::parse();
    hush_planned_panics();
    let mut totals = Totals::default();
    for seed in args.seed..args.seed + args.seeds {
        match run(Options { seed, steps: args.steps, checks: true, trace: args.trace }) {
            Ok(outcome) => totals.add(outcome.tally),
            Err(failure) => {
                writeln!(io::stdout(), "{failure}")?;
                return Ok(ExitCode::FAILURE);
            }
        }
    }
    writeln!(io::stdout(), "{totals}")?;
    Ok(ExitCode::SUCCESS)
}

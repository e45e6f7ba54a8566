//! The project's automation: everything that CI checks, and the generator for
//! new plugins. `cargo xtask --help` lists the commands; `cli` maps them to
//! the modules that do the work.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this program talks to a person at a terminal"
)]

mod ci;
mod cli;
mod deny;
mod e2e;
mod graph;
mod group;
mod new_plugin;
mod protobuf;
mod readme;
mod schema;
mod shell;
mod tidy;

use std::process::ExitCode;

fn main() -> ExitCode {
    match cli::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

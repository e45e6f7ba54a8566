//! The commands and what each of them runs.

use std::path::PathBuf;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::{ci, deny, e2e, graph, new_plugin, protobuf, readme, schema, shell, tidy};

/// Checks and generators of this workspace.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs all checks in order and stops at the first that fails.
    Ci,
    /// Checks the formatting.
    FmtCheck,
    /// Runs clippy; a warning is an error.
    Clippy,
    /// Runs the README's test command.
    Test,
    /// Runs the README's first command.
    Demo,
    /// Runs kubectl against the playground and compares what it prints.
    E2e {
        /// Only scripts with this in their name.
        filter: Option<String>,
        /// Try the debug build, which compiles sooner.
        #[arg(long)]
        debug: bool,
    },
    /// Builds the documentation; a warning is an error.
    Doc,
    /// Checks the house rules that can be read off the files.
    Tidy,
    /// Checks which crate may depend on which.
    Graph,
    /// Starts a new in-tree plugin from the template.
    NewPlugin {
        /// The plugin's name as configurations write it: NodeName.
        name: String,
    },
    /// Rewrites the API server's schema data from Kubernetes' definitions.
    Schema {
        /// A JSON file with all definitions.
        file: PathBuf,
    },
    /// Rewrites the API server's protobuf table from Kubernetes' Go types.
    Protobuf {
        /// A checkout of the repository kubernetes/api.
        api: PathBuf,
        /// A checkout of the repository kubernetes/apimachinery.
        apimachinery: PathBuf,
    },
    /// Checks licences, advisories and sources with cargo-deny (optional).
    Deny,
}

/// Parses the command line and runs what it asks for.
pub(crate) fn run() -> Result<()> {
    let command = Cli::parse().command;
    let root = shell::workspace_root()?;
    match command {
        Command::Ci => ci::run(&root),
        Command::FmtCheck => ci::fmt_check(&root),
        Command::Clippy => ci::clippy(&root),
        Command::Test => readme::run_test(&root),
        Command::Demo => readme::run_demo(&root),
        Command::E2e { filter, debug: false } => e2e::run(&root, e2e::RELEASE, filter.as_deref()),
        Command::E2e { filter, debug: true } => e2e::run(&root, e2e::DEBUG, filter.as_deref()),
        Command::Doc => ci::doc(&root),
        Command::Tidy => tidy::run(&root),
        Command::Graph => graph::run(&root),
        Command::NewPlugin { name } => new_plugin::run(&root, &name),
        Command::Schema { file } => schema::run(&root, &file),
        Command::Protobuf { api, apimachinery } => protobuf::run(&root, &api, &apimachinery),
        Command::Deny => deny::run(&root),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}

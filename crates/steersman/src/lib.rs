//! The command line, as a library: a scheduler with plugins of your own is a
//! program of a few lines.
//!
//! It wires the other crates together and holds no scheduling rule. Start with
//! [`SchedulerCommand`].
//!
//! ```no_run
//! use std::sync::Arc;
//! use steersman_framework::{extensions::Extensions, point::PointSet, registry::Descriptor};
//!
//! # fn main() -> std::process::ExitCode {
//! let mine = Descriptor::plain("Mine", PointSet::empty(), |_| Ok(Extensions::default()));
//! steersman::SchedulerCommand::new().with_plugin(mine).run()
//! # }
//! ```

mod command;

use std::ffi::OsString;
use std::process::ExitCode;

use steersman_framework::registry::{Descriptor, DuplicatePlugin, Registry};

/// The `steersman` command with its in-tree plugins and any others.
pub struct SchedulerCommand {
    registry: Registry,
    duplicates: Vec<DuplicatePlugin>,
}

impl Default for SchedulerCommand {
    fn default() -> Self {
        Self::new()
    }
}

impl SchedulerCommand {
    /// The command with the in-tree plugins.
    pub fn new() -> Self {
        Self { registry: steersman_plugins::table::in_tree(), duplicates: Vec::new() }
    }

    /// Adds a plugin; configurations can enable it from now on. A name that is
    /// taken is reported when the command runs.
    #[must_use]
    pub fn with_plugin(mut self, plugin: Descriptor) -> Self {
        self.duplicates.extend(self.registry.register(plugin).err());
        self
    }

    /// Runs with the program's arguments.
    pub fn run(self) -> ExitCode {
        self.run_with(std::env::args_os())
    }

    /// Runs with these arguments, the program's name first.
    pub fn run_with(self, args: impl IntoIterator<Item = OsString>) -> ExitCode {
        command::run(&self.registry, &self.duplicates, args)
    }
}

//! The `steersman` program: the in-tree plugins and nothing else.

use std::process::ExitCode;

use steersman::SchedulerCommand;

fn main() -> ExitCode {
    SchedulerCommand::new().run()
}

//! Running other programs.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// The directory of the workspace's Cargo.toml, found from the current one.
pub(crate) fn workspace_root() -> Result<PathBuf> {
    let mut locate = Command::new("cargo");
    locate.args(["locate-project", "--workspace", "--message-format", "plain"]);
    let manifest = PathBuf::from(stdout(&mut locate)?.trim_end());
    let root = manifest.parent().context("the workspace's Cargo.toml has no directory")?;
    Ok(root.to_owned())
}

/// `cargo ARGS` in the workspace.
pub(crate) fn cargo(root: &Path, args: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(root).args(args);
    command
}

/// Runs a program whose output goes to the terminal; an error unless it
/// succeeds.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start {}", show(command)))?;
    if !status.success() {
        bail!("{} ended with {status}", show(command));
    }
    Ok(())
}

/// Runs a program and returns what it wrote to its standard output, with its
/// standard error going to the terminal; an error unless it succeeds.
pub(crate) fn stdout(command: &mut Command) -> Result<String> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start {}", show(command)))?;
    if !output.status.success() {
        bail!("{} ended with {}", show(command), output.status);
    }
    String::from_utf8(output.stdout)
        .with_context(|| format!("the output of {} is not UTF-8", show(command)))
}

/// The command as one would type it, for messages.
fn show(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    format!("`{}`", words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn returns_the_output_of_a_program_that_succeeds() {
        assert_eq!(stdout(&mut sh("echo here")).unwrap(), "here\n");
    }

    #[test]
    fn a_failing_program_is_an_error_that_shows_the_command() {
        let expected = "`sh -c exit 3` ended with exit status: 3";
        assert_eq!(run(&mut sh("exit 3")).unwrap_err().to_string(), expected);
        assert_eq!(stdout(&mut sh("exit 3")).unwrap_err().to_string(), expected);
    }
}

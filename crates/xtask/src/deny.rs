//! The optional check of dependencies with cargo-deny.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, bail};

use crate::shell;

/// Runs `cargo deny check` with the workspace's deny.toml.
pub(crate) fn run(root: &Path) -> Result<()> {
    let installed = shell::cargo(root, &["deny", "--version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .context("cannot start cargo")?
        .success();
    if !installed {
        bail!("cargo-deny is not installed; get it with `cargo install --locked cargo-deny`");
    }
    shell::run(&mut shell::cargo(root, &["deny", "--locked", "check"]))
}

//! A playground of the program under test.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::group::{Group, now};

/// A running playground on a port of the kernel's choice. It is killed when dropped.
pub(crate) struct Playground {
    group: Group,
    scratch: PathBuf,
    directory: PathBuf,
}

impl Playground {
    /// Starts one and waits until it is ready.
    pub(crate) fn start(root: &Path, program: &Path, arguments: &[String]) -> Result<Self> {
        let scratch = root.join("target/e2e").join(std::process::id().to_string());
        if scratch.exists() {
            std::fs::remove_dir_all(&scratch)?;
        }
        std::fs::create_dir_all(&scratch)?;
        let log = File::create(scratch.join("log"))?;
        let directory = root.join("testdata/e2e");
        let mut command = Command::new(program);
        command.args(["playground", "--seed", "1", "--port", "0", "--kubeconfig"]);
        command.arg(scratch.join("kubeconfig")).args(arguments).current_dir(&directory);
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let mut playground = Self { group: Group::start(&mut command)?, scratch, directory };
        playground.wait_until_ready()?;
        Ok(playground)
    }

    /// Where commands run: the directory of the scripts.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.scratch.join("kubeconfig")
    }

    /// The last lines that it logged.
    pub(crate) fn log(&self) -> String {
        let text = std::fs::read_to_string(self.scratch.join("log")).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(30)..].join("\n")
    }

    /// Stops it, which must end it in good order.
    pub(crate) fn stop(&mut self) -> Result<()> {
        self.group.signal("TERM")?;
        let status = self.group.wait(Duration::from_secs(20)).context("the playground")?;
        if !status.success() {
            bail!("the playground ended with {status}:\n{}", self.log());
        }
        Ok(())
    }

    fn wait_until_ready(&mut self) -> Result<()> {
        let start = now();
        loop {
            if self.kubeconfig().exists() && self.log().contains("Ctrl-C ends the playground") {
                return Ok(());
            }
            if let Some(status) = self.group.leader().try_wait()? {
                bail!("the playground ended at once with {status}:\n{}", self.log());
            }
            if start.elapsed() > Duration::from_secs(60) {
                bail!("the playground was not ready after 60 s:\n{}", self.log());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Playground {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.scratch);
    }
}

//! A program that runs until it is told to stop, with everything it starts.

use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// A process group. Dropping it kills whatever is left of it.
pub(crate) struct Group {
    child: Child,
}

impl Group {
    /// Starts `command` as the leader of a group of its own.
    pub(crate) fn start(command: &mut Command) -> Result<Self> {
        let name = command.get_program().to_string_lossy().into_owned();
        let child =
            command.process_group(0).spawn().with_context(|| format!("cannot start {name}"))?;
        Ok(Self { child })
    }

    /// The leader.
    pub(crate) fn leader(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Sends a signal, such as `TERM`, to the whole group.
    pub(crate) fn signal(&self, signal: &str) -> Result<()> {
        let group = format!("-{}", self.child.id());
        let status = Command::new("kill")
            .args(["-s", signal, "--", &group])
            .status()
            .context("cannot start kill")?;
        if !status.success() {
            bail!("no signal {signal} could be sent to process group {}", self.child.id());
        }
        Ok(())
    }

    /// Waits for the leader to end.
    pub(crate) fn wait(&mut self, limit: Duration) -> Result<ExitStatus> {
        let start = now();
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            if start.elapsed() > limit {
                bail!("still running {} s after it was told to stop", limit.as_secs());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.signal("KILL");
            let _ = self.child.wait();
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "waits for another program")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

//! Progress of long work, on a terminal only, after a second.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// Work shorter than this needs no progress.
const PATIENCE: Duration = Duration::from_secs(1);
/// No more often than this.
const INTERVAL: Duration = Duration::from_millis(200);

/// One line on stderr that is overwritten.
pub(super) struct Progress {
    what: &'static str,
    terminal: bool,
    started: Instant,
    shown: Option<Instant>,
}

impl Progress {
    pub(super) fn new(what: &'static str) -> Self {
        Self { what, terminal: io::stderr().is_terminal(), started: now(), shown: None }
    }

    /// `done` of `total` are dealt with.
    pub(super) fn tell(&mut self, done: usize, total: usize) {
        if !self.terminal {
            return;
        }
        let now = now();
        let last = self.shown.unwrap_or(self.started);
        let wait = if self.shown.is_some() { INTERVAL } else { PATIENCE };
        if now.duration_since(last) < wait {
            return;
        }
        self.shown = Some(now);
        // A line that cannot be shown is not missed.
        let _ = write!(io::stderr(), "\r{} {done} of {total} ...\x1b[K", self.what);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown.is_some() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the program is a driver and may read the clock")]
fn now() -> Instant {
    Instant::now()
}

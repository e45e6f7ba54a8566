//! The signals that the program knows.

use std::io;
use std::time::Duration;

use anyhow::bail;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// A second signal that comes sooner after the first one is part of it.
const IMPATIENCE: Duration = Duration::from_millis(500);

/// All of them. One that comes before somebody waits for it is not lost.
pub(super) struct Signals {
    pub(super) end: End,
    /// SIGHUP, when there is a file to read again; without one it ends the
    /// program, as it always does.
    pub(super) reread: Option<Signal>,
    /// SIGUSR2.
    pub(super) dump: Signal,
}

impl Signals {
    /// Listens from now on.
    pub(super) fn new(has_file: bool) -> io::Result<Self> {
        let (terminate, interrupt) =
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let reread = has_file.then(|| signal(SignalKind::hangup())).transpose()?;
        let dump = signal(SignalKind::user_defined2())?;
        Ok(Self { end: End { terminate, interrupt }, reread, dump })
    }
}

/// The signals that end the program: SIGTERM and SIGINT.
pub(super) struct End {
    terminate: Signal,
    interrupt: Signal,
}

impl End {
    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }

    /// Works, until a signal asks it to stop; a second one ends it at once.
    pub(super) async fn heed<T>(
        mut self,
        stop: CancellationToken,
        work: impl Future<Output = anyhow::Result<T>>,
    ) -> anyhow::Result<T> {
        tokio::pin!(work);
        tokio::select! {
            done = &mut work => return done,
            name = self.next() => {
                tracing::info!("{name}: letting bindings under way finish");
                stop.cancel();
            }
        }
        // Whoever ends a process and its group at once sends two signals and
        // means one.
        let repeats_count_from = Instant::now() + IMPATIENCE;
        loop {
            tokio::select! {
                done = &mut work => return done,
                name = self.next() => if Instant::now() >= repeats_count_from {
                    bail!("{name} again: stopped at once");
                }
            }
        }
    }
}

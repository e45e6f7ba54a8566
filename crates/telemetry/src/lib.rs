//! Logs in the formats of Kubernetes' components (klog's text, JSON), and
//! traces over OTLP, both fed by [`tracing`].
//!
//! The crate knows nothing of schedulers and parses no command line: every flag
//! has a type with [`FromStr`](std::str::FromStr) here, whose errors name the
//! flag. It does no work on the threads that log: lines are formatted there and
//! written by a thread of their own, spans are sent by another. Where a
//! subscriber is set already, by a program that embeds ours, it stays.
//!
//! Start with [`init`]; [`logs`] says how levels and klog's `-v` go together,
//! [`traces`] which spans are sent.
//!
//! ```
//! use steersman_telemetry::{Options, init, logs};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let logs = logs::Options {
//!     format: "json".parse()?,
//!     verbosity: "2".parse()?,
//!     vmodule: "driver=4".parse()?,
//!     ..logs::Options::default()
//! };
//! let guard = init(Options { logs, traces: None })?;
//! tracing::info!(pod = "default/web-0", v = 2, "bound");
//! drop(guard); // Writes what is still on its way.
//! # Ok(())
//! # }
//! ```
#![warn(missing_docs)]

pub mod logs;
pub mod traces;

use std::io;

use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::registry::Registry;

pub use logs::ParseError;

/// What to log and what to trace.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// How to log.
    pub logs: logs::Options,
    /// Where to send spans; `None` sends none, and then spans cost nothing.
    pub traces: Option<traces::Options>,
}

/// Why there is no telemetry.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A thread could not be started.
    #[error("cannot start the thread {name:?}")]
    Thread {
        /// The thread's name.
        name: &'static str,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// Spans cannot be exported.
    #[error("cannot set up the export of traces")]
    Traces(#[from] traces::Error),
}

/// Keeps telemetry running. Dropping it writes the lines and sends the spans
/// that are still on their way, which takes a few seconds at the most. Lines
/// logged later are still written while the process lives; spans are not sent
/// any more.
#[derive(Debug)]
#[must_use = "dropping the guard ends the export of spans"]
pub struct Guard {
    installed: bool,
    // Before the logs, which tell what went wrong with the traces.
    traces: Option<traces::Export>,
    logs: logs::Control,
}

impl Guard {
    /// Whether this crate's subscriber is the program's; `false` where another
    /// was set before. Then nothing of [`Options`] has an effect.
    pub fn is_installed(&self) -> bool {
        self.installed
    }

    /// A handle to change the verbosity while the program runs.
    pub fn logs(&self) -> &logs::Control {
        &self.logs
    }

    /// Writes the lines that are still on their way. Waits two seconds at the
    /// most. For use before the process is ended without dropping the guard.
    pub fn flush(&self) {
        self.logs.flush();
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.traces.take());
        self.logs.flush();
    }
}

/// Sets the program's subscriber.
///
/// # Errors
///
/// When a thread cannot be started or the endpoint cannot be used. That another
/// subscriber is set already is no error; see [`Guard::is_installed`].
pub fn init(options: Options) -> Result<Guard, Error> {
    let (log_layer, control) = logs::layer(options.logs, logs::Streams::standard())?;
    let mut layers: Vec<Box<dyn Layer<Registry> + Send + Sync>> = vec![log_layer];
    let export = match options.traces {
        Some(options) => {
            let (layer, export) = traces::layer(options)?;
            layers.push(layer);
            Some(export)
        }
        None => None,
    };
    let subscriber = Registry::default().with(layers);
    let installed = tracing::subscriber::set_global_default(subscriber).is_ok();
    let traces = if installed { export } else { None };
    Ok(Guard { installed, traces, logs: control })
}

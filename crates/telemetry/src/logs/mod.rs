//! Logging as Kubernetes' components do it.
//!
//! # Levels
//!
//! Errors and warnings are always logged. What else is, says `-v N`, with
//! klog's numbers:
//!
//! | event | klog verbosity |
//! |---|---|
//! | `info!` | 0 |
//! | `debug!` | 4 |
//! | `trace!` | 7 |
//! | any of them with a field `v = N` | N, if that is more |
//!
//! `-v` is about the crates named in [`Options::own`]. Others have levels of
//! their own ([`Options::others`]), since they do not think in klog's numbers.
//! `--vmodule` raises the verbosity for single files or modules, of any crate;
//! see [`Vmodule`].
//!
//! # Fields
//!
//! A field `error` or `err` becomes klog's `err`, which stands first. In JSON a
//! field `pod`, `preemptor` or `victim` of the form `namespace/name` becomes an
//! object, as the reference's object references do. Spans are not logged.

mod clock;
mod filter;
mod json;
mod layer;
mod line;
mod parse;
mod quote;
mod sink;
mod text;
mod vmodule;

use std::fmt;
use std::io::{self, Write};
use std::time::Duration;

use tracing::level_filters::LevelFilter;

pub use clock::Clock;
pub(crate) use filter::is_in;
pub use layer::{Control, layer};
pub use parse::{ParseError, Size};
pub use vmodule::Vmodule;

/// What a log line looks like; `--logging-format`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// klog's: `I1130 12:34:56.789012   12345 file.rs:42] "message" key="value"`.
    #[default]
    Text,
    /// One JSON object a line, as component-base writes it.
    Json,
    /// For people at a terminal; not among the reference's formats.
    Human,
}

/// klog's verbosity, 0 to 2147483647; `-v`, `--v`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Verbosity(pub(crate) u32);

impl Verbosity {
    /// The number.
    pub fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Verbosity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Where lines of a format go: `--log-text-*` and `--log-json-*`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Routing {
    /// Informational lines to stdout, others to stderr. By default all lines go
    /// to stderr. In JSON only errors are "others", as in the reference.
    /// `--log-text-split-stream`, `--log-json-split-stream`.
    pub split_stream: bool,
    /// With split streams: so many bytes of informational lines are gathered
    /// before they are written, for [`Options::flush_frequency`] at the most.
    /// `--log-text-info-buffer-size`, `--log-json-info-buffer-size`.
    pub info_buffer_size: Size,
}

/// How to log.
#[derive(Clone, Debug)]
pub struct Options {
    /// `--logging-format`.
    pub format: Format,
    /// `-v`, `--v`; 0 by default.
    pub verbosity: Verbosity,
    /// `--vmodule`; nothing by default.
    pub vmodule: Vmodule,
    /// `--log-flush-frequency`: how long a buffered line may wait. Five seconds
    /// by default. Lines that are not buffered (see [`Routing`]) are written at
    /// once, whatever this says.
    pub flush_frequency: Duration,
    /// For [`Format::Text`].
    pub text: Routing,
    /// For [`Format::Json`].
    pub json: Routing,
    /// Whether [`Format::Human`] uses colours; see [`is_colour_welcome`].
    pub colour: bool,
    /// Which crates the verbosity is about: beginnings of module paths.
    /// `steersman` by default.
    pub own: Vec<String>,
    /// Levels of other crates, by beginnings of module paths, of which the
    /// longest counts. Crates that are not listed: warnings and errors. By
    /// default, what a Kubernetes client says that our own lines say better is
    /// left out.
    pub others: Vec<(String, LevelFilter)>,
    /// Where lines get their time.
    pub clock: Clock,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            format: Format::default(),
            verbosity: Verbosity::default(),
            vmodule: Vmodule::default(),
            flush_frequency: Duration::from_secs(5),
            text: Routing::default(),
            json: Routing::default(),
            colour: false,
            own: vec!["steersman".to_owned()],
            others: vec![
                ("kube_client".to_owned(), LevelFilter::ERROR),
                ("kube_client::client::builder".to_owned(), LevelFilter::OFF),
            ],
            clock: Clock::system(),
        }
    }
}

/// Which feature gates of logging are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gates {
    /// `LoggingAlphaOptions`, off by default.
    pub alpha: bool,
    /// `LoggingBetaOptions`, on by default.
    pub beta: bool,
}

impl Default for Gates {
    fn default() -> Self {
        Self { alpha: false, beta: true }
    }
}

/// An option that needs a feature gate that is off.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{flag} needs --feature-gates={gate}=true")]
pub struct Gated {
    /// What was asked for.
    pub flag: &'static str,
    /// The gate that is off.
    pub gate: &'static str,
}

impl Options {
    /// All options that need a gate that is off. `--vmodule` works with every
    /// format here; the reference refuses it for JSON.
    pub fn gated(&self, gates: Gates) -> Vec<Gated> {
        const ALPHA: &str = "LoggingAlphaOptions";
        let Self { text, json, .. } = self;
        let is_buffered = |routing: &Routing| routing.info_buffer_size != Size::default();
        [
            (!gates.beta && self.format == Format::Json)
                .then_some(("--logging-format=json", "LoggingBetaOptions")),
            (!gates.alpha && text.split_stream).then_some(("--log-text-split-stream", ALPHA)),
            (!gates.alpha && is_buffered(text)).then_some(("--log-text-info-buffer-size", ALPHA)),
            (!gates.alpha && json.split_stream).then_some(("--log-json-split-stream", ALPHA)),
            (!gates.alpha && is_buffered(json)).then_some(("--log-json-info-buffer-size", ALPHA)),
        ]
        .into_iter()
        .flatten()
        .map(|(flag, gate)| Gated { flag, gate })
        .collect()
    }

    /// The routing of the chosen format.
    pub(crate) fn routing(&self) -> Routing {
        match self.format {
            Format::Text => self.text,
            Format::Json => self.json,
            Format::Human => Routing::default(),
        }
    }
}

/// Where lines are written.
pub struct Streams {
    /// Informational lines, when streams are split.
    pub info: Box<dyn Write + Send>,
    /// All other lines.
    pub error: Box<dyn Write + Send>,
}

impl Streams {
    /// The process's stdout and stderr.
    pub fn standard() -> Self {
        Self { info: Box::new(io::stdout()), error: Box::new(io::stderr()) }
    }
}

impl fmt::Debug for Streams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Streams").finish_non_exhaustive()
    }
}

/// Whether colours are welcome on stderr: it is a terminal, and the environment
/// has no `NO_COLOR` (a value that is not empty, as the convention says).
#[expect(clippy::disallowed_methods, reason = "the one question to the environment")]
pub fn is_colour_welcome() -> bool {
    use std::io::IsTerminal;
    io::stderr().is_terminal() && std::env::var("NO_COLOR").map_or(true, |value| value.is_empty())
}

#[cfg(test)]
mod tests;

//! The layer that turns events into lines.

use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

use super::filter::Levels;
use super::json::json;
use super::line::{Line, Severity, Value};
use super::sink::{Buffering, Sink};
use super::text::text;
use super::{Clock, Format, Options, Streams, Verbosity};
use crate::Error;

/// Changes logging while the program runs.
#[derive(Clone, Debug)]
pub struct Control {
    verbosity: Arc<AtomicU32>,
    sinks: Sinks,
}

impl Control {
    /// The verbosity now.
    pub fn verbosity(&self) -> Verbosity {
        Verbosity(self.verbosity.load(Ordering::Relaxed))
    }

    /// Another verbosity from now on, as `PUT /debug/flags/v` asks for.
    pub fn set_verbosity(&self, verbosity: Verbosity) {
        self.verbosity.store(verbosity.get(), Ordering::Relaxed);
        tracing::callsite::rebuild_interest_cache();
    }

    /// Writes the lines that are still on their way. Waits two seconds for each
    /// stream at the most.
    pub fn flush(&self) {
        self.sinks.error.flush();
        if let Some(info) = &self.sinks.info {
            info.flush();
        }
    }
}

/// A layer that logs to `streams`, for a subscriber of one's own; [`crate::init`]
/// does it for the whole program. The handle's [`Control::flush`] waits until
/// lines are written.
///
/// # Errors
///
/// When a thread cannot be started.
pub fn layer<S>(
    options: Options,
    streams: Streams,
) -> Result<(Box<dyn Layer<S> + Send + Sync>, Control), Error>
where
    S: Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
{
    let levels = Levels::new(&options);
    let sinks = Sinks::new(&options, streams)?;
    let control = Control { verbosity: levels.verbosity().clone(), sinks: sinks.clone() };
    let Options { format, clock, colour, .. } = options;
    let layer = match format {
        Format::Human => {
            let lines = tracing_subscriber::fmt::layer().with_writer(sinks).with_ansi(colour);
            Gate { levels: levels.clone(), lines }.with_filter(levels).boxed()
        }
        Format::Text | Format::Json => {
            let style = if format == Format::Json { Style::Json } else { Style::text() };
            let lines = Lines { style, clock, sinks };
            Gate { levels: levels.clone(), lines }.with_filter(levels).boxed()
        }
    };
    Ok((layer, control))
}

#[derive(Clone, Copy, Debug)]
enum Style {
    Text { pid: u32 },
    Json,
}

impl Style {
    fn text() -> Self {
        Self::Text { pid: process::id() }
    }

    fn write(self, line: &Line, clock: &Clock) -> String {
        match self {
            Self::Text { pid } => text(line, &clock.now(), pid),
            Self::Json => json(line, &clock.now()),
        }
    }
}

/// The streams, split or not.
#[derive(Clone, Debug)]
struct Sinks {
    /// Informational lines; `None` where they go with the others.
    info: Option<Sink>,
    error: Sink,
    /// Whether warnings count as informational: JSON knows errors only.
    warnings_inform: bool,
}

impl Sinks {
    fn new(options: &Options, streams: Streams) -> Result<Self, Error> {
        let routing = options.routing();
        let patience = options.flush_frequency;
        let size = usize::try_from(routing.info_buffer_size.get()).unwrap_or(usize::MAX);
        // More could not be gathered, for lines are dropped before.
        let size = size.min(1 << 20);
        let style = if options.format == Format::Json { Style::Json } else { Style::text() };
        let new = |stream, size| {
            let clock = options.clock.clone();
            let lament = move |n| style.write(&dropped(n), &clock);
            Sink::new(stream, Buffering { size, patience }, Box::new(lament))
        };
        let info = match routing.split_stream {
            true => Some(new(streams.info, size)?),
            false => None,
        };
        let warnings_inform = options.format == Format::Json;
        Ok(Self { info, error: new(streams.error, 0)?, warnings_inform })
    }

    fn of(&self, level: Level) -> &Sink {
        let informs = match Severity::of(level) {
            Severity::Info => true,
            Severity::Warning => self.warnings_inform,
            Severity::Error => false,
        };
        self.info.as_ref().filter(|_| informs).unwrap_or(&self.error)
    }
}

/// The line that says that lines are missing.
fn dropped(n: u64) -> Line {
    Line {
        severity: Severity::Warning,
        file: file!(),
        number: line!(),
        verbosity: 0,
        message: "log lines were dropped, the stream is too slow".to_owned(),
        err: None,
        fields: vec![("n", Value::Bare(n.to_string()))],
    }
}

/// Lets events pass whose own verbosity is low enough. Spans do not get here.
struct Gate<L> {
    levels: Levels,
    lines: L,
}

impl<S: Subscriber, L: Layer<S>> Layer<S> for Gate<L> {
    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        if self.levels.admit(event) {
            self.lines.on_event(event, context);
        }
    }
}

struct Lines {
    style: Style,
    clock: Clock,
    sinks: Sinks,
}

impl<S: Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let line = self.style.write(&Line::of(event), &self.clock);
        self.sinks.of(*event.metadata().level()).line(line.as_bytes());
    }
}

impl<'a> MakeWriter<'a> for Sinks {
    type Writer = Sink;

    fn make_writer(&'a self) -> Sink {
        self.error.clone()
    }

    fn make_writer_for(&'a self, meta: &Metadata<'_>) -> Sink {
        self.of(*meta.level()).clone()
    }
}

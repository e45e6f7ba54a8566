//! Which events are logged.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tracing::level_filters::LevelFilter;
use tracing::subscriber::Interest;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Filter};

use super::line::{has_verbosity, verbosity_of, verbosity_with_field};
use super::{Options, Vmodule};

/// Decides which events are logged. Most answers are kept by `tracing` for each
/// place in the source; only events with a verbosity of their own are looked at
/// one by one.
#[derive(Clone, Debug)]
pub(super) struct Levels {
    verbosity: Arc<AtomicU32>,
    vmodule: Vmodule,
    own: Vec<String>,
    others: Vec<(String, LevelFilter)>,
}

impl Levels {
    pub(super) fn new(options: &Options) -> Self {
        Self {
            verbosity: Arc::new(AtomicU32::new(options.verbosity.get())),
            vmodule: options.vmodule.clone(),
            own: options.own.clone(),
            others: options.others.clone(),
        }
    }

    /// The number that `-v` gave, to be changed.
    pub(super) fn verbosity(&self) -> &Arc<AtomicU32> {
        &self.verbosity
    }

    fn wants(&self, meta: &Metadata<'_>, verbosity: u32) -> bool {
        let level = *meta.level();
        let is_own = self.own.iter().any(|own| is_in(meta.target(), own));
        let by_default = match is_own {
            true => level <= Level::WARN || verbosity <= self.verbosity.load(Ordering::Relaxed),
            false => level <= self.level_of_other(meta.target()),
        };
        by_default || self.vmodule.level(meta).is_some_and(|raised| verbosity <= raised)
    }

    /// Whether an event is logged that [`Filter::enabled`] has let pass: it may
    /// have a verbosity of its own. (A filter's `event_enabled` would be the
    /// place, but a filter that says no there upsets the next event.)
    pub(super) fn admit(&self, event: &Event<'_>) -> bool {
        let meta = event.metadata();
        !has_verbosity(meta) || self.wants(meta, verbosity_with_field(event))
    }

    fn level_of_other(&self, target: &str) -> LevelFilter {
        let listed = self.others.iter().filter(|(path, _)| is_in(target, path));
        listed.max_by_key(|(path, _)| path.len()).map_or(LevelFilter::WARN, |(_, level)| *level)
    }
}

/// Whether the module path begins so: `steersman` is the beginning of
/// `steersman_core::queue` as well, for crates share a prefix.
pub(crate) fn is_in(target: &str, path: &str) -> bool {
    target.strip_prefix(path).is_some_and(|rest| {
        rest.is_empty() || rest.starts_with("::") || rest.starts_with(['_', '-'])
    })
}

impl<S: Subscriber> Filter<S> for Levels {
    fn enabled(&self, meta: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        !meta.is_span() && self.wants(meta, verbosity_of(*meta.level()))
    }

    fn callsite_enabled(&self, meta: &'static Metadata<'static>) -> Interest {
        match !meta.is_span() && self.wants(meta, verbosity_of(*meta.level())) {
            true => Interest::always(),
            false => Interest::never(),
        }
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        let verbosity = self.verbosity.load(Ordering::Relaxed).max(self.vmodule.max());
        let own = match verbosity {
            0..=3 => LevelFilter::INFO,
            4..=6 => LevelFilter::DEBUG,
            _ => LevelFilter::TRACE,
        };
        self.others.iter().map(|(_, level)| *level).chain([own]).max()
    }
}

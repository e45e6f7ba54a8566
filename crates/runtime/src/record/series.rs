//! Events that say the same of the same pod become one event with a count.
//!
//! As in the reference's client: the second one makes a series of two, which is
//! written at once; later ones are only counted, and the count is written every
//! half hour and when nothing more has come for six minutes.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::event::{PodEvent, Sameness, Series};

/// A series ends when nothing more comes for so long.
pub(super) const FINISH: Duration = Duration::from_secs(6 * 60);
/// Series that go on are written so often, lest the API server forgets them.
pub(super) const REFRESH: Duration = Duration::from_secs(30 * 60);
/// More events than that are not remembered.
const LARGEST: usize = 20_000;

/// See the module documentation.
#[derive(Default)]
pub(super) struct Aggregator {
    cache: BTreeMap<Sameness, Remembered>,
}

struct Remembered {
    event: PodEvent,
    latest: Instant,
}

/// What is to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Write {
    /// A new event.
    Create(PodEvent),
    /// The series of an event that was created before.
    Series(PodEvent),
}

impl Aggregator {
    /// Takes in an event; returns what is to be written at once, if anything.
    pub(super) fn observe(&mut self, event: PodEvent, now: Instant) -> Option<Write> {
        if !event.what.repeats() {
            return Some(Write::Create(event));
        }
        let same = event.sameness();
        if let Some(remembered) = self.cache.get_mut(&same) {
            remembered.latest = now;
            let seen = &mut remembered.event;
            let at = event.at;
            return match &mut seen.series {
                Some(series) => {
                    *series = Series { count: series.count + 1, last_observed: at };
                    None
                }
                None => {
                    seen.series = Some(Series { count: 2, last_observed: at });
                    Some(Write::Series(seen.clone()))
                }
            };
        }
        if self.cache.len() >= LARGEST {
            self.cache.pop_first();
        }
        self.cache.insert(same, Remembered { event: event.clone(), latest: now });
        Some(Write::Create(event))
    }

    /// Ends what has been quiet for long enough; returns last counts.
    pub(super) fn finish(&mut self, now: Instant) -> Vec<Write> {
        let mut writes = Vec::new();
        self.cache.retain(|_, remembered| {
            let over = now.duration_since(remembered.latest) >= FINISH;
            if over && remembered.event.series.is_some() {
                writes.push(Write::Series(remembered.event.clone()));
            }
            !over
        });
        writes
    }

    /// The counts of all series.
    pub(super) fn refresh(&self) -> Vec<Write> {
        let series = self.cache.values().filter(|remembered| remembered.event.series.is_some());
        series.map(|remembered| Write::Series(remembered.event.clone())).collect()
    }
}

/// The time of an event, as the API writes it: with microseconds.
pub(super) fn micro_time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}

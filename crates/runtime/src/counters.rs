//! How often things happened: for the summary at the end, and for metrics.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// What happened so far. Shared by everything that runs.
        #[derive(Debug, Default)]
        pub struct Counters {
            $($(#[$doc])* pub $name: Count,)*
        }

        /// The numbers of [`Counters`] at one moment.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Summary {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Counters {
            /// The numbers now.
            pub fn summary(&self) -> Summary {
                Summary { $($name: self.$name.get(),)* }
            }
        }
    };
}

counters! {
    /// Attempts to schedule a pod.
    attempts,
    /// Pods that were bound.
    bound,
    /// Attempts after which no node fitted, or a plugin said no.
    unschedulable,
    /// Attempts that ended with an error, failed bindings included.
    errors,
    /// Complete lists that were read, the first ones included.
    lists,
    /// Watches that were opened.
    watches,
    /// Versions of objects that could not be read.
    bad_objects,
    /// Requests for a binding that were sent again.
    binding_retries,
    /// Events that were written or updated.
    events_written,
    /// Events that were given up: too many at once, or refused.
    events_dropped,
    /// Writes of a pod's status.
    status_writes,
}

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// One more.
    pub(crate) fn up(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// How many so far.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

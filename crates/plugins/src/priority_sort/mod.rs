//! PrioritySort orders the queue.
//!
//! # What it does
//! Of two pods the one of higher priority is tried first; of equal priorities
//! the one that was queued earlier.
//!
//! # Rejects or scores when
//! Never: it only orders.
//!
//! # Args
//! None.
//!
//! # Requeue events
//! None: it rejects no pod.
//!
//! # Parity
//! As kube-scheduler v1.36. Pods of equal priority that were queued at the
//! same moment are equal here as there; the queue decides between them.

use std::cmp::Ordering;
use std::sync::Arc;

use steersman_framework::extensions::{Extensions, QueueSort, QueuedPod};
use steersman_framework::point::PointSet;
use steersman_framework::registry::Descriptor;

/// The plugin's name.
pub const NAME: &str = "PrioritySort";

/// The plugin's entry in the registry.
pub fn descriptor() -> Descriptor {
    Descriptor::plain(NAME, PointSet::QUEUE_SORT, |_| {
        Ok(Extensions { queue_sort: Some(Arc::new(PrioritySort)), ..Extensions::default() })
    })
}

struct PrioritySort;

impl QueueSort for PrioritySort {
    fn compare(&self, a: &QueuedPod, b: &QueuedPod) -> Ordering {
        let highest_first = b.pod.spec.priority.cmp(&a.pod.spec.priority);
        highest_first.then_with(|| a.queued_at.cmp(&b.queued_at))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use steersman_api::time::Time;
    use steersman_testing::bench::Bench;
    use steersman_testing::pod;

    use super::*;

    /// Compares pods given as priority and second of queueing.
    #[track_caller]
    fn check(a: (i32, u64), b: (i32, u64), expected: Ordering) {
        let queued = |(priority, second)| QueuedPod {
            pod: pod("a").priority(priority).build(),
            queued_at: Time::from_start(Duration::from_secs(second)),
            attempts: 0,
        };
        let plugin = Bench::new(&descriptor()).plugin.queue_sort.expect("QueueSort");
        let (a, b) = (queued(a), queued(b));
        assert_eq!(plugin.compare(&a, &b), expected);
        assert_eq!(plugin.compare(&b, &a), expected.reverse());
    }

    #[test]
    fn higher_priority_comes_first_then_the_earlier_pod() {
        check((5, 9), (1, 2), Ordering::Less);
        check((i32::MIN, 1), (i32::MAX, 1), Ordering::Greater);
        check((1, 2), (1, 9), Ordering::Less);
        check((1, 2), (1, 2), Ordering::Equal);
    }
}

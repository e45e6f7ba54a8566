//! Evictions that make room for a pod: what a driver has to do, and its report.

use std::sync::Arc;

use steersman_api::key::PodUid;
use steersman_api::name::Name;
use steersman_api::pod::PodInfo;

use crate::event::Event;

/// Pods to evict for another one.
///
/// For each victim, all at once: set the condition `DisruptionTarget` in its
/// status (status `True`, reason `PreemptionByScheduler`, message
/// [`Eviction::condition_message`]), then delete it, with its UID as a
/// precondition, and record the event `Preempted` (action `Preempting`, note
/// [`preempted_note`]) about it. A victim that is gone already, or is another
/// pod of that name by now, is no failure. Then report with
/// [`Eviction::finished`]. That the victims have really gone is what the watch
/// says, later.
#[derive(Clone, Debug)]
pub struct Eviction {
    /// Who needs the room.
    pub preemptor: Arc<PodInfo>,
    /// Where.
    pub node: Name,
    /// Who has to go: at least one, the most important first.
    pub victims: Vec<Arc<PodInfo>>,
    pub(crate) ticket: u64,
}

/// How evictions ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvictionReport {
    pub(crate) preemptor: PodUid,
    pub(crate) ticket: u64,
    pub(crate) failed: Option<String>,
}

impl Eviction {
    /// The message of the condition `DisruptionTarget`.
    pub fn condition_message(&self) -> String {
        let scheduler = &self.preemptor.spec.scheduler_name;
        format!("{scheduler}: preempting to accommodate a higher priority pod")
    }

    /// The event that reports the end. An error says which victim could not be
    /// evicted and why: then the pod looks for a way again.
    pub fn finished(&self, result: Result<(), String>) -> Event {
        Event::EvictionFinished(EvictionReport {
            preemptor: self.preemptor.uid.clone(),
            ticket: self.ticket,
            failed: result.err(),
        })
    }
}

impl EvictionReport {
    /// Whether all evictions were requested.
    pub fn succeeded(&self) -> bool {
        self.failed.is_none()
    }
}

/// The note of the event `Preempted` about a victim.
pub fn preempted_note(preemptor: &PodInfo, node: &Name) -> String {
    format!("Preempted by pod {} on node {node}", preemptor.uid)
}

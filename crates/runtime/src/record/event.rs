//! One event about a pod, and its JSON.

use jiff::Timestamp;
use serde_json::{Value, json};
use steersman_api::key::{ObjectKey, PodUid};
use steersman_api::name::Name;
use steersman_api::pod::PodInfo;

use super::series::micro_time;

/// What an event says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum What {
    /// The pod was bound.
    Scheduled,
    /// An attempt failed.
    FailedScheduling,
    /// The pod had to make room for another one.
    Preempted,
}

/// An event about a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PodEvent {
    pub(crate) what: What,
    pub(crate) pod: PodRef,
    /// The other pod that it is about, if any.
    pub(crate) related: Option<PodRef>,
    /// The profile that speaks.
    pub(crate) controller: Name,
    /// The process that speaks.
    pub(crate) instance: String,
    pub(crate) note: String,
    pub(crate) at: Timestamp,
    pub(crate) series: Option<Series>,
}

/// Which pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PodRef {
    pub(crate) key: ObjectKey,
    pub(crate) uid: PodUid,
}

/// How often an event was repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Series {
    pub(crate) count: u32,
    pub(crate) last_observed: Timestamp,
}

/// What repetitions of an event have in common; the note is not part of it.
pub(super) type Sameness = (What, PodUid, Name);

/// The longest note that the API takes.
const LONGEST_NOTE: usize = 1024;
/// What stands at the end of a note that was cut.
const CUT: &str = " ...";

impl What {
    /// A pod is scheduled or preempted once: such events need no memory.
    pub(super) const fn repeats(self) -> bool {
        matches!(self, Self::FailedScheduling)
    }

    const fn words(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Scheduled => ("Normal", "Scheduled", "Binding"),
            Self::FailedScheduling => ("Warning", "FailedScheduling", "Scheduling"),
            Self::Preempted => ("Normal", "Preempted", "Preempting"),
        }
    }
}

impl PodEvent {
    pub(super) fn sameness(&self) -> Sameness {
        (self.what, self.pod.uid.clone(), self.controller.clone())
    }

    /// The event's own name: the pod's and the time.
    pub(super) fn name(&self) -> String {
        format!("{}.{:x}", self.pod.key.name, self.at.as_nanosecond())
    }

    /// Where events of the pod's namespace are.
    pub(super) fn collection(&self) -> String {
        format!("/apis/events.k8s.io/v1/namespaces/{}/events", self.pod.key.namespace)
    }

    pub(super) fn body(&self) -> Value {
        let (kind, reason, action) = self.what.words();
        let mut event = json!({
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": self.name(), "namespace": &*self.pod.key.namespace},
            "eventTime": micro_time(self.at),
            "reportingController": &*self.controller,
            "reportingInstance": self.instance,
            "action": action,
            "reason": reason,
            "regarding": self.pod.body(),
            "note": shortened(&self.note),
            "type": kind,
        });
        if let Some(related) = &self.related {
            event["related"] = related.body();
        }
        if let Some(series) = &self.series {
            event["series"] = series.body();
        }
        event
    }
}

impl PodRef {
    pub(super) fn of(pod: &PodInfo) -> Self {
        Self { key: pod.key.clone(), uid: pod.uid.clone() }
    }

    fn body(&self) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": &*self.key.namespace,
            "name": &*self.key.name,
            "uid": &*self.uid.0,
        })
    }
}

impl Series {
    pub(super) fn body(&self) -> Value {
        json!({"count": self.count, "lastObservedTime": micro_time(self.last_observed)})
    }
}

/// The note in as many bytes as the API takes.
fn shortened(note: &str) -> String {
    if note.len() <= LONGEST_NOTE {
        return note.to_owned();
    }
    let end = note.floor_char_boundary(LONGEST_NOTE - CUT.len());
    format!("{}{CUT}", &note[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_notes_are_cut_at_the_limit_and_between_characters() {
        assert_eq!(shortened(&"a".repeat(1024)), "a".repeat(1024));
        assert_eq!(shortened(&"a".repeat(1025)), format!("{} ...", "a".repeat(1020)));
        let wide = shortened(&"\u{e9}".repeat(600));
        assert!(wide.len() <= LONGEST_NOTE && wide.ends_with("\u{e9} ..."), "{wide}");
    }
}

//! The pods without a node, and those on their way to one.

use std::time::Duration;

use serde::Serialize;
use steersman_api::key::PodUid;
use steersman_api::time::Time;
use steersman_core::{BindingState, Place, PodState};

use super::{AskError, Limit, Page};
use crate::inspect::{Inspector, Moment};
use crate::status::StatusBoard;

/// The queue.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct QueueView {
    /// Pods that are tried next. The first is the next one; the others have no
    /// order that means anything.
    pub active: Page<QueuedPod>,
    /// Pods that wait out their backoff. The first is the next one, unless it
    /// failed with an error.
    pub backoff: Page<QueuedPod>,
    /// Pods that wait for an event that may help.
    pub unschedulable: Page<QueuedPod>,
    /// Pods that a PreEnqueue plugin keeps out.
    pub gated: Page<QueuedPod>,
    /// Pods that are being bound, the oldest attempt first.
    pub in_flight: Page<QueuedPod>,
}

/// A pod of the queue.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct QueuedPod {
    /// Namespace/name.
    pub pod: String,
    /// Its UID.
    pub uid: String,
    /// The profile that it wants.
    pub profile: String,
    /// Its priority.
    pub priority: i32,
    /// How often it was tried.
    pub attempts: u32,
    /// For how many seconds it has been known.
    pub known_for_seconds: f64,
    /// How many seconds of its backoff are left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff_seconds: Option<f64>,
    /// The plugins that rejected it the last time.
    pub rejected_by: Vec<&'static str>,
    /// What keeps it out of the queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gate: Option<String>,
    /// Why it was not scheduled the last time: the message of its condition
    /// `PodScheduled`, in the reference's words, also when it is not written
    /// yet or is from before this scheduler ran. None for a pod that was never
    /// tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<String>,
    /// The event that brought it back the last time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub woken_by_event: Option<String>,
    /// The plugin whose hint said so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub woken_by_plugin: Option<&'static str>,
    /// The node that room is kept on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nominated_node: Option<String>,
}

impl QueueView {
    /// The queue, up to `limit` pods of each part, still without why they failed:
    /// see [`QueueView::explain`].
    pub(super) fn of(moment: Moment<'_>, limit: Limit) -> Self {
        let Moment { scheduler, now } = moment;
        let page = |place| {
            let pods = scheduler.queued(place).map(|state| QueuedPod::of(&state, now));
            Page::of(scheduler.queued_count(place), limit, pods)
        };
        Self {
            active: page(Place::Active),
            backoff: page(Place::Backoff),
            unschedulable: page(Place::Unschedulable),
            gated: page(Place::Gated),
            in_flight: page(Place::InFlight),
        }
    }

    /// Adds why the pods failed. Not for the scheduling thread: that is spared
    /// copying the texts, and waits for one look-up at the most.
    pub(super) fn explain(&mut self, board: &StatusBoard) {
        let Self { active, backoff, unschedulable, gated, in_flight } = self;
        for page in [active, backoff, unschedulable, gated, in_flight] {
            for pod in &mut page.items {
                pod.last_failure = board.last_failure(&PodUid::from(&*pod.uid));
            }
        }
    }

    /// The parts with their names, in the order in which a pod may meet them.
    pub fn parts(&self) -> [(&'static str, &Page<QueuedPod>); 5] {
        [
            ("active", &self.active),
            ("backoff", &self.backoff),
            ("unschedulable", &self.unschedulable),
            ("gated", &self.gated),
            ("in flight", &self.in_flight),
        ]
    }
}

impl QueuedPod {
    fn of(state: &PodState<'_>, now: Time) -> Self {
        let left = state.backoff_until.since(now);
        let backs_off = matches!(state.place, Place::Backoff | Place::Unschedulable);
        Self {
            pod: state.pod.key.to_string(),
            uid: state.pod.uid.to_string(),
            profile: state.pod.spec.scheduler_name.to_string(),
            priority: state.pod.spec.priority,
            attempts: state.attempts,
            known_for_seconds: now.since(state.since).as_secs_f64(),
            backoff_seconds: (backs_off && !left.is_zero()).then_some(left.as_secs_f64()),
            rejected_by: state.rejected_by.clone(),
            gate: state.gate.map(str::to_owned),
            last_failure: None,
            woken_by_event: state.woken_by.map(|(event, _)| event.to_string()),
            woken_by_plugin: state.woken_by.map(|(_, plugin)| plugin).filter(|p| !p.is_empty()),
            nominated_node: state.nominated.map(ToString::to_string),
        }
    }
}

impl Inspector {
    /// The queue, up to `limit` pods of each part. Why a pod failed is looked up
    /// after the scheduling thread has answered: it may be of a later attempt
    /// than the rest.
    ///
    /// # Errors
    /// When no scheduler runs, or it does not come to answer in time.
    pub async fn queue(&self, patience: Duration, limit: Limit) -> Result<QueueView, AskError> {
        let mut view = self.answer(patience, move |moment| QueueView::of(moment, limit)).await?;
        if let Some(board) = self.board() {
            view.explain(&board);
        }
        Ok(view)
    }
}

/// The pods for which room is kept on a node they do not have yet.
#[derive(Clone, Debug, Serialize)]
pub struct NominationsView {
    /// Sorted by node, then UID.
    #[serde(flatten)]
    pub nominated: Page<NominatedPod>,
}

/// A pod and the node that room is kept on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NominatedPod {
    /// The node.
    pub node: String,
    /// Namespace/name.
    pub pod: String,
    /// Its UID.
    pub uid: String,
    /// Its priority.
    pub priority: i32,
}

impl NominationsView {
    /// The nominations now.
    pub fn of(moment: Moment<'_>, limit: Limit) -> Self {
        let nominated = moment.scheduler.nominated();
        let pods = nominated.iter().map(|(node, pod)| NominatedPod {
            node: node.to_string(),
            pod: pod.key.to_string(),
            uid: pod.uid.to_string(),
            priority: pod.spec.priority,
        });
        Self { nominated: Page::of(nominated.len(), limit, pods) }
    }
}

/// The pods that were given a node and are not bound yet.
#[derive(Clone, Debug, Serialize)]
pub struct BindingsView {
    /// By UID.
    #[serde(flatten)]
    pub bindings: Page<BindingPod>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BindingPod {
    /// Namespace/name.
    pub pod: String,
    /// Its UID.
    pub uid: String,
    /// Its node.
    pub node: String,
    /// Whom it waits for at Permit; none when its binding runs.
    pub waits: Vec<Wait>,
}

/// A Permit plugin's hold on a pod.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Wait {
    /// The plugin.
    pub plugin: &'static str,
    /// How many seconds are left.
    pub seconds_left: f64,
}

impl BindingsView {
    /// The bindings now.
    pub fn of(moment: Moment<'_>, limit: Limit) -> Self {
        let Moment { scheduler, now } = moment;
        let pods = scheduler.bindings().map(|state| binding(&state, now));
        Self { bindings: Page::of(scheduler.bindings_count(), limit, pods) }
    }
}

fn binding(state: &BindingState<'_>, now: Time) -> BindingPod {
    let wait = |wait: &steersman_core::WaitState| Wait {
        plugin: wait.plugin,
        seconds_left: wait.until.since(now).as_secs_f64(),
    };
    BindingPod {
        pod: state.pod.key.to_string(),
        uid: state.pod.uid.to_string(),
        node: state.node.to_string(),
        waits: state.waits.iter().map(wait).collect(),
    }
}

//! What is written to a pod's status, as JSON.

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use steersman_api::key::{ObjectKey, PodUid};
use steersman_api::name::Name;

/// The condition `PodScheduled` with status `False`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Condition {
    pub(crate) reason: String,
    pub(crate) message: String,
}

/// One write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Write {
    pub(crate) key: ObjectKey,
    pub(crate) uid: PodUid,
    pub(crate) condition: Option<Condition>,
    /// `Some(None)` clears it.
    pub(crate) nominated: Option<Option<Name>>,
    /// Whether the condition becomes False with this write.
    pub(crate) is_transition: bool,
    /// The pod's `metadata.generation`, which the condition is about.
    pub(crate) generation: Option<i64>,
}

impl Condition {
    /// Finds the condition in a pod's status, if it is there and False.
    pub(super) fn read(status: &Value) -> Option<Self> {
        let conditions = status["conditions"].as_array()?;
        let condition = conditions.iter().find(|c| c["type"] == "PodScheduled")?;
        let text = |field: &str| condition[field].as_str().unwrap_or_default().to_owned();
        (condition["status"] == "False")
            .then(|| Self { reason: text("reason"), message: text("message") })
    }
}

impl Write {
    /// The strategic merge patch of `pods/status`. The UID in it makes the API
    /// server refuse it for a later pod of the same name.
    pub(super) fn patch(&self, now: Timestamp) -> Value {
        let mut status = Map::new();
        if let Some(Condition { reason, message }) = &self.condition {
            let mut condition = json!({
                "type": "PodScheduled",
                "status": "False",
                "reason": reason,
                "message": message,
                "lastProbeTime": null,
            });
            if self.is_transition {
                let now = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
                condition["lastTransitionTime"] = Value::from(now);
            }
            if let Some(generation) = self.generation {
                condition["observedGeneration"] = Value::from(generation);
            }
            status.insert("conditions".into(), json!([condition]));
        }
        if let Some(node) = &self.nominated {
            let node = node.as_ref().map(|node| node.as_str());
            status.insert("nominatedNodeName".into(), json!(node));
        }
        json!({"metadata": {"uid": &*self.uid.0}, "status": status})
    }
}

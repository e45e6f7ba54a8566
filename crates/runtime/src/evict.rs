//! Evicts pods to make room for more important ones.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use jiff::Timestamp;
use serde_json::json;
use steersman_api::pod::PodInfo;
use steersman_core::{Event, Eviction, preempted_note};
use tokio::time::sleep;

use crate::api::{Api, Call, CallError, pod_path};
use crate::chance::{Backoff, Chance};
use crate::record::Recorder;

/// What evicting needs.
#[derive(Clone)]
pub(crate) struct Evictor {
    pub(crate) api: Arc<Api>,
    pub(crate) recorder: Arc<Recorder>,
    pub(crate) seed: u64,
    pub(crate) wall: fn() -> Timestamp,
}

/// How often a request is tried before the pod that needs the room looks for
/// another way.
const TRIES: u32 = 5;
/// The first and the longest wait between two tries.
const WAITS: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(4));

/// What the server says when a pod of this name has another UID. The name is a
/// part of the message, too, so that a single word would not do.
const OTHER_UID: &str = "UID in precondition";

impl Evictor {
    /// Requests all evictions at once; returns the report for the core.
    pub(crate) async fn evict(&self, eviction: &Eviction) -> Event {
        let requests = eviction.victims.iter().map(|victim| self.evict_one(eviction, victim));
        let results = join_all(requests).await;
        eviction.finished(results.into_iter().collect())
    }

    async fn evict_one(&self, eviction: &Eviction, victim: &PodInfo) -> Result<(), String> {
        let pod = &victim.key;
        let failed = |what: &str, error: CallError| format!("{what} pod {pod}: {error}");
        let path = pod_path(pod, "/status");
        let patch = self.condition(eviction, victim);
        // Gone already, or another pod of that name: nothing is left to do.
        let condition = self.insist(victim, || Call::patch(path.clone(), patch.clone())).await;
        if !condition.map_err(|error| failed("marking", error))? {
            return Ok(());
        }
        let path = pod_path(pod, "");
        let options = json!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": &*victim.uid.0},
        });
        let deleted = self.insist(victim, || Call::delete(path.clone(), options.clone())).await;
        if deleted.map_err(|error| failed("deleting", error))? {
            let Eviction { preemptor, node, .. } = eviction;
            tracing::info!(%pod, preemptor = %preemptor.key, %node, "preempted");
            self.recorder.preempted(victim, preemptor, preempted_note(preemptor, node));
        }
        Ok(())
    }

    fn condition(&self, eviction: &Eviction, victim: &PodInfo) -> serde_json::Value {
        let now = (self.wall)().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        json!({
            "metadata": {"uid": &*victim.uid.0},
            "status": {"conditions": [{
                "type": "DisruptionTarget",
                "status": "True",
                "reason": "PreemptionByScheduler",
                "message": eviction.condition_message(),
                "lastProbeTime": null,
                "lastTransitionTime": now,
            }]},
        })
    }

    /// Sends a request until it is answered; `false` when the pod is no more.
    async fn insist(&self, victim: &PodInfo, call: impl Fn() -> Call) -> Result<bool, CallError> {
        let mut backoff = Backoff::new(WAITS.0, WAITS.1, Chance::new(self.seed, &victim.uid.0));
        let mut tries = 1;
        loop {
            let error = match self.api.bytes(call()).await {
                Ok(_) => return Ok(true),
                Err(error) => error,
            };
            match error.code() {
                404 => return Ok(false),
                // The UID is another one by now; what else conflicts passes.
                409 if error.to_string().contains(OTHER_UID) => return Ok(false),
                409 if tries < TRIES => {}
                _ if error.may_pass() && tries < TRIES => {}
                _ => return Err(error),
            }
            tries += 1;
            sleep(error.retry_after().unwrap_or_else(|| backoff.wait())).await;
        }
    }
}

#[cfg(test)]
mod tests;

//! Binds pods through the API server.
//!
//! A request whose answer is lost may have been carried out. Before it is sent
//! again the pod is read, so that a binding that went through counts as one and
//! a pod that has another node by now is left alone. Sending it again is safe
//! in itself: the API server binds a pod only once, and only the one with the
//! right UID.
//!
//! A conflict ([`WriteError::Conflict`]) is reported only when it is sure that
//! no request of ours has bound the pod: then it was another client, if anyone.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use steersman_api::decode::KINDS;
use steersman_api::key::{ObjectKey, PodUid};
use steersman_api::name::Name;
use steersman_framework::condition::{Condition, WaitError};
use steersman_framework::extensions::BoxFuture;
use steersman_framework::world::{ClusterWriter, WriteError};
use tokio::sync::Semaphore;
use tokio::time::sleep;

use crate::api::{Api, Call, CallError, pod_path};
use crate::chance::{Backoff, Chance};
use crate::counters::Counters;
use crate::view::View;

/// The cluster behind an API server.
pub(crate) struct LiveCluster {
    api: Arc<Api>,
    counters: Arc<Counters>,
    view: Arc<View>,
    seed: u64,
    /// Each request under way has a connection of its own.
    connections: Semaphore,
}

/// How often a binding is tried before it counts as failed; the pod is then
/// tried again after its backoff.
const TRIES: u32 = 5;
/// How long one request may take.
const PATIENCE: Duration = Duration::from_secs(15);
/// The first and the longest wait between two tries.
const WAITS: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(4));
/// The longest wait that a server may ask for while a pod holds its room.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// How many requests may be under way.
const CONNECTIONS: usize = 64;

/// Where a pod is.
enum Whereabouts {
    Unbound,
    On(String),
    Gone,
}

impl LiveCluster {
    pub(crate) fn new(api: Arc<Api>, counters: Arc<Counters>, view: Arc<View>, seed: u64) -> Self {
        Self { api, counters, view, seed, connections: Semaphore::new(CONNECTIONS) }
    }

    async fn bind_pod(&self, pod: &ObjectKey, uid: &PodUid, node: &Name) -> Result<(), WriteError> {
        let _connection = self.connections.acquire().await;
        let mut backoff = Backoff::new(WAITS.0, WAITS.1, Chance::new(self.seed, &uid.0));
        let mut may_be_done = false;
        let mut tries = 1;
        loop {
            let error = match self.post(pod, uid, node).await {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            if error.code() == 409 && !may_be_done {
                return Err(self.conflict(pod, uid, &error).await);
            }
            // What looks like somebody else's binding may be our own.
            let unsure = error.is_ambiguous() || (error.code() == 409 && may_be_done);
            if unsure {
                may_be_done = true;
                match self.whereabouts(pod, uid).await {
                    Ok(Whereabouts::On(found)) if *node == *found => return Ok(()),
                    Ok(Whereabouts::On(found)) => return Err(taken(pod, &found)),
                    Ok(Whereabouts::Gone) => return Err(gone(pod)),
                    Ok(Whereabouts::Unbound) => tries += 1,
                    // As long as the pod may be on the node, its room there
                    // must not be given away: this does not count as a try.
                    Err(error) if error.may_pass() => {}
                    // Whoever may not read pods will not find out by asking on.
                    Err(_) => tries += 1,
                }
            } else {
                tries += 1;
            }
            if tries > TRIES || !(unsure || error.may_pass()) {
                return Err(match may_be_done {
                    true => WriteError::Other(error.to_string()),
                    false => write_error(&error),
                });
            }
            self.counters.binding_retries.up();
            tracing::debug!(pod = %pod, %node, %error, tries, "binding again");
            let asked = error.retry_after().map(|wait| wait.min(LONGEST_WAIT));
            sleep(asked.unwrap_or_else(|| backoff.wait())).await;
        }
    }

    /// The very first answer was a conflict: no request of ours has bound the
    /// pod. Says who did, if the pod has a node; otherwise what the server says.
    async fn conflict(&self, pod: &ObjectKey, uid: &PodUid, error: &CallError) -> WriteError {
        match self.whereabouts(pod, uid).await {
            Ok(Whereabouts::On(found)) => taken(pod, &found),
            Ok(Whereabouts::Gone) => gone(pod),
            Ok(Whereabouts::Unbound) | Err(_) => write_error(error),
        }
    }

    /// A merge patch may be sent twice: the second time changes nothing.
    async fn patch_object(
        &self,
        resource: &'static str,
        key: &ObjectKey,
        patch: &Value,
    ) -> Result<(), WriteError> {
        let Some(row) = KINDS.iter().find(|row| row.resource == resource) else {
            return Err(WriteError::Other(format!("no kind is known as {resource:?}")));
        };
        let mut backoff = Backoff::new(WAITS.0, WAITS.1, Chance::new(self.seed, &key.name));
        let mut tries = 0;
        loop {
            tries += 1;
            let path = row.object_path(key);
            let call = Call::merge_patch(path, patch.clone()).within(PATIENCE);
            let error = {
                let _connection = self.connections.acquire().await;
                match self.api.bytes(call).await {
                    Ok(_) => return Ok(()),
                    Err(error) => error,
                }
            };
            if !error.may_pass() || tries >= TRIES {
                return Err(write_error(&error));
            }
            let asked = error.retry_after().map(|wait| wait.min(LONGEST_WAIT));
            sleep(asked.unwrap_or_else(|| backoff.wait())).await;
        }
    }

    async fn post(&self, pod: &ObjectKey, uid: &PodUid, node: &Name) -> Result<(), CallError> {
        let binding = json!({
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"namespace": &*pod.namespace, "name": &*pod.name, "uid": &*uid.0},
            "target": {"kind": "Node", "name": &**node},
        });
        let call = Call::post(pod_path(pod, "/binding"), binding).within(PATIENCE);
        self.api.bytes(call).await.map(drop)
    }

    async fn whereabouts(&self, pod: &ObjectKey, uid: &PodUid) -> Result<Whereabouts, CallError> {
        let json = match self.api.json(Call::get(pod_path(pod, "")).within(PATIENCE)).await {
            Ok(json) => json,
            Err(error) if error.code() == 404 => return Ok(Whereabouts::Gone),
            Err(error) => return Err(error),
        };
        if json["metadata"]["uid"].as_str() != Some(&*uid.0) {
            return Ok(Whereabouts::Gone);
        }
        let node = json["spec"].get("nodeName").and_then(Value::as_str).unwrap_or_default();
        Ok(match node {
            "" => Whereabouts::Unbound,
            node => Whereabouts::On(node.to_owned()),
        })
    }
}

impl ClusterWriter for LiveCluster {
    fn bind<'a>(
        &'a self,
        pod: &'a ObjectKey,
        uid: &'a PodUid,
        node: &'a Name,
    ) -> BoxFuture<'a, Result<(), WriteError>> {
        Box::pin(self.bind_pod(pod, uid, node))
    }

    fn patch<'a>(
        &'a self,
        resource: &'static str,
        key: &'a ObjectKey,
        patch: &'a Value,
    ) -> BoxFuture<'a, Result<(), WriteError>> {
        Box::pin(self.patch_object(resource, key, patch))
    }

    fn wait<'a>(
        &'a self,
        condition: &'a dyn Condition,
        timeout: Duration,
    ) -> BoxFuture<'a, Result<(), WaitError>> {
        Box::pin(self.view.wait(condition, timeout))
    }
}

fn taken(pod: &ObjectKey, node: &str) -> WriteError {
    WriteError::Conflict(format!(
        "pod {pod} is already assigned to node {node:?}: another client bound it, for instance a \
         second scheduler with the same schedulerName under another lock"
    ))
}

fn gone(pod: &ObjectKey) -> WriteError {
    WriteError::NotFound(format!("pod {pod} is gone"))
}

fn write_error(error: &CallError) -> WriteError {
    match error.code() {
        404 => WriteError::NotFound(error.to_string()),
        409 => WriteError::Conflict(error.to_string()),
        _ => WriteError::Other(error.to_string()),
    }
}

#[cfg(test)]
mod tests;

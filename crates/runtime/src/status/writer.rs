//! Carries writes of the board to the API server, a few at a time.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use steersman_api::key::PodUid;
use tokio::time::sleep;

use super::StatusBoard;
use crate::api::{Api, Call, CallError, pod_path};
use crate::chance::{Backoff, Chance};
use crate::counters::Counters;

/// Writes one pod's status after the other.
pub(crate) struct StatusWriter {
    pub(crate) api: Arc<Api>,
    pub(crate) board: Arc<StatusBoard>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) seed: u64,
    pub(crate) wall: fn() -> Timestamp,
}

/// How often a write is tried before its pod is left as it is; the next failed
/// attempt to schedule it writes again.
const TRIES: u32 = 8;
/// The first and the longest wait between two tries.
const WAITS: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(10));

impl StatusWriter {
    /// Writes forever.
    pub(crate) async fn run(self) {
        loop {
            let uid = self.board.next().await;
            self.write(&uid).await;
        }
    }

    async fn write(&self, uid: &PodUid) {
        let mut backoff = Backoff::new(WAITS.0, WAITS.1, Chance::new(self.seed, &uid.0));
        let mut tries = 0;
        // Each turn asks anew what is wanted: it may have changed meanwhile.
        while let Some(write) = self.board.write(uid) {
            let path = pod_path(&write.key, "/status");
            let call = Call::patch(path, write.patch((self.wall)()));
            let Err(error) = self.api.bytes(call).await else {
                self.counters.status_writes.up();
                self.board.written(&write);
                continue;
            };
            tries += 1;
            if error.code() == 404 {
                // The watch will say so, too.
                self.board.forget(uid);
            } else if !is_worth_another_try(&error) || tries >= TRIES {
                tracing::warn!(pod = %write.key, %error, "the pod's status cannot be written");
                self.board.gave_up(&write);
            } else {
                tracing::debug!(pod = %write.key, %error, "writing the pod's status again");
                sleep(error.retry_after().unwrap_or_else(|| backoff.wait())).await;
            }
        }
    }
}

/// A conflict is somebody else's write at the same moment, or another pod of
/// the same name, of which the watch will tell.
fn is_worth_another_try(error: &CallError) -> bool {
    error.may_pass() || error.code() == 409
}

//! Carries writes of the board to the API server, a few at a time.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use steersman_api::key::PodUid;

use super::{StatusBoard, Write};
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

/// So many failures in a row are worth a line in the log.
const WORTH_A_LINE: u32 = 8;
/// The first and the longest wait between two tries.
const WAITS: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(30));

impl StatusWriter {
    /// Writes forever.
    pub(crate) async fn run(self) {
        loop {
            let uid = self.board.next().await;
            self.write(&uid).await;
        }
    }

    async fn write(&self, uid: &PodUid) {
        // Each turn asks anew what is wanted: it may have changed meanwhile.
        while let Some(write) = self.board.write(uid) {
            let path = pod_path(&write.key, "/status");
            let call = Call::patch(path, write.patch((self.wall)()));
            let Err(error) = self.api.bytes(call).await else {
                self.counters.status_writes.up();
                self.board.written(&write);
                continue;
            };
            if error.code() == 404 {
                // The watch will say so, too.
                self.board.forget(uid);
            } else if is_worth_another_try(&error) {
                return self.put_off(&write, &error);
            } else {
                tracing::warn!(pod = %write.key, %error, "the pod's status cannot be written");
                self.board.gave_up(&write);
            }
        }
    }

    /// Leaves the pod for later, and goes on with others.
    fn put_off(&self, write: &Write, error: &CallError) {
        let fresh = || Backoff::new(WAITS.0, WAITS.1, Chance::new(self.seed, &write.uid.0));
        let n_failed = self.board.put_off(&write.uid, error.retry_after(), fresh);
        let pod = &write.key;
        if n_failed == WORTH_A_LINE {
            tracing::warn!(%pod, %error, n_failed, "the pod's status cannot be written yet");
        } else {
            tracing::debug!(%pod, %error, n_failed, "writing the pod's status again later");
        }
    }
}

/// A conflict is somebody else's write at the same moment, or another pod of
/// the same name, of which the watch will tell. Only something between us and
/// the API server answers a write with 410, and hardly for good.
fn is_worth_another_try(error: &CallError) -> bool {
    error.may_pass() || matches!(error.code(), 409 | 410)
}

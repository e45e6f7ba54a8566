//! Tells a binding that was refused from one whose answer was lost.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::Value;
use steersman_api::key::{ObjectKey, PodUid};
use steersman_api::name::Name;
use steersman_framework::condition::{Condition, WaitError};
use steersman_framework::extensions::BoxFuture;
use steersman_framework::world::{ClusterWriter, WriteError};

/// Passes everything on, and remembers how the bindings of one cycle ended:
/// what a plugin says of them is only text.
pub(super) struct Witness<'a> {
    world: &'a dyn ClusterWriter,
    n_asked: AtomicU32,
    n_conflicts: AtomicU32,
}

impl<'a> Witness<'a> {
    pub(super) fn new(world: &'a dyn ClusterWriter) -> Self {
        Self { world, n_asked: AtomicU32::new(0), n_conflicts: AtomicU32::new(0) }
    }

    /// Whether bindings were asked for, and each was refused as a conflict: then
    /// none of them has gone through.
    pub(super) fn saw_only_conflicts(&self) -> bool {
        let n_asked = self.n_asked.load(Ordering::Relaxed);
        n_asked > 0 && n_asked == self.n_conflicts.load(Ordering::Relaxed)
    }
}

impl ClusterWriter for Witness<'_> {
    fn bind<'a>(
        &'a self,
        pod: &'a ObjectKey,
        uid: &'a PodUid,
        node: &'a Name,
    ) -> BoxFuture<'a, Result<(), WriteError>> {
        // Counted first: a plugin may drop the request under way.
        self.n_asked.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            let answer = self.world.bind(pod, uid, node).await;
            if matches!(answer, Err(WriteError::Conflict(_))) {
                self.n_conflicts.fetch_add(1, Ordering::Relaxed);
            }
            answer
        })
    }

    fn patch<'a>(
        &'a self,
        resource: &'static str,
        key: &'a ObjectKey,
        patch: &'a Value,
    ) -> BoxFuture<'a, Result<(), WriteError>> {
        self.world.patch(resource, key, patch)
    }

    fn wait<'a>(
        &'a self,
        condition: &'a dyn Condition,
        timeout: Duration,
    ) -> BoxFuture<'a, Result<(), WaitError>> {
        self.world.wait(condition, timeout)
    }
}

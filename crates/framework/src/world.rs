//! What the binding cycle does to the world, behind one small trait: the API
//! client, the simulator and tests each implement it.

use std::future::ready;
use std::time::Duration;

use serde_json::Value;
use steersman_api::key::{ObjectKey, PodUid};
use steersman_api::name::Name;
use thiserror::Error;

use crate::condition::{Condition, WaitError};
use crate::extensions::BoxFuture;

/// Writes to the cluster. Grows with what plugins need.
pub trait ClusterWriter: Send + Sync {
    /// Binds a pod to a node: `pods/binding`. The UID guards against binding a
    /// later pod of the same name.
    fn bind<'a>(
        &'a self,
        pod: &'a ObjectKey,
        uid: &'a PodUid,
        node: &'a Name,
    ) -> BoxFuture<'a, Result<(), WriteError>>;

    /// Applies a JSON merge patch to an object of the kind that cluster events
    /// call `resource`. A patch that names `metadata.resourceVersion` is
    /// refused as a [`WriteError::Conflict`] when the object has changed.
    fn patch<'a>(
        &'a self,
        resource: &'static str,
        key: &'a ObjectKey,
        patch: &'a Value,
    ) -> BoxFuture<'a, Result<(), WriteError>> {
        let _ = (key, patch);
        Box::pin(ready(Err(WriteError::Other(format!("{resource} cannot be written here")))))
    }

    /// Waits until `condition` is settled: asks it again whenever something
    /// that it may look at has changed, at the latest every few seconds, and
    /// gives up after `timeout`. A world in which nothing happens by itself
    /// (a simulation on paper) may take what is waited for as having come.
    fn wait<'a>(
        &'a self,
        condition: &'a dyn Condition,
        timeout: Duration,
    ) -> BoxFuture<'a, Result<(), WaitError>> {
        let _ = (condition, timeout);
        Box::pin(ready(Err(WaitError::Failed("nothing can be waited for here".to_owned()))))
    }
}

/// Why a write failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WriteError {
    /// The object is gone.
    #[error("{0}")]
    NotFound(String),
    /// The object has changed, or has a node already.
    #[error("{0}")]
    Conflict(String),
    /// Anything else; may work later.
    #[error("{0}")]
    Other(String),
}

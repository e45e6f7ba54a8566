//! What the binding cycle does to the world, behind one small trait: the API
//! client, the simulator and tests each implement it.

use steersman_api::key::{ObjectKey, PodUid};
use steersman_api::name::Name;
use thiserror::Error;

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
}

/// Why a write failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WriteError {
    /// The object is gone.
    #[error("not found: {0}")]
    NotFound(String),
    /// The object has changed, or has a node already.
    #[error("conflict: {0}")]
    Conflict(String),
    /// Anything else; may work later.
    #[error("{0}")]
    Other(String),
}

//! Waiting in the binding cycle: a plugin says what it waits for as a pure
//! function over the objects as they are, and the driver, which hears of
//! changes and has a clock, does the waiting.

use std::sync::Arc;

use steersman_api::key::{ObjectKey, PodUid};
use steersman_api::name::Name;
use steersman_api::node::Node;
use steersman_api::object::AnyObject;
use thiserror::Error;

/// What a binding cycle waits for.
pub trait Condition: Send + Sync {
    /// How far it is, as the objects are now.
    fn check(&self, objects: &dyn Objects) -> Progress;
}

/// The objects as a driver knows them now; they may lag behind what was
/// written.
pub trait Objects {
    /// The object of the kind that cluster events call `resource`.
    fn object(&self, resource: &'static str, key: &ObjectKey) -> Option<AnyObject>;

    /// The node of that name.
    fn node(&self, name: &Name) -> Option<Arc<Node>>;

    /// Whether the pod is known to be gone.
    fn is_gone(&self, pod: &PodUid) -> bool;
}

/// How far something is that is waited for.
#[must_use]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Not there yet.
    Waiting,
    /// It has come.
    Done,
    /// It will not come.
    Failed(String),
}

/// Why waiting ended without what was waited for.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WaitError {
    /// It took too long.
    #[error("context deadline exceeded")]
    TimedOut,
    /// It will not come.
    #[error("{0}")]
    Failed(String),
}

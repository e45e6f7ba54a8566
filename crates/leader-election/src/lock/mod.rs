//! The objects that a lock consists of.

mod cell;
mod kind;

use kube::Client;
use kube::core::Status;
use thiserror::Error;

pub use kind::{LockKind, ParseLockKindError};

pub(crate) use cell::Cell;

use crate::record::{Record, Sighting};

/// Why a lock could not be read or written.
#[derive(Debug, Error)]
pub enum LockError {
    /// The API server could not be asked, or refused.
    #[error("the request failed")]
    Request(#[source] Box<kube::Error>),
    /// What the object says about the election makes no sense.
    #[error("the record in the lock cannot be read")]
    Record(#[source] serde_json::Error),
    /// The answer is not an object.
    #[error("the API server's answer has no metadata")]
    Answer,
    /// The lock was not read before it was written.
    #[error("the lock has not been read")]
    Unread,
    /// The request took too long; it may still be carried out.
    #[error("the request did not end in time")]
    Slow,
}

impl LockError {
    /// Somebody else was faster: part of the game.
    pub(crate) fn is_conflict(&self) -> bool {
        self.refusal().is_some_and(|status| status.code == 409)
    }

    pub(crate) fn is_not_found(&self) -> bool {
        self.refusal().is_some_and(|status| status.code == 404)
    }

    /// What the API server said, if it refused.
    pub(crate) fn refusal(&self) -> Option<&Status> {
        match self {
            Self::Request(error) => match &**error {
                kube::Error::Api(status) => Some(status),
                _ => None,
            },
            _ => None,
        }
    }
}

/// One object, or for migrations two of different kinds, of which the first
/// decides races.
#[derive(Debug)]
pub(crate) struct Lock {
    first: Cell,
    second: Option<Cell>,
}

/// The holder of a lock whose two objects name different ones.
const UNKNOWN_LEADER: &str = "leaderelection.k8s.io/unknown";

impl Lock {
    pub(crate) fn new(client: &Client, kind: LockKind, namespace: &str, name: &str) -> Self {
        let (first, second) = kind.objects();
        let cell = |object| Cell::new(client.clone(), object, namespace, name);
        Self { first: cell(first), second: second.map(cell) }
    }

    /// Both objects, the first one first.
    pub(crate) fn cells(&self) -> impl Iterator<Item = &Cell> {
        std::iter::once(&self.first).chain(&self.second)
    }

    pub(crate) async fn read(&mut self) -> Result<Option<Sighting>, LockError> {
        let Some(mut record) = self.first.read().await? else { return Ok(None) };
        let Some(second) = &mut self.second else { return Ok(Some(record.into())) };
        // Without the second one, the holder of the first is an older program,
        // or somebody who did not get further.
        let Some(second) = second.read().await? else { return Ok(Some(record.into())) };
        if record.holder != second.holder {
            UNKNOWN_LEADER.clone_into(&mut record.holder);
        }
        Ok(Some(Sighting { record, second: Some(second) }))
    }

    pub(crate) async fn create(&mut self, record: &Record) -> Result<(), LockError> {
        self.first.create(record).await?;
        match &mut self.second {
            Some(second) => second.create(record).await,
            None => Ok(()),
        }
    }

    /// Writes on the versions that were read or written last, both of them: a
    /// program that knows only the second object must not be overwritten either.
    pub(crate) async fn update(&mut self, record: &Record) -> Result<(), LockError> {
        self.first.update(record).await?;
        match &mut self.second {
            Some(second) if second.exists() => second.update(record).await,
            Some(second) => second.create(record).await,
            None => Ok(()),
        }
    }
}

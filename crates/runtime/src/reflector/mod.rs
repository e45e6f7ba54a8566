//! Follows one kind of objects: everything there is, then every change, across
//! lost connections, restarts of the API server and forgotten versions.
//!
//! A reflector is at a *position*, the latest resource version it has seen, or
//! at none:
//!
//! ```text
//!          initial events or list           stream ends, connection lost
//!   none ─────────────────────────► at rv ◄───────────────┐
//!    ▲                                │  └─ watch from rv ─┘
//!    └──── the server forgot rv (410) ┘
//! ```
//!
//! What was seen outlives the position ([`store`]), so that a new list tells
//! the core only what differs, deletions included.

mod lean;
mod list;
mod outage;
mod store;
mod stream;

use std::sync::Arc;
use std::time::Duration;

use steersman_api::decode::KindRow;
use steersman_core::Event;
use steersman_framework::extender::Wants;
use thiserror::Error;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use crate::api::{Api, CallError};
use crate::chance::{Backoff, Chance};
use crate::counters::Counters;
use crate::status::StatusBoard;
use crate::view::View;
pub(crate) use outage::Outage;
use store::Store;

/// What a reflector found out.
#[derive(Debug)]
pub(crate) struct Batch {
    /// Of which kind, in plural.
    pub(crate) kind: &'static str,
    /// In order.
    pub(crate) events: Vec<Event>,
    /// With this batch the core knows everything there is of the kind.
    pub(crate) synced: bool,
}

/// How long to wait for what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// For the head of an answer to a watch.
    pub(crate) answer: Duration,
    /// For a page of a list.
    pub(crate) list: Duration,
    /// Between two lines of a watch. API servers send a bookmark a minute, so
    /// a connection that is silent for longer is dead on one side.
    pub(crate) idle: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            answer: Duration::from_secs(30),
            list: Duration::from_secs(120),
            idle: Duration::from_secs(90),
        }
    }
}

/// What all reflectors of a scheduler share.
#[derive(Clone)]
pub(crate) struct Surroundings {
    pub(crate) api: Arc<Api>,
    pub(crate) sink: mpsc::Sender<Batch>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) board: Arc<StatusBoard>,
    pub(crate) view: Arc<View>,
    pub(crate) limits: Limits,
    pub(crate) outage: Arc<Outage>,
    /// The whole objects that extenders are to be given.
    pub(crate) wants: Wants,
    pub(crate) seed: u64,
}

/// Follows one kind.
pub(crate) struct Reflector {
    row: &'static KindRow,
    selector: Option<&'static str>,
    api: Arc<Api>,
    sink: mpsc::Sender<Batch>,
    counters: Arc<Counters>,
    limits: Limits,
    outage: Arc<Outage>,
    chance: Chance,
    backoff: Backoff,
    /// For versions that are forgotten again and again.
    relisting: Backoff,
    expired_at: Option<Instant>,
    store: Store,
    /// Not handed on yet.
    events: Vec<Event>,
    /// The latest resource version; empty for none.
    position: String,
    /// Whether an object has moved the position since the last trouble.
    advanced: bool,
    /// Whether a bookmark has. Any number of those can be had at any time: they
    /// prove that a watch was served only when it took its time.
    bookmarked: bool,
    /// Whether the server is believed to send initial events.
    streaming: bool,
    /// How often in a row initial events broke off.
    cuts: u32,
    /// Whether there was a complete list already.
    listed: bool,
    /// Whether the core was told that it knows everything.
    synced: bool,
}

/// Where a watch starts.
enum Start<'a> {
    /// With everything there is.
    Everything,
    /// After a resource version.
    After(&'a str),
}

/// Why following came to a halt.
#[derive(Debug, Error)]
enum Trouble {
    #[error("the server does not send initial events: {0}")]
    NotStreaming(String),
    #[error("the resource version is too old")]
    Expired,
    #[error("nothing was heard for too long")]
    Silent,
    #[error(transparent)]
    Call(CallError),
    #[error("nobody listens any more")]
    Stopped,
}

/// Nobody takes batches any more.
struct Stopped;

/// The first and the longest wait after a failure, as in the reference's
/// client.
const WAITS: (Duration, Duration) = (Duration::from_millis(800), Duration::from_secs(30));
/// A watch that was served lasts longer than this, or brings something.
const SHORT_WATCH: Duration = Duration::from_secs(1);
/// Watches that bring something and end soon are not opened faster than this.
const PAUSE: Duration = Duration::from_millis(20);
/// Versions that are forgotten further apart than this have nothing to do with
/// each other.
const CALM: Duration = Duration::from_secs(60);
/// Pods that have ended use nothing: the reference does not watch them either.
const UNFINISHED: &str = "status.phase!%3DSucceeded%2Cstatus.phase!%3DFailed";

impl Reflector {
    pub(crate) fn new(row: &'static KindRow, around: Surroundings) -> Self {
        let Surroundings { api, sink, counters, board, view, limits, outage, wants, seed } = around;
        let chance = Chance::new(seed, row.plural);
        let backoff = Backoff::new(WAITS.0, WAITS.1, Chance::new(!seed, row.plural));
        let relisting = backoff.clone();
        Self {
            row,
            selector: (row.kind == "Pod").then_some(UNFINISHED),
            store: Store::new(row, counters.clone(), board, view, wants),
            api,
            sink,
            counters,
            limits,
            outage,
            chance,
            backoff,
            relisting,
            expired_at: None,
            events: Vec::new(),
            position: String::new(),
            advanced: false,
            bookmarked: false,
            streaming: true,
            cuts: 0,
            listed: false,
            synced: false,
        }
    }

    /// Follows until nobody takes the batches any more.
    pub(crate) async fn run(mut self) {
        loop {
            let began = Instant::now();
            let step = if !self.position.is_empty() {
                let position = self.position.clone();
                self.stream(Start::After(&position)).await
            } else if self.streaming {
                self.stream(Start::Everything).await
            } else {
                self.list().await
            };
            let is_short = began.elapsed() < SHORT_WATCH;
            let bookmarked = std::mem::take(&mut self.bookmarked) && !is_short;
            let advanced = std::mem::take(&mut self.advanced) || bookmarked;
            // A watch that ends at once, and with nothing, is as good as refused.
            let served = advanced || (step.is_ok() && !is_short);
            if served {
                self.backoff.reset();
                self.outage.end();
            }
            let wait = match step {
                Err(Trouble::Stopped) => return,
                Ok(()) if !served => Some(self.backoff.wait()),
                Ok(()) => is_short.then_some(PAUSE),
                Err(trouble) => self.recover(&trouble, advanced).await,
            };
            // Whatever came before the trouble is true all the same.
            if self.flush().await.is_err() {
                return;
            }
            if let Some(wait) = wait {
                sleep(wait).await;
            }
        }
    }

    /// Decides how to go on; returns how long to wait before.
    async fn recover(&mut self, trouble: &Trouble, advanced: bool) -> Option<Duration> {
        let resource = self.row.plural;
        match trouble {
            Trouble::NotStreaming(_) => {
                tracing::debug!(resource, %trouble, "listing instead");
                self.streaming = false;
                None
            }
            Trouble::Expired => {
                tracing::info!(resource, position = self.position, "the server forgot our place");
                self.position.clear();
                // Once is nothing special; again and again is, and lists are dear.
                let last = self.expired_at.replace(Instant::now());
                if last.is_none_or(|last| last.elapsed() > CALM) {
                    self.relisting.reset();
                    return None;
                }
                Some(self.relisting.wait())
            }
            Trouble::Silent => {
                tracing::debug!(resource, "the watch fell silent, opening another");
                None
            }
            Trouble::Call(error) => {
                let broke = error.refusal().is_none();
                if advanced && broke {
                    tracing::info!(resource, %error, "the watch was lost, resuming");
                    return Some(PAUSE);
                }
                let wait = error.retry_after().unwrap_or_else(|| self.backoff.wait());
                if error.code() == 404 && self.can_do_without() {
                    self.absent().await;
                    return Some(wait);
                }
                self.complain(error, wait);
                if is_our_fault(error) {
                    // Asking for the same again would give the same answer.
                    self.position.clear();
                }
                Some(wait)
            }
            Trouble::Stopped => None,
        }
    }

    pub(super) fn complain(&self, error: &CallError, wait: Duration) {
        let resource = self.row.plural;
        let wait = Duration::from_millis(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
        let verb = if self.position.is_empty() && !self.streaming { "list" } else { "watch" };
        match error.code() {
            // All reflectors meet it; one line now and then is enough.
            0 if self.outage.is_worth_a_line() => tracing::warn!(
                resource,
                verb,
                %error,
                ?wait,
                "the API server cannot be reached, trying again and again"
            ),
            0 => tracing::debug!(resource, verb, %error, ?wait, "still no answer"),
            401 if self.outage.is_worth_a_line() => tracing::error!(
                resource,
                verb,
                %error,
                ?wait,
                "the API server does not accept the credentials, trying again and again"
            ),
            401 => tracing::debug!(resource, verb, %error, ?wait, "still not accepted"),
            403 => tracing::error!(
                resource,
                verb,
                %error,
                ?wait,
                "the API server does not allow it, trying again"
            ),
            code => tracing::warn!(
                resource,
                verb,
                code,
                %error,
                ?wait,
                "the API server refused, trying again"
            ),
        }
    }

    /// Plugins can do without objects of kinds that a server does not have.
    /// What was there once does not vanish with its kind: then it is the
    /// answer that is not to be trusted.
    fn can_do_without(&self) -> bool {
        !matches!(self.row.kind, "Pod" | "Node") && !self.listed
    }

    /// The server does not serve the kind: there is none of it.
    async fn absent(&mut self) {
        if self.synced {
            return;
        }
        let resource = self.row.plural;
        tracing::info!(resource, "the API server does not have the kind, going on without");
        // A failure to hand it on shows at the next flush.
        let _ = self.sync().await;
    }

    /// A list is complete, and the watch can go on after `version`.
    async fn listed(&mut self, version: String) -> Result<(), Stopped> {
        tracing::debug!(resource = self.row.plural, n = self.store.len(), version, "listed");
        self.advanced = !version.is_empty();
        self.listed = true;
        self.cuts = 0;
        self.position = version;
        self.sync().await
    }

    async fn sync(&mut self) -> Result<(), Stopped> {
        if std::mem::replace(&mut self.synced, true) {
            return self.flush().await;
        }
        let batch = self.batch(true);
        self.sink.send(batch).await.map_err(|_| Stopped)
    }

    fn batch(&mut self, synced: bool) -> Batch {
        Batch { kind: self.row.plural, events: std::mem::take(&mut self.events), synced }
    }

    async fn flush(&mut self) -> Result<(), Stopped> {
        if self.events.is_empty() {
            return if self.sink.is_closed() { Err(Stopped) } else { Ok(()) };
        }
        let batch = self.batch(false);
        self.sink.send(batch).await.map_err(|_| Stopped)
    }
}

/// The server can do nothing with the request, today or tomorrow.
fn is_our_fault(error: &CallError) -> bool {
    matches!(error.code(), 400 | 404..=407 | 411..=428)
}

impl From<CallError> for Trouble {
    fn from(error: CallError) -> Self {
        match error.refusal() {
            Some(refusal) if refusal.is_expired() => Self::Expired,
            _ => Self::Call(error),
        }
    }
}

impl From<Stopped> for Trouble {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}

#[cfg(test)]
mod tests;

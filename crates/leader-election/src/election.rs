//! Competing for a lock.

use std::fmt;
use std::sync::Arc;

use kube::Client;
use thiserror::Error;

use crate::clock::{Clock, SystemClock};
use crate::elector::Elector;
use crate::events::Events;
use crate::leadership::Leadership;
use crate::lock::{Lock, LockKind};
use crate::monitor::Monitor;
use crate::runner::Runner;
use crate::term::{Lost, Term};
use crate::timing::Timing;

/// What to compete for, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The namespace of the lock.
    pub namespace: String,
    /// The name of the lock.
    pub name: String,
    /// What the lock is.
    pub kind: LockKind,
    /// Names this process; no other competitor may have the same.
    pub identity: String,
    /// How long things take.
    pub timing: Timing,
    /// Who speaks in events about the lock; empty: there are no events.
    pub component: String,
}

impl Config {
    /// A `Lease` with the timing of Kubernetes' own components, and no events.
    pub fn lease(
        namespace: impl Into<String>,
        name: impl Into<String>,
        identity: impl Into<String>,
    ) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
            kind: LockKind::Leases,
            identity: identity.into(),
            timing: Timing::default(),
            component: String::new(),
        }
    }
}

/// Why one cannot compete.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// An empty name in a lock says that nobody holds it.
    #[error("the identity is empty")]
    Identity,
    /// It would not do as a part of the lock's address.
    #[error("the lock's {0} {1:?} is not a name that Kubernetes allows")]
    Name(&'static str, String),
}

/// Is told what happens. Methods must return quickly: renewals wait for them.
pub trait Observer: Send + Sync {
    /// This process leads.
    fn started_leading(&self) {}

    /// This process led and does so no more, for whatever reason.
    fn stopped_leading(&self) {}

    /// The lock names another leader than before, perhaps this process.
    fn new_leader(&self, _identity: &str) {}
}

/// Nobody is told.
impl Observer for () {}

/// A competitor that does not compete yet.
pub struct Election {
    client: Client,
    config: Config,
    observer: Arc<dyn Observer>,
    clock: Arc<dyn Clock>,
    monitor: Monitor,
}

impl fmt::Debug for Election {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Election").field("config", &self.config).finish_non_exhaustive()
    }
}

impl Election {
    /// Prepares. The client should not repeat requests by itself (see
    /// `default_retry` of `kube::Config`): tries have a rhythm of their own.
    ///
    /// # Errors
    /// When the configuration is wrong.
    pub fn new(client: Client, config: Config) -> Result<Self, ConfigError> {
        if config.identity.is_empty() {
            return Err(ConfigError::Identity);
        }
        for (field, name) in [("namespace", &config.namespace), ("name", &config.name)] {
            let allowed =
                |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-.".contains(&b);
            let ends = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_alphanumeric());
            let (first, last) = (name.bytes().next(), name.bytes().last());
            if !name.bytes().all(allowed) || !ends(first) || !ends(last) || name.len() > 253 {
                return Err(ConfigError::Name(field, name.clone()));
            }
        }
        let clock = Arc::new(SystemClock);
        let monitor = monitor(&config, clock.clone());
        Ok(Self { client, config, observer: Arc::new(()), clock, monitor })
    }

    /// Tells somebody what happens.
    #[must_use]
    pub fn with_observer(self, observer: Arc<dyn Observer>) -> Self {
        Self { observer, ..self }
    }

    /// Uses another clock; for tests. It must go as fast as tokio's.
    #[must_use]
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        let monitor = monitor(&self.config, clock.clone());
        Self { clock, monitor, ..self }
    }

    /// A view that outlives the election.
    pub fn monitor(&self) -> Monitor {
        self.monitor.clone()
    }

    /// Waits until this process leads, for as long as it takes. Must be called
    /// within a tokio runtime with time. To give up, drop the future.
    pub async fn acquire(self) -> Term {
        let Config { namespace, name, kind, identity, timing, component } = self.config;
        let described = format!("{kind} {namespace}/{name}");
        tracing::info!(lock = described, identity, "attempting to acquire the leader lease");
        let runner = Runner {
            elector: Elector::new(identity.clone(), timing, seed(&identity)),
            lock: Lock::new(&self.client, kind, &namespace, &name),
            events: Events { client: self.client, component },
            identity,
            observer: self.observer,
            clock: self.clock,
            monitor: self.monitor,
            lead: None,
            described,
            complaint: String::new(),
        };
        runner.acquire().await
    }

    /// Waits until this process leads, works until the work ends or the lease is
    /// lost, and gives the lease back in the first case. Work is dropped in the
    /// second case; what it started elsewhere it must stop itself, for which it
    /// has the [`Leadership`].
    ///
    /// # Errors
    /// When the lease was lost before the work was done.
    pub async fn run<W, F>(self, work: W) -> Result<F::Output, Lost>
    where
        W: FnOnce(Leadership) -> F,
        F: Future,
    {
        let mut term = self.acquire().await;
        let outcome = term.hold(work(term.leadership())).await?;
        term.release().await;
        Ok(outcome)
    }
}

fn monitor(config: &Config, clock: Arc<dyn Clock>) -> Monitor {
    Monitor::new(&config.name, config.timing.lease_duration(), clock)
}

/// Different for different identities (FNV-1a).
fn seed(identity: &str) -> u64 {
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    identity.bytes().fold(0xcbf2_9ce4_8422_2325, mix)
}

//! Another configuration while the scheduler runs: read on SIGHUP and when the
//! file changes, checked, and taken over if it is good.
//!
//! The file is looked at again and again rather than watched: so a ConfigMap's
//! change, which replaces a link far above the file, is seen like any other.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use steersman_config::{Config, changes};
use tokio::signal::unix::Signal;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

use super::schedule;
use super::settled::{Settled, Source};

/// How often the file is looked at.
const POLL: Duration = Duration::from_secs(2);

/// Is told how attempts to take over another configuration end.
pub(super) trait Told: Send + Sync {
    /// Another configuration than the first one counts now.
    fn taken_over(&self);
    /// It says the same as the one before, or what cannot change.
    fn unchanged(&self);
    /// The one that was there before goes on.
    fn refused(&self);
}

/// Follows the configuration file.
pub(super) struct Reloader {
    source: Arc<Source>,
    /// What was read last, good or bad.
    read: Option<String>,
    /// What was read once and has to be the same at the next look, so that no
    /// half-written file is taken.
    unsettled: Option<String>,
    /// The reason why the file could not be read, when last said.
    unreadable: Option<String>,
    generation: u64,
    current: watch::Sender<Arc<Settled>>,
    told: Arc<dyn Told>,
}

/// What comes of a new configuration.
#[derive(Debug, PartialEq)]
enum Change {
    /// It says the same.
    None,
    /// Only what can change later, when the program is started again.
    Restart(Vec<&'static str>),
    /// It is to be taken over, but for some sections.
    Take(Box<Config>, Vec<&'static str>),
}

impl Reloader {
    /// Follows the file that `text` was read from.
    pub(super) fn new(
        source: Arc<Source>,
        text: Option<String>,
        first: Settled,
        told: Arc<dyn Told>,
    ) -> (Self, watch::Receiver<Arc<Settled>>) {
        let (current, follower) = watch::channel(Arc::new(first));
        let reloader = Self {
            source,
            read: text,
            unsettled: None,
            unreadable: None,
            generation: 1,
            current,
            told,
        };
        (reloader, follower)
    }

    /// Follows the file, if there is one, for ever; whoever sends `hangup` wants
    /// it to be read at once.
    pub(super) async fn run(mut self, hangup: Option<Signal>) -> anyhow::Result<Infallible> {
        let Some(mut hangup) = hangup.filter(|_| self.source.file().is_some()) else {
            return std::future::pending().await;
        };
        let mut look = interval(POLL);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = look.tick() => self.look(),
                _ = hangup.recv() => {
                    tracing::info!("SIGHUP: reading the configuration again");
                    self.ask();
                }
            }
        }
    }

    /// Looks whether the file has changed, and has been the same since the last
    /// look.
    fn look(&mut self) {
        let Some(text) = self.text() else { return };
        if self.read.as_ref() == Some(&text) {
            self.unsettled = None;
        } else if self.unsettled.as_ref() == Some(&text) {
            self.take(text);
        } else {
            self.unsettled = Some(text);
        }
    }

    /// Takes the file as it is, since somebody asks for it.
    fn ask(&mut self) {
        self.unreadable = None;
        if let Some(text) = self.text() {
            self.take(text);
        }
    }

    fn text(&mut self) -> Option<String> {
        match self.source.read() {
            Ok(text) => {
                self.unreadable = None;
                text
            }
            Err(error) => {
                let reason = format!("{error:#}");
                // It may be away for a moment while it is replaced, or for long:
                // said once.
                if self.unreadable.as_ref() != Some(&reason) {
                    tracing::error!("{reason}: the configuration stays as it is");
                    self.told.refused();
                    self.unreadable = Some(reason);
                }
                None
            }
        }
    }

    fn take(&mut self, text: String) {
        let settled = self.source.settle(Some(&text));
        self.unsettled = None;
        self.read = Some(text);
        let name = self.source.file().map(|file| file.display().to_string()).unwrap_or_default();
        let settled = match settled {
            Ok(settled) => settled,
            Err(unusable) => {
                for problem in unusable.problems {
                    tracing::error!("{name}: {problem}");
                }
                return self.refuse(&name);
            }
        };
        for warning in &settled.warnings {
            tracing::warn!("{name}: {warning}");
        }
        let old = self.current.borrow().clone();
        for line in changes(&old.config, &settled.config) {
            tracing::info!("{name}: {line}");
        }
        match change(&old.config, &settled.config) {
            Change::None => {
                tracing::info!("{name}: the configuration says the same as before");
                self.told.unchanged();
            }
            Change::Restart(fields) => {
                restart_wanted(&name, &fields);
                self.told.unchanged();
            }
            Change::Take(config, fields) => {
                if let Err(error) = schedule::rehearse(&config, &self.source.registry) {
                    tracing::error!("{name}: {error:#}");
                    return self.refuse(&name);
                }
                restart_wanted(&name, &fields);
                for profile in gone(&old.config, &config) {
                    tracing::warn!(
                        "{name}: profile {profile:?} is gone: pods of that schedulerName are not \
                         scheduled here any more"
                    );
                }
                self.generation += 1;
                let mut document = settled.document;
                for field in &fields {
                    document[*field] = old.document[*field].clone();
                }
                let settled = Settled { config: *config, document, ..settled };
                tracing::info!(generation = self.generation, "{name}: taken over");
                self.told.taken_over();
                self.current.send_replace(Arc::new(settled));
            }
        }
    }

    fn refuse(&self, name: &str) {
        tracing::error!("{name} cannot be used: the configuration stays as it is");
        self.told.refused();
    }
}

fn restart_wanted(name: &str, fields: &[&str]) {
    if !fields.is_empty() {
        let fields = fields.join(", ");
        tracing::warn!("{name}: changes of {fields} count when the program is started again");
    }
}

/// The profiles that only the old configuration has.
fn gone<'a>(old: &'a Config, new: &Config) -> Vec<&'a str> {
    let names = old.profiles.iter().map(|profile| profile.scheduler_name.as_str());
    let stays = |name: &&str| new.profiles.iter().any(|profile| profile.scheduler_name == *name);
    names.filter(|name| !stays(name)).collect()
}

/// What becomes of the configuration `new`.
fn change(old: &Config, new: &Config) -> Change {
    let mut config = new.clone();
    let mut fields = Vec::new();
    keep(&mut fields, "leaderElection", &old.leader_election, &mut config.leader_election);
    keep(&mut fields, "clientConnection", &old.client_connection, &mut config.client_connection);
    keep(&mut fields, "enableProfiling", &old.enable_profiling, &mut config.enable_profiling);
    keep(
        &mut fields,
        "enableContentionProfiling",
        &old.enable_contention_profiling,
        &mut config.enable_contention_profiling,
    );
    keep(
        &mut fields,
        "delayCacheUntilActive",
        &old.delay_cache_until_active,
        &mut config.delay_cache_until_active,
    );
    match (config == *old, fields.is_empty()) {
        (false, _) => Change::Take(Box::new(config), fields),
        (true, false) => Change::Restart(fields),
        (true, true) => Change::None,
    }
}

/// Leaves a section as it was, and names it if it would have changed.
fn keep<T: Clone + PartialEq>(
    fields: &mut Vec<&'static str>,
    name: &'static str,
    old: &T,
    new: &mut T,
) {
    if old != new {
        fields.push(name);
        new.clone_from(old);
    }
}

#[cfg(test)]
mod tests;

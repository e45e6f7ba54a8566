//! Making a scheduler from its configuration.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use steersman_config::Config;
use steersman_framework::cluster::Cluster;
use steersman_framework::events::EventResource;
use steersman_framework::extender::Extender;
use steersman_framework::registry::Registry;
use steersman_framework::shared::Shared;
use thiserror::Error;

use super::Scheduler;
use super::bindings::Bindings;
use crate::pods::PodTable;
use crate::profile::{Profile, ProfileError};
use crate::queue::{Backoff, Profiles, SchedulingQueue};

/// What a scheduler is made from.
#[derive(Clone, Copy)]
pub struct Setup<'a> {
    /// The configuration.
    pub config: &'a Config,
    /// The plugins that exist.
    pub registry: &'a Registry,
    /// For drawing among equally good nodes.
    pub seed: u64,
    /// How long an accepted binding may take to show in the watch before the
    /// pod is tried again. `None`, as in the reference: forever.
    pub assumed_pod_ttl: Option<Duration>,
    /// The extenders, in the order of the configuration.
    pub extenders: &'a [Arc<dyn Extender>],
}

impl<'a> Setup<'a> {
    /// With the seed 0, without extenders, and as the reference in the rest.
    pub fn new(config: &'a Config, registry: &'a Registry) -> Self {
        Self { config, registry, seed: 0, assumed_pod_ttl: None, extenders: &[] }
    }
}

/// Why a scheduler cannot be made.
#[derive(Debug, Error)]
pub enum SetupError {
    /// A profile cannot be set up.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// There is no profile.
    #[error("the configuration has no profile")]
    NoProfile,
}

impl Scheduler {
    /// A scheduler that knows nothing of the cluster yet, and notices about
    /// what it will do without.
    ///
    /// # Errors
    /// When a plugin refuses its arguments or a profile lacks what it needs.
    pub fn new(setup: Setup<'_>) -> Result<(Self, Vec<String>), SetupError> {
        let Setup { config, registry, seed, assumed_pod_ttl, extenders: _ } = setup;
        let mut profiles = Profiles::new();
        let shared = Shared::default();
        let mut planned: BTreeMap<&'static str, Vec<&str>> = BTreeMap::new();
        for profile in &config.profiles {
            let (built, without) =
                Profile::build(profile, config.percentage_of_nodes_to_score, registry, &shared)?;
            for plugin in without {
                planned.entry(plugin).or_default().push(&profile.scheduler_name);
            }
            profiles.insert(built.scheduler_name.clone(), Arc::new(built));
        }
        // All profiles have the same queue order: the configuration's checks
        // see to it.
        let sort = profiles.values().next().ok_or(SetupError::NoProfile)?.queue_sort.clone();
        let backoff = Backoff { initial: config.pod_initial_backoff, max: config.pod_max_backoff };
        let scheduler = Self {
            cluster: Cluster::new(),
            pods: PodTable::default(),
            queue: SchedulingQueue::new(profiles.clone(), sort, backoff),
            profiles,
            bindings: Bindings::default(),
            next_start: 0,
            seed,
            assumed_pod_ttl,
            tickets: 0,
            only_tells_preemptions: false,
            effects: Vec::new(),
        };
        Ok((scheduler, notices(config, &planned)))
    }

    /// The kinds of things that some plugin listens to or reads: a driver need
    /// not watch others. `None` when a plugin that holds pods up listens to
    /// everything or does not say.
    pub fn needs(&self) -> Option<BTreeSet<EventResource>> {
        let mut resources = BTreeSet::new();
        for profile in self.profiles.values() {
            let rejecting = profile.rejecting();
            for slot in &profile.wake {
                match &slot.hints {
                    Some((events, plugin)) => {
                        resources.extend(events.iter().map(|e| e.resource));
                        resources.extend(plugin.also_reads());
                    }
                    None if rejecting.contains(slot.idx) => return None,
                    None => {}
                }
            }
        }
        (!resources.contains(&EventResource::WILDCARD)).then_some(resources)
    }
}

fn notices(config: &Config, planned: &BTreeMap<&'static str, Vec<&str>>) -> Vec<String> {
    let mut notices = Vec::new();
    if !planned.is_empty() {
        let names: Vec<&str> = planned.keys().copied().collect();
        notices.push(format!(
            "these plugins are enabled and not available yet, decisions are made without them: {}",
            names.join(", ")
        ));
    }
    if !config.extenders.is_empty() {
        let n = config.extenders.len();
        notices.push(format!("extenders are not called yet; the configuration has {n}"));
    }
    notices
}

//! Making a scheduler from its configuration.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use steersman_config::{Config, Gate, Profile as ProfileConfig};
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
use crate::queue::{Backoff, MAX_UNSCHEDULABLE, Profiles, SchedulingQueue};
use crate::record::Records;
use crate::runner::Extenders;

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
    /// How long a pod that found no node waits at the longest until it is tried
    /// again, though nothing has happened that could help it; more than none.
    pub max_unschedulable: Duration,
    /// The extenders, in the order of the configuration. Those that may be
    /// ignored are asked after the others.
    pub extenders: &'a [Arc<dyn Extender>],
}

impl<'a> Setup<'a> {
    /// With the seed 0, without extenders, and as the reference in the rest.
    pub fn new(config: &'a Config, registry: &'a Registry) -> Self {
        Self {
            config,
            registry,
            seed: 0,
            assumed_pod_ttl: None,
            max_unschedulable: MAX_UNSCHEDULABLE,
            extenders: &[],
        }
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

/// The plugin that checks what nodes have room for.
const CHECKS_RESOURCES: &str = "NodeResourcesFit";

impl Scheduler {
    /// A scheduler that knows nothing of the cluster yet, and notices about
    /// what it will do without.
    ///
    /// # Errors
    /// When a plugin refuses its arguments or a profile lacks what it needs.
    pub fn new(setup: Setup<'_>) -> Result<(Self, Vec<String>), SetupError> {
        let Setup { config, registry, seed, assumed_pod_ttl, max_unschedulable, extenders } = setup;
        let outside = Extenders::new(extenders);
        let mut profiles = Profiles::new();
        let shared = Shared::default();
        let mut planned: BTreeMap<&'static str, Vec<&str>> = BTreeMap::new();
        for profile in &config.profiles {
            let adapted = with_ignored_resources(profile, config);
            let percentage = config.percentage_of_nodes_to_score;
            let (built, without) = Profile::build(&adapted, percentage, registry, &shared)?;
            let built = built.with_extenders(&outside);
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
            queue: SchedulingQueue::new(profiles.clone(), sort, backoff)
                .popping_backing_off(config.gates.enabled(Gate::SchedulerPopFromBackoffQ))
                .flushing_after(max_unschedulable),
            profiles,
            bindings: Bindings::default(),
            next_start: 0,
            seed,
            assumed_pod_ttl,
            tells_expected_nodes: config.gates.enabled(Gate::NominatedNodeNameForExpectation),
            tickets: 0,
            only_tells_preemptions: false,
            effects: Vec::new(),
            records: Records::default(),
        };
        Ok((scheduler, notices(config, &planned, &outside)))
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

/// The profile without checks of those resources that extenders check: what
/// the configuration says of extenders takes the place of the plugin's own
/// `ignoredResources`.
fn with_ignored_resources(profile: &ProfileConfig, config: &Config) -> ProfileConfig {
    let mut profile = profile.clone();
    let managed = config.extenders.iter().flat_map(|extender| &extender.managed_resources);
    let ignored: Vec<&str> = managed
        .filter(|resource| resource.ignored_by_scheduler)
        .map(|resource| resource.name.as_str())
        .collect();
    if ignored.is_empty() {
        return profile;
    }
    if let Some(Value::Object(args)) = profile.args.get_mut(CHECKS_RESOURCES) {
        args.insert("ignoredResources".to_owned(), ignored.into());
    }
    profile
}

fn notices(
    config: &Config,
    planned: &BTreeMap<&'static str, Vec<&str>>,
    outside: &Extenders,
) -> Vec<String> {
    let mut notices = Vec::new();
    if !planned.is_empty() {
        let names: Vec<&str> = planned.keys().copied().collect();
        notices.push(format!(
            "these plugins are enabled and not available yet, decisions are made without them: {}",
            names.join(", ")
        ));
    }
    if !config.extenders.is_empty() && outside.is_empty() {
        let n = config.extenders.len();
        notices.push(format!(
            "extenders are not called here, decisions are made without them: the configuration has \
             {n}"
        ));
    }
    notices
}

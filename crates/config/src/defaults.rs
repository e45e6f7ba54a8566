//! Fills in what the user left out.
//!
//! Source: the defaults that the reference sets for
//! `KubeSchedulerConfiguration` (its `config/v1` package).

use std::collections::BTreeSet;

use steersman_api::duration::GoDuration;
use steersman_api::problem::{FieldPath, Problem};
use steersman_framework::point::ExtensionPoint;
use steersman_framework::registry::Registry;

use crate::gates::FeatureGates;
use crate::wire::{self, Plugin, PluginSet};
use crate::{args, gated};

/// The scheduler name of pods that ask for none, and of a single profile
/// without one.
pub(crate) const DEFAULT_SCHEDULER_NAME: &str = "default-scheduler";

/// Completes the document. Arguments of plugins are checked on the way, since
/// only their type knows their defaults.
pub(crate) fn apply(
    config: &mut wire::Configuration,
    registry: &Registry,
    gates: &FeatureGates,
    problems: &mut Vec<Problem>,
) {
    config.parallelism.get_or_insert(16);
    config.percentage_of_nodes_to_score.get_or_insert(0);
    config.pod_initial_backoff_seconds.get_or_insert(1);
    config.pod_max_backoff_seconds.get_or_insert(10);
    let profiling = *config.enable_profiling.get_or_insert(true);
    config.enable_contention_profiling.get_or_insert(profiling);
    leader_election(&mut config.leader_election);
    client_connection(&mut config.client_connection);

    if config.profiles.is_empty() {
        config.profiles.push(wire::Profile::default());
    }
    // With several profiles there is no telling which one is meant.
    if let [only] = config.profiles.as_mut_slice() {
        only.scheduler_name.get_or_insert_with(|| DEFAULT_SCHEDULER_NAME.to_owned());
    }
    for (i, profile) in config.profiles.iter_mut().enumerate() {
        plugins(&mut profile.plugins, registry, gates);
        let at = FieldPath::root().field("profiles").index(i).field("pluginConfig");
        plugin_config(profile, registry, &at, problems);
    }
}

fn leader_election(election: &mut wire::LeaderElection) {
    election.leader_elect.get_or_insert(true);
    let durations = [
        (&mut election.lease_duration, 15),
        (&mut election.renew_deadline, 10),
        (&mut election.retry_period, 2),
    ];
    for (duration, secs) in durations {
        if *duration == GoDuration::ZERO {
            *duration = GoDuration::from_secs(secs);
        }
    }
    let names = [
        (&mut election.resource_lock, "leases"),
        (&mut election.resource_name, "kube-scheduler"),
        (&mut election.resource_namespace, "kube-system"),
    ];
    for (name, default) in names {
        if name.is_empty() {
            default.clone_into(name);
        }
    }
}

fn client_connection(connection: &mut wire::ClientConnection) {
    if connection.content_type.is_empty() {
        "application/vnd.kubernetes.protobuf".clone_into(&mut connection.content_type);
    }
    if connection.qps == 0.0 {
        connection.qps = 50.0;
    }
    if connection.burst == 0 {
        connection.burst = 100;
    }
}

/// Merges the default profile into what the user wrote.
fn plugins(plugins: &mut wire::Plugins, registry: &Registry, gates: &FeatureGates) {
    for set in plugins.all_mut() {
        for plugin in &mut set.disabled {
            plugin.weight = 0;
        }
    }
    let available = registry.iter().filter(|plugin| gated::is_available(plugin.name, gates));
    let defaults = available.filter_map(|descriptor| {
        let weight = i32::try_from(descriptor.default_weight?).unwrap_or(i32::MAX);
        Some(Plugin { name: descriptor.name.to_owned(), weight, written_at: None })
    });
    let written = std::mem::take(&mut plugins.multi_point);
    plugins.multi_point = merge(defaults, written);
}

/// Puts the default plugins that are not disabled before the user's. A default
/// that the user enables again keeps its place and takes the user's weight.
fn merge(defaults: impl Iterator<Item = Plugin>, written: PluginSet) -> PluginSet {
    let mut own = written.enabled.clone();
    let mut enabled: Vec<Plugin> = Vec::new();
    for default in defaults.filter(|default| !written.disables(&default.name)) {
        // The last of several entries wins; the others stay in the list, where
        // resolving finds them to be duplicates.
        match own.iter().rposition(|plugin| plugin.name == default.name) {
            Some(i) => enabled.push(own.remove(i)),
            None => enabled.push(default),
        }
    }
    enabled.append(&mut own);
    PluginSet { enabled, disabled: written.disabled }
}

/// Completes the arguments that were given and adds those that were not, for
/// every plugin that is enabled anywhere.
fn plugin_config(
    profile: &mut wire::Profile,
    registry: &Registry,
    at: &FieldPath,
    problems: &mut Vec<Problem>,
) {
    let mut configured = BTreeSet::new();
    for entry in &mut profile.plugin_config {
        configured.insert(entry.name.clone());
        if let Some(kind) = registry.get(&entry.name).and_then(|plugin| plugin.args) {
            let at = entry.at(at).field("args");
            entry.args = args::complete(kind, entry.args.take(), &at, problems);
        }
    }
    let sets = ExtensionPoint::ALL.map(|point| profile.plugins.at(point));
    let enabled: BTreeSet<String> = sets
        .into_iter()
        .chain([&profile.plugins.multi_point])
        .flat_map(|set| set.enabled.iter().map(|plugin| plugin.name.clone()))
        .collect();
    for name in enabled.difference(&configured) {
        if let Some(kind) = registry.get(name).and_then(|plugin| plugin.args) {
            let args = args::complete(kind, None, at, problems);
            let name = name.clone();
            profile.plugin_config.push(wire::PluginConfig { name, args, written_at: None });
        }
    }
}

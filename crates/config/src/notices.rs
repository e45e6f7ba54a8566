//! What a configuration says that has no effect, or not the one its author may
//! expect. Notices do not keep it from being used.

use steersman_api::problem::{FieldPath, Problem};
use steersman_framework::point::ExtensionPoint;
use steersman_framework::registry::Registry;

use crate::resolve::ResolvedPlugins;
use crate::wire::{Configuration, PluginSet, Profile};

/// Collects the notices about a valid configuration.
pub(crate) fn collect(
    config: &Configuration,
    resolved: &[ResolvedPlugins],
    registry: &Registry,
) -> Vec<Problem> {
    let mut notices = Vec::new();
    let profiles = FieldPath::root().field("profiles");
    for (i, (profile, plugins)) in config.profiles.iter().zip(resolved).enumerate() {
        let at = profiles.index(i);
        sets(profile, &at.field("plugins"), registry, &mut notices);
        for entry in profile.plugin_config.iter().filter(|entry| entry.written_at.is_some()) {
            if !plugins.names().contains(&entry.name.as_str()) {
                let at = entry.at(&at.field("pluginConfig"));
                let what = format!("no effect, as plugin {:?} is not enabled", entry.name);
                notices.push(Problem::new(&at, what));
            }
        }
    }
    notices
}

fn sets(profile: &Profile, at: &FieldPath, registry: &Registry, notices: &mut Vec<Problem>) {
    let plugins = &profile.plugins;
    let points = ExtensionPoint::ALL.map(|point| (point.config_field(), plugins.at(point)));
    for (field, set) in points.into_iter().chain([("multiPoint", &plugins.multi_point)]) {
        set_entries(set, &at.field(field), registry, notices);
    }
    let placement = [
        ("placementGenerate", &plugins.placement_generate),
        ("placementScore", &plugins.placement_score),
    ];
    for (field, set) in placement {
        if *set != PluginSet::default() {
            let what = "no effect, as the feature TopologyAwareWorkloadScheduling is off";
            notices.push(Problem::new(&at.field(field), what));
        }
    }
}

fn set_entries(set: &PluginSet, at: &FieldPath, registry: &Registry, notices: &mut Vec<Problem>) {
    for plugin in &set.enabled {
        if plugin.written_at.is_some() && plugin.weight < 0 {
            let what = "a negative weight prefers nodes with low scores";
            notices.push(Problem::new(&plugin.at(at, "enabled").field("weight"), what));
        }
    }
    for plugin in &set.disabled {
        if plugin.name != "*" && registry.get(&plugin.name).is_none() {
            let what = format!("no effect, as plugin {:?} does not exist", plugin.name);
            notices.push(Problem::new(&plugin.at(at, "disabled"), what));
        }
    }
}

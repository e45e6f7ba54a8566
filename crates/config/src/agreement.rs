//! What the profiles of a configuration must have in common: they share one
//! queue, so one plugin with the same arguments orders it.

use serde_json::Value;
use steersman_api::problem::{FieldPath, Problem};
use steersman_framework::point::ExtensionPoint;

use crate::resolve::ResolvedPlugins;
use crate::wire::{Plugin, PluginConfig, PluginSet, Profile};

/// Reports profiles that order the queue differently from the first.
pub(crate) fn check(
    profiles: &[Profile],
    resolved: &[ResolvedPlugins],
    problems: &mut Vec<Problem>,
) {
    let Some((first, first_resolved)) = profiles.iter().zip(resolved).next() else { return };
    let sorting = first_resolved.at(ExtensionPoint::QueueSort);
    for (i, (profile, plugins)) in profiles.iter().zip(resolved).enumerate().skip(1) {
        let at = FieldPath::root().field("profiles").index(i);
        let same_list = same(&first.plugins.queue_sort, &profile.plugins.queue_sort);
        if !same_list || sorting != plugins.at(ExtensionPoint::QueueSort) {
            let what = "differs from profiles[0], allowed: the same in all profiles";
            problems.push(Problem::new(&at.field("plugins").field("queueSort"), what));
        }
        for name in sorting {
            let (entry, args) = args_of(profile, name);
            if args != args_of(first, name).1 {
                let list = at.field("pluginConfig");
                let at = entry.map_or(list.clone(), |entry| entry.at(&list).field("args"));
                let what = format!(
                    "arguments of {name:?} differ from profiles[0], allowed: the same in all \
                     profiles, as it orders their common queue"
                );
                problems.push(Problem::new(&at, what));
            }
        }
    }
}

/// Whether two sets say the same, wherever they were written.
fn same(one: &PluginSet, other: &PluginSet) -> bool {
    let same_list = |one: &[Plugin], other: &[Plugin]| {
        let key = |plugin: &Plugin| (plugin.name.clone(), plugin.weight);
        one.iter().map(key).eq(other.iter().map(key))
    };
    same_list(&one.enabled, &other.enabled) && same_list(&one.disabled, &other.disabled)
}

fn args_of<'a>(profile: &'a Profile, name: &str) -> (Option<&'a PluginConfig>, Option<&'a Value>) {
    let entry = profile.plugin_config.iter().find(|entry| entry.name == name);
    (entry, entry.and_then(|entry| entry.args.as_ref()))
}

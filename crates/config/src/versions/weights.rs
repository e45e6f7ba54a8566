//! The default plugins of v1beta1 and v1beta2, which are listed per extension
//! point.
//!
//! The order of the default plugins becomes that of v1. It decides no placement,
//! only which of several reasons a node is said to be rejected for.

use steersman_framework::point::ExtensionPoint::{
    self, Bind, Filter, PostFilter, PreBind, PreFilter, PreScore, QueueSort, Reserve, Score,
};

use super::Scope;
use crate::wire::{Plugin, Profile};

/// Where the default plugins ran; only the points that both versions have.
const POINTS: [(&str, &[ExtensionPoint]); 17] = [
    ("PrioritySort", &[QueueSort]),
    ("NodeUnschedulable", &[Filter]),
    ("NodeName", &[Filter]),
    ("TaintToleration", &[Filter, PreScore, Score]),
    ("NodeAffinity", &[PreFilter, Filter, PreScore, Score]),
    ("NodePorts", &[PreFilter, Filter]),
    ("NodeResourcesFit", &[PreFilter, Filter, Score]),
    ("VolumeRestrictions", &[Filter]),
    ("NodeVolumeLimits", &[Filter]),
    ("VolumeBinding", &[PreFilter, Filter, Reserve, PreBind]),
    ("VolumeZone", &[Filter]),
    ("PodTopologySpread", &[PreFilter, Filter, PreScore, Score]),
    ("InterPodAffinity", &[PreFilter, Filter, PreScore, Score]),
    ("DefaultPreemption", &[PostFilter]),
    ("NodeResourcesBalancedAllocation", &[Score]),
    ("ImageLocality", &[Score]),
    ("DefaultBinder", &[Bind]),
];

/// The weights of the default plugins that score. NodeResourcesFit stands for
/// v1beta1's NodeResourcesLeastAllocated.
const WEIGHTS: [(&str, u32); 7] = [
    ("TaintToleration", 1),
    ("NodeAffinity", 1),
    ("NodeResourcesFit", 1),
    ("PodTopologySpread", 2),
    ("InterPodAffinity", 1),
    ("NodeResourcesBalancedAllocation", 1),
    ("ImageLocality", 1),
];

/// Makes v1's default profile do what the old one did. Comes last: plugins that
/// are gone are out.
pub(super) fn convert(profile: &mut Profile, scope: &mut Scope<'_>) {
    leave_out_repetitions(profile, scope);
    keep_weights(profile, scope);
    disable_everywhere(profile, scope);
}

/// A default plugin that is listed again kept its place; in v1 it would move to
/// the front.
fn leave_out_repetitions(profile: &mut Profile, scope: &mut Scope<'_>) {
    for (name, points) in POINTS {
        for point in points.iter().copied().filter(|point| *point != Score) {
            let set = profile.plugins.at_mut(point);
            if set.disables(name) {
                continue;
            }
            let at = scope.set(point.config_field());
            set.enabled.retain(|plugin| {
                if plugin.name == name {
                    let what = format!("found {name:?}, left out: it is a default plugin");
                    scope.tell(&plugin.at(&at, "enabled"), what);
                }
                plugin.name != name
            });
        }
    }
}

fn keep_weights(profile: &mut Profile, scope: &mut Scope<'_>) {
    let score = &mut profile.plugins.score;
    let mut kept = Vec::new();
    for (name, weight) in WEIGHTS {
        let now = scope.registry.get(name).and_then(|plugin| plugin.default_weight);
        let Some(now) = now.filter(|now| *now != weight) else { continue };
        if score.disables(name) || score.enables(name) {
            continue;
        }
        kept.push(format!("{name} {weight} (in v1 {now})"));
        let weight = i32::try_from(weight).unwrap_or(i32::MAX);
        score.enabled.push(Plugin { name: name.to_owned(), weight, written_at: None });
    }
    if !kept.is_empty() {
        let what = format!("default weights of {} kept: {}", scope.version.name(), kept.join(", "));
        scope.tell(&scope.set("score"), what);
    }
}

/// A plugin that was disabled wherever it ran does not come back where v1 lets it
/// run as well.
fn disable_everywhere(profile: &mut Profile, scope: &mut Scope<'_>) {
    for (name, points) in POINTS {
        let Some(plugin) = scope.registry.get(name) else { continue };
        let plugins = &profile.plugins;
        let is_off = |point: ExtensionPoint| plugins.at(point).disables(name);
        let is_meant = points
            .iter()
            .any(|point| plugins.at(*point).disabled.iter().any(|disabled| disabled.name == name));
        let is_on = ExtensionPoint::ALL.into_iter().any(|point| plugins.at(point).enables(name));
        let mut left = ExtensionPoint::ALL
            .into_iter()
            .filter(|point| plugin.points.contains(point.set()) && !is_off(*point));
        let was_off = is_meant && points.iter().all(|point| is_off(*point));
        if is_on || !was_off || left.next().is_none() {
            continue;
        }
        let what = format!(
            "{name:?} is disabled wherever it ran in {}, and so at the points that it serves since",
            scope.version.name()
        );
        scope.tell(&scope.at.field("plugins"), what);
        let disabled = Plugin { name: name.to_owned(), ..Plugin::default() };
        profile.plugins.multi_point.disabled.push(disabled);
    }
}

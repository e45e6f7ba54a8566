//! Plugins that older configurations and tutorials name.

use steersman_api::problem::{FieldPath, Problem};
use steersman_framework::registry::Registry;

/// The plugins that once existed, and what does their job today.
const MOVED: [(&str, &str); 11] = [
    ("AzureDiskLimits", "NodeVolumeLimits counts those volumes now"),
    ("CinderLimits", "NodeVolumeLimits counts those volumes now"),
    ("EBSLimits", "NodeVolumeLimits counts those volumes now"),
    ("GCEPDLimits", "NodeVolumeLimits counts those volumes now"),
    ("NodeLabel", "NodeAffinity's addedAffinity does its job now"),
    ("NodePreferAvoidPods", "taints with effect PreferNoSchedule do its job now"),
    ("NodeResourcesLeastAllocated", "NodeResourcesFit's scoringStrategy does its job now"),
    ("NodeResourcesMostAllocated", "NodeResourcesFit's scoringStrategy does its job now"),
    ("RequestedToCapacityRatio", "NodeResourcesFit's scoringStrategy does its job now"),
    ("SelectorSpread", "PodTopologySpread's default constraints do its job now"),
    ("ServiceAffinity", "InterPodAffinity does its job now"),
];

/// What does the job of an old plugin today, unless a plugin of its name exists.
pub(crate) fn instead(name: &str, registry: &Registry) -> Option<&'static str> {
    let (_, instead) = MOVED.iter().find(|(moved, _)| *moved == name)?;
    registry.get(name).is_none().then_some(instead)
}

/// Whether `name` counted the volumes of one kind of disk, which
/// `NodeVolumeLimits` does for all kinds now.
pub(crate) fn counted_volumes(name: &str) -> bool {
    is_refused(name)
}

/// Whether v1 refuses even arguments for the plugin; arguments for other
/// unknown plugins are kept.
pub(crate) fn is_refused(name: &str) -> bool {
    matches!(name, "AzureDiskLimits" | "CinderLimits" | "EBSLimits" | "GCEPDLimits")
}

/// How many letters a slip of the pen may change.
const MAX_SLIP: usize = 3;

/// No plugin has that name, as it is the one of an old plugin or of none.
pub(crate) fn does_not_exist(name: &str, at: &FieldPath) -> Problem {
    let hint = match MOVED.iter().find(|(moved, _)| *moved == name) {
        Some((_, instead)) => format!(": {instead}"),
        None => String::new(),
    };
    Problem::new(at, format!("plugin {name:?} does not exist{hint}"))
}

/// The registry has no plugin of that name: as [`does_not_exist`], with the
/// name that may be meant.
pub(crate) fn not_registered(name: &str, at: &FieldPath, registry: &Registry) -> Problem {
    let mut problem = does_not_exist(name, at);
    if let Some(meant) = nearest(name, registry) {
        problem.message.push_str(&format!("; did you mean {meant:?}?"));
    }
    problem
}

/// The plugin whose name is most like `name`, if one is much like it.
fn nearest<'a>(name: &str, registry: &'a Registry) -> Option<&'a str> {
    let slips =
        |plugin: &str| strsim::damerau_levenshtein(&name.to_lowercase(), &plugin.to_lowercase());
    let near = registry.iter().map(|plugin| (slips(plugin.name), plugin.name));
    let (slips, nearest) = near.min()?;
    (slips <= MAX_SLIP && slips < name.len() / 2).then_some(nearest)
}

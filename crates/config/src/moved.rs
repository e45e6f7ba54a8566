//! Plugins that older configurations and tutorials name.

use steersman_api::problem::{FieldPath, Problem};

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

/// Whether v1 refuses even arguments for the plugin; arguments for other
/// unknown plugins are kept.
pub(crate) fn is_refused(name: &str) -> bool {
    matches!(name, "AzureDiskLimits" | "CinderLimits" | "EBSLimits" | "GCEPDLimits")
}

/// No plugin has that name.
pub(crate) fn does_not_exist(name: &str, at: &FieldPath) -> Problem {
    let hint = match MOVED.iter().find(|(moved, _)| *moved == name) {
        Some((_, instead)) => format!(": {instead}"),
        None => String::new(),
    };
    Problem::new(at, format!("plugin {name:?} does not exist{hint}"))
}

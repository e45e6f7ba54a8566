//! Works out which plugins of a profile run at which extension point, in which
//! order and with which weight.
//!
//! Source: how the reference builds a profile's framework. The order at a point
//! is: plugins of `multiPoint` that the point's own list names too, in the order
//! of that list; the other plugins of `multiPoint` that serve the point; the
//! rest of the point's own list.

use std::collections::BTreeMap;

use steersman_api::problem::{FieldPath, Problem};
use steersman_framework::point::{ExtensionPoint, PointSet};
use steersman_framework::registry::{Descriptor, Registry};

use crate::moved;
use crate::wire::{Plugin, Plugins};

/// Which plugins run at which extension point.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResolvedPlugins {
    /// By the point's place in [`ExtensionPoint::ALL`].
    by_point: [Vec<&'static str>; ExtensionPoint::ALL.len()],
    /// Of those that score.
    weights: BTreeMap<&'static str, i64>,
}

impl ResolvedPlugins {
    /// The plugins that run at `point`, in order.
    pub fn at(&self, point: ExtensionPoint) -> &[&'static str] {
        &self.by_point[point as usize]
    }

    /// The plugins that score, in order, with what their scores are multiplied
    /// by. A weight is never 0, and their sum times the highest score is far
    /// from overflowing.
    pub fn scoring(&self) -> impl Iterator<Item = (&'static str, i64)> {
        let weight = |name: &&'static str| self.weights.get(name).copied().unwrap_or(1);
        self.at(ExtensionPoint::Score).iter().map(move |name| (*name, weight(name)))
    }

    /// Every plugin that runs anywhere, in the order of the points and at each
    /// in the order in which they run.
    pub fn names(&self) -> Vec<&'static str> {
        let mut names: Vec<&'static str> = Vec::new();
        for name in self.by_point.iter().flatten() {
            if !names.contains(name) {
                names.push(name);
            }
        }
        names
    }

    /// The points at which `name` runs.
    pub fn points_of(&self, name: &str) -> PointSet {
        let points = ExtensionPoint::ALL.into_iter().filter(|p| self.at(*p).contains(&name));
        points.fold(PointSet::empty(), |set, point| set | point.set())
    }
}

/// Resolves the plugins of the profile at `at`, after the default profile was
/// merged into them. Entries that make no sense are reported and left out.
pub(crate) fn resolve(
    plugins: &Plugins,
    at: &FieldPath,
    registry: &Registry,
    problems: &mut Vec<Problem>,
) -> ResolvedPlugins {
    let at = at.field("plugins");
    let everywhere =
        look_up(&plugins.multi_point.enabled, &at.field("multiPoint"), registry, problems);
    let mut resolved = ResolvedPlugins::default();
    for point in ExtensionPoint::ALL {
        let at = at.field(point.config_field());
        let set = plugins.at(point);
        let own = look_up(&set.enabled, &at, registry, problems);
        let own = serving(own, point, &at, problems);
        let all_disabled = set.disabled.iter().any(|plugin| plugin.name == "*");
        let expanded: Vec<Entry<'_>> = everywhere
            .iter()
            .filter(|e| !all_disabled && e.plugin.points.contains(point.set()))
            .filter(|e| !set.disables(e.plugin.name))
            .copied()
            .collect();
        if point == ExtensionPoint::Score {
            resolved.weights = weights(&own, &everywhere);
        }
        resolved.by_point[point as usize] = order(&own, &expanded);
    }
    check_counts(&resolved, &at, problems);
    resolved
}

/// An entry of a list with the plugin it names.
#[derive(Clone, Copy)]
struct Entry<'a> {
    written: &'a Plugin,
    plugin: &'a Descriptor,
}

impl Entry<'_> {
    /// Where the entry stands below `set`; defaults stand in no list.
    fn at(&self, set: &FieldPath) -> FieldPath {
        self.written.at(set, "enabled")
    }
}

/// Finds the plugins of a list; reports those that do not exist and those that
/// stand in it twice.
fn look_up<'a>(
    list: &'a [Plugin],
    at: &FieldPath,
    registry: &'a Registry,
    problems: &mut Vec<Problem>,
) -> Vec<Entry<'a>> {
    let mut found: Vec<Entry<'a>> = Vec::with_capacity(list.len());
    for written in list {
        let at = written.at(at, "enabled");
        let Some(plugin) = registry.get(&written.name) else {
            problems.push(moved::not_registered(&written.name, &at, registry));
            continue;
        };
        if found.iter().any(|entry| entry.plugin.name == plugin.name) {
            problems.push(Problem::duplicate(&at, format_args!("{:?}", plugin.name)));
            continue;
        }
        found.push(Entry { written, plugin });
    }
    found
}

/// Leaves out and reports plugins that do not serve `point`.
fn serving<'a>(
    mut entries: Vec<Entry<'a>>,
    point: ExtensionPoint,
    at: &FieldPath,
    problems: &mut Vec<Problem>,
) -> Vec<Entry<'a>> {
    entries.retain(|entry| {
        let serves = entry.plugin.points.contains(point.set());
        if !serves {
            let points = ExtensionPoint::ALL
                .into_iter()
                .filter(|p| entry.plugin.points.contains(p.set()))
                .map(ExtensionPoint::config_field)
                .collect::<Vec<_>>()
                .join(", ");
            let what = format!("plugin {:?} serves {points} only", entry.plugin.name);
            problems.push(Problem::new(&entry.at(at), what));
        }
        serves
    });
    entries
}

fn order(own: &[Entry<'_>], expanded: &[Entry<'_>]) -> Vec<&'static str> {
    let names = |entries: &[Entry<'_>]| -> Vec<&'static str> {
        entries.iter().map(|entry| entry.plugin.name).collect()
    };
    let (own, expanded) = (names(own), names(expanded));
    let overrides = own.iter().filter(|name| expanded.contains(name));
    let others = expanded.iter().filter(|name| !own.contains(name));
    let rest = own.iter().filter(|name| !expanded.contains(name));
    overrides.chain(others).chain(rest).copied().collect()
}

/// The weights of plugins that can score: what the list of scores says, or else
/// what `multiPoint` says; 1 for those without. Weights have 32 bits, so no
/// number of plugins that fits into memory overflows their sum.
fn weights(own: &[Entry<'_>], everywhere: &[Entry<'_>]) -> BTreeMap<&'static str, i64> {
    let mut weights = BTreeMap::new();
    let scoring = PointSet::SCORE;
    for entry in own.iter().chain(everywhere).filter(|e| e.plugin.points.contains(scoring)) {
        let weight = match entry.written.weight {
            0 => 1,
            weight => i64::from(weight),
        };
        weights.entry(entry.plugin.name).or_insert(weight);
    }
    weights
}

/// Exactly one plugin orders the queue, at least one binds.
fn check_counts(resolved: &ResolvedPlugins, at: &FieldPath, problems: &mut Vec<Problem>) {
    let sorting = resolved.at(ExtensionPoint::QueueSort);
    if sorting.len() != 1 {
        let found = match sorting {
            [] => "no plugin".to_owned(),
            several => several.join(", "),
        };
        problems.push(Problem::invalid(&at.field("queueSort"), found, "exactly one plugin"));
    }
    if resolved.at(ExtensionPoint::Bind).is_empty() {
        problems.push(Problem::invalid(&at.field("bind"), "no plugin", "at least one plugin"));
    }
}

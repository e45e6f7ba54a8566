//! The plugins of v1beta1 that score used resources: NodeResourcesLeastAllocated
//! (a default plugin), NodeResourcesMostAllocated and RequestedToCapacityRatio.
//! Each is a `scoringStrategy` of NodeResourcesFit, which can have one only.

use serde::Deserialize;
use serde_json::{Value, json};
use steersman_api::problem::Problem;
use steersman_api::strict;

use super::{Scope, args_entry};
use crate::wire::{Plugin, PluginConfig, PluginSet, Profile};

const FIT: &str = "NodeResourcesFit";
const LEAST: &str = "NodeResourcesLeastAllocated";

/// The plugins, and the strategies that do the same.
const STRATEGIES: [(&str, &str); 3] = [
    (LEAST, "LeastAllocated"),
    ("NodeResourcesMostAllocated", "MostAllocated"),
    ("RequestedToCapacityRatio", "RequestedToCapacityRatio"),
];

fn strategy_of(plugin: &str) -> Option<&'static str> {
    STRATEGIES.iter().find(|(name, _)| *name == plugin).map(|(_, strategy)| *strategy)
}

/// The arguments of all three; `shape` is of the last.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Args {
    resources: Option<Value>,
    shape: Option<Value>,
}

/// Replaces the plugins in the scores and in the arguments.
pub(super) fn convert(profile: &mut Profile, scope: &mut Scope<'_>) {
    let score = &mut profile.plugins.score;
    let mut names = score.enabled.iter().chain(&score.disabled).map(|plugin| &plugin.name);
    let in_args = profile.plugin_config.iter().any(|entry| strategy_of(&entry.name).is_some());
    if !in_args && !names.any(|name| strategy_of(name).is_some() || name == FIT) {
        return;
    }
    let scoring = scoring(score);
    if let [.., one, other] = scoring.as_slice() {
        let found = format_args!("{one} and {other}");
        let allowed = "one of them, the other disabled: both are done by NodeResourcesFit, which \
                       has one scoringStrategy";
        scope.problems.push(Problem::invalid(&scope.set("score"), found, allowed));
    }
    let active = scoring.first().cloned();
    replace(score, active.as_deref(), scope);
    let args = take_args(profile, active.as_deref(), scope);
    let Some(strategy) = active.as_deref().and_then(strategy_of) else { return };
    // The default says the same.
    if strategy == "LeastAllocated" && args.is_none() {
        return;
    }
    set_strategy(profile, strategy, args);
}

/// The plugins of the kind that score, NodeResourcesFit among them: the default
/// one unless it is disabled, and what is enabled.
fn scoring(score: &PluginSet) -> Vec<String> {
    let mut found = Vec::new();
    if !score.disables(LEAST) && !score.enables(LEAST) {
        found.push(LEAST.to_owned());
    }
    let names = score.enabled.iter().map(|plugin| plugin.name.as_str());
    found.extend(names.filter(|n| strategy_of(n).is_some() || *n == FIT).map(str::to_owned));
    found
}

/// Puts NodeResourcesFit where the active plugin stood.
fn replace(score: &mut PluginSet, active: Option<&str>, scope: &mut Scope<'_>) {
    let at = scope.set("score");
    let mut enabled: Vec<Plugin> = Vec::new();
    for mut plugin in std::mem::take(&mut score.enabled) {
        if let Some(strategy) = strategy_of(&plugin.name) {
            let what = format!("found {:?}, {}", plugin.name, read_as(strategy));
            scope.tell(&plugin.at(&at, "enabled"), what);
            FIT.clone_into(&mut plugin.name);
        }
        if !enabled.iter().any(|other| other.name == FIT && plugin.name == FIT) {
            enabled.push(plugin);
        }
    }
    score.enabled = enabled;
    for mut plugin in std::mem::take(&mut score.disabled) {
        let place = plugin.at(&at, "disabled");
        let why = match (plugin.name.as_str(), active) {
            // Only LeastAllocated was on by default: when nothing comes in its
            // place, nothing of the kind is to score.
            (LEAST, None) => {
                scope.tell(&place, format!("found {LEAST:?}, read as {FIT:?}"));
                FIT.clone_into(&mut plugin.name);
                None
            }
            (LEAST, Some(_)) => Some("another strategy scores"),
            (FIT, Some(_)) => Some("it did not score by default"),
            (name, _) => strategy_of(name).map(|_| "it did not score by default"),
        };
        match why {
            Some(why) => scope.tell(&place, format!("found {:?}, left out: {why}", plugin.name)),
            None => score.disabled.push(plugin),
        }
    }
    // Listed once as itself and once under its old name.
    let mut n_fits = 0;
    score.disabled.retain(|plugin| {
        n_fits += usize::from(plugin.name == FIT);
        plugin.name != FIT || n_fits == 1
    });
}

fn read_as(strategy: &str) -> String {
    format!("read as {FIT} with the scoringStrategy {strategy}")
}

/// Takes out the arguments of the three plugins; returns those of the active.
fn take_args(profile: &mut Profile, active: Option<&str>, scope: &mut Scope<'_>) -> Option<Taken> {
    let mut found = None;
    for entry in std::mem::take(&mut profile.plugin_config) {
        let Some(strategy) = strategy_of(&entry.name) else {
            profile.plugin_config.push(entry);
            continue;
        };
        let at = entry.at(&scope.plugin_config());
        if active == Some(entry.name.as_str()) {
            let to = format!("read as {FIT}'s scoringStrategy {strategy}");
            scope.tell(&at, format!("found {:?}, {to}", entry.name));
            found = decode(entry, scope);
        } else {
            let what = format!("found {:?}, left out: it is not enabled", entry.name);
            scope.tell(&at, what);
        }
    }
    found
}

/// Arguments and the entry that they stood in.
type Taken = (Args, Option<usize>);

fn decode(entry: PluginConfig, scope: &mut Scope<'_>) -> Option<Taken> {
    let at = entry.at(&scope.plugin_config()).field("args");
    let mut args = entry.args.filter(|args| !args.is_null())?;
    if let Some(object) = args.as_object_mut() {
        object.remove("apiVersion");
        let kind = format!("{}Args", entry.name);
        if let Some(found) = object.remove("kind").filter(|found| *found != kind.as_str()) {
            let allowed = format_args!("{kind:?}");
            scope.problems.push(Problem::invalid(&at.field("kind"), found, allowed));
        }
    }
    Some((strict::decode(&args, &at, scope.problems)?, entry.written_at))
}

fn set_strategy(profile: &mut Profile, strategy: &str, taken: Option<Taken>) {
    let (args, written_at) = taken.unwrap_or_default();
    let mut value = json!({"type": strategy});
    if let Some(resources) = args.resources {
        value["resources"] = resources;
    }
    if let Some(shape) = args.shape {
        value["requestedToCapacityRatio"] = json!({"shape": shape});
    }
    let entry = args_entry(profile, FIT);
    entry.written_at = entry.written_at.or(written_at);
    let fit = entry.args.get_or_insert_with(|| json!({}));
    // Other shapes are found later.
    if let Some(fit) = fit.as_object_mut() {
        fit.insert("scoringStrategy".to_owned(), value);
    }
}

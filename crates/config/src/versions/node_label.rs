//! NodeLabel of v1beta1: nodes must have labels, or must not. NodeAffinity's
//! `addedAffinity` says the same to all pods of a profile.
//!
//! Its scores are not converted: they were a share of the preferences that a
//! node meets, while NodeAffinity sums them up with those of the pod.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use steersman_api::problem::FieldPath;
use steersman_api::strict;

use super::{Scope, args_entry};
use crate::wire::{Plugin, Profile};

const NODE_LABEL: &str = "NodeLabel";
const NODE_AFFINITY: &str = "NodeAffinity";
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Args {
    present_labels: Vec<String>,
    absent_labels: Vec<String>,
    present_labels_preference: Vec<String>,
    absent_labels_preference: Vec<String>,
}

/// Converts what the plugin filtered by. What else names it is left for
/// [`super::removed`].
pub(super) fn convert(profile: &mut Profile, scope: &mut Scope<'_>) {
    let filter = &mut profile.plugins.filter;
    let Some(at) = filter.enabled.iter().position(|plugin| plugin.name == NODE_LABEL) else {
        return;
    };
    let Some(args) = take_args(profile, scope) else { return };
    let requirements = requirements(&args);
    let filter = &mut profile.plugins.filter;
    let removed = filter.enabled.remove(at);
    let place = removed.at(&scope.set("filter"), "enabled");
    scope.tell(&place, "found \"NodeLabel\", read as NodeAffinity's addedAffinity");
    if filter.disables(NODE_AFFINITY) && !filter.enables(NODE_AFFINITY) {
        filter.enabled.insert(at, Plugin { name: NODE_AFFINITY.to_owned(), ..removed });
    }
    if !requirements.is_empty() {
        let entry = args_entry(profile, NODE_AFFINITY);
        add(&requirements, entry.args.get_or_insert_with(|| json!({})));
    }
}

/// The arguments of the plugin; `None` when they are no object.
fn take_args(profile: &mut Profile, scope: &mut Scope<'_>) -> Option<Args> {
    let Some(i) = profile.plugin_config.iter().position(|entry| entry.name == NODE_LABEL) else {
        return Some(Args::default());
    };
    let entry = profile.plugin_config.remove(i);
    let at: FieldPath = entry.at(&scope.plugin_config()).field("args");
    let mut args = entry.args.unwrap_or_else(|| json!({}));
    if let Some(object) = args.as_object_mut() {
        object.remove("apiVersion");
        object.remove("kind");
    }
    let args: Args = strict::decode(&args, &at, scope.problems)?;
    for (field, preferences) in [
        ("presentLabelsPreference", &args.present_labels_preference),
        ("absentLabelsPreference", &args.absent_labels_preference),
    ] {
        if !preferences.is_empty() {
            let what = "left out: preferred terms of NodeAffinity's addedAffinity do its job now";
            scope.tell(&at.field(field), what);
        }
    }
    Some(args)
}

fn requirements(args: &Args) -> Vec<Value> {
    let present = args.present_labels.iter().map(|key| (key, "Exists"));
    let absent = args.absent_labels.iter().map(|key| (key, "DoesNotExist"));
    present.chain(absent).map(|(key, operator)| json!({"key": key, "operator": operator})).collect()
}

/// Adds requirements to each of the terms of an added affinity, of which one
/// must be met; without terms, they are the only one. What is not of the right
/// shape stays as it is and is found later.
fn add(requirements: &[Value], args: &mut Value) {
    let Some(required) = object(args, "addedAffinity").and_then(|a| object(a, REQUIRED)) else {
        return;
    };
    let Some(required) = required.as_object_mut() else { return };
    let terms = required.entry("nodeSelectorTerms").or_insert_with(|| json!([{}]));
    for term in terms.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        let expressions = term.entry("matchExpressions").or_insert_with(|| json!([]));
        if let Some(expressions) = expressions.as_array_mut() {
            expressions.extend(requirements.iter().cloned());
        }
    }
}

/// The object in `field`, made when it is not set.
fn object<'a>(value: &'a mut Value, field: &str) -> Option<&'a mut Value> {
    let inner = value.as_object_mut()?.entry(field).or_insert(Value::Null);
    if inner.is_null() {
        *inner = Value::Object(Map::new());
    }
    Some(inner)
}

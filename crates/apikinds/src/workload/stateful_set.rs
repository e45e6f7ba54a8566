//! `statefulsets`.

use serde_json::{Value, json};
use steersman_apimachinery::error::FieldError;
use steersman_apimachinery::rules::Column;

use super::cells::{AGE, CONTAINERS, IMAGES, container_images, container_names, ready_of};
use super::scale::Scaled;
use super::template::{check_restarting, check_selector};
use super::{check_amount, check_not_negative, without_status};
use crate::fields::{child, default, field, items, items_mut, object_at, same, set, text};
use crate::pod::defaults;
use crate::simple::{Simple, age_cell, name_cell};

/// The rules.
pub(crate) static STATEFUL_SET: Scaled = Scaled(Simple {
    default: defaults_of,
    create: without_status,
    validate,
    columns: &[
        Column::name(),
        Column::text("Ready", "Ready pods, of those that are wanted"),
        AGE,
        CONTAINERS,
        IMAGES,
    ],
    cells: |object, now| {
        vec![
            name_cell(object),
            ready_of(object, "/status/readyReplicas", "/spec/replicas"),
            age_cell(object, now),
            container_names(object, "/spec/template"),
            container_images(object, "/spec/template"),
        ]
    },
    ..Simple::NEW
});

fn defaults_of(object: &mut Value) {
    let Some(spec) = object_at(object, "/spec") else { return };
    default(spec, "replicas", 1);
    default(spec, "revisionHistoryLimit", 10);
    default(spec, "podManagementPolicy", "OrderedReady");
    if let Some(strategy) = child(spec, "updateStrategy") {
        default(strategy, "type", "RollingUpdate");
        if field(strategy, "type") == "RollingUpdate"
            && let Some(rolling) = child(strategy, "rollingUpdate")
        {
            default(rolling, "partition", 0);
            default(rolling, "maxUnavailable", 1);
        }
    }
    if let Some(policy) = child(spec, "persistentVolumeClaimRetentionPolicy") {
        default(policy, "whenDeleted", "Retain");
        default(policy, "whenScaled", "Retain");
    }
    for claim in items_mut(spec, "/volumeClaimTemplates") {
        default(claim, "apiVersion", "v1");
        default(claim, "kind", "PersistentVolumeClaim");
        if let Some(spec) = object_at(claim, "/spec") {
            default(spec, "volumeMode", "Filesystem");
        }
        default(claim, "status", json!({"phase": "Pending"}));
    }
    if let Some(template) = object_at(spec, "/template") {
        defaults::template(template);
    }
}

/// What may change.
const MAY_CHANGE: [&str; 7] = [
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
];

fn validate(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for path in ["spec.replicas", "spec.minReadySeconds", "spec.revisionHistoryLimit"] {
        check_not_negative(new, path, &mut errors);
    }
    let choices: [(&str, &[&str]); 2] = [
        ("spec.podManagementPolicy", &["OrderedReady", "Parallel"]),
        ("spec.updateStrategy.type", &["RollingUpdate", "OnDelete"]),
    ];
    for (path, allowed) in choices {
        let found = text(new, &format!("/{}", path.replace('.', "/")));
        if !allowed.contains(&found) {
            errors.push(FieldError::not_supported(path, found, allowed));
        }
    }
    check_not_negative(new, "spec.updateStrategy.rollingUpdate.partition", &mut errors);
    let path = "spec.updateStrategy.rollingUpdate.maxUnavailable";
    if check_amount(new, path, &mut errors).is_some_and(super::Amount::is_zero) {
        errors.push(FieldError::invalid(path, 0, "cannot be 0"));
    }
    check_selector(new, "statefulset", &mut errors);
    check_restarting(&with_claimed_volumes(new), "StatefulSet", &mut errors);
    if let Some(old) = old {
        check_update(new, old, &mut errors);
    }
    errors
}

/// The object with the volumes that its pods will have for its claims.
fn with_claimed_volumes(object: &Value) -> Value {
    let mut object = object.clone();
    let claims: Vec<String> = items(&object, "/spec/volumeClaimTemplates")
        .iter()
        .map(|claim| text(claim, "/metadata/name").to_owned())
        .collect();
    let Some(spec) = object_at(&mut object, "/spec/template/spec") else { return object };
    if claims.is_empty() {
        return object;
    }
    default(spec, "volumes", json!([]));
    if let Some(volumes) = spec["volumes"].as_array_mut() {
        // A claim takes the place of a volume of its name.
        volumes.retain(|volume| !claims.iter().any(|claim| claim == field(volume, "name")));
        let volume =
            |name: &String| json!({"name": name, "persistentVolumeClaim": {"claimName": name}});
        volumes.extend(claims.iter().map(volume));
    }
    object
}

fn check_update(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    let rest = |object: &Value| {
        let mut spec = object.get("spec").cloned().unwrap_or_default();
        MAY_CHANGE.iter().for_each(|name| set(&mut spec, name, Value::Null));
        spec
    };
    if !same(Some(&rest(new)), Some(&rest(old))) {
        let why = "updates to statefulset spec for fields other than 'replicas', 'ordinals', \
                   'template', 'updateStrategy', 'revisionHistoryLimit', \
                   'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";
        errors.push(FieldError::forbidden("spec", why));
    }
}

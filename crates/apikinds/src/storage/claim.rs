//! `persistentvolumeclaims`.

use serde_json::{Value, json};
use steersman_api::quantity::Quantity;
use steersman_apimachinery::error::{ApiError, FieldError};
use steersman_apimachinery::rules::{Column, Request};

use super::{check_modes, check_volume_mode, short_modes};
use crate::fields::{at, default, name, object_at, quantities, same, says, set, text};
use crate::simple::{Simple, age_cell, name_cell};

/// The annotation of the class of claims that name none.
const DEFAULT_CLASS: &str = "storageclass.kubernetes.io/is-default-class";
/// How classes were named before there was a field for it.
const OLD_CLASS: &str = "volume.beta.kubernetes.io/storage-class";

/// The rules.
pub(crate) static PERSISTENT_VOLUME_CLAIM: Simple = Simple {
    generation: false,
    default: |object| {
        if let Some(spec) = object_at(object, "/spec") {
            default(spec, "volumeMode", "Filesystem");
            quantities(spec, "/resources/requests");
            quantities(spec, "/resources/limits");
        }
    },
    create,
    validate,
    finalizers: &["kubernetes.io/pvc-protection"],
    columns: &[
        Column::name(),
        Column::text("Status", "Whether the claim has a volume"),
        Column::text("Volume", "Its volume"),
        Column::text("Capacity", "How much the volume holds"),
        Column::text("Access Modes", "How nodes may mount it"),
        Column::text("StorageClass", "The class of the volume"),
        Column::text("VolumeAttributesClass", "The class of the volume's attributes"),
        Column::text("Age", "Time since creation"),
        Column::text("VolumeMode", "File system or raw").wide(),
    ],
    cells: |object, now| {
        let or_unset = |text: &str| json!(if text.is_empty() { "<unset>" } else { text });
        let bound = !text(object, "/spec/volumeName").is_empty();
        let capacity = if bound { text(object, "/status/capacity/storage") } else { "" };
        let modes = if bound { short_modes(object, "/status/accessModes") } else { String::new() };
        let phase = match at(object, "/metadata/deletionTimestamp") {
            Some(_) => "Terminating",
            None => text(object, "/status/phase"),
        };
        vec![
            name_cell(object),
            phase.into(),
            text(object, "/spec/volumeName").into(),
            capacity.into(),
            modes.into(),
            class(object).into(),
            or_unset(text(object, "/spec/volumeAttributesClassName")),
            age_cell(object, now),
            or_unset(text(object, "/spec/volumeMode")),
        ]
    },
    ..Simple::NEW
};

/// A claim that says nothing of its class gets the default one.
fn create(object: &mut Value, request: &Request<'_>) -> Result<(), ApiError> {
    set(object, "status", json!({"phase": "Pending"}));
    let named = at(object, "/spec/storageClassName").is_some()
        || object.pointer("/metadata/annotations").is_some_and(|a| a.get(OLD_CLASS).is_some());
    if named {
        return Ok(());
    }
    // Of several the newest, as if it had been meant to replace the others.
    let classes = request.view.list("storage.k8s.io", "storageclasses", None);
    let created = |class: &Value| text(class, "/metadata/creationTimestamp").to_owned();
    let chosen = classes
        .iter()
        .filter(|class| says(class, "/metadata/annotations", DEFAULT_CLASS, "true"))
        .min_by_key(|class| (std::cmp::Reverse(created(class)), name(class).to_owned()));
    if let (Some(class), Some(spec)) = (chosen, object_at(object, "/spec")) {
        set(spec, "storageClassName", name(class));
    }
    Ok(())
}

fn validate(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    check_modes(new, &mut errors);
    check_volume_mode(new, &mut errors);
    let size = |object: &Value| {
        let text = at(object, "/spec/resources/requests/storage")?;
        Quantity::parse(text.as_str()?).ok()
    };
    match size(new) {
        None => errors.push(FieldError::required("spec.resources[storage]", "")),
        Some(amount) if amount <= Quantity::ZERO => {
            let found = at(new, "/spec/resources/requests/storage").cloned().unwrap_or_default();
            let why = "must be greater than zero";
            errors.push(FieldError::invalid("spec.resources[storage]", found, why));
        }
        Some(_) => {}
    }
    if let Some(old) = old {
        check_update(new, old, &mut errors);
        if let (Some(after), Some(before)) = (size(new), size(old))
            && after < before
        {
            let why = "field can not be less than status.capacity";
            errors.push(FieldError::forbidden("spec.resources.requests.storage", why));
        }
    }
    errors
}

fn check_update(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    let bound = text(old, "/status/phase") == "Bound";
    let rest = |object: &Value| {
        let mut spec = object.get("spec").cloned().unwrap_or_default();
        // A volume is found for a claim once, and a class.
        for name in ["volumeName", "storageClassName"] {
            if at(old, &format!("/spec/{name}")).is_none() {
                set(&mut spec, name, Value::Null);
            }
        }
        if bound {
            set(&mut spec, "volumeAttributesClassName", Value::Null);
            if let Some(resources) = object_at(&mut spec, "/resources") {
                set(resources, "requests", Value::Null);
            }
        }
        spec
    };
    if !same(Some(&rest(new)), Some(&rest(old))) {
        let why = "spec is immutable after creation except resources.requests and \
                   volumeAttributesClassName for bound claims";
        errors.push(FieldError::forbidden("spec", why));
    }
}

fn class(claim: &Value) -> &str {
    let annotations = claim.pointer("/metadata/annotations");
    match annotations.and_then(|annotations| annotations.get(OLD_CLASS)).and_then(Value::as_str) {
        Some(class) => class,
        None => text(claim, "/spec/storageClassName"),
    }
}

//! Volumes, claims, and what describes storage.

mod claim;
mod classes;
mod volume;

pub(crate) use claim::PERSISTENT_VOLUME_CLAIM;
pub(crate) use classes::{
    CSI_DRIVER, CSI_NODE, CSI_STORAGE_CAPACITY, STORAGE_CLASS, VOLUME_ATTACHMENT,
    VOLUME_ATTRIBUTES_CLASS,
};
pub(crate) use volume::PERSISTENT_VOLUME;

use serde_json::Value;
use steersman_apimachinery::error::FieldError;

use crate::fields::{items, text};

const MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

/// Access modes in short: `RWO,ROX`.
fn short_modes(object: &Value, pointer: &str) -> String {
    let given: Vec<&str> = items(object, pointer).iter().filter_map(Value::as_str).collect();
    let short = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let found = short.iter().filter(|(mode, _)| given.contains(mode));
    found.map(|(_, short)| *short).collect::<Vec<_>>().join(",")
}

fn check_modes(object: &Value, errors: &mut Vec<FieldError>) {
    let modes = items(object, "/spec/accessModes");
    if modes.is_empty() {
        errors.push(FieldError::required("spec.accessModes", "at least 1 access mode is required"));
    }
    let allowed = |mode: &Value| mode.as_str().is_some_and(|mode| MODES.contains(&mode));
    for mode in modes.iter().filter(|mode| !allowed(mode)) {
        errors.push(FieldError::not_supported("spec.accessModes", mode.clone(), &MODES));
    }
    if modes.len() > 1 && modes.iter().any(|mode| mode == "ReadWriteOncePod") {
        let why = "may not use ReadWriteOncePod with other access modes";
        errors.push(FieldError::forbidden("spec.accessModes", why));
    }
}

fn check_volume_mode(object: &Value, errors: &mut Vec<FieldError>) {
    let mode = text(object, "/spec/volumeMode");
    let allowed = ["Block", "Filesystem"];
    if !mode.is_empty() && !allowed.contains(&mode) {
        errors.push(FieldError::not_supported("spec.volumeMode", mode, &allowed));
    }
}

#[cfg(test)]
mod tests;

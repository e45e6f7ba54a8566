//! Columns that kinds with a pod template share.

use serde_json::Value;
use steersman_apimachinery::rules::Column;

use crate::fields::{field, items, number};

/// `Containers`, shown by `-o wide`.
pub(super) const CONTAINERS: Column =
    Column::text("Containers", "Names of the template's containers").wide();
/// `Images`, shown by `-o wide`.
pub(super) const IMAGES: Column =
    Column::text("Images", "Images of the template's containers").wide();
/// `Selector`, shown by `-o wide`.
pub(super) const SELECTOR: Column = Column::text("Selector", "Which pods belong to it").wide();
/// `Age`.
pub(super) const AGE: Column = Column::text("Age", "Time since creation");

/// The names of the containers of the template at a pointer.
pub(super) fn container_names(object: &Value, template: &str) -> Value {
    joined(object, template, "name")
}

/// Their images.
pub(super) fn container_images(object: &Value, template: &str) -> Value {
    joined(object, template, "image")
}

/// A number of the status; 0 until it is known.
pub(super) fn count(object: &Value, pointer: &str) -> Value {
    number(object, pointer).unwrap_or(0).into()
}

/// `ready/wanted`.
pub(super) fn ready_of(object: &Value, ready: &str, wanted: &str) -> Value {
    let count = |pointer| number(object, pointer).unwrap_or(0);
    format!("{}/{}", count(ready), count(wanted)).into()
}

fn joined(object: &Value, template: &str, name: &str) -> Value {
    let containers = items(object, &format!("{template}/spec/containers"));
    let parts: Vec<&str> = containers.iter().map(|container| field(container, name)).collect();
    parts.join(",").into()
}

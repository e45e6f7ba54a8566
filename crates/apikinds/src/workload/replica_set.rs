//! `replicasets`.

use jiff::Timestamp;
use serde_json::Value;
use steersman_apimachinery::error::FieldError;
use steersman_apimachinery::rules::Column;

use super::cells::{AGE, CONTAINERS, IMAGES, SELECTOR, container_images, container_names, count};
use super::scale::Scaled;
use super::template::{check_restarting, check_selector};
use super::{check_immutable, check_not_negative, without_status};
use crate::fields::{default, number, object_at};
use crate::pod::defaults;
use crate::selectors;
use crate::simple::{Simple, age_cell, name_cell};

/// The rules.
pub(crate) static REPLICA_SET: Scaled = Scaled(Simple {
    default: |object| {
        let Some(spec) = object_at(object, "/spec") else { return };
        default(spec, "replicas", 1);
        if let Some(template) = object_at(spec, "/template") {
            defaults::template(template);
        }
    },
    create: without_status,
    validate,
    selectable: &["status.replicas"],
    select: |object, _| number(object, "/status/replicas").unwrap_or(0).to_string(),
    columns: COLUMNS,
    cells: |object, now| cells(object, now, selectors::cell(object, "/spec/selector")),
    ..Simple::NEW
});

/// The columns of everything that only keeps a number of pods.
pub(super) const COLUMNS: &[Column] = &[
    Column::name(),
    Column::number("Desired", "Pods that are wanted"),
    Column::number("Current", "Pods that exist"),
    Column::number("Ready", "Pods that are ready"),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

/// The cells of those columns.
pub(super) fn cells(object: &Value, now: Timestamp, selector: Value) -> Vec<Value> {
    vec![
        name_cell(object),
        count(object, "/spec/replicas"),
        count(object, "/status/replicas"),
        count(object, "/status/readyReplicas"),
        age_cell(object, now),
        container_names(object, "/spec/template"),
        container_images(object, "/spec/template"),
        selector,
    ]
}

fn validate(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    check_not_negative(new, "spec.replicas", &mut errors);
    check_not_negative(new, "spec.minReadySeconds", &mut errors);
    check_selector(new, "deployment", &mut errors);
    check_restarting(new, "ReplicaSet", &mut errors);
    check_immutable(new, old, "spec.selector", &mut errors);
    errors
}

//! `replicationcontrollers`.

use serde_json::{Value, json};
use steersman_apimachinery::error::FieldError;

use super::replica_set::{COLUMNS, cells};
use super::scale::Scaled;
use super::template::check_restarting;
use super::{check_not_negative, without_status};
use crate::fields::{at, child, default, entries, number, object_at};
use crate::pod::defaults;
use crate::selectors;
use crate::simple::Simple;

/// The rules.
pub(crate) static REPLICATION_CONTROLLER: Scaled = Scaled(Simple {
    default: defaults_of,
    create: without_status,
    validate,
    selectable: &["status.replicas"],
    select: |object, _| number(object, "/status/replicas").unwrap_or(0).to_string(),
    columns: COLUMNS,
    cells: |object, now| cells(object, now, selectors::map_cell(object, "/spec/selector")),
    ..Simple::NEW
});

/// Selector and labels are the template's unless given.
fn defaults_of(object: &mut Value) {
    let labels = at(object, "/spec/template/metadata/labels").cloned();
    if let Some(labels) = labels.filter(|labels| labels.is_object()) {
        if let Some(metadata) = child(object, "metadata") {
            default(metadata, "labels", labels.clone());
        }
        if let Some(spec) = object_at(object, "/spec") {
            default(spec, "selector", labels);
        }
    }
    let Some(spec) = object_at(object, "/spec") else { return };
    default(spec, "replicas", 1);
    if let Some(template) = object_at(spec, "/template") {
        defaults::template(template);
    }
}

fn validate(new: &Value, _: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    check_not_negative(new, "spec.replicas", &mut errors);
    check_not_negative(new, "spec.minReadySeconds", &mut errors);
    if entries(new, "/spec/selector").next().is_none() {
        errors.push(FieldError::required("spec.selector", ""));
    } else {
        let selector = json!({"matchLabels": at(new, "/spec/selector")});
        let labels = at(new, "/spec/template/metadata/labels");
        if !selectors::matches(&selector, labels) {
            let why = "`selector` does not match template `labels`";
            let found = labels.cloned().unwrap_or_default();
            errors.push(FieldError::invalid("spec.template.metadata.labels", found, why));
        }
    }
    check_restarting(new, "ReplicationController", &mut errors);
    errors
}

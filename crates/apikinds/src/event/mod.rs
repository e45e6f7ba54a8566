//! Events, in both groups: `events` of the core group, in which form they are
//! kept, and of `events.k8s.io`.

mod cells;
mod convert;

use jiff::Timestamp;
use serde_json::Value;
use steersman_apimachinery::error::{ApiError, FieldError};
use steersman_apimachinery::rules::{Column, Part, Request, Rules};

use crate::fields::{field, name, namespace, text};
use crate::simple::field_text;

/// The group of the newer form.
const GROUP: &str = "events.k8s.io";

/// The rules of the core group's events.
pub(crate) struct CoreEvents;

/// The rules of the events of `events.k8s.io`.
pub(crate) struct Events;

const SELECTABLE: &[&str] = &[
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "source",
    "type",
];

/// The same fields by the names of the newer group.
const NEWER_SELECTABLE: &[&str] = &[
    "regarding.kind",
    "regarding.namespace",
    "regarding.name",
    "regarding.uid",
    "regarding.apiVersion",
    "regarding.resourceVersion",
    "regarding.fieldPath",
    "reason",
    "reportingController",
    "type",
];

impl Rules for CoreEvents {
    fn prepare_create(&self, object: &mut Value, request: &Request<'_>) -> Result<(), ApiError> {
        // Both groups' events are kept by these rules; one asks for more.
        let mut errors = Vec::new();
        if request.resource.group == GROUP {
            check_newer(object, &mut errors);
        }
        if errors.is_empty() {
            Ok(())
        } else {
            Err(ApiError::invalid(request.resource, name(object), &errors))
        }
    }

    fn creates_on_update(&self) -> bool {
        true
    }

    fn validate(&self, new: &Value, _: Option<&Value>, _: Part) -> Vec<FieldError> {
        check(new)
    }

    fn keeps_generation(&self) -> bool {
        false
    }

    fn selectable_field(&self, object: &Value, path: &str) -> Option<String> {
        SELECTABLE.contains(&path).then(|| stored_field(object, path))
    }

    fn selectable_fields(&self) -> &'static [&'static str] {
        SELECTABLE
    }

    fn columns(&self) -> &'static [Column] {
        cells::COLUMNS
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        cells::cells(object, now)
    }
}

impl Rules for Events {
    fn prepare_create(&self, object: &mut Value, request: &Request<'_>) -> Result<(), ApiError> {
        CoreEvents.prepare_create(object, request)
    }

    fn validate(&self, new: &Value, old: Option<&Value>, part: Part) -> Vec<FieldError> {
        CoreEvents.validate(new, old, part)
    }

    fn creates_on_update(&self) -> bool {
        true
    }

    fn keeps_generation(&self) -> bool {
        false
    }

    fn selectable_field(&self, object: &Value, path: &str) -> Option<String> {
        if !NEWER_SELECTABLE.contains(&path) {
            return None;
        }
        let path = path.replacen("regarding.", "involvedObject.", 1);
        let path = if path == "reportingController" { "reportingComponent" } else { &path };
        Some(stored_field(object, path))
    }

    fn selectable_fields(&self) -> &'static [&'static str] {
        NEWER_SELECTABLE
    }

    fn columns(&self) -> &'static [Column] {
        cells::COLUMNS
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        // Rows are made of stored events, or of this version's form of them.
        if object.get("regarding").is_some() {
            return cells::cells(&convert::to_core(object.clone()), now);
        }
        cells::cells(object, now)
    }

    fn to_storage(&self, object: Value) -> Value {
        convert::to_core(object)
    }

    fn from_storage(&self, object: &Value) -> Value {
        convert::from_core(object.clone())
    }
}

/// A field of a stored event, or of one in the newer form.
fn stored_field(object: &Value, path: &str) -> String {
    if object.get("regarding").is_some() {
        return stored_field(&convert::to_core(object.clone()), path);
    }
    match path {
        "source" => match text(object, "/source/component") {
            "" => field(object, "reportingComponent").to_owned(),
            component => component.to_owned(),
        },
        other => field_text(object, other),
    }
}

/// An event lies where its object lies; of objects without a namespace, in
/// `default`.
fn check(event: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let (own, involved) = (namespace(event), text(event, "/involvedObject/namespace"));
    let fits = if involved.is_empty() { matches!(own, "" | "default") } else { own == involved };
    if !fits {
        let why = "does not match event.namespace";
        errors.push(FieldError::invalid("involvedObject.namespace", involved, why));
    }
    errors
}

/// What the newer group asks for beyond that, of an event in storage form.
fn check_newer(event: &Value, errors: &mut Vec<FieldError>) {
    if field(event, "eventTime").is_empty() {
        errors.push(FieldError::required("eventTime", ""));
    }
    for (stored, name) in [
        ("reportingComponent", "reportingController"),
        ("reportingInstance", "reportingInstance"),
        ("action", "action"),
        ("reason", "reason"),
    ] {
        if field(event, stored).is_empty() {
            errors.push(FieldError::required(name, ""));
        }
    }
    let kind = field(event, "type");
    if !matches!(kind, "Normal" | "Warning") {
        errors.push(FieldError::invalid(
            "type",
            kind,
            "has invalid value: must be Normal or Warning",
        ));
    }
    let message = field(event, "message");
    if message.len() > 1024 {
        errors.push(FieldError::invalid("note", message, "can have at most 1024 characters"));
    }
}

#[cfg(test)]
mod tests;

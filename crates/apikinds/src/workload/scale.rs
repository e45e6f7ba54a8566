//! Kinds with a `/scale` subresource: their rules, and the view.

use jiff::Timestamp;
use serde_json::{Value, json};
use steersman_apimachinery::error::{ApiError, FieldError};
use steersman_apimachinery::resource::Subresource;
use steersman_apimachinery::rules::{Column, Part, Request, Rules};

use super::template::selector_line;
use crate::fields::{child, name, namespace, number, set, text};
use crate::simple::Simple;

/// A kind that can be scaled: otherwise as its functions say.
pub(crate) struct Scaled(pub(crate) Simple);

impl Rules for Scaled {
    fn default(&self, object: &mut Value) {
        self.0.default(object);
    }

    fn prepare_create(&self, object: &mut Value, request: &Request<'_>) -> Result<(), ApiError> {
        self.0.prepare_create(object, request)
    }

    fn validate(&self, new: &Value, old: Option<&Value>, part: Part) -> Vec<FieldError> {
        self.0.validate(new, old, part)
    }

    fn selectable_field(&self, object: &Value, path: &str) -> Option<String> {
        self.0.selectable_field(object, path)
    }

    fn selectable_fields(&self) -> &'static [&'static str] {
        self.0.selectable_fields()
    }

    fn columns(&self) -> &'static [Column] {
        self.0.columns()
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        self.0.cells(object, now)
    }

    fn read_view(&self, object: &Value, subresource: &Subresource) -> Result<Value, ApiError> {
        let replicas = |pointer| number(object, pointer).unwrap_or(0);
        let mut metadata = json!({"name": name(object), "namespace": namespace(object)});
        for field in ["uid", "resourceVersion", "creationTimestamp"] {
            set(&mut metadata, field, text(object, &format!("/metadata/{field}")));
        }
        let mut status = json!({"replicas": replicas("/status/replicas")});
        let selector = selector_line(object);
        if !selector.is_empty() {
            set(&mut status, "selector", selector);
        }
        Ok(json!({
            "kind": subresource.kind,
            "apiVersion": format!("{}/{}", subresource.group, subresource.version),
            "metadata": metadata,
            "spec": {"replicas": replicas("/spec/replicas")},
            "status": status,
        }))
    }

    fn write_view(
        &self,
        object: &mut Value,
        view: &Value,
        _: &Subresource,
    ) -> Result<(), ApiError> {
        let replicas = number(view, "/spec/replicas").unwrap_or(0);
        if replicas < 0 {
            let message = format!(
                "Scale.autoscaling {:?} is invalid: spec.replicas: Invalid value: {replicas}: \
                 must be greater than or equal to 0",
                name(object)
            );
            return Err(ApiError::new(422, "Invalid", message));
        }
        if let Some(spec) = child(object, "spec") {
            set(spec, "replicas", replicas);
        }
        Ok(())
    }
}

//! `pods`.

mod admission;
mod binding;
mod cells;
pub(crate) mod defaults;
mod label_keys;
mod qos;
pub(crate) mod validation;

use jiff::Timestamp;
use serde_json::Value;
use steersman_apimachinery::error::{ApiError, FieldError};
use steersman_apimachinery::resource::Subresource;
use steersman_apimachinery::rules::{Column, Part, Request, Rules};

use crate::fields::{default, flag, number, object_at, text};
use crate::simple::field_text;

/// The rules of pods.
pub(crate) struct Pods;

const SELECTABLE: &[&str] = &[
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.phase",
    "status.podIP",
    "status.podIPs",
    "status.nominatedNodeName",
];

impl Rules for Pods {
    fn default(&self, object: &mut Value) {
        defaults::pod(object);
    }

    fn prepare_create(&self, object: &mut Value, request: &Request<'_>) -> Result<(), ApiError> {
        admission::create(object, request)
    }

    fn prepare_update(
        &self,
        new: &mut Value,
        old: &Value,
        part: Part,
        _: &Request<'_>,
    ) -> Result<(), ApiError> {
        match part {
            Part::Main => admission::update(new, old),
            // The class is found once; old clients do not send it back.
            Part::Status => {
                let class = text(old, "/status/qosClass").to_owned();
                if let Some(status) = object_at(new, "/status").filter(|_| !class.is_empty()) {
                    default(status, "qosClass", class);
                }
            }
            Part::Subresource(_) => {}
        }
        Ok(())
    }

    fn validate(&self, new: &Value, old: Option<&Value>, part: Part) -> Vec<FieldError> {
        if part != Part::Main {
            return Vec::new();
        }
        let spec = new.get("spec").unwrap_or(&Value::Null);
        let mut errors = validation::check_spec(spec, "spec");
        if let Some(old) = old {
            let old = old.get("spec").unwrap_or(&Value::Null);
            validation::check_update(spec, old, &mut errors);
        }
        errors
    }

    fn grace_period(&self, object: &Value, requested: Option<i64>) -> i64 {
        let unbound = text(object, "/spec/nodeName").is_empty();
        let over = matches!(text(object, "/status/phase"), "Succeeded" | "Failed");
        if unbound || over {
            return 0;
        }
        let own = || number(object, "/spec/terminationGracePeriodSeconds").unwrap_or(0);
        match requested.unwrap_or_else(own) {
            // Written by clients from before there was a rule about it.
            ..0 => 1,
            seconds => seconds,
        }
    }

    fn selectable_field(&self, object: &Value, path: &str) -> Option<String> {
        if !SELECTABLE.contains(&path) {
            return None;
        }
        Some(match path {
            "spec.hostNetwork" => flag(object, "/spec/hostNetwork").to_string(),
            "status.podIP" | "status.podIPs" => match text(object, "/status/podIPs/0/ip") {
                "" => text(object, "/status/podIP").to_owned(),
                ip => ip.to_owned(),
            },
            other => field_text(object, other),
        })
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

    fn perform(
        &self,
        object: &mut Value,
        body: &Value,
        subresource: &Subresource,
        request: &Request<'_>,
    ) -> Result<Value, ApiError> {
        match subresource.name {
            "binding" => binding::bind(object, body, request),
            other => Err(ApiError::internal(format!("pods/{other} is not implemented"))),
        }
    }
}

#[cfg(test)]
mod tests;

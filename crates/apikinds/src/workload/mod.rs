//! Kinds that make pods from a template.

mod cells;
mod cron_job;
mod daemon_set;
mod deployment;
mod job;
mod replica_set;
mod replication_controller;
mod scale;
mod stateful_set;
mod template;

pub(crate) use cron_job::CRON_JOB;
pub(crate) use daemon_set::DAEMON_SET;
pub(crate) use deployment::DEPLOYMENT;
pub(crate) use job::JOB;
pub(crate) use replica_set::REPLICA_SET;
pub(crate) use replication_controller::REPLICATION_CONTROLLER;
pub(crate) use stateful_set::STATEFUL_SET;
pub(crate) use template::POD_TEMPLATE;

use serde_json::{Value, json};
use steersman_apimachinery::error::{ApiError, FieldError};
use steersman_apimachinery::rules::Request;

use crate::fields::{at, number, same, set};

/// The status of new objects is the controllers' to write.
fn without_status(object: &mut Value, _: &Request<'_>) -> Result<(), ApiError> {
    set(object, "status", json!({}));
    Ok(())
}

/// A whole number that must not be below zero, if it is there.
fn check_not_negative(object: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let pointer = format!("/{}", path.replace('.', "/"));
    if let Some(found) = number(object, &pointer).filter(|found| *found < 0) {
        let why = "must be greater than or equal to 0";
        errors.push(FieldError::invalid(path, found, why));
    }
}

/// A field that may not change.
fn check_immutable(new: &Value, old: Option<&Value>, path: &str, errors: &mut Vec<FieldError>) {
    let pointer = format!("/{}", path.replace('.', "/"));
    let Some(old) = old else { return };
    if !same(at(new, &pointer), at(old, &pointer)) {
        let found = at(new, &pointer).cloned().unwrap_or_default();
        errors.push(FieldError::invalid(path, found, "field is immutable"));
    }
}

/// A number, or a share such as `25%`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Amount {
    Count(i64),
    Percent(i64),
}

/// Reads and checks a number or a share at a path.
fn check_amount(object: &Value, path: &str, errors: &mut Vec<FieldError>) -> Option<Amount> {
    let found = at(object, &format!("/{}", path.replace('.', "/")))?;
    let amount = match found {
        Value::String(text) => {
            let percent = text.strip_suffix('%').and_then(|digits| digits.parse().ok());
            percent.filter(|percent| *percent >= 0).map(Amount::Percent)
        }
        other => other.as_i64().map(Amount::Count),
    };
    match amount {
        None => {
            let why = "a valid percent string must be a numeric string followed by an ending '%' \
                       (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";
            errors.push(FieldError::invalid(path, found.clone(), why));
        }
        Some(Amount::Count(..0)) => {
            let why = "must be greater than or equal to 0";
            errors.push(FieldError::invalid(path, found.clone(), why));
        }
        Some(_) => {}
    }
    amount
}

impl Amount {
    fn is_zero(self) -> bool {
        matches!(self, Self::Count(0) | Self::Percent(0))
    }

    fn is_more_than_all(self) -> bool {
        matches!(self, Self::Percent(101..))
    }
}

#[cfg(test)]
mod tests;

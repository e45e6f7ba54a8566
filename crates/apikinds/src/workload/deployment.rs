//! `deployments`.

use serde_json::{Value, json};
use steersman_apimachinery::error::FieldError;
use steersman_apimachinery::rules::Column;

use super::cells::{
    AGE, CONTAINERS, IMAGES, SELECTOR, container_images, container_names, count, ready_of,
};
use super::scale::Scaled;
use super::template::{check_restarting, check_selector};
use super::{check_amount, check_immutable, check_not_negative, without_status};
use crate::fields::{at, child, default, field, number, object_at, text};
use crate::pod::defaults;
use crate::selectors;
use crate::simple::{Simple, age_cell, name_cell};

/// The rules.
pub(crate) static DEPLOYMENT: Scaled = Scaled(Simple {
    default: defaults_of,
    create: without_status,
    validate,
    columns: &[
        Column::name(),
        Column::text("Ready", "Ready pods, of those that are wanted"),
        Column::text("Up-to-date", "Pods of the present template"),
        Column::text("Available", "Pods that have been ready for long enough"),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    cells: |object, now| {
        vec![
            name_cell(object),
            ready_of(object, "/status/readyReplicas", "/spec/replicas"),
            count(object, "/status/updatedReplicas"),
            count(object, "/status/availableReplicas"),
            age_cell(object, now),
            container_names(object, "/spec/template"),
            container_images(object, "/spec/template"),
            selectors::cell(object, "/spec/selector"),
        ]
    },
    ..Simple::NEW
});

fn defaults_of(object: &mut Value) {
    let Some(spec) = object_at(object, "/spec") else { return };
    default(spec, "replicas", 1);
    default(spec, "revisionHistoryLimit", 10);
    default(spec, "progressDeadlineSeconds", 600);
    if let Some(strategy) = child(spec, "strategy") {
        default(strategy, "type", "RollingUpdate");
        if field(strategy, "type") == "RollingUpdate"
            && let Some(rolling) = child(strategy, "rollingUpdate")
        {
            default(rolling, "maxUnavailable", json!("25%"));
            default(rolling, "maxSurge", json!("25%"));
        }
    }
    if let Some(template) = object_at(spec, "/template") {
        defaults::template(template);
    }
}

fn validate(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    check_not_negative(new, "spec.replicas", &mut errors);
    check_not_negative(new, "spec.minReadySeconds", &mut errors);
    check_not_negative(new, "spec.revisionHistoryLimit", &mut errors);
    check_selector(new, "deployment", &mut errors);
    check_strategy(new, &mut errors);
    check_restarting(new, "ReplicaSet", &mut errors);
    let ready = number(new, "/spec/minReadySeconds").unwrap_or(0);
    if let Some(deadline) = number(new, "/spec/progressDeadlineSeconds")
        && deadline <= ready
    {
        let why = "must be greater than minReadySeconds";
        errors.push(FieldError::invalid("spec.progressDeadlineSeconds", deadline, why));
    }
    check_immutable(new, old, "spec.selector", &mut errors);
    errors
}

fn check_strategy(object: &Value, errors: &mut Vec<FieldError>) {
    const ROLLING: &str = "spec.strategy.rollingUpdate";
    match text(object, "/spec/strategy/type") {
        "Recreate" => {
            if at(object, "/spec/strategy/rollingUpdate").is_some() {
                let why = "may not be specified when strategy `type` is 'Recreate'";
                errors.push(FieldError::forbidden(ROLLING, why));
            }
        }
        "RollingUpdate" => {
            let unavailable = check_amount(object, &format!("{ROLLING}.maxUnavailable"), errors);
            let surge = check_amount(object, &format!("{ROLLING}.maxSurge"), errors);
            let zero = |amount: Option<super::Amount>| amount.is_some_and(super::Amount::is_zero);
            let path = format!("{ROLLING}.maxUnavailable");
            let found = || {
                at(object, "/spec/strategy/rollingUpdate/maxUnavailable")
                    .cloned()
                    .unwrap_or_default()
            };
            if zero(unavailable) && zero(surge) {
                errors.push(FieldError::invalid(
                    path,
                    found(),
                    "may not be 0 when `maxSurge` is 0",
                ));
            } else if unavailable.is_some_and(super::Amount::is_more_than_all) {
                errors.push(FieldError::invalid(path, found(), "must not be greater than 100%"));
            }
        }
        other => errors.push(FieldError::not_supported(
            "spec.strategy.type",
            other,
            &["Recreate", "RollingUpdate"],
        )),
    }
}

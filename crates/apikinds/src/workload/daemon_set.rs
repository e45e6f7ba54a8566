//! `daemonsets`.

use serde_json::Value;
use steersman_apimachinery::error::FieldError;
use steersman_apimachinery::rules::Column;

use super::cells::{AGE, CONTAINERS, IMAGES, SELECTOR, container_images, container_names, count};
use super::template::{check_restarting, check_selector};
use super::{Amount, check_amount, check_immutable, check_not_negative, without_status};
use crate::fields::{at, child, default, field, object_at, text};
use crate::pod::defaults;
use crate::selectors;
use crate::simple::{Simple, age_cell, name_cell};

/// The rules.
pub(crate) static DAEMON_SET: Simple = Simple {
    default: defaults_of,
    create: without_status,
    validate,
    columns: &[
        Column::name(),
        Column::number("Desired", "Nodes that should run the pod"),
        Column::number("Current", "Nodes that run at least one, and should"),
        Column::number("Ready", "Nodes on which it is ready"),
        Column::number("Up-to-date", "Nodes with a pod of the present template"),
        Column::number("Available", "Nodes on which it has been ready for long enough"),
        Column::text("Node Selector", "Labels of the nodes it runs on"),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    cells: |object, now| {
        vec![
            name_cell(object),
            count(object, "/status/desiredNumberScheduled"),
            count(object, "/status/currentNumberScheduled"),
            count(object, "/status/numberReady"),
            count(object, "/status/updatedNumberScheduled"),
            count(object, "/status/numberAvailable"),
            selectors::map_cell(object, "/spec/template/spec/nodeSelector"),
            age_cell(object, now),
            container_names(object, "/spec/template"),
            container_images(object, "/spec/template"),
            selectors::cell(object, "/spec/selector"),
        ]
    },
    ..Simple::NEW
};

fn defaults_of(object: &mut Value) {
    let Some(spec) = object_at(object, "/spec") else { return };
    default(spec, "revisionHistoryLimit", 10);
    if let Some(strategy) = child(spec, "updateStrategy") {
        default(strategy, "type", "RollingUpdate");
        if field(strategy, "type") == "RollingUpdate"
            && let Some(rolling) = child(strategy, "rollingUpdate")
        {
            default(rolling, "maxUnavailable", 1);
            default(rolling, "maxSurge", 0);
        }
    }
    if let Some(template) = object_at(spec, "/template") {
        defaults::template(template);
    }
}

fn validate(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    check_selector(new, "daemonset", &mut errors);
    check_restarting(new, "DaemonSet", &mut errors);
    check_not_negative(new, "spec.minReadySeconds", &mut errors);
    check_not_negative(new, "spec.revisionHistoryLimit", &mut errors);
    check_strategy(new, &mut errors);
    check_immutable(new, old, "spec.selector", &mut errors);
    errors
}

fn check_strategy(object: &Value, errors: &mut Vec<FieldError>) {
    const ROLLING: &str = "spec.updateStrategy.rollingUpdate";
    match text(object, "/spec/updateStrategy/type") {
        "OnDelete" => {}
        "RollingUpdate" => {
            let unavailable = check_amount(object, &format!("{ROLLING}.maxUnavailable"), errors);
            let surge = check_amount(object, &format!("{ROLLING}.maxSurge"), errors);
            let zero = |amount: Option<Amount>| amount.is_none_or(Amount::is_zero);
            let found = |name: &str| {
                let pointer = format!("/{}/{name}", ROLLING.replace('.', "/"));
                at(object, &pointer).cloned().unwrap_or_default()
            };
            if zero(unavailable) && zero(surge) {
                let why = "cannot be 0 when maxSurge is 0";
                let path = format!("{ROLLING}.maxUnavailable");
                errors.push(FieldError::invalid(path, found("maxUnavailable"), why));
            } else if !zero(unavailable) && !zero(surge) {
                let why = "may not be set when maxUnavailable is non-zero";
                let path = format!("{ROLLING}.maxSurge");
                errors.push(FieldError::invalid(path, found("maxSurge"), why));
            }
        }
        other => errors.push(FieldError::not_supported(
            "spec.updateStrategy.type",
            other,
            &["RollingUpdate", "OnDelete"],
        )),
    }
}

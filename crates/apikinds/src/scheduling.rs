//! `priorityclasses`, `poddisruptionbudgets`, `leases`.

use serde_json::{Value, json};
use steersman_apimachinery::error::{ApiError, FieldError};
use steersman_apimachinery::rules::{Column, Request};

use crate::fields::{at, default, field, flag, name, number, set, text};
use crate::selectors;
use crate::simple::{Simple, age_cell, name_cell};

/// Classes that every cluster has: name, value, what it is for.
pub(crate) const SYSTEM_CLASSES: [(&str, i64, &str); 2] = [
    (
        "system-cluster-critical",
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another \
         node if necessary.",
    ),
    (
        "system-node-critical",
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
];
/// Names of other classes do not begin like theirs.
const SYSTEM_PREFIX: &str = "system-";
/// The largest value of other classes.
const MAX_USER_PRIORITY: i64 = 1_000_000_000;
const AGE: Column = Column::text("Age", "Time since creation");

/// The rules of `priorityclasses`.
pub(crate) static PRIORITY_CLASS: Simple = Simple {
    default: |object| default(object, "preemptionPolicy", "PreemptLowerPriority"),
    create: |object, request| one_default(object, request),
    update: |new, _, request| one_default(new, request),
    validate: validate_class,
    columns: &[
        Column::name(),
        Column::number("Value", "Priority of pods of the class"),
        Column {
            kind: "boolean",
            ..Column::text("Global-Default", "Whether pods that name no class are of it")
        },
        AGE,
        Column::text("PreemptionPolicy", "Whether pods of the class make room for themselves"),
    ],
    cells: |object, now| {
        vec![
            name_cell(object),
            number(object, "/value").unwrap_or(0).into(),
            flag(object, "/globalDefault").into(),
            age_cell(object, now),
            field(object, "preemptionPolicy").into(),
        ]
    },
    ..Simple::NEW
};

fn one_default(class: &mut Value, request: &Request<'_>) -> Result<(), ApiError> {
    if !flag(class, "/globalDefault") {
        return Ok(());
    }
    let classes = request.view.list("scheduling.k8s.io", "priorityclasses", None);
    let mut others = classes.iter().filter(|other| name(other) != name(class));
    match others.find(|other| flag(other, "/globalDefault")) {
        None => Ok(()),
        Some(other) => {
            let why = format!(
                "PriorityClass {} is already marked as default. Only one default can exist",
                name(other)
            );
            Err(ApiError::forbidden(request.resource, name(class), &why))
        }
    }
}

fn validate_class(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let (name, value) = (name(new), number(new, "/value").unwrap_or(0));
    if name.starts_with(SYSTEM_PREFIX) {
        if let Some(why) = why_no_system_class(new, name, value) {
            let why = format!(
                "priority class names with '{SYSTEM_PREFIX}' prefix are reserved for system use \
                 only. error: {why}"
            );
            errors.push(FieldError::forbidden("metadata.name", &why));
        }
    } else if value > MAX_USER_PRIORITY {
        let why =
            format!("maximum allowed value of a user defined priority is {MAX_USER_PRIORITY}");
        errors.push(FieldError::forbidden("value", &why));
    }
    let policy = field(new, "preemptionPolicy");
    let allowed = ["PreemptLowerPriority", "Never"];
    if !allowed.contains(&policy) {
        errors.push(FieldError::not_supported("preemptionPolicy", policy, &allowed));
    }
    if let Some(old) = old {
        if number(old, "/value").unwrap_or(0) != value {
            errors.push(FieldError::forbidden("value", "may not be changed in an update."));
        }
        if field(old, "preemptionPolicy") != policy {
            errors.push(FieldError::invalid("preemptionPolicy", policy, "field is immutable"));
        }
    }
    errors
}

fn why_no_system_class(class: &Value, name: &str, value: i64) -> Option<String> {
    let known = SYSTEM_CLASSES.iter().find(|(known, ..)| *known == name);
    match known {
        None => Some(format!("{name} is not a known system priority class")),
        Some((_, fixed, _)) if *fixed != value => {
            Some(format!("value of {name} PriorityClass must be {fixed}"))
        }
        Some(_) if flag(class, "/globalDefault") => {
            Some(format!("globalDefault of {name} PriorityClass must be false"))
        }
        Some(_) => None,
    }
}

/// The rules of `poddisruptionbudgets`.
pub(crate) static POD_DISRUPTION_BUDGET: Simple = Simple {
    versioned_update: true,
    create: |object, _| {
        set(
            object,
            "status",
            json!({
                "currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0,
            }),
        );
        Ok(())
    },
    validate: |new, _| validate_budget(new),
    columns: &[
        Column::name(),
        Column::text("Min Available", "Pods that have to stay"),
        Column::text("Max Unavailable", "Pods that may go"),
        Column::number("Allowed Disruptions", "Pods that may be evicted now"),
        AGE,
    ],
    cells: |object, now| {
        let amount = |name: &str| match at(object, &format!("/spec/{name}")) {
            None => json!("N/A"),
            Some(Value::String(text)) => json!(text),
            Some(other) => json!(other.to_string()),
        };
        vec![
            name_cell(object),
            amount("minAvailable"),
            amount("maxUnavailable"),
            number(object, "/status/disruptionsAllowed").unwrap_or(0).into(),
            age_cell(object, now),
        ]
    },
    ..Simple::NEW
};

fn validate_budget(budget: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let names = ["minAvailable", "maxUnavailable"];
    if names.iter().all(|name| at(budget, &format!("/spec/{name}")).is_some()) {
        let found = budget.get("spec").cloned().unwrap_or_default();
        let why = "minAvailable and maxUnavailable cannot be both set";
        errors.push(FieldError::invalid("spec", found, why));
    }
    for name in names {
        let Some(found) = at(budget, &format!("/spec/{name}")) else { continue };
        let path = format!("spec.{name}");
        let percent = found.as_str().map(|text| text.strip_suffix('%').map(str::parse::<u32>));
        match percent {
            Some(Some(Ok(0..=100))) => {}
            Some(Some(Ok(_))) => {
                let why = "must not be greater than 100%";
                errors.push(FieldError::invalid(path, found.clone(), why));
            }
            Some(_) => {
                let why = "a valid percent string must be a numeric string followed by an ending \
                           '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";
                errors.push(FieldError::invalid(path, found.clone(), why));
            }
            None if found.as_i64().is_some_and(|count| count < 0) => {
                let why = "must be greater than or equal to 0";
                errors.push(FieldError::invalid(path, found.clone(), why));
            }
            None => {}
        }
    }
    let policy = text(budget, "/spec/unhealthyPodEvictionPolicy");
    let allowed = ["AlwaysAllow", "IfHealthyBudget"];
    if !policy.is_empty() && !allowed.contains(&policy) {
        let path = "spec.unhealthyPodEvictionPolicy";
        errors.push(FieldError::not_supported(path, policy, &allowed));
    }
    if let Some(selector) = at(budget, "/spec/selector") {
        selectors::check(selector, "spec.selector", &mut errors);
    }
    errors
}

/// The rules of `leases`.
pub(crate) static LEASE: Simple = Simple {
    versioned_update: true,
    created_by_update: true,
    generation: false,
    validate: |new, _| {
        let mut errors = Vec::new();
        if let Some(found) = number(new, "/spec/leaseDurationSeconds").filter(|n| *n <= 0) {
            let path = "spec.leaseDurationSeconds";
            errors.push(FieldError::invalid(path, found, "must be greater than 0"));
        }
        if let Some(found) = number(new, "/spec/leaseTransitions").filter(|n| *n < 0) {
            let why = "must be greater than or equal to 0";
            errors.push(FieldError::invalid("spec.leaseTransitions", found, why));
        }
        errors
    },
    columns: &[Column::name(), Column::text("Holder", "Who has the lease"), AGE],
    cells: |object, now| {
        let holder = text(object, "/spec/holderIdentity");
        vec![name_cell(object), holder.into(), age_cell(object, now)]
    },
    ..Simple::NEW
};

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use steersman_apimachinery::rules::{Part, Rules};

    use super::*;

    #[track_caller]
    fn check(rules: &Simple, new: Value, old: Option<Value>, expected: expect_test::Expect) {
        let errors = rules.validate(&new, old.as_ref(), Part::Main);
        let lines: Vec<String> =
            errors.iter().map(|error| format!("{}: {}", error.field, error.body())).collect();
        expected.assert_eq(&lines.join("\n"));
    }

    fn class(name: &str, value: i64) -> Value {
        let mut class = json!({"metadata": {"name": name}, "value": value});
        PRIORITY_CLASS.default(&mut class);
        class
    }

    #[test]
    fn system_classes_are_what_they_are() {
        check(&PRIORITY_CLASS, class("high", MAX_USER_PRIORITY), None, expect![""]);
        check(
            &PRIORITY_CLASS,
            class("high", MAX_USER_PRIORITY + 1),
            None,
            expect![
                "value: Forbidden: maximum allowed value of a user defined priority is 1000000000"
            ],
        );
        check(
            &PRIORITY_CLASS,
            class("system-mine", 1),
            None,
            expect![
                "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only. error: system-mine is not a known system priority class"
            ],
        );
        check(
            &PRIORITY_CLASS,
            class("system-node-critical", 1),
            None,
            expect![
                "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only. error: value of system-node-critical PriorityClass must be 2000001000"
            ],
        );
        for (name, value, _) in SYSTEM_CLASSES {
            check(&PRIORITY_CLASS, class(name, value), None, expect![""]);
        }
    }

    #[test]
    fn a_class_keeps_its_value() {
        check(
            &PRIORITY_CLASS,
            class("a", 2),
            Some(class("a", 1)),
            expect!["value: Forbidden: may not be changed in an update."],
        );
    }

    #[test]
    fn budgets_say_one_thing() {
        check(
            &POD_DISRUPTION_BUDGET,
            json!({"spec": {"minAvailable": 1, "maxUnavailable": "x"}}),
            None,
            expect![[r#"
                spec: Invalid value: {"maxUnavailable":"x","minAvailable":1}: minAvailable and maxUnavailable cannot be both set
                spec.maxUnavailable: Invalid value: "x": a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"#]],
        );
        let half = json!({"spec": {"minAvailable": "50%", "selector": {}}});
        check(&POD_DISRUPTION_BUDGET, half, None, expect![""]);
    }
}

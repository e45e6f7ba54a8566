//! `resource.k8s.io`: devices and claims to them.

use serde_json::{Value, json};
use steersman_apimachinery::error::FieldError;
use steersman_apimachinery::rules::Column;

use crate::fields::{at, default, field, items, items_mut, number, object_at, same, set, text};
use crate::simple::{Simple, age_cell, name_cell};
use crate::syntax::{dns_label, report};

const AGE: Column = Column::text("Age", "Time since creation");

/// The rules of `resourceclaims`.
pub(crate) static RESOURCE_CLAIM: Simple = Simple {
    generation: false,
    default: |object| {
        if let Some(spec) = object_at(object, "/spec") {
            default_claim(spec);
        }
    },
    create: |object, _| {
        set(object, "status", json!({}));
        Ok(())
    },
    validate: |new, old| {
        let mut errors = check_claim(new, "spec");
        check_frozen_spec(new, old, &mut errors);
        errors
    },
    columns: &[Column::name(), Column::text("State", "Whether the claim has devices"), AGE],
    cells: |object, now| vec![name_cell(object), state(object).into(), age_cell(object, now)],
    ..Simple::NEW
};

/// The rules of `resourceclaimtemplates`.
pub(crate) static RESOURCE_CLAIM_TEMPLATE: Simple = Simple {
    generation: false,
    default: |object| {
        if let Some(spec) = object_at(object, "/spec/spec") {
            default_claim(spec);
        }
    },
    validate: |new, old| {
        let mut errors = check_claim(new, "spec.spec");
        check_frozen_spec(new, old, &mut errors);
        errors
    },
    ..Simple::NEW
};

/// The rules of `resourceslices`.
pub(crate) static RESOURCE_SLICE: Simple = Simple {
    validate: |new, old| {
        let mut errors = Vec::new();
        for path in ["driver", "pool/name"] {
            if text(new, &format!("/spec/{path}")).is_empty() {
                let path = format!("spec.{}", path.replace('/', "."));
                errors.push(FieldError::required(path, ""));
            }
        }
        let Some(old) = old else { return errors };
        for name in ["driver", "nodeName"] {
            let pointer = format!("/spec/{name}");
            if !same(at(new, &pointer), at(old, &pointer)) {
                let path = format!("spec.{name}");
                let found = at(new, &pointer).cloned().unwrap_or_default();
                errors.push(FieldError::invalid(path, found, "field is immutable"));
            }
        }
        errors
    },
    selectable: &["spec.driver", "spec.nodeName"],
    columns: &[
        Column::name(),
        Column::text("Node", "The node of the devices"),
        Column::text("Driver", "Their driver"),
        Column::text("Pool", "The pool they belong to"),
        AGE,
    ],
    cells: |object, now| {
        let node = match text(object, "/spec/nodeName") {
            "" => "<unset>",
            node => node,
        };
        vec![
            name_cell(object),
            node.into(),
            text(object, "/spec/driver").into(),
            text(object, "/spec/pool/name").into(),
            age_cell(object, now),
        ]
    },
    ..Simple::NEW
};

fn default_claim(spec: &mut Value) {
    for request in items_mut(spec, "/devices/requests") {
        if let Some(exactly) = object_at(request, "/exactly") {
            default_request(exactly);
        }
        items_mut(request, "/firstAvailable").iter_mut().for_each(default_request);
    }
}

fn default_request(request: &mut Value) {
    default(request, "allocationMode", "ExactCount");
    if field(request, "allocationMode") == "ExactCount" {
        let none = at(request, "/count").is_none_or(|count| count == 0);
        if none {
            set(request, "count", 1);
        }
    }
    for toleration in items_mut(request, "/tolerations") {
        default(toleration, "operator", "Equal");
    }
}

fn check_claim(object: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let pointer = format!("/{}/devices/requests", path.replace('.', "/"));
    let requests = items(object, &pointer);
    for (i, request) in requests.iter().enumerate() {
        let path = format!("{path}.devices.requests[{i}]");
        let name = field(request, "name");
        if name.is_empty() {
            errors.push(FieldError::required(format!("{path}.name"), ""));
        } else {
            report(&mut errors, &format!("{path}.name"), name, dns_label(name));
            if requests[..i].iter().any(|other| field(other, "name") == name) {
                errors.push(FieldError::duplicate(format!("{path}.name"), name));
            }
        }
        let alternatives = !items(request, "/firstAvailable").is_empty();
        match (at(request, "/exactly"), alternatives) {
            (None, false) => {
                let why = "exactly one of `exactly` or `firstAvailable` is required";
                errors.push(FieldError::required(path, why));
            }
            (Some(_), true) => {
                let why = "exactly one of `exactly` or `firstAvailable` is required, but multiple \
                           fields are set";
                errors.push(FieldError::invalid(path, Value::Null, why));
            }
            (Some(exactly), false) => {
                check_request(exactly, &format!("{path}.exactly"), &mut errors)
            }
            (None, true) => {
                for (n, one) in items(request, "/firstAvailable").iter().enumerate() {
                    check_request(one, &format!("{path}.firstAvailable[{n}]"), &mut errors);
                }
            }
        }
    }
    errors
}

fn check_request(request: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if field(request, "deviceClassName").is_empty() {
        errors.push(FieldError::required(format!("{path}.deviceClassName"), ""));
    }
    let mode = field(request, "allocationMode");
    if !matches!(mode, "All" | "ExactCount") {
        let path = format!("{path}.allocationMode");
        errors.push(FieldError::not_supported(path, mode, &["All", "ExactCount"]));
    }
    if number(request, "/count").is_some_and(|count| count < 0) {
        let found = request["count"].clone();
        let why = "must be greater than zero";
        errors.push(FieldError::invalid(format!("{path}.count"), found, why));
    }
}

fn check_frozen_spec(new: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    if old.is_some_and(|old| !same(old.get("spec"), new.get("spec"))) {
        let found = new.get("spec").cloned().unwrap_or_default();
        errors.push(FieldError::invalid("spec", found, "field is immutable"));
    }
}

fn state(claim: &Value) -> String {
    let mut states = Vec::new();
    if at(claim, "/metadata/deletionTimestamp").is_some() {
        states.push("deleted");
    }
    if at(claim, "/status/allocation").is_none() {
        if at(claim, "/metadata/deletionTimestamp").is_none() {
            states.push("pending");
        }
    } else {
        states.push("allocated");
        let reserved = !items(claim, "/status/reservedFor").is_empty();
        states.push(if reserved { "reserved" } else { "" });
    }
    states.retain(|state| !state.is_empty());
    states.join(",")
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use steersman_apimachinery::rules::{Part, Rules};

    use super::*;
    use crate::cluster::lines;

    #[test]
    fn one_device_is_asked_for_unless_said_else() {
        let mut claim = json!({"spec": {"devices": {"requests": [
            {"name": "a", "exactly": {"deviceClassName": "gpu"}},
            {"name": "b", "firstAvailable": [
                {"deviceClassName": "gpu", "allocationMode": "All"},
                {"deviceClassName": "gpu", "count": 3, "tolerations": [{"key": "k"}]},
            ]},
        ]}}});
        RESOURCE_CLAIM.default(&mut claim);
        expect![[r#"[{"exactly":{"allocationMode":"ExactCount","count":1,"deviceClassName":"gpu"},"name":"a"},{"firstAvailable":[{"allocationMode":"All","deviceClassName":"gpu"},{"allocationMode":"ExactCount","count":3,"deviceClassName":"gpu","tolerations":[{"key":"k","operator":"Equal"}]}],"name":"b"}]"#]].assert_eq(&claim["spec"]["devices"]["requests"].to_string());
        assert_eq!(RESOURCE_CLAIM.validate(&claim, None, Part::Main), []);
    }

    #[test]
    fn requests_say_one_thing_and_stay() {
        let claim = json!({"spec": {"devices": {"requests": [
            {"name": "a"},
            {"name": "a", "exactly": {"allocationMode": "Some"}, "firstAvailable": [{}]},
            {"name": "B", "exactly": {"allocationMode": "Some"}},
        ]}}});
        let old = json!({"spec": {}});
        expect![[r#"
            spec.devices.requests[0]: Required value: exactly one of `exactly` or `firstAvailable` is required
            spec.devices.requests[1].name: Duplicate value: "a"
            spec.devices.requests[1]: Invalid value: null: exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set
            spec.devices.requests[2].name: Invalid value: "B": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')
            spec.devices.requests[2].exactly.deviceClassName: Required value
            spec.devices.requests[2].exactly.allocationMode: Unsupported value: "Some": supported values: "All", "ExactCount"
            spec: Invalid value: {"devices":{"requests":[{"name":"a"},{"exactly":{"allocationMode":"Some"},"firstAvailable":[{}],"name":"a"},{"exactly":{"allocationMode":"Some"},"name":"B"}]}}: field is immutable"#]].assert_eq(&lines(&RESOURCE_CLAIM.validate(&claim, Some(&old), Part::Main)));
    }

    #[test]
    fn rows_say_whether_claims_have_devices() {
        let cases = [
            (json!({}), "pending"),
            (json!({"allocation": {}}), "allocated"),
            (json!({"allocation": {}, "reservedFor": [{}]}), "allocated,reserved"),
        ];
        for (status, expected) in cases {
            assert_eq!(state(&json!({"status": status})), expected);
        }
        let going = json!({"metadata": {"deletionTimestamp": "x"}, "status": {"allocation": {}}});
        assert_eq!(state(&going), "deleted,allocated");
    }
}

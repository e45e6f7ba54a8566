//! Kinds that hold data for others: `configmaps`, `secrets`,
//! `serviceaccounts`, `resourcequotas`, `controllerrevisions`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use steersman_apimachinery::error::{FieldError, FieldErrorKind};
use steersman_apimachinery::rules::Column;

use crate::fields::{
    at, child, default, entries, field, flag, items, number, remove, same, set, text,
};
use crate::simple::{Simple, age_cell, name_cell};

const AGE: Column = Column::text("Age", "Time since creation");

/// The rules of `configmaps`.
pub(crate) static CONFIG_MAP: Simple = Simple {
    generation: false,
    validate: |new, old| {
        let mut errors = check_data(new, &["data", "binaryData"]);
        errors.extend(frozen(new, old, &["data", "binaryData"]));
        errors
    },
    columns: &[Column::name(), Column::text("Data", "How many entries"), AGE],
    cells: |object, now| {
        let n = entries(object, "/data").count() + entries(object, "/binaryData").count();
        vec![name_cell(object), n.to_string().into(), age_cell(object, now)]
    },
    ..Simple::NEW
};

/// The rules of `secrets`.
pub(crate) static SECRET: Simple = Simple {
    generation: false,
    default: |object| {
        default(object, "type", "Opaque");
        // What is written in plain text is kept as the rest is.
        let Some(Value::Object(plain)) = remove(object, "stringData") else { return };
        let Some(data) = child(object, "data") else { return };
        for (key, value) in plain {
            set(data, &key, STANDARD.encode(value.as_str().unwrap_or_default()));
        }
    },
    validate: |new, old| {
        let mut errors = check_data(new, &["data"]);
        errors.extend(frozen(new, old, &["data"]));
        if let Some(old) = old
            && field(old, "type") != field(new, "type")
        {
            errors.push(FieldError::invalid("type", field(new, "type"), "field is immutable"));
        }
        errors
    },
    selectable: &["type"],
    columns: &[
        Column::name(),
        Column::text("Type", "What the secret is for"),
        Column::text("Data", "How many entries"),
        AGE,
    ],
    cells: |object, now| {
        vec![
            name_cell(object),
            field(object, "type").into(),
            entries(object, "/data").count().to_string().into(),
            age_cell(object, now),
        ]
    },
    ..Simple::NEW
};

/// The rules of `serviceaccounts`.
pub(crate) static SERVICE_ACCOUNT: Simple = Simple {
    versioned_update: true,
    generation: false,
    columns: &[Column::name(), Column::text("Secrets", "How many secrets it may use"), AGE],
    cells: |object, now| {
        let n = items(object, "/secrets").len();
        vec![name_cell(object), n.to_string().into(), age_cell(object, now)]
    },
    ..Simple::NEW
};

/// The rules of `resourcequotas`. They are kept, not enforced.
pub(crate) static RESOURCE_QUOTA: Simple = Simple {
    generation: false,
    create: |object, _| {
        set(object, "status", json!({}));
        Ok(())
    },
    columns: &[
        Column::name(),
        Column::text("Request", "Requests and counts in use, and their bounds"),
        Column::text("Limit", "Limits in use, and their bounds"),
        AGE,
    ],
    cells: |object, now| {
        let used = |name: &str| match at(object, "/status/used").and_then(|used| used.get(name)) {
            Some(Value::String(text)) => text.clone(),
            _ => "0".to_owned(),
        };
        let mut requests = Vec::new();
        let mut limits = Vec::new();
        for (name, hard) in entries(object, "/status/hard") {
            let hard = hard.as_str().unwrap_or_default();
            let list = if name.starts_with("limits") { &mut limits } else { &mut requests };
            list.push(format!("{name}: {}/{hard}", used(name)));
        }
        vec![
            name_cell(object),
            requests.join(", ").into(),
            limits.join(", ").into(),
            age_cell(object, now),
        ]
    },
    ..Simple::NEW
};

/// The rules of `controllerrevisions`.
pub(crate) static CONTROLLER_REVISION: Simple = Simple {
    generation: false,
    validate: |new, old| {
        let mut errors = Vec::new();
        if number(new, "/revision").is_some_and(|revision| revision < 0) {
            let why = "must be greater than or equal to 0";
            errors.push(FieldError::invalid("revision", new["revision"].clone(), why));
        }
        if old.is_some_and(|old| !same(old.get("data"), new.get("data"))) {
            let data = new.get("data").cloned().unwrap_or_default();
            errors.push(FieldError::invalid("data", data, "field is immutable"));
        }
        errors
    },
    columns: &[
        Column::name(),
        Column::text("Controller", "What the revision belongs to"),
        Column::text("Revision", "Its number"),
        AGE,
    ],
    cells: |object, now| {
        let mut owners = items(object, "/metadata/ownerReferences").iter();
        let owner = owners.find(|owner| flag(owner, "/controller"));
        vec![
            name_cell(object),
            owner.map_or_else(|| json!("<none>"), |owner| controller(owner).into()),
            number(object, "/revision").unwrap_or(0).into(),
            age_cell(object, now),
        ]
    },
    ..Simple::NEW
};

/// `statefulset.apps/web`.
fn controller(owner: &Value) -> String {
    let kind = field(owner, "kind").to_lowercase();
    let name = field(owner, "name");
    match text(owner, "/apiVersion").split_once('/') {
        Some((group, _)) => format!("{kind}.{group}/{name}"),
        None => format!("{kind}/{name}"),
    }
}

/// As much data fits into one object, in bytes.
const MOST_DATA: usize = 1024 * 1024;
/// The longest key.
const LONGEST_KEY: usize = 253;
const KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";

/// What is wrong with data: keys have to be names of files, and all of it
/// together has to fit.
fn check_data(object: &Value, names: &[&str]) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut size = 0;
    for name in names {
        for (key, value) in entries(object, &format!("/{name}")) {
            let path = format!("{name}[{key}]");
            let is_taken = names.iter().take_while(|earlier| *earlier != name).any(|earlier| {
                at(object, &format!("/{earlier}")).is_some_and(|data| data.get(key).is_some())
            });
            if is_taken {
                errors.push(FieldError::invalid(
                    &path,
                    key.as_str(),
                    "duplicate of key present in data",
                ));
            }
            for why in key_errors(key) {
                errors.push(FieldError::invalid(&path, key.as_str(), &why));
            }
            let length = value.as_str().map_or(0, str::len);
            // Bytes are written as base64.
            let is_text = *name == "data" && names.len() > 1;
            size += if is_text { length } else { length / 4 * 3 };
        }
    }
    if size > MOST_DATA {
        errors.push(FieldError {
            field: if names.len() > 1 { "[]".to_owned() } else { "data".to_owned() },
            kind: FieldErrorKind::TooLong,
            found: None,
            detail: format!("may not be more than {MOST_DATA} bytes"),
        });
    }
    errors
}

fn key_errors(key: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if key.len() > LONGEST_KEY {
        errors.push(format!("must be no more than {LONGEST_KEY} characters"));
    }
    let is_fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if key.is_empty() || !key.chars().all(is_fine) {
        errors.push(KEY.to_owned());
    }
    if key == "." || key == ".." {
        errors.push(format!("must not be '{key}'"));
    } else if key.starts_with("..") {
        errors.push("must not start with '..'".to_owned());
    }
    errors
}

/// Data that its author declared immutable stays as it is.
fn frozen(new: &Value, old: Option<&Value>, names: &[&str]) -> Vec<FieldError> {
    let Some(old) = old.filter(|old| flag(old, "/immutable")) else { return Vec::new() };
    let why = "field is immutable when `immutable` is set";
    let mut errors = Vec::new();
    if !flag(new, "/immutable") {
        errors.push(FieldError::forbidden("immutable", why));
    }
    for name in names {
        if !same(old.get(*name), new.get(*name)) {
            errors.push(FieldError::forbidden(*name, why));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use steersman_apimachinery::rules::{Part, Rules};

    use super::*;

    #[test]
    fn plain_text_of_secrets_is_encoded_and_wins() {
        let mut secret = json!({
            "data": {"a": "b2xk", "b": "a2VlcA=="}, "stringData": {"a": "new"},
        });
        SECRET.default(&mut secret);
        let expected = json!({"type": "Opaque", "data": {"a": "bmV3", "b": "a2VlcA=="}});
        assert_eq!(secret, expected);
    }

    #[test]
    fn data_has_names_of_files_and_fits() {
        let causes = |map: Value| -> Vec<String> {
            let errors = CONFIG_MAP.validate(&map, None, Part::Main);
            errors.into_iter().map(|error| format!("{}: {}", error.field, error.detail)).collect()
        };
        assert!(causes(json!({"data": {"a.b-c_D": ""}})).is_empty());
        assert!(causes(json!({"data": {"a": "x".repeat(MOST_DATA)}})).is_empty());
        let long = causes(json!({"data": {"a": "x".repeat(MOST_DATA + 1)}}));
        assert_eq!(long, ["[]: may not be more than 1048576 bytes"]);
        for bad in ["", "a b", "..", ".", "ä", "a/b", &"x".repeat(254)] {
            assert!(!causes(json!({"data": {bad: ""}})).is_empty(), "{bad}");
        }
        let twice = causes(json!({"data": {"a": ""}, "binaryData": {"a": ""}}));
        assert_eq!(twice, ["binaryData[a]: duplicate of key present in data"]);
    }

    #[test]
    fn immutable_data_stays() {
        let old = json!({"data": {"a": "1"}, "immutable": true});
        let fields = |new: &Value| -> Vec<String> {
            let errors = CONFIG_MAP.validate(new, Some(&old), Part::Main);
            errors.into_iter().map(|error| error.field).collect()
        };
        assert!(fields(&old).is_empty());
        assert_eq!(fields(&json!({"data": {"a": "2"}, "immutable": true})), ["data"]);
        assert_eq!(fields(&json!({"data": {"a": "1"}})), ["immutable"]);
    }
}

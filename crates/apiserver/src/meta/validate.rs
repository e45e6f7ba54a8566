//! Validation of `metadata`.

use serde_json::{Map, Value};
use steersman_apimachinery::error::FieldError;
use steersman_apimachinery::resource::Resource;

use super::names::{is_subdomain, name_errors, subdomain_errors};
use super::{finalizers, is_terminating, name, namespace, owner_references};

/// All annotations together, in bytes.
const ANNOTATIONS_LIMIT: usize = 256 * 1024;

const NAME_PART: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// Finalizers that need no prefix.
const STANDARD_FINALIZERS: [&str; 3] = ["kubernetes", "orphan", "foregroundDeletion"];

/// What is wrong with a new object's metadata.
pub(crate) fn check_create(resource: &Resource, object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let found = name(object);
    if found.is_empty() {
        errors.push(FieldError::required("metadata.name", "name or generateName is required"));
    } else {
        for why in name_errors(resource, found) {
            errors.push(FieldError::invalid("metadata.name", found, &why));
        }
    }
    check_parts(object, &mut errors);
    for (index, finalizer) in finalizers(object).into_iter().enumerate() {
        if !finalizer.contains('/') && !STANDARD_FINALIZERS.contains(&finalizer) {
            let path = format!("metadata.finalizers[{index}]");
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            errors.push(FieldError::invalid(path, finalizer, why));
        }
    }
    errors
}

/// What is wrong with a changed object's metadata.
pub(crate) fn check_update(new: &Value, old: &Value) -> Vec<FieldError> {
    const IMMUTABLE: &str = "field is immutable";
    let mut errors = Vec::new();
    for (field, new, old) in [
        ("metadata.name", name(new), name(old)),
        ("metadata.namespace", namespace(new), namespace(old)),
    ] {
        if new != old {
            errors.push(FieldError::invalid(field, new, IMMUTABLE));
        }
    }
    if is_terminating(old) {
        let before = finalizers(old);
        let added: Vec<&str> =
            finalizers(new).into_iter().filter(|name| !before.contains(name)).collect();
        if !added.is_empty() {
            let list: Vec<String> = added.iter().map(|name| format!("{name:?}")).collect();
            let why = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                list.join(", ")
            );
            errors.push(FieldError::forbidden("metadata.finalizers", &why));
        }
    }
    check_parts(new, &mut errors);
    errors
}

fn check_parts(object: &Value, errors: &mut Vec<FieldError>) {
    let map = |field: &str| object.get("metadata")?.get(field)?.as_object();
    if let Some(labels) = map("labels") {
        check_labels("metadata.labels", labels, errors);
    }
    if let Some(annotations) = map("annotations") {
        check_annotations(annotations, errors);
    }
    for finalizer in finalizers(object) {
        for why in qualified_name_errors(finalizer) {
            errors.push(FieldError::invalid("metadata.finalizers", finalizer, &why));
        }
    }
    check_owners(owner_references(object), errors);
}

fn check_labels(path: &str, labels: &Map<String, Value>, errors: &mut Vec<FieldError>) {
    for (key, value) in labels {
        for why in qualified_name_errors(key) {
            errors.push(FieldError::invalid(path, key.as_str(), &why));
        }
        let value = value.as_str().unwrap_or("");
        if value.len() > 63 {
            errors.push(FieldError::invalid(path, value, "must be no more than 63 bytes"));
        }
        if !value.is_empty() && !is_name_part(value) {
            errors.push(FieldError::invalid(path, value, LABEL_VALUE));
        }
    }
}

fn check_annotations(annotations: &Map<String, Value>, errors: &mut Vec<FieldError>) {
    let mut size = 0;
    for (key, value) in annotations {
        for why in qualified_name_errors(&key.to_lowercase()) {
            errors.push(FieldError::invalid("metadata.annotations", key.as_str(), &why));
        }
        size += key.len() + value.as_str().map_or(0, str::len);
    }
    if size > ANNOTATIONS_LIMIT {
        errors.push(FieldError {
            field: "metadata.annotations".to_owned(),
            kind: steersman_apimachinery::error::FieldErrorKind::TooLong,
            found: None,
            detail: format!("may not be more than {ANNOTATIONS_LIMIT} bytes"),
        });
    }
}

fn check_owners(owners: &[Value], errors: &mut Vec<FieldError>) {
    let mut controllers = 0;
    for (index, owner) in owners.iter().enumerate() {
        for (field, empty) in [
            ("apiVersion", "version must not be empty"),
            ("kind", "must not be empty"),
            ("name", "must not be empty"),
            ("uid", "must not be empty"),
        ] {
            if owner.get(field).and_then(Value::as_str).unwrap_or("").is_empty() {
                let path = format!("metadata.ownerReferences[{index}].{field}");
                errors.push(FieldError::invalid(path, "", empty));
            }
        }
        controllers += usize::from(owner.get("controller") == Some(&Value::Bool(true)));
    }
    if controllers > 1 {
        errors.push(FieldError::invalid(
            "metadata.ownerReferences",
            Value::from(owners),
            "Only one reference can have Controller set to true",
        ));
    }
}

/// What is wrong with `prefix/name` or `name`, as labels and finalizers use it.
fn qualified_name_errors(text: &str) -> Vec<String> {
    let (prefix, name) = match text.split_once('/') {
        None => (None, text),
        Some((prefix, name)) => (Some(prefix), name),
    };
    let mut errors = Vec::new();
    match prefix {
        Some("") => errors.push("prefix part must be non-empty".to_owned()),
        Some(prefix) if !is_subdomain(prefix) || prefix.len() > 253 => {
            let reasons = subdomain_errors(prefix);
            errors.extend(reasons.into_iter().map(|why| format!("prefix part {why}")));
        }
        _ => {}
    }
    if name.is_empty() {
        errors.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        errors.push("name part must be no more than 63 bytes".to_owned());
    }
    if !is_name_part(name) {
        errors.push(NAME_PART.to_owned());
    }
    errors
}

fn is_name_part(text: &str) -> bool {
    let inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.ends_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(inside)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{check_parts, check_update};

    fn fields(metadata: Value) -> Vec<String> {
        let mut errors = Vec::new();
        check_parts(&json!({ "metadata": metadata }), &mut errors);
        errors.into_iter().map(|error| error.field).collect()
    }

    #[test]
    fn syntax_of_labels_annotations_and_finalizers() {
        let good = json!({
            "labels": { "app": "", "a.b/c_d": "V-1.x", "Up": "9" },
            "annotations": { "Example.com/any": "anything at all ()" },
            "finalizers": ["example.com/one", "kubernetes"],
        });
        assert!(fields(good).is_empty());
        for (bad, field) in [
            (json!({ "labels": { "": "" } }), "metadata.labels"),
            (json!({ "labels": { "/a": "" } }), "metadata.labels"),
            (json!({ "labels": { "A/a": "" } }), "metadata.labels"),
            (json!({ "labels": { "a": "-" } }), "metadata.labels"),
            (json!({ "labels": { "a": "x".repeat(64) } }), "metadata.labels"),
            (json!({ "annotations": { "a b": "" } }), "metadata.annotations"),
            (json!({ "annotations": { "a": "x".repeat(300_000) } }), "metadata.annotations"),
            (json!({ "finalizers": ["a b"] }), "metadata.finalizers"),
        ] {
            assert!(fields(bad.clone()).iter().any(|found| found == field), "{bad}");
        }
    }

    #[test]
    fn two_controllers_are_one_too_many() {
        let owner = json!({
            "apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u", "controller": true,
        });
        assert!(fields(json!({ "ownerReferences": [owner] })).is_empty());
        assert_eq!(fields(json!({ "ownerReferences": [owner, owner] })).len(), 1);
        assert_eq!(fields(json!({ "ownerReferences": [{}] })).len(), 4);
    }

    #[test]
    fn a_terminating_object_takes_no_new_finalizer() {
        let old = json!({ "metadata": { "deletionTimestamp": "x", "finalizers": ["a"] } });
        let fewer = json!({ "metadata": { "finalizers": [] } });
        let more = json!({ "metadata": { "finalizers": ["a", "b"] } });
        assert!(check_update(&fewer, &old).is_empty());
        assert_eq!(check_update(&more, &old).len(), 1);
        assert!(check_update(&more, &json!({ "metadata": {} })).is_empty());
    }
}

//! `metadata`: reading it, and the rules that hold for every kind's.

mod names;
mod validate;

use serde_json::Value;

pub(crate) use self::names::generated_name;
pub(crate) use self::validate::{check_create, check_update};

/// A text field of `metadata`, empty if unset.
pub(crate) fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object.get("metadata").and_then(|meta| meta.get(field)).and_then(Value::as_str).unwrap_or("")
}

/// `metadata.name`.
pub(crate) fn name(object: &Value) -> &str {
    text(object, "name")
}

/// `metadata.namespace`.
pub(crate) fn namespace(object: &Value) -> &str {
    text(object, "namespace")
}

/// `metadata.uid`.
pub(crate) fn uid(object: &Value) -> &str {
    text(object, "uid")
}

/// `metadata.labels`.
pub(crate) fn labels(object: &Value) -> Option<&Value> {
    object.get("metadata").and_then(|meta| meta.get("labels"))
}

/// `metadata.finalizers`.
pub(crate) fn finalizers(object: &Value) -> Vec<&str> {
    let list = object.pointer("/metadata/finalizers").and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Whether somebody has asked for its deletion.
pub(crate) fn is_terminating(object: &Value) -> bool {
    !text(object, "deletionTimestamp").is_empty()
}

/// `metadata.ownerReferences`.
pub(crate) fn owner_references(object: &Value) -> &[Value] {
    let list = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    list.map_or(&[], Vec::as_slice)
}

/// Sets a field of `metadata`; null removes it.
pub(crate) fn set(object: &mut Value, field: &str, value: Value) {
    if let Some(object) = object.as_object_mut() {
        let metadata =
            object.entry("metadata").or_insert_with(|| Value::Object(Default::default()));
        if let Some(metadata) = metadata.as_object_mut() {
            if value.is_null() {
                metadata.remove(field);
            } else {
                metadata.insert(field.to_owned(), value);
            }
        }
    }
}

/// Takes over a field of another object's `metadata`, or its absence.
pub(crate) fn keep(object: &mut Value, other: &Value, field: &str) {
    let value = other.get("metadata").and_then(|meta| meta.get(field)).cloned();
    set(object, field, value.unwrap_or_default());
}

/// Sets the finalizers; no finalizer removes the list.
pub(crate) fn set_finalizers(object: &mut Value, finalizers: &[String]) {
    let value = if finalizers.is_empty() { Value::Null } else { Value::from(finalizers) };
    set(object, "finalizers", value);
}

/// Whether it says who owns its fields.
pub(crate) fn has_managed_fields(object: &Value) -> bool {
    let list = object.pointer("/metadata/managedFields").and_then(Value::as_array);
    list.is_some_and(|list| !list.is_empty())
}

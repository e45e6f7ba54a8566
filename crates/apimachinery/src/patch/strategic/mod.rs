//! Strategic merge patch: a merge patch that knows the type. Lists merge by
//! key, and directives in the patch say what else is wanted:
//!
//! - `$patch: replace` and `$patch: delete`, in objects and in list entries,
//! - `$retainKeys: [..]`: fields of the object that are not named go,
//! - `$deleteFromPrimitiveList/tags: [..]`: values that go from `tags`,
//! - `$setElementOrder/ports: [..]`: the order in which entries end up.

mod list;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::error::ApiError;
use crate::schema::{At, Schema};

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM: &str = "$deleteFromPrimitiveList/";
const SET_ORDER: &str = "$setElementOrder/";

/// The document with the patch. `type_name` is the document's type in the
/// schema; without one, lists are replaced.
///
/// # Errors
/// 400 when patch or document is no object or a directive has a wrong form; 422
/// or 500, as the reference has it, when lists cannot be merged.
pub fn apply(
    schema: &Schema,
    type_name: &str,
    document: &Value,
    patch: &Value,
) -> Result<Value, ApiError> {
    match (document, patch) {
        (Value::Object(original), Value::Object(patch)) => {
            let at = schema.get_or_any(type_name);
            Ok(Value::Object(merge_object(at, original.clone(), patch)?))
        }
        _ => Err(ApiError::bad_request("invalid JSON document")),
    }
}

fn merge_object(
    at: At<'_>,
    mut original: Map<String, Value>,
    patch: &Map<String, Value>,
) -> Result<Map<String, Value>, ApiError> {
    match patch.get(PATCH).map(|directive| (directive, directive.as_str())) {
        None => {}
        Some((_, Some("replace"))) => return Ok(strip_object(patch)),
        Some((_, Some("delete"))) => return Ok(Map::new()),
        Some((directive, _)) => return Err(unknown_directive(directive, patch)),
    }
    if let Some(keys) = patch.get(RETAIN_KEYS) {
        retain_keys(&mut original, patch, keys)?;
    }
    let mut merged_with_order = Vec::new();
    for (key, order) in patch {
        let Some(name) = key.strip_prefix(SET_ORDER) else { continue };
        if merge_in_order(at, &mut original, patch, name, order)? {
            merged_with_order.push(name);
        }
    }
    for (key, value) in patch {
        if key.starts_with(SET_ORDER)
            || key == RETAIN_KEYS
            || merged_with_order.contains(&key.as_str())
        {
            continue;
        }
        match key.strip_prefix(DELETE_FROM) {
            Some(name) => delete_from(&mut original, name, value)?,
            None => merge_field(at, &mut original, key, value)?,
        }
    }
    Ok(original)
}

/// Merges a list whose final order the patch gives. Says whether the patch's
/// entries for the list are dealt with.
fn merge_in_order(
    at: At<'_>,
    original: &mut Map<String, Value>,
    patch: &Map<String, Value>,
    name: &str,
    order: &Value,
) -> Result<bool, ApiError> {
    let Value::Array(order) = order else { return Err(bad_order()) };
    let field = at.field(name);
    let strategy = field.map(At::patch_strategy);
    let key = strategy.and_then(|strategy| strategy.key.as_deref());
    let old = original.get(name).map(|list| list.as_array().ok_or_else(bad_order)).transpose()?;
    let new = patch.get(name);
    if new.is_some_and(Value::is_null) {
        return Ok(false);
    }
    let new = new.map(|list| list.as_array().ok_or_else(bad_order)).transpose()?;
    if let Some(new) = new {
        list::check_order(new, order, key)?;
    }
    let merged = match (old, new) {
        (None, None) => return Ok(false),
        (Some(old), None) => old.clone(),
        (None, Some(new)) => strip_list(new),
        (Some(old), Some(new)) => match field {
            Some(at) if at.patch_strategy().merge => list::merge(at, old, new)?,
            _ => strip_list(new),
        },
    };
    let old = old.map(Vec::as_slice).unwrap_or_default();
    let ordered = list::in_order(merged, order, old, key)?;
    original.insert(name.to_owned(), Value::Array(ordered));
    Ok(true)
}

fn merge_field(
    at: At<'_>,
    original: &mut Map<String, Value>,
    name: &str,
    patch: &Value,
) -> Result<(), ApiError> {
    if patch.is_null() {
        original.remove(name);
        return Ok(());
    }
    let field = at.field(name);
    let merged = match (original.remove(name), patch, field) {
        (Some(Value::Object(old)), Value::Object(new), Some(at))
            if !at.patch_strategy().replace =>
        {
            Value::Object(merge_object(at, old, new)?)
        }
        (Some(Value::Array(old)), Value::Array(new), Some(at)) if at.patch_strategy().merge => {
            Value::Array(list::merge(at, &old, new)?)
        }
        (_, patch, _) => strip(patch),
    };
    original.insert(name.to_owned(), merged);
    Ok(())
}

/// Removes values from a list of values, if the list is there.
fn delete_from(
    original: &mut Map<String, Value>,
    name: &str,
    values: &Value,
) -> Result<(), ApiError> {
    let Value::Array(values) = values else {
        return Err(ApiError::bad_request("invalid patch format of primitive list"));
    };
    if let Some(Value::Array(list)) = original.get_mut(name) {
        let gone: BTreeSet<String> = values.iter().map(Value::to_string).collect();
        list.retain(|item| !gone.contains(&item.to_string()));
    }
    Ok(())
}

fn retain_keys(
    original: &mut Map<String, Value>,
    patch: &Map<String, Value>,
    keys: &Value,
) -> Result<(), ApiError> {
    let bad = || ApiError::bad_request("invalid patch format of retainKeys");
    let keys = keys.as_array().ok_or_else(bad)?;
    let retained = |name: &String| keys.iter().any(|key| key.as_str() == Some(name));
    let mut set_by_patch = patch.iter().filter(|(name, value)| {
        !value.is_null()
            && *name != RETAIN_KEYS
            && !name.starts_with(DELETE_FROM)
            && !name.starts_with(SET_ORDER)
    });
    if !set_by_patch.all(|(name, _)| retained(name)) {
        return Err(bad());
    }
    original.retain(|name, _| retained(name));
    Ok(())
}

/// A part of the patch that has no counterpart: its content without
/// directives, deletions and nulls.
fn strip(patch: &Value) -> Value {
    match patch {
        Value::Object(fields) => Value::Object(strip_object(fields)),
        Value::Array(items) => Value::Array(strip_list(items)),
        other => other.clone(),
    }
}

fn strip_object(fields: &Map<String, Value>) -> Map<String, Value> {
    fields
        .iter()
        .filter(|(name, value)| !value.is_null() && !is_directive(name))
        .map(|(name, value)| (name.clone(), strip(value)))
        .collect()
}

fn strip_list(items: &[Value]) -> Vec<Value> {
    items
        .iter()
        .filter(|item| !matches!(directive(item), Some("delete" | "replace")))
        .map(strip)
        .collect()
}

fn directive(item: &Value) -> Option<&str> {
    item.get(PATCH)?.as_str()
}

fn is_directive(name: &str) -> bool {
    name == PATCH
        || name == RETAIN_KEYS
        || name.starts_with(DELETE_FROM)
        || name.starts_with(SET_ORDER)
}

fn bad_order() -> ApiError {
    ApiError::bad_request("invalid patch format of setElementOrder list")
}

fn unknown_directive(directive: &Value, patch: &Map<String, Value>) -> ApiError {
    let directive = directive.as_str().map_or_else(|| directive.to_string(), str::to_owned);
    let patch = Value::Object(patch.clone());
    unclassified(format!("unknown patch type: {directive} in map: {patch}"))
}

/// An error that the reference gives no reason for.
fn unclassified(message: String) -> ApiError {
    ApiError::new(500, "", message)
}

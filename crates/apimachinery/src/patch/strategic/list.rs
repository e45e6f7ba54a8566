//! Lists that merge: by a key of their entries, or as sets of values.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{bad_order, directive, merge_object, strip, unclassified, unknown_directive};
use crate::error::ApiError;
use crate::schema::At;

/// Merges the entries. Entries of the patch come in the patch's order; others
/// stay before or behind them as they were.
pub(super) fn merge(at: At<'_>, old: &[Value], patch: &[Value]) -> Result<Vec<Value>, ApiError> {
    if old.is_empty() && patch.is_empty() {
        return Ok(Vec::new());
    }
    check_alike(old, patch)?;
    if !old.iter().chain(patch).any(Value::is_object) {
        let mut known = BTreeSet::new();
        let all = old.iter().chain(patch);
        let merged = all.filter(|item| known.insert(item.to_string())).cloned().collect();
        return in_order(merged, patch, old, None);
    }
    let Some(key) = at.patch_strategy().key.as_deref() else {
        return Err(unclassified(
            "cannot merge lists without merge key for type struct".to_owned(),
        ));
    };
    let (mut merged, patch) = directives(old, patch, key)?;
    let kept = merged.clone();
    let mut known = places(&merged, Some(key));
    for item in &patch {
        let identity = identity(item, Some(key)).ok_or_else(|| no_merge_key(item, key))?;
        match known.get(&identity).and_then(|place| merged.get_mut(*place)) {
            Some(Value::Object(old)) => {
                let (Some(at), Value::Object(item)) = (at.item(), item) else { continue };
                *old = merge_object(at, std::mem::take(old), item)?;
            }
            _ => {
                known.insert(identity, merged.len());
                merged.push(strip(item));
            }
        }
    }
    in_order(merged, &patch, &kept, Some(key))
}

/// Carries out the entries that are directives. Gives what is left of both
/// lists.
fn directives(
    old: &[Value],
    patch: &[Value],
    key: &str,
) -> Result<(Vec<Value>, Vec<Value>), ApiError> {
    let mut old = old.to_vec();
    let mut plain = Vec::new();
    let mut replace = false;
    for item in patch {
        let Some(value) = item.get(super::PATCH) else {
            plain.push(item.clone());
            continue;
        };
        match (directive(item), item) {
            (Some("delete"), _) => {
                let gone = item.get(key).ok_or_else(|| no_merge_key(item, key))?;
                old.retain(|entry| entry.get(key) != Some(gone));
            }
            (Some("replace"), _) => replace = true,
            (Some("merge"), _) => {
                let message = "merging lists cannot yet be specified in the patch";
                return Err(unclassified(message.to_owned()));
            }
            (_, Value::Object(item)) => return Err(unknown_directive(value, item)),
            _ => {}
        }
    }
    if replace {
        old.clear();
    }
    Ok((old, plain))
}

/// Sorts entries: those that `order` names in that order, among them the
/// others, each still before those that it preceded in `old`.
pub(super) fn in_order(
    items: Vec<Value>,
    order: &[Value],
    old: &[Value],
    key: Option<&str>,
) -> Result<Vec<Value>, ApiError> {
    let (wanted, before) = (places(order, key), places(old, key));
    let (mut named, mut others) = (Vec::new(), Vec::new());
    for item in items {
        let Some(identity) = identity(&item, key) else {
            return Err(no_merge_key(&item, key.unwrap_or_default()));
        };
        let before = before.get(&identity).copied();
        match wanted.get(&identity) {
            Some(at) => named.push((at, before, item)),
            None => others.push((before, item)),
        }
    }
    named.sort_by_key(|(at, ..)| *at);
    others.sort_by_key(|(at, _)| *at);
    let mut others = others.into_iter().peekable();
    let mut sorted = Vec::with_capacity(named.len());
    for (_, before, item) in named {
        if let Some(before) = before {
            while let Some((_, other)) = others.next_if(|(at, _)| at.is_some_and(|at| at < before))
            {
                sorted.push(other);
            }
        }
        sorted.push(item);
    }
    sorted.extend(others.map(|(_, item)| item));
    Ok(sorted)
}

/// The patch's entries must come in the order that the patch itself asks for.
pub(super) fn check_order(
    patch: &[Value],
    order: &[Value],
    key: Option<&str>,
) -> Result<(), ApiError> {
    if order.is_empty() || patch.is_empty() {
        return Ok(());
    }
    let mut rest = order.iter();
    for item in patch.iter().filter(|item| item.get(super::PATCH).is_none()) {
        let Some(wanted) = identity(item, key) else { return Err(bad_order()) };
        if !rest.any(|entry| identity(entry, key).as_ref() == Some(&wanted)) {
            let (patch, order) = (Value::from(patch.to_vec()), Value::from(order.to_vec()));
            return Err(unclassified(format!(
                "The order in patch list:\n{patch}\n doesn't match $setElementOrder list:\n{order}\n"
            )));
        }
    }
    Ok(())
}

/// What makes two entries the same, as text: the key's value, or the entry
/// itself.
fn identity(item: &Value, key: Option<&str>) -> Option<String> {
    match key {
        Some(key) => item.get(key).map(Value::to_string),
        None => Some(item.to_string()),
    }
}

/// Where each entry is first.
fn places(list: &[Value], key: Option<&str>) -> BTreeMap<String, usize> {
    let mut places = BTreeMap::new();
    for (at, item) in list.iter().enumerate() {
        if let Some(identity) = identity(item, key) {
            places.entry(identity).or_insert(at);
        }
    }
    places
}

fn check_alike(old: &[Value], patch: &[Value]) -> Result<(), ApiError> {
    let mut all = old.iter().chain(patch);
    let Some(first) = all.next() else { return Ok(()) };
    if first.is_array() {
        return Err(ApiError::new(
            422,
            "Invalid",
            "the server rejected our request due to an error in our request",
        ));
    }
    if all.any(|item| std::mem::discriminant(item) != std::mem::discriminant(first)) {
        let lists = Value::from(vec![Value::from(old.to_vec()), Value::from(patch.to_vec())]);
        return Err(unclassified(format!("list element types are not identical: {lists}")));
    }
    Ok(())
}

fn no_merge_key(item: &Value, key: &str) -> ApiError {
    unclassified(format!("map: {item} does not contain declared merge key: {key}"))
}

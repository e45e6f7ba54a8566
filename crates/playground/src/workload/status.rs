//! Writing a status.

use serde_json::{Map, Value, json};

use crate::cluster::Watched;
use crate::engine::plan::{Call, Part, to_value};

/// The call that brings the status of `old` to that of `new`; none if they are
/// equal. A guarded one is refused when the object has changed meanwhile: for
/// statuses that others write too.
pub(crate) fn status_patch<K: Watched>(old: &K, new: &K, guarded: bool) -> Option<Call> {
    // Most looks at an object find nothing to change.
    if old == new {
        return None;
    }
    let (before, after) = (to_value(old), to_value(new));
    let empty = json!({});
    let difference =
        merge_diff(before.get("status").unwrap_or(&empty), after.get("status").unwrap_or(&empty))?;
    let mut patch = json!({ "status": difference });
    if guarded {
        patch["metadata"] = json!({ "resourceVersion": old.metadata().resource_version });
    }
    Some(Call::patch(old, Part::Status, patch))
}

/// The merge patch from one value to another.
pub(crate) fn merge_diff(old: &Value, new: &Value) -> Option<Value> {
    let (Value::Object(before), Value::Object(after)) = (old, new) else {
        return (old != new).then(|| new.clone());
    };
    let mut patch = Map::new();
    for (key, value) in after {
        match before.get(key) {
            None => drop(patch.insert(key.clone(), value.clone())),
            Some(known) => {
                if let Some(difference) = merge_diff(known, value) {
                    patch.insert(key.clone(), difference);
                }
            }
        }
    }
    for key in before.keys().filter(|key| !after.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

/// Puts a condition in the place of the one that `same` finds, or at the end.
pub(crate) fn set_condition<C>(
    conditions: &mut Option<Vec<C>>,
    condition: C,
    same: impl Fn(&C) -> bool,
) {
    let conditions = conditions.get_or_insert_default();
    match conditions.iter_mut().find(|known| same(known)) {
        Some(known) => *known = condition,
        None => conditions.push(condition),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merge_diff_names_what_is_new_changed_or_gone() {
        let cases = [
            (json!({"a": 1}), json!({"a": 1}), None),
            (json!({"a": 1}), json!({"a": 2, "b": 3}), Some(json!({"a": 2, "b": 3}))),
            (
                json!({"a": {"b": 1, "c": 2}}),
                json!({"a": {"b": 1}}),
                Some(json!({"a": {"c": null}})),
            ),
            (json!({"a": [1, 2]}), json!({"a": [1]}), Some(json!({"a": [1]}))),
        ];
        for (old, new, expected) in cases {
            assert_eq!(merge_diff(&old, &new), expected, "{old} to {new}");
        }
    }
}

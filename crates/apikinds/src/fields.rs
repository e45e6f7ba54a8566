//! Reading and filling in JSON objects. `null` counts as absent everywhere, as
//! the API takes it.

use serde_json::{Map, Value};

/// The value at a JSON pointer, unless absent or `null`.
pub(crate) fn at<'a>(object: &'a Value, pointer: &str) -> Option<&'a Value> {
    object.pointer(pointer).filter(|value| !value.is_null())
}

/// The text at a pointer; empty when absent.
pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The text of a field; empty when absent.
pub(crate) fn field<'a>(object: &'a Value, name: &str) -> &'a str {
    object.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// The whole number at a pointer.
pub(crate) fn number(object: &Value, pointer: &str) -> Option<i64> {
    object.pointer(pointer).and_then(Value::as_i64)
}

/// Whether `true` stands at a pointer.
pub(crate) fn flag(object: &Value, pointer: &str) -> bool {
    object.pointer(pointer).and_then(Value::as_bool).unwrap_or(false)
}

/// The items of the list at a pointer.
pub(crate) fn items<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The items of the list at a pointer, to be changed.
pub(crate) fn items_mut<'a>(object: &'a mut Value, pointer: &str) -> &'a mut [Value] {
    match object.pointer_mut(pointer) {
        Some(Value::Array(items)) => items,
        _ => &mut [],
    }
}

/// The entries of the map at a pointer, in order of their keys.
pub(crate) fn entries<'a>(
    object: &'a Value,
    pointer: &str,
) -> impl Iterator<Item = (&'a String, &'a Value)> {
    let map = object.pointer(pointer).and_then(Value::as_object);
    map.into_iter().flat_map(Map::iter).filter(|(_, value)| !value.is_null())
}

/// Whether the map at a pointer says `value` for `key`.
pub(crate) fn says(object: &Value, pointer: &str, key: &str, value: &str) -> bool {
    object.pointer(pointer).and_then(|map| map.get(key)).and_then(Value::as_str) == Some(value)
}

/// Sets a field that is absent. A text that is empty counts as absent when the
/// default is a text. Does nothing unless `object` is a JSON object.
pub(crate) fn default(object: &mut Value, name: &str, value: impl Into<Value>) {
    let Some(map) = object.as_object_mut() else { return };
    let value = value.into();
    let absent = match map.get(name) {
        None | Some(Value::Null) => true,
        Some(Value::String(found)) => found.is_empty() && value.is_string(),
        Some(_) => false,
    };
    if absent {
        map.insert(name.to_owned(), value);
    }
}

/// Sets a field. Does nothing unless `object` is a JSON object.
pub(crate) fn set(object: &mut Value, name: &str, value: impl Into<Value>) {
    if let Some(map) = object.as_object_mut() {
        map.insert(name.to_owned(), value.into());
    }
}

/// Writes the quantities of the map at a pointer as texts: authors may give
/// plain numbers, readers get texts.
pub(crate) fn quantities(object: &mut Value, pointer: &str) {
    let Some(map) = object.pointer_mut(pointer).and_then(Value::as_object_mut) else { return };
    for (_, amount) in map.iter_mut() {
        if amount.is_number() {
            *amount = Value::from(amount.to_string());
        }
    }
}

/// Removes a field.
pub(crate) fn remove(object: &mut Value, name: &str) -> Option<Value> {
    object.as_object_mut()?.remove(name)
}

/// A field that is a JSON object, put there when absent. `None` when something
/// else stands there.
pub(crate) fn child<'a>(object: &'a mut Value, name: &str) -> Option<&'a mut Value> {
    let slot = object.as_object_mut()?.entry(name).or_insert(Value::Null);
    if slot.is_null() {
        *slot = Value::Object(Map::new());
    }
    slot.is_object().then_some(slot)
}

/// The value at a pointer, if it is a JSON object.
pub(crate) fn object_at<'a>(object: &'a mut Value, pointer: &str) -> Option<&'a mut Value> {
    object.pointer_mut(pointer).filter(|value| value.is_object())
}

/// The object's name, or what its name will begin with.
pub(crate) fn name(object: &Value) -> &str {
    match text(object, "/metadata/name") {
        "" => text(object, "/metadata/generateName"),
        name => name,
    }
}

/// The object's namespace.
pub(crate) fn namespace(object: &Value) -> &str {
    text(object, "/metadata/namespace")
}

/// Whether two places hold the same; absent, `null` and empty are the same.
pub(crate) fn same(left: Option<&Value>, right: Option<&Value>) -> bool {
    let left = left.filter(|value| !is_empty(value));
    let right = right.filter(|value| !is_empty(value));
    match (left, right) {
        (Some(Value::Object(left)), Some(Value::Object(right))) => {
            let keys = left.keys().chain(right.keys());
            keys.into_iter().all(|key| same(left.get(key), right.get(key)))
        }
        (Some(Value::Array(left)), Some(Value::Array(right))) => {
            left.len() == right.len()
                && left.iter().zip(right).all(|(left, right)| same(Some(left), Some(right)))
        }
        (left, right) => left == right,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.values().all(is_empty),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{child, default, same};

    #[test]
    fn defaults_only_what_is_absent() {
        let mut object = json!({"null": null, "empty": "", "zero": 0, "list": []});
        for name in ["null", "empty", "new"] {
            default(&mut object, name, "x");
        }
        default(&mut object, "zero", 1);
        default(&mut object, "list", json!([1]));
        let expected = json!({"null": "x", "empty": "x", "new": "x", "zero": 0, "list": []});
        assert_eq!(object, expected);
        assert!(child(&mut object, "zero").is_none());
        assert!(child(&mut object, "other").is_some());
    }

    #[test]
    fn absent_null_and_empty_are_the_same() {
        let cases = [
            (json!({}), json!({"a": null}), true),
            (json!({"a": {"b": []}}), json!({}), true),
            (json!({"a": 0}), json!({}), false),
            (json!({"a": [{"b": null}]}), json!({"a": [{}]}), true),
            (json!({"a": [1]}), json!({"a": [1, 2]}), false),
        ];
        for (left, right, expected) in cases {
            assert_eq!(same(Some(&left), Some(&right)), expected, "{left} {right}");
        }
    }
}

//! Steps of field paths.

use serde_json::{Map, Value};

use crate::schema::{At, ListMerge};

/// The step to a field.
pub(super) fn field(name: &str) -> Box<str> {
    ["f:", name].concat().into()
}

/// The step to an entry of a list that merges.
///
/// # Errors
/// When the entry does not say which one it is.
pub(super) fn entry(at: At<'_>, item: &Value) -> Result<Box<str>, String> {
    match at.list_merge() {
        ListMerge::Map(keys) => keyed_entry(at, keys, item),
        ListMerge::Set if item.is_object() => {
            Err("associative list without keys has an element that's a map type".to_owned())
        }
        ListMerge::Set if item.is_array() => {
            Err("not supported: associative list with lists as elements".to_owned())
        }
        ListMerge::Set if item.is_null() => {
            Err("associative list without keys has an element that's an explicit null".to_owned())
        }
        ListMerge::Set => Ok(format!("v:{item}").into()),
        ListMerge::Atomic => Err("invalid indexing of non-associative list".to_owned()),
    }
}

fn keyed_entry(at: At<'_>, keys: &[Box<str>], item: &Value) -> Result<Box<str>, String> {
    let Value::Object(fields) = item else {
        return Err(if item.is_null() {
            "associative list with keys may not have a null element".to_owned()
        } else {
            "associative list with keys may not have non-map elements".to_owned()
        });
    };
    let mut found = Map::new();
    for key in keys {
        let default = || at.item()?.field(key)?.default_value();
        if let Some(value) = fields.get(key.as_ref()).or_else(default) {
            found.insert(key.to_string(), value.clone());
        }
    }
    if found.is_empty() {
        return Err(format!(
            "associative list with keys has an element that omits all key fields {keys:?} (and \
             doesn't have default values for any key fields)"
        ));
    }
    Ok(format!("k:{}", Value::Object(found)).into())
}

/// A step of `FieldsV1` with its JSON written as this module writes it. `None`
/// for what is no step.
pub(super) fn canonical(step: &str) -> Option<String> {
    let (kind, content) = step.split_once(':')?;
    match kind {
        "f" => Some(step.to_owned()),
        "k" => {
            let keys: Map<String, Value> = serde_json::from_str(content).ok()?;
            Some(format!("k:{}", Value::Object(keys)))
        }
        "v" => Some(format!("v:{}", serde_json::from_str::<Value>(content).ok()?)),
        "i" => Some(format!("i:{}", content.parse::<i64>().ok()?)),
        _ => None,
    }
}

/// The step as errors show it: `.spec`, `[name="a",port=80]`, `[="x"]`, `[0]`.
pub(super) fn shown(step: &str) -> String {
    match step.split_once(':') {
        Some(("f", name)) => format!(".{name}"),
        Some(("k", keys)) => {
            let keys: Map<String, Value> = serde_json::from_str(keys).unwrap_or_default();
            let keys: Vec<String> =
                keys.iter().map(|(name, value)| format!("{name}={value}")).collect();
            format!("[{}]", keys.join(","))
        }
        Some(("v", value)) => format!("[={value}]"),
        Some((_, index)) => format!("[{index}]"),
        None => step.to_owned(),
    }
}

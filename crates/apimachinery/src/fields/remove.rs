//! An object without some of its fields.

use serde_json::{Map, Value};

use super::compare::{Granularity, granularity};
use super::path;
use super::set::FieldSet;
use crate::schema::At;

/// The value without the members of the set; null where nothing is left.
pub(super) fn remove(at: At<'_>, value: &Value, fields: &FieldSet) -> Value {
    match (granularity(at, value), value) {
        (Granularity::Fields, Value::Object(object)) => {
            let mut kept = Map::new();
            for (name, value) in object {
                let value = match (fields.below(&path::field(name)), at.field(name)) {
                    (Some(below), _) if below.member => continue,
                    (Some(below), Some(at)) => remove(at, value, below),
                    _ => value.clone(),
                };
                kept.insert(name.clone(), value);
            }
            if kept.is_empty() { Value::Null } else { Value::Object(kept) }
        }
        (Granularity::Entries, Value::Array(items)) => {
            let mut kept = Vec::new();
            for entry in items {
                let below = path::entry(at, entry).ok().and_then(|step| fields.below(&step));
                match (below, at.item()) {
                    (Some(below), _) if below.member => {}
                    (Some(below), Some(item)) => kept.push(remove(item, entry, below)),
                    _ => kept.push(entry.clone()),
                }
            }
            if kept.is_empty() { Value::Null } else { Value::Array(kept) }
        }
        (Granularity::Leaf, Value::Object(_) | Value::Array(_)) => Value::Null,
        _ => value.clone(),
    }
}

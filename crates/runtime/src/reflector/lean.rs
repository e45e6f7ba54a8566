//! Objects without what nobody here reads.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// An object without `metadata.managedFields`, which are half of a small
/// object: they are skipped while it is read. What is no object reads as null.
pub(super) struct Lean(pub(super) Value);

impl<'de> Deserialize<'de> for Lean {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Level::Object).map(Self)
    }
}

/// Metadata on its way.
struct Metadata(Value);

impl<'de> Deserialize<'de> for Metadata {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Level::Metadata).map(Self)
    }
}

/// What is being read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Object,
    Metadata,
}

impl<'de> Visitor<'de> for Level {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = fields.next_key::<String>()? {
            let value = match (self, name.as_str()) {
                (Self::Object, "metadata") => fields.next_value::<Metadata>()?.0,
                (Self::Metadata, "managedFields") => {
                    fields.next_value::<IgnoredAny>()?;
                    continue;
                }
                _ => fields.next_value()?,
            };
            object.insert(name, value);
        }
        Ok(Value::Object(object))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Value::Null)
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_str<E>(self, _: &str) -> Result<Value, E> {
        Ok(Value::Null)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_field_ownership_is_left_out() {
        let cases = [
            (
                json!({"metadata": {"name": "a", "managedFields": [{"x": [1]}]}, "spec": {"a": 1}}),
                json!({"metadata": {"name": "a"}, "spec": {"a": 1}}),
            ),
            (
                json!({"spec": {"metadata": {"managedFields": 1}}, "managedFields": 2}),
                json!({"spec": {"metadata": {"managedFields": 1}}, "managedFields": 2}),
            ),
            (json!({"metadata": null}), json!({"metadata": null})),
            (json!([1, {"a": 2}]), Value::Null),
            (json!("text"), Value::Null),
            (json!(-1.5), Value::Null),
        ];
        for (given, expected) in cases {
            let lean: Lean = serde_json::from_str(&given.to_string()).unwrap();
            assert_eq!(lean.0, expected);
        }
    }
}

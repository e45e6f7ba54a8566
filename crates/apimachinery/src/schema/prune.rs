//! What decoding an object into its type and encoding it again leaves.

use serde_json::Value;

use super::{At, Kind, Scalar, quantity};

pub(super) fn prune(at: At<'_>, value: &mut Value) {
    match (at.kind(), value) {
        (Kind::Struct, Value::Object(fields)) => fields.retain(|name, value| {
            let Some(field) = at.field(name) else { return false };
            prune(field, value);
            !is_absent(field, value, at.requires(name))
        }),
        (Kind::Map, Value::Object(values)) => {
            for (name, value) in values.iter_mut() {
                let Some(at) = at.field(name) else { continue };
                prune(at, value);
                fill_null(at, value);
            }
        }
        (Kind::List, Value::Array(items)) => {
            let Some(at) = at.item() else { return };
            for item in items {
                prune(at, item);
                fill_null(at, item);
            }
        }
        (Kind::Scalar(Scalar::Quantity), value) => write_quantity(value),
        _ => {}
    }
}

/// Quantities may be given as numbers, and are texts ever after.
fn write_quantity(value: &mut Value) {
    let written = match value {
        Value::Number(number) => {
            let text = number.to_string();
            Some(quantity::canonical(&text).unwrap_or(text))
        }
        Value::String(text) => quantity::canonical(text),
        _ => None,
    };
    if let Some(text) = written {
        *value = Value::String(text);
    }
}

/// Whether a field need not be written: null, or an optional list or map
/// without content. An empty struct says something (`emptyDir: {}`).
fn is_absent(at: At<'_>, value: &Value, required: bool) -> bool {
    match (at.kind(), value) {
        (_, Value::Null) => true,
        (Kind::List, Value::Array(items)) => items.is_empty() && !required,
        (Kind::Map, Value::Object(values)) => values.is_empty() && !required,
        _ => false,
    }
}

/// A null among items or values is the type's zero value.
fn fill_null(at: At<'_>, value: &mut Value) {
    if !value.is_null() {
        return;
    }
    *value = match at.kind() {
        Kind::Struct | Kind::Map => Value::Object(serde_json::Map::new()),
        Kind::List => Value::Array(Vec::new()),
        Kind::Scalar(Scalar::Bool) => Value::Bool(false),
        Kind::Scalar(Scalar::Int32 | Scalar::Int64 | Scalar::Float) => Value::from(0),
        Kind::Scalar(Scalar::IntOrString) => Value::from(0),
        Kind::Scalar(Scalar::Quantity) => Value::from("0"),
        Kind::Scalar(Scalar::String | Scalar::Bytes) => Value::from(""),
        Kind::Scalar(Scalar::Time | Scalar::MicroTime) | Kind::Any => Value::Null,
    };
}

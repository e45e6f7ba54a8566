//! Whether a configuration can be applied: whether all its fields are declared
//! and its list entries can be told apart.

use std::collections::BTreeSet;

use serde_json::Value;

use super::compare::{Granularity, granularity};
use super::path;
use crate::schema::{At, Kind, Scalar};

/// What is wrong, one line per error: `.spec.foo: field not declared in schema`.
pub(super) fn errors(at: At<'_>, config: &Value) -> Vec<String> {
    let mut found = Vec::new();
    visit(at, config, &mut String::new(), &mut found);
    found
}

fn visit(at: At<'_>, value: &Value, path: &mut String, found: &mut Vec<String>) {
    let length = path.len();
    let error = |what: String| if path.is_empty() { what } else { format!("{path}: {what}") };
    match (at.kind(), value) {
        (_, Value::Null) | (Kind::Any, _) => {}
        (Kind::Struct | Kind::Map, Value::Object(fields)) => {
            for (name, value) in fields {
                path.push_str(&path::shown(&path::field(name)));
                match at.field(name) {
                    Some(at) => visit(at, value, path, found),
                    None => found.push(format!("{path}: field not declared in schema")),
                }
                path.truncate(length);
            }
        }
        (Kind::List, Value::Array(items)) => visit_items(at, items, path, found),
        (Kind::Scalar(scalar), value) => {
            if let Some(expected) = mismatch(scalar, value) {
                found.push(error(format!("expected {expected}, got {value}")));
            }
        }
        (Kind::List, value) => found.push(error(format!("expected list, got {value}"))),
        (_, value) => found.push(error(format!("expected map, got {value}"))),
    }
}

fn visit_items(at: At<'_>, items: &[Value], path: &mut String, found: &mut Vec<String>) {
    let length = path.len();
    let Some(item) = at.item() else { return };
    let merges = granularity(at, &Value::Null) == Granularity::Entries;
    let mut seen = BTreeSet::new();
    for (index, value) in items.iter().enumerate() {
        let step = if merges {
            match path::entry(at, value) {
                Ok(step) => step,
                Err(why) => {
                    found.push(format!("{path}: element {index}: {why}"));
                    return;
                }
            }
        } else {
            format!("i:{index}").into()
        };
        let shown = path::shown(&step);
        if !seen.insert(step) {
            found.push(format!("{path}: duplicate entries for key {shown}"));
        }
        path.push_str(&shown);
        visit(item, value, path, found);
        path.truncate(length);
    }
}

fn mismatch(scalar: Scalar, value: &Value) -> Option<&'static str> {
    match scalar {
        Scalar::Int32 | Scalar::Int64 | Scalar::Float => {
            (!value.is_number()).then_some("numeric (int or float)")
        }
        Scalar::Bool => (!value.is_boolean()).then_some("boolean"),
        Scalar::String | Scalar::Bytes => (!value.is_string()).then_some("string"),
        Scalar::Quantity | Scalar::IntOrString | Scalar::Time | Scalar::MicroTime => {
            (value.is_object() || value.is_array()).then_some("any scalar")
        }
    }
}

//! A document with what its author wrote and no more.

use serde_json::{Map, Value};
use steersman_api::problem::{FieldPath, Problem};

use crate::wire::Configuration;

/// Durations for which nothing stands for "not set".
const DURATIONS: [&str; 4] = ["leaseDuration", "renewDeadline", "retryPeriod", "httpTimeout"];
/// Numbers for which 0 stands for "not set".
const NUMBERS: [&str; 3] = ["weight", "qps", "burst"];

/// The configuration before defaulting, without the fields that are not set.
pub(crate) fn document(config: &Configuration) -> Result<Value, Problem> {
    match serde_json::to_value(config) {
        Ok(document) => Ok(prune(document)),
        Err(error) => Err(Problem::new(&FieldPath::root(), error.to_string())),
    }
}

fn prune(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(name, value)| match name.as_str() {
                // What plugins make of a field is their affair.
                "args" => (name, value),
                _ => (name, prune(value)),
            });
            Value::Object(fields.filter(|(name, value)| is_set(name, value)).collect::<Map<_, _>>())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(prune).collect()),
        other => other,
    }
}

fn is_set(name: &str, value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Object(fields) => !fields.is_empty() || name == "args",
        Value::Array(items) => !items.is_empty(),
        Value::String(text) if DURATIONS.contains(&name) => text != "0s",
        Value::String(text) => !text.is_empty(),
        Value::Number(number) => !(number.as_f64() == Some(0.0) && NUMBERS.contains(&name)),
        Value::Bool(_) => true,
    }
}

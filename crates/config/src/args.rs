//! The arguments of one plugin: an object of the plugin's own type, which says
//! `apiVersion` and `kind` like any other or leaves them out.

use serde_json::{Map, Value};
use steersman_api::problem::{FieldPath, Problem};
use steersman_framework::args::ArgsKind;

use crate::wire::API_VERSION;

/// Decodes, defaults and checks arguments; absent ones are all defaults.
pub(crate) fn complete(
    kind: ArgsKind,
    written: Option<Value>,
    at: &FieldPath,
    problems: &mut Vec<Problem>,
) -> Option<Value> {
    let mut object = match written {
        None => Map::new(),
        Some(Value::Object(object)) => object,
        Some(other) => {
            let allowed = format_args!("an object of kind {}", kind.kind);
            problems.push(Problem::invalid(at, other, allowed));
            return None;
        }
    };
    let mut is_right = true;
    for (field, allowed) in [("apiVersion", API_VERSION), ("kind", kind.kind)] {
        match object.remove(field) {
            None | Some(Value::Null) => {}
            Some(Value::String(found)) if found == allowed || found.is_empty() => {}
            Some(found) => {
                problems.push(Problem::invalid(
                    &at.field(field),
                    found,
                    format_args!("{allowed:?}"),
                ));
                is_right = false;
            }
        }
    }
    // The fields of another kind would all be reported as unknown.
    if !is_right {
        return None;
    }
    let mut args = (kind.complete)(Value::Object(object), at, problems)?;
    if let Some(object) = args.as_object_mut() {
        object.insert("apiVersion".to_owned(), API_VERSION.into());
        object.insert("kind".to_owned(), kind.kind.into());
    }
    Some(args)
}

/// Arguments as a plugin's factory takes them: without `apiVersion` and `kind`
/// when its type knows them, an empty object when there are none.
pub(crate) fn for_factory(kind: Option<ArgsKind>, args: Option<&Value>) -> Value {
    match args {
        None | Some(Value::Null) => Value::Object(Map::new()),
        Some(Value::Object(object)) if kind.is_some() => {
            let mut object = object.clone();
            object.remove("apiVersion");
            object.remove("kind");
            Value::Object(object)
        }
        Some(other) => other.clone(),
    }
}

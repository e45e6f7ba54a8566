//! The types that a document has to define.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::operations::{self, Operation};
use crate::resource::Resource;
use crate::schema::document;

const PREFIX: &str = "#/definitions/";

/// Definitions by name, references in the form of version 2.
pub(super) type Definitions = BTreeMap<String, Value>;

/// What the operations send and receive, and all that it refers to.
pub(super) fn needed(resources: &[&Resource], operations: &[Operation]) -> Definitions {
    let mut document = document();
    let mut all = match document.get_mut("definitions").map(Value::take) {
        Some(Value::Object(all)) => all,
        _ => Map::new(),
    };
    let mut open: Vec<String> = operations
        .iter()
        .flat_map(|operation| operation.body.iter().chain(&operation.answer))
        .chain([&operations::STATUS.to_owned()])
        .cloned()
        .collect();
    let mut needed = Definitions::new();
    while let Some(name) = open.pop() {
        let Some(definition) = all.remove(&name) else { continue };
        collect_references(&definition, &mut open);
        needed.insert(name, definition);
    }
    for resource in resources {
        if let Some(definition) = needed.get_mut(resource.schema) {
            name_kind(definition, resource);
        }
    }
    needed
}

/// Whether there is a definition of the name.
pub(super) fn exists(name: &str) -> bool {
    crate::schema::Schema::kubernetes().get(name).is_some()
}

/// Puts the kind that clients look a definition up by.
fn name_kind(definition: &mut Value, resource: &Resource) {
    const KIND: &str = "x-kubernetes-group-version-kind";
    let kind = json!({
        "group": resource.group, "version": resource.version, "kind": resource.kind,
    });
    match definition.get_mut(KIND) {
        Some(Value::Array(kinds)) if kinds.contains(&kind) => {}
        Some(Value::Array(kinds)) => kinds.push(kind),
        _ => definition[KIND] = json!([kind]),
    }
}

fn collect_references(node: &Value, into: &mut Vec<String>) {
    match node {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value.as_str().and_then(|target| target.strip_prefix(PREFIX)) {
                    Some(target) if name == "$ref" => into.push(target.to_owned()),
                    _ => collect_references(value, into),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect_references(item, into)),
        _ => {}
    }
}

/// A definition in the form of version 3: other references, and types that
/// accept more than one JSON type.
pub(super) fn for_v3(name: &str, definition: &Value) -> Value {
    let mut definition = convert(definition);
    let types: &[&str] = match name.rsplit('.').next() {
        Some("IntOrString") => &["integer", "string"],
        Some("Quantity") => &["string", "number"],
        _ => return definition,
    };
    if let Value::Object(fields) = &mut definition {
        fields.remove("type");
        let types = types.iter().map(|name| json!({ "type": name })).collect();
        fields.insert("oneOf".to_owned(), Value::Array(types));
    }
    definition
}

fn convert(node: &Value) -> Value {
    match node {
        Value::Object(fields) => {
            let mut converted: Map<String, Value> =
                fields.iter().map(|(name, value)| (name.clone(), convert(value))).collect();
            let target = fields.get("$ref").and_then(Value::as_str);
            if let Some(target) = target.and_then(|target| target.strip_prefix(PREFIX)) {
                let reference = json!({ "$ref": format!("#/components/schemas/{target}") });
                if fields.len() == 1 {
                    return reference;
                }
                // Beside a reference nothing else counts, so it moves aside.
                converted.remove("$ref");
                converted.insert("allOf".to_owned(), json!([reference]));
            }
            Value::Object(converted)
        }
        Value::Array(items) => Value::Array(items.iter().map(convert).collect()),
        other => other.clone(),
    }
}

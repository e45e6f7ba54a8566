//! OpenAPI version 2. The field numbers are those of `OpenAPIv2.proto` in
//! gnostic, the format's home.

use serde_json::{Map, Value, json};

use super::operations::{self, Operation, PATCH_TYPES};
use super::protobuf::Message;
use super::{definitions, info};
use crate::resource::Resource;

/// The document as JSON.
pub(super) fn document(resources: &[Resource]) -> Value {
    let resources: Vec<&Resource> = resources.iter().collect();
    let operations = operations::of(&resources);
    let mut paths: Map<String, Value> = Map::new();
    for operation in &operations {
        let path = paths.entry(operation.path.clone()).or_insert_with(|| {
            let parameters: Vec<Value> = operation
                .path_parameters()
                .map(|name| json!({ "name": name, "in": "path", "required": true, "type": "string" }))
                .collect();
            json!({ "parameters": parameters })
        });
        path[operation.method] = describe(operation);
    }
    json!({
        "swagger": "2.0",
        "info": info(),
        "paths": paths,
        "definitions": definitions::needed(&resources, &operations),
    })
}

fn describe(operation: &Operation) -> Value {
    let (group, version, kind) = operation.kind;
    let mut parameters: Vec<Value> = Vec::new();
    if let Some(body) = &operation.body {
        parameters.push(json!({
            "name": "body", "in": "body", "required": operation.method != "delete",
            "schema": { "$ref": format!("#/definitions/{body}") },
        }));
    }
    parameters.extend(operation.parameters().iter().map(|parameter| {
        json!({
            "name": parameter.name, "in": "query", "type": parameter.json_type,
            "description": parameter.description,
        })
    }));
    let consumes = if operation.method == "patch" { PATCH_TYPES } else { &["*/*"] };
    let mut answer = json!({ "description": "OK" });
    if let Some(schema) = &operation.answer {
        answer["schema"] = json!({ "$ref": format!("#/definitions/{schema}") });
    }
    json!({
        "operationId": operation.id,
        "consumes": consumes,
        "produces": ["application/json"],
        "parameters": parameters,
        "responses": { "200": answer },
        "x-kubernetes-action": operation.action,
        "x-kubernetes-group-version-kind": { "group": group, "version": version, "kind": kind },
    })
}

/// The document in protobuf.
pub(super) fn encode(document: &Value) -> Vec<u8> {
    let mut message = Message::default();
    message.text(1, text(document, "swagger"));
    message.message(2, |info| {
        info.text(1, text(&document["info"], "title"));
        info.text(2, text(&document["info"], "version"));
    });
    message.message(8, |paths| {
        for (name, path) in fields(document, "paths") {
            paths.message(2, |named| {
                named.text(1, name);
                named.message(2, |message| path_item(message, path));
            });
        }
    });
    message.message(9, |definitions| named_schemas(definitions, document, "definitions"));
    message.finish()
}

fn path_item(message: &mut Message, path: &Value) {
    for (method, number) in [("get", 2), ("put", 3), ("post", 4), ("delete", 5), ("patch", 8)] {
        if let Some(of) = path.get(method) {
            message.message(number, |message| operation(message, of));
        }
    }
    for of in items(path, "parameters") {
        message.message(9, |item| parameter(item, of));
    }
}

fn operation(message: &mut Message, of: &Value) {
    message.text(5, text(of, "operationId"));
    for media_type in items(of, "produces") {
        message.text(6, media_type.as_str().unwrap_or_default());
    }
    for media_type in items(of, "consumes") {
        message.text(7, media_type.as_str().unwrap_or_default());
    }
    for of in items(of, "parameters") {
        message.message(8, |item| parameter(item, of));
    }
    message.message(9, |responses| {
        for (code, response) in fields(of, "responses") {
            responses.message(1, |named| {
                named.text(1, code);
                named.message(2, |value| {
                    value.message(1, |message| answer(message, response));
                });
            });
        }
    });
    extensions(message, 13, of);
}

fn answer(message: &mut Message, response: &Value) {
    message.text(1, text(response, "description"));
    if let Some(of) = response.get("schema") {
        message.message(2, |item| {
            item.message(1, |message| schema(message, of));
        });
    }
}

/// A `ParametersItem`: which of several messages it holds says where the
/// parameter is.
fn parameter(item: &mut Message, of: &Value) {
    let required = of["required"].as_bool().unwrap_or(false);
    item.message(1, |parameter| match text(of, "in") {
        "body" => {
            parameter.message(1, |body| {
                body.text(2, text(of, "name")).text(3, "body").flag(4, required);
                body.message(5, |message| schema(message, &of["schema"]));
            });
        }
        place => {
            let (number, type_number) = if place == "path" { (4, 5) } else { (3, 6) };
            parameter.message(2, |other| {
                other.message(number, |message| {
                    message.flag(1, required).text(2, place);
                    message.text(3, text(of, "description")).text(4, text(of, "name"));
                    message.text(type_number, text(of, "type"));
                });
            });
        }
    });
}

fn named_schemas(message: &mut Message, of: &Value, field: &str) {
    for (name, of) in fields(of, field) {
        message.message(1, |named| {
            named.text(1, name);
            named.message(2, |message| schema(message, of));
        });
    }
}

fn schema(message: &mut Message, of: &Value) {
    message.text(1, text(of, "$ref")).text(2, text(of, "format"));
    message.text(4, text(of, "description"));
    if let Some(default) = of.get("default") {
        message.message(5, |any| {
            any.text(2, &default.to_string());
        });
    }
    for name in items(of, "required") {
        message.text(19, name.as_str().unwrap_or_default());
    }
    if let Some(values) = of.get("additionalProperties") {
        message.message(21, |item| {
            item.message(1, |message| schema(message, values));
        });
    }
    if let Some(name) = of.get("type").and_then(Value::as_str) {
        message.message(22, |item| {
            item.text(1, name);
        });
    }
    if let Some(of) = of.get("items") {
        message.message(23, |item| {
            item.message(1, |message| schema(message, of));
        });
    }
    if of.get("properties").is_some() {
        message.message(25, |properties| named_schemas(properties, of, "properties"));
    }
    extensions(message, 31, of);
}

/// The `x-` fields. Their values are YAML, of which JSON is a part.
fn extensions(message: &mut Message, number: u32, of: &Value) {
    for (name, value) in of.as_object().into_iter().flatten() {
        if name.starts_with("x-") {
            message.message(number, |named| {
                named.text(1, name);
                named.message(2, |any| {
                    any.text(2, &value.to_string());
                });
            });
        }
    }
}

fn text<'a>(of: &'a Value, field: &str) -> &'a str {
    of.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn items<'a>(of: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    of.get(field).and_then(Value::as_array).into_iter().flatten()
}

fn fields<'a>(of: &'a Value, field: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    of.get(field).and_then(Value::as_object).into_iter().flatten()
}

//! OpenAPI version 3: an index, and a document per group and version.

use serde_json::{Map, Value, json};

use super::operations::{self, Operation, PATCH_TYPES};
use super::{definitions, info, prefix};
use crate::resource::Resource;
use crate::schema::fingerprint;

/// The index at `/openapi/v3`. The address of a document changes with its
/// content, so that clients may keep it for ever.
pub fn index(resources: &[Resource]) -> Value {
    let mut paths = Map::new();
    for resource in resources {
        let at = prefix(resource);
        let hash = hash(resources.iter().filter(|other| prefix(other) == at));
        let url = format!("/openapi/v3/{at}?hash={hash:016X}");
        paths.insert(at, json!({ "serverRelativeURL": url }));
    }
    json!({ "paths": paths })
}

/// The document of a group and version, named as in the index (`api/v1`,
/// `apis/apps/v1`). Without a resource of it, the document says that nothing can
/// be done.
pub fn group(resources: &[Resource], name: &str) -> Value {
    let resources: Vec<&Resource> =
        resources.iter().filter(|resource| prefix(resource) == name).collect();
    let operations = operations::of(&resources);
    let mut paths: Map<String, Value> = Map::new();
    for operation in &operations {
        let path = paths.entry(operation.path.clone()).or_insert_with(|| {
            let parameters: Vec<Value> = operation
                .path_parameters()
                .map(|name| {
                    json!({
                        "name": name, "in": "path", "required": true,
                        "schema": { "type": "string" },
                    })
                })
                .collect();
            json!({ "parameters": parameters })
        });
        path[operation.method] = describe(operation);
    }
    let schemas: Map<String, Value> = definitions::needed(&resources, &operations)
        .iter()
        .map(|(name, definition)| (name.clone(), definitions::for_v3(name, definition)))
        .collect();
    json!({
        "openapi": "3.0.0",
        "info": info(),
        "paths": paths,
        "components": { "schemas": schemas },
    })
}

fn describe(operation: &Operation) -> Value {
    let (group, version, kind) = operation.kind;
    let parameters: Vec<Value> = operation
        .parameters()
        .iter()
        .map(|parameter| {
            json!({
                "name": parameter.name, "in": "query", "description": parameter.description,
                "schema": { "type": parameter.json_type },
            })
        })
        .collect();
    let mut answer = json!({ "description": "OK" });
    if let Some(schema) = &operation.answer {
        answer["content"] = json!({ "application/json": { "schema": reference(schema) } });
    }
    let mut described = json!({
        "operationId": operation.id,
        "parameters": parameters,
        "responses": { "200": answer },
        "x-kubernetes-action": operation.action,
        "x-kubernetes-group-version-kind": { "group": group, "version": version, "kind": kind },
    });
    if let Some(body) = &operation.body {
        let media_types = if operation.method == "patch" { PATCH_TYPES } else { &["*/*"] };
        let content: Map<String, Value> = media_types
            .iter()
            .map(|media_type| ((*media_type).to_owned(), json!({ "schema": reference(body) })))
            .collect();
        described["requestBody"] = json!({ "content": content });
        if operation.method != "delete" {
            described["requestBody"]["required"] = Value::Bool(true);
        }
    }
    described
}

fn reference(definition: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{definition}") })
}

/// FNV-1a over what decides a document's content: this crate's version, the
/// schema data, and the resources with their subresources.
fn hash<'a>(resources: impl Iterator<Item = &'a Resource>) -> u64 {
    let mut words = vec![env!("CARGO_PKG_VERSION")];
    for resource in resources {
        words.extend([resource.plural, resource.kind, resource.schema]);
        words.extend(resource.subresources.iter().map(|subresource| subresource.name));
        words.push(if resource.has_status { "status" } else { "" });
        words.push(if resource.namespaced { "namespaced" } else { "" });
    }
    let mut hash = fingerprint();
    for byte in words.join("\n").bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash
}

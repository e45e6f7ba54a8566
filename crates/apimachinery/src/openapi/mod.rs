//! The API's description of itself: OpenAPI version 2 (as JSON, and in the
//! protobuf form that kubectl asks for) and version 3 (one document per group
//! and version).
//!
//! Documents are made anew at each call, which takes tens of milliseconds:
//! servers keep them.

mod definitions;
mod operations;
mod protobuf;
mod v2;
mod v3;

#[cfg(test)]
mod tests;

use serde_json::{Value, json};

use crate::resource::Resource;

pub use v3::{group as v3_group, index as v3_index};

/// The OpenAPI v2 document of all resources.
pub fn v2_json(resources: &[Resource]) -> Value {
    v2::document(resources)
}

/// The same as a `gnostic.openapi.v2.Document` in protobuf.
pub fn v2_protobuf(resources: &[Resource]) -> Vec<u8> {
    v2::encode(&v2::document(resources))
}

/// Who speaks, and for which version of Kubernetes.
fn info() -> Value {
    json!({ "title": "Kubernetes", "version": "v1.36.0" })
}

/// `api/v1`, `apis/apps/v1`: where a resource's group and version are served.
fn prefix(resource: &Resource) -> String {
    if resource.group.is_empty() {
        format!("api/{}", resource.version)
    } else {
        format!("apis/{}/{}", resource.group, resource.version)
    }
}

//! What every Kubernetes-style API needs and no single kind: descriptions of
//! resources and the rules each kind brings, schemas, patches, field
//! management, selectors over JSON, and the API's own errors.
//!
//! Objects are [`serde_json::Value`]s. Everything here is a function of its
//! arguments: no IO, no clock, no threads. The server around it is
//! `steersman-apiserver`; the built-in kinds are in `steersman-apikinds`.
//!
//! Start with [`resource::Resource`] and [`rules::Rules`]; for what requests do
//! to objects, with [`schema::Schema`], [`patch`] and [`fields`].
//!
//! ```
//! use serde_json::json;
//! use steersman_apimachinery::{patch, schema::Schema};
//!
//! let pod = json!({ "spec": { "containers": [{ "name": "a" }, { "name": "b" }] } });
//! let change = json!({ "spec": { "containers": [{ "name": "b", "image": "x" }] } });
//! let kind = "io.k8s.api.core.v1.Pod";
//! let merged = patch::strategic::apply(Schema::kubernetes(), kind, &pod, &change)?;
//! assert_eq!(merged["spec"]["containers"], json!([{ "name": "a" }, { "name": "b", "image": "x" }]));
//! # Ok::<(), steersman_apimachinery::error::ApiError>(())
//! ```
#![warn(missing_docs)]

pub mod error;
pub mod fields;
pub mod openapi;
pub mod patch;
pub mod resource;
pub mod rules;
pub mod schema;
pub mod selector;
pub mod strict;

#[cfg(test)]
mod testing;

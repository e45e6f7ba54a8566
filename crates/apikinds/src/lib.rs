//! The built-in kinds of Kubernetes: the table of resources that the embedded
//! API server serves, and what each kind demands of its objects: defaults,
//! admission, validation, columns of `kubectl get`, selectable fields.
//!
//! Rules go as far as scheduling and kubectl can see; behaviour follows the
//! reference, v1.36. Everything is a function of its arguments: no IO, no clock.
//!
//! Start with [`table::resources`]; then any kind's file.
#![warn(missing_docs)]

mod bootstrap;
pub mod table;

mod absent;
mod autoscaling;
#[cfg(test)]
mod cluster;
mod config;
mod device;
mod event;
mod fields;
mod limit_range;
mod namespace;
mod network;
mod node;
mod pod;
mod policy;
mod rbac;
mod row;
mod scheduling;
mod selectors;
mod service;
mod simple;
mod storage;
mod syntax;
mod webhook;
mod workload;

pub use bootstrap::bootstrap;
pub use policy::rbac_policy;
pub use table::resources;

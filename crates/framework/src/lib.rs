//! The plugin contract: what a scheduling plugin is, what it may see, what it
//! may answer.
//!
//! The crate knows no plugin and does no IO. Start with
//! [`extensions::Extensions`] (what a plugin serves), [`verdict`] (what it
//! answers), [`cluster::Cluster`] (what it sees) and [`registry::Descriptor`]
//! (how it is announced).
//!
//! ```
//! use std::sync::Arc;
//!
//! use steersman_framework::extensions::{CycleCtx, Extensions, Filter};
//! use steersman_framework::point::PointSet;
//! use steersman_framework::registry::{Descriptor, Registry};
//! use steersman_framework::verdict::{FilterVerdict, PluginError, Rejection};
//! use steersman_api::node_info::NodeInfo;
//!
//! struct NoMondays;
//!
//! impl Filter for NoMondays {
//!     fn filter(&self, _: &CycleCtx<'_>, node: &NodeInfo) -> Result<FilterVerdict, PluginError> {
//!         Ok(match node.name().starts_with("monday") {
//!             true => FilterVerdict::Reject(Rejection::unresolvable("it is a Monday")),
//!             false => FilterVerdict::Fit,
//!         })
//!     }
//! }
//!
//! let mut registry = Registry::new();
//! registry.register(Descriptor::plain("NoMondays", PointSet::FILTER, |_| {
//!     Ok(Extensions { filter: Some(Arc::new(NoMondays)), ..Extensions::default() })
//! }))?;
//! # Ok::<(), steersman_framework::registry::DuplicatePlugin>(())
//! ```
#![warn(missing_docs)]

pub mod args;
pub mod assume;
pub mod cluster;
pub mod condition;
pub mod diagnosis;
pub mod events;
pub mod extender;
pub mod extensions;
pub mod observer;
pub mod point;
pub mod registry;
pub mod shared;
pub mod signature;
pub mod state;
pub mod verdict;
pub mod world;

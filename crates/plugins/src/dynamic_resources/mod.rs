//! The DynamicResources plugin.

pub mod args;

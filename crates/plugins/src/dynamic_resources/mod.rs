//! DynamicResources.
//!
//! # What it does
//!
//! Not available yet: only its arguments are checked and defaulted. It will
//! allocate devices for the resource claims of pods.
//!
//! # Rejects or scores when
//!
//! Never yet: profiles that enable it run without it, and say so.
//!
//! # Args
//!
//! `DynamicResourcesArgs`: `filterTimeout`, `bindingTimeout`.
//!
//! # Requeue events
//!
//! None yet.
//!
//! # Parity
//!
//! The arguments default and are refused as in kube-scheduler v1.36.

pub mod args;

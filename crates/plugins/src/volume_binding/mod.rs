//! VolumeBinding.
//!
//! # What it does
//!
//! Not available yet: only its arguments are checked and defaulted. It will match
//! pods with the volumes of their claims.
//!
//! # Rejects or scores when
//!
//! Never yet: profiles that enable it run without it, and say so.
//!
//! # Args
//!
//! `VolumeBindingArgs`: `bindTimeoutSeconds`, `shape`.
//!
//! # Requeue events
//!
//! None yet.
//!
//! # Parity
//!
//! The arguments default and are refused as in kube-scheduler v1.36.

pub mod args;

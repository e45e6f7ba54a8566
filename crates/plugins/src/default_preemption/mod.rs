//! DefaultPreemption.
//!
//! # What it does
//!
//! Not available yet: only its arguments are checked and defaulted. It will evict
//! pods of lower priority for a pod that fits nowhere.
//!
//! # Rejects or scores when
//!
//! Never yet: profiles that enable it run without it, and say so.
//!
//! # Args
//!
//! `DefaultPreemptionArgs`: `minCandidateNodesPercentage`, `minCandidateNodesAbsolute`.
//!
//! # Requeue events
//!
//! None yet.
//!
//! # Parity
//!
//! The arguments default and are refused as in kube-scheduler v1.36.

pub mod args;

//! For tests only: builders of pods and nodes, and a bench on which one plugin
//! runs by itself. Not part of any program.
//!
//! Start with [`pod()`], [`node()`] and [`bench::Bench`].
#![warn(missing_docs)]

pub mod bench;
mod build;

pub use build::{NodeBuilder, PodBuilder, decoded, node, pod};

//! Offline runs: from manifests to what the scheduling core takes in.
//!
//! It knows no scheduling rule, and nothing here talks to a cluster. Start with
//! [`input::Input`]: it reads files ([`manifest`]), does what an API server
//! does to objects before a scheduler sees them ([`admission`]), and turns
//! workloads into pods as the workload controllers do ([`expand`]).
//!
//! ```
//! use steersman_sim::input::{Input, InputFile};
//!
//! let pod = "{apiVersion: v1, kind: Pod, metadata: {name: p}, \
//!            spec: {containers: [{name: c, image: i}]}}";
//! let input = Input::from_files([InputFile::new("pod.yaml", pod)]);
//! assert!(input.problems.is_empty());
//! assert_eq!(input.pods().count(), 1);
//! ```

pub mod admission;
pub mod expand;
pub mod input;
pub mod manifest;
mod pods;
pub mod report;
pub mod run;

//! A cluster to play with, in one process: the embedded API server, simulated
//! nodes, small controllers and, if wanted, a scheduler.
//!
//! Nodes and controllers know the API through a client only, so they would do
//! the same for any cluster. They are pure functions from what has been seen to
//! what is to be done ([`engine::plan`]); one driver ([`engine`]) owns what has
//! been seen and carries plans out.
//!
//! It is not a place to run containers: pods only look as if they ran.
//!
//! Start with [`start`]; then [`Controller`] and any controller's `plan`.
//!
//! ```no_run
//! use steersman_playground::{Config, start};
//!
//! # async fn example() -> Result<(), steersman_playground::StartError> {
//! let running = start(Config { n_nodes: 3, ..Config::default() }).await?;
//! println!("{}", running.url);
//! running.shutdown().await;
//! # Ok(())
//! # }
//! ```

pub mod cluster;
mod controller;
mod decisions;
pub mod demo;
pub mod engine;
mod kubeconfig;
pub mod manifests;
pub mod node;
mod playground;
mod workload;

pub use controller::Controller;
pub use decisions::{Decision, decisions};
pub use kubeconfig::CONTEXT;
pub use playground::{Config, Failed, Running, SchedulerConfig, StartError, start};
/// What [`Config`] is made of, so that who starts a playground needs no other
/// crate for it.
pub use steersman_apiserver::{Audit, AuditLog, Authorization, Record};

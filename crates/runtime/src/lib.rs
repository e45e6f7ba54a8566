//! The live driver: schedules the pods of a cluster through its API server.
//!
//! ```text
//!  API server ─► reflector (one a kind) ─► driver ─► bindings, events, status ─► API server
//! ```
//!
//! A `reflector` lists and watches one kind and survives whatever happens to
//! the connection. The `driver` owns the core and has a thread of its own; it
//! never waits for the network. What it decides goes to tasks: bindings
//! (`world`), events (`record`) and the pods' status (`status`). Nothing
//! is kept on disk: after a restart, state is what the API server says.
//!
//! The crate makes no scheduling decision. Start with [`run`].
//!
//! ```no_run
//! use steersman_runtime::{Scheduling, run};
//! # use steersman_framework::registry::Registry;
//! # async fn example(client: kube::Client, registry: Registry) -> Result<(), Box<dyn std::error::Error>> {
//! let config = steersman_config::Config::default_for(&registry)?;
//! let shutdown = tokio_util::sync::CancellationToken::new();
//! run(Scheduling::new(client, &config, &registry), shutdown).await?;
//! # Ok(())
//! # }
//! ```
#![warn(missing_docs)]

mod api;
mod chance;
mod counters;
mod driver;
mod evict;
mod inspect;
mod listener;
#[cfg(test)]
mod logged;
mod record;
mod reflector;
mod run;
#[cfg(test)]
mod scenario;
mod status;
mod trace;
mod view;
pub mod views;
mod world;

pub use counters::{Count, Counters, Summary};
pub use inspect::{Desk, Inspector, Moment};
pub use listener::{Deaf, Listener, Placement, Placements, Several, Traced};
pub use run::{Error, Options, Scheduling, run};
pub use trace::{BindingSpans, IsSampled, Spans};

//! HTTP extenders: programs outside the scheduler that filter and rank nodes,
//! judge preemptions and bind pods, asked by the rules of
//! `k8s.io/kube-scheduler/extender/v1`.
//!
//! The crate talks HTTP; when to ask whom, and what an answer means, is the
//! core's business (`steersman_framework::extender`). Start with [`connect`];
//! `v1` has what goes over the wire, also for those who write an extender.
//!
//! A call takes the extender's `httpTimeout` at the longest, name resolution
//! and all, and half a second more when the machine is overloaded. Answers may
//! have 64 MiB. Redirects are not followed.
//!
//! ```
//! use steersman_extender::{Options, connect};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let registry = steersman_framework::registry::Registry::new();
//! # let registry = steersman_plugins::table::in_tree();
//! let text = "apiVersion: kubescheduler.config.k8s.io/v1
//! kind: KubeSchedulerConfiguration
//! extenders:
//! - urlPrefix: http://gpus.example/scheduler
//!   filterVerb: filter
//!   nodeCacheCapable: true
//! ";
//! let config = steersman_config::load(text, &registry)?.config;
//! let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
//! let extenders = connect(&config.extenders, runtime.handle(), &Options::default())?;
//! assert_eq!(extenders[0].name(), "http://gpus.example/scheduler");
//! # Ok(())
//! # }
//! ```
#![warn(missing_docs)]

mod client;
mod connect;
mod error;
mod examine;
mod handshake;
mod http_extender;
mod permission;
mod route;
mod text;
mod tls;
pub mod v1;

pub use connect::{Options, Proxies, connect};
pub use error::Error;
pub use examine::{Files, examine};
pub use permission::Permission;

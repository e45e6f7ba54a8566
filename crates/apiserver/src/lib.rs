//! An embedded Kubernetes API server: the cluster in memory, served to kubectl,
//! client-go, kube-rs and anybody else who speaks the API.
//!
//! It knows no kind. A kind is a row of
//! [`Resource`](steersman_apimachinery::resource::Resource) with its
//! [`Rules`](steersman_apimachinery::rules::Rules); the built-in ones are in
//! `steersman-apikinds`. The server does what all kinds share: storage with
//! optimistic concurrency (`store`), writing with admission, validation, field
//! ownership and deletion (`writes`), the REST verbs and their encodings
//! (`rest`), watches (`watch`), discovery, garbage collection (`gc`); and who
//! asks (`authenticate`, `tokens`) and may do what (`access`), for which it
//! reads the objects of RBAC.
//!
//! It does not call webhooks or serve custom resources.
//!
//! Start with [`ApiServer`], then `rest::answer`, which every request passes.
//!
//! ```no_run
//! # async fn example() -> std::io::Result<()> {
//! use steersman_apiserver::{ApiServer, Auth, Config, Tls};
//!
//! let server = ApiServer::new(Config::default());
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
//! server.serve(listener, Tls::Off, Auth::trusting(), std::future::pending::<()>()).await
//! # }
//! ```
#![warn(missing_docs)]

pub mod auth;
pub mod clock;
mod server;
pub mod tls;

mod access;
mod authenticate;
mod discovery;
mod gc;
mod health;
mod load;
mod meta;
mod openapi;
mod protobuf;
mod registry;
mod rest;
mod serve;
mod store;
mod tokens;
mod version;
mod watch;
mod writes;

pub use crate::access::Authorization;
pub use crate::access::audit::{Audit, AuditLog, GrantedBy, Record};
pub use crate::auth::{Auth, User};
pub use crate::clock::{Clock, SystemClock};
pub use crate::rest::Body;
pub use crate::server::{ApiServer, Config, LocalService};
pub use crate::tls::Tls;

#[cfg(test)]
mod harness;

//! What a Kubernetes component serves on its secure port: health checks,
//! metrics, configuration and debug pages, over TLS, to those whom the API
//! server knows and lets.
//!
//! It knows nothing of scheduling: any component can use it. It renders no
//! metrics and judges no health itself; pages and checks are given to it. It
//! serves nothing that changes the cluster.
//!
//! Start at [`Server`] (the listener), [`Site`] (what is behind which path),
//! [`Access`] (who may read it: [`Authenticator`], then [`Authorizer`]). Text
//! and status of answers are kube-scheduler's, so that probes, scrapers and
//! RBAC rules for it serve.
//!
//! ```
//! use steersman_serving::{Access, Reply, Server, ServerOptions, Site, check, page};
//! # use std::error::Error;
//! # async fn run() -> Result<(), Box<dyn Error>> {
//! let ready = check("cache-sync", || Err("still reading".to_owned()));
//! let site = Site::new()
//!     .health("/livez", vec![])?
//!     .health("/readyz", vec![ready])?
//!     .page("/version", page(|_| Ok(Reply::text("1.2.3"))))?;
//! let server = Server::bind(ServerOptions::new("127.0.0.1:0".parse()?)).await?;
//! let stop = tokio_util::sync::CancellationToken::new();
//! # stop.cancel();
//! server.serve(site, Access::Everyone, stop).await;
//! # Ok(())
//! # }
//! # tokio::runtime::Runtime::new().unwrap().block_on(run()).unwrap();
//! ```
#![warn(missing_docs)]

mod authn;
mod authz;
mod cache;
mod health;
mod page;
mod refusal;
mod review;
mod server;
mod site;
mod tls;
mod user;
mod zpages;

pub use authn::{
    AuthenticationError, AuthenticationOptions, Authenticator, LookupError, RequestHeaderOptions,
};
pub use authz::{AuthorizationError, AuthorizationOptions, Authorizer};
pub use health::{Check, check, ping, shutdown};
pub use page::{JSON, METRICS_TEXT, Page, PageError, PageRequest, Reply, Setting, TEXT, page};
pub use server::{Access, Limits, Server, ServerError, ServerOptions, Transport};
pub use site::{Site, SiteError};
pub use tls::{
    Certificate, MinVersion, SniPair, SniPairError, SuiteError, TlsError, TlsOptions,
    allowed_suites,
};
pub use zpages::{Flagz, Statusz, configz, flagz, statusz};

/// An error with all its causes, in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

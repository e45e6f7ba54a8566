//! A scheduler extender to learn from: two of them, to be exact, behind one
//! server.
//!
//! [`nodes`] takes part in every pod's placement: it keeps pods off nodes that
//! are annotated `example.com/refuse`, and prefers nodes that are labelled
//! `example.com/tier: fast`. [`gpus`] looks after a resource that Kubernetes
//! knows nothing of: `example.com/gpu`, of which a node has as many as its
//! annotation `example.com/gpus` says. `extender.yaml` shows how a scheduler is
//! told of both; the README how to try it.
//!
//! Everything is read from the API server when it is asked for: that is slow,
//! and there is nothing to go wrong. An extender for large clusters would watch
//! nodes and pods, say `nodeCacheCapable: true`, and be sent names only.

pub mod gpus;
pub mod nodes;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::post;
use gpus::Gpus;
use kube::Client;

/// A scheduler sends whole nodes, thousands at a time.
const LARGEST_QUESTION: usize = 256 << 20;

/// The server: every verb is a POST with JSON both ways.
pub fn app(cluster: Client) -> Router {
    let nodes = Router::new()
        .route("/filter", post(nodes::filter))
        .route("/prioritize", post(nodes::prioritize));
    let gpus = Router::new()
        .route("/filter", post(gpus::filter))
        .route("/preempt", post(gpus::preempt))
        .route("/bind", post(gpus::bind))
        .with_state(Gpus::new(cluster));
    Router::new()
        .nest("/nodes", nodes)
        .nest("/gpus", gpus)
        .layer(DefaultBodyLimit::max(LARGEST_QUESTION))
}

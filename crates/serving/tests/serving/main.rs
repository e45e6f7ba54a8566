//! The server as clients see it: HTTPS on loopback, against a small API server
//! that answers reviews.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed, its helpers too")]

mod access;
mod bench;
mod client;
mod fake_api;
mod hostile;
mod pages;
mod pki;
mod transport;

//! Extenders over real HTTP: each verb, and each way to misbehave.

mod lab;
mod logged;
mod misbehaviour;
mod server;
mod tls;
mod verbs;

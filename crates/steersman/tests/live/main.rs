//! The scheduler against the embedded API server, with everything that goes
//! wrong between them.
//!
//! `faults` puts a proxy in between that loses and refuses; `kill` kills the
//! scheduler's process again and again, and `replicas` freezes and kills the one of
//! several that leads. All check the same four promises
//! (`cluster::Audit`): every pod that fits is bound, none twice, no node is
//! over-committed, no pod is lost.

mod cluster;
mod faults;
mod kill;
mod proxy;
mod replicas;

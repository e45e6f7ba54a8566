//! The scheduler against the embedded API server, with everything that goes
//! wrong between them.
//!
//! `faults` puts a proxy in between that loses and refuses; `kill` kills the
//! scheduler's process again and again, `replicas` and `ha` freeze, kill and cut
//! off the one of several that leads. All check the same four promises
//! (`cluster::Audit`): every pod that fits is bound, none twice, no node is
//! over-committed, no pod is lost; `ha` also that nobody binds who does not lead.
//! `two` has two schedulers with pods of their own.

mod cluster;
mod faults;
mod ha;
mod kill;
#[path = "../process/mod.rs"]
mod process;
mod proxy;
mod replica;
mod replicas;
mod two;

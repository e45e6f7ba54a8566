//! `steersman run` from outside: its flags, and what it does with a
//! configuration that changes.

mod flags;
mod playground;
#[path = "../process/mod.rs"]
mod process;
mod program;
mod rbac;
mod reload;
mod serving;

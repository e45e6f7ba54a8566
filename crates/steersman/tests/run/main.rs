//! `steersman run` from outside: its flags, and what it does with a
//! configuration that changes.

mod flags;
mod program;
mod rbac;
mod reload;
mod serving;

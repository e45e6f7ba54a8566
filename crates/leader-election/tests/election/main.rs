//! Elections on the embedded API server, in virtual time, with connections that
//! fail in the ways of connections.

mod faults;
mod terms;
mod two_objects;
mod world;

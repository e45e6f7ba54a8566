//! The patches a client can send, as functions from one document to another.
//! Server-side apply, the fourth, is in [`crate::fields`].

pub mod json;
pub mod merge;
pub mod strategic;

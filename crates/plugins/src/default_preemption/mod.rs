//! The DefaultPreemption plugin.

pub mod args;

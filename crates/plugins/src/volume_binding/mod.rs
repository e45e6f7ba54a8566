//! The VolumeBinding plugin.

pub mod args;

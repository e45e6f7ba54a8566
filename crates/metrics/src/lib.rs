//! The scheduler's metrics, under the reference's names.
#![warn(missing_docs)]

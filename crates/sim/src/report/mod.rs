//! Showing how a simulation came out: for people and for machines.

mod data;
mod table;
mod text;
pub mod usage;

pub use data::ReportData;
pub use table::printable;
pub use text::{Detail, write_text};

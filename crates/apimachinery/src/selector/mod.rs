//! Selectors over labels and fields, as query parameters and as objects.

mod fields;
mod labels;
mod lexer;

#[cfg(test)]
mod tests;

pub use fields::{FieldSelector, FieldTerm};
pub use labels::{LabelSelector, from_value};

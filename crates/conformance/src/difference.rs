//! One thing that is not as expected.

use serde::Serialize;

/// Something that differs from the expectation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// What is compared: a [`crate::Field`]'s name, or for documents
    /// `defaulted` or `error`.
    pub field: &'static str,
    /// Where in the field: a node, a node and a plugin, a path in a document;
    /// empty when the field is one value.
    pub at: String,
    /// What the corpus says.
    pub expected: String,
    /// What this scheduler says.
    pub actual: String,
}

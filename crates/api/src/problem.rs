//! What is wrong with an input, and where: a path inside a document and a
//! sentence. Parsers and validators collect [`Problem`]s instead of stopping
//! at the first one, so that a user sees everything at once.

use std::fmt;

/// A place inside a document, written the way Kubernetes writes it:
/// `profiles[0].pluginConfig[1].args`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldPath(String);

impl FieldPath {
    /// The document itself; displays as nothing.
    pub fn root() -> Self {
        Self::default()
    }

    /// The member `name` of this object.
    #[must_use]
    pub fn field(&self, name: &str) -> Self {
        match self.0.as_str() {
            "" => Self(name.to_owned()),
            parent => Self(format!("{parent}.{name}")),
        }
    }

    /// The element `index` of this list.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        Self(format!("{}[{index}]", self.0))
    }

    /// The entry `key` of this map, for keys that are data rather than fields.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        Self(format!("{}[{key:?}]", self.0))
    }

    /// Whether this is the document itself.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The path as text; empty for the root.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&str> for FieldPath {
    fn from(path: &str) -> Self {
        Self(path.to_owned())
    }
}

/// One thing that is wrong with an input.
///
/// Displays as `path: what is wrong`; the reader of the file adds its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// Where it is.
    pub path: FieldPath,
    /// What was found and what is allowed; lowercase, without a final dot.
    pub message: String,
    /// What sort of mistake it is.
    pub kind: ProblemKind,
}

/// What sort of mistake a [`Problem`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProblemKind {
    /// A field that the type does not have: a slip of the pen, or a field of a
    /// newer version.
    UnknownField,
    /// Anything else.
    Other,
}

impl Problem {
    /// A problem at `path` in free words.
    pub fn new(path: &FieldPath, message: impl Into<String>) -> Self {
        Self { path: path.clone(), message: message.into(), kind: ProblemKind::Other }
    }

    /// A field that does not exist, where `known` ones do.
    pub fn unknown_field(path: &FieldPath, known: &[&str]) -> Self {
        let message = format!("unknown field, allowed: {}", known.join(", "));
        Self { path: path.clone(), message, kind: ProblemKind::UnknownField }
    }

    /// A value outside of what is allowed.
    pub fn invalid(path: &FieldPath, found: impl fmt::Display, allowed: impl fmt::Display) -> Self {
        Self::new(path, format!("found {found}, allowed: {allowed}"))
    }

    /// A field that must be set and is not.
    pub fn required(path: &FieldPath, what: impl fmt::Display) -> Self {
        Self::new(path, format!("required: {what}"))
    }

    /// A value that stands twice where each may stand once.
    pub fn duplicate(path: &FieldPath, found: impl fmt::Display) -> Self {
        Self::new(path, format!("duplicate of {found}; each may be listed once"))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_root() {
            return f.write_str(&self.message);
        }
        write!(f, "{}: {}", self.path, self.message)
    }
}

impl std::error::Error for Problem {}

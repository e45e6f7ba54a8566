//! Where an object comes from, and problems that name the place.

use std::fmt;
use std::sync::Arc;

use steersman_api::problem::{FieldPath, Problem};

/// A file, or a place in one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Source {
    /// The file as the user named it.
    pub file: Arc<str>,
    /// The document; `None`: the file as a whole.
    pub place: Option<Place>,
}

/// A document of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Counted from 1; documents without content do not count.
    pub document: usize,
    /// The line where the document starts (or where it is broken), from 1.
    pub line: usize,
    /// The element of a list object's `items`, from 0.
    pub item: Option<usize>,
}

impl Source {
    /// The file as a whole.
    pub fn file(name: impl Into<Arc<str>>) -> Self {
        Self { file: name.into(), place: None }
    }

    /// A document of the file.
    pub(crate) fn document(&self, document: usize, line: usize) -> Self {
        Self { file: self.file.clone(), place: Some(Place { document, line, item: None }) }
    }

    /// An element of the list object that is here; `line` is its own, when it
    /// is known.
    pub(crate) fn item(&self, item: usize, line: Option<usize>) -> Self {
        let place = self.place.map(|place| Place {
            item: Some(item),
            line: line.unwrap_or(place.line),
            ..place
        });
        Self { file: self.file.clone(), place }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        let Some(place) = self.place else { return Ok(()) };
        write!(f, ":{} (document {}", place.line, place.document)?;
        if let Some(item) = place.item {
            write!(f, ", items[{item}]")?;
        }
        f.write_str(")")
    }
}

/// Something wrong with the input, and where.
///
/// Displays as `file:line (document n): Kind namespace/name: path: what`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct InputProblem {
    /// Where.
    pub source: Source,
    /// The object, as `Kind namespace/name`, when it is known.
    pub object: Option<String>,
    /// What.
    pub problem: Problem,
}

impl InputProblem {
    /// A problem of a file or document, rather than of one object in it.
    pub(crate) fn at(source: Source, message: impl Into<String>) -> Self {
        Self { source, object: None, problem: Problem::new(&FieldPath::root(), message) }
    }
}

impl fmt::Display for InputProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.source)?;
        if let Some(object) = &self.object {
            write!(f, "{object}: ")?;
        }
        write!(f, "{}", self.problem)
    }
}

impl std::error::Error for InputProblem {}

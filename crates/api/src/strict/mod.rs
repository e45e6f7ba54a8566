//! Strict decoding of JSON values into Rust types, with every problem at once.
//!
//! Serde stops at the first mistake and does not say where it is. [`decode`]
//! goes on: it reports each field that the type does not have and each value of
//! the wrong kind with its path, and returns what it understood, so that a
//! validator can look at the rest. Like Kubernetes' decoders it takes `null`
//! for "not set".

mod value;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt;

use serde::de::{self, DeserializeOwned};
use serde_json::Value;

use crate::problem::{FieldPath, Problem};

/// A document with more mistakes than this is not worth a longer list.
const MAX_ATTEMPTS: usize = 100;

/// Decodes `value`, which stands at `at` in its document. What was wrong is
/// among the problems and counts as not set in the result; `None` when nothing
/// can be made of the rest.
///
/// Unknown fields are found wherever `T` is made of structs (derived ones and
/// those of `k8s_openapi`); maps take any key.
pub fn decode<T: DeserializeOwned>(
    value: &Value,
    at: &FieldPath,
    problems: &mut Vec<Problem>,
) -> Option<T> {
    // A visitor that refuses a value (an unknown variant, a malformed duration)
    // ends the whole attempt. The value is then taken for unset and decoding
    // starts again, so that what comes after it is looked at, too.
    let mut refused: Vec<Problem> = Vec::new();
    let mut unset: BTreeSet<FieldPath> = BTreeSet::new();
    for _ in 0..MAX_ATTEMPTS {
        let sink = Sink { unset: &unset, problems: RefCell::default() };
        let attempt = T::deserialize(value::Decoder::new(value, at.clone(), &sink));
        let mut found = sink.problems.into_inner();
        match attempt {
            Ok(decoded) => {
                problems.append(&mut refused);
                problems.append(&mut found);
                return Some(decoded);
            }
            Err(Error { message, at: place }) => {
                let place = place.unwrap_or_else(|| at.clone());
                if unset.contains(&place) {
                    problems.append(&mut found);
                    break;
                }
                // A value of the wrong kind reached the visitor as an empty
                // one; then what the visitor says is about that.
                let problem = found.into_iter().find(|problem| problem.path == place);
                refused.push(problem.unwrap_or_else(|| Problem::new(&place, message)));
                unset.insert(place);
            }
        }
    }
    problems.append(&mut refused);
    None
}

/// Appends those of `more` that are not about a value, or inside of one, that
/// `problems` complains about already: it counts as not set since [`decode`]
/// reported it, so they are mere consequences.
pub fn append_independent(problems: &mut Vec<Problem>, more: Vec<Problem>) {
    let known: BTreeSet<String> = problems.iter().map(|p| p.path.to_string()).collect();
    let is_new = |problem: &Problem| {
        let path = problem.path.as_str();
        let mut ends = path.match_indices(['.', '[']).map(|(end, _)| end).chain([path.len()]);
        !ends.any(|end| known.contains(&path[..end]))
    };
    problems.extend(more.into_iter().filter(is_new));
}

/// What one attempt knows and collects.
struct Sink<'a> {
    /// Values that earlier attempts could not make sense of.
    unset: &'a BTreeSet<FieldPath>,
    problems: RefCell<Vec<Problem>>,
}

impl Sink<'_> {
    fn report(&self, problem: Problem) {
        self.problems.borrow_mut().push(problem);
    }
}

/// A value that a visitor refused.
#[derive(Debug)]
struct Error {
    message: String,
    /// Where; filled in by the innermost object or list that sees the error.
    at: Option<FieldPath>,
}

impl Error {
    fn located(mut self, at: &FieldPath) -> Self {
        self.at.get_or_insert_with(|| at.clone());
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl de::Error for Error {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self { message: message.to_string(), at: None }
    }
}

#[cfg(test)]
mod tests;

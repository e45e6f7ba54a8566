//! Text to JSON: reads one YAML or JSON document within strict limits.

use serde_json::Value;
use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::{Error, Options, alias_limits, budget, options};
use steersman_api::problem::{FieldPath, Problem};

use crate::wire;

/// Configurations nest about ten levels deep; the rest is room for arguments of
/// plugins. Deeper ones would only cost stack.
const MAX_DEPTH: usize = 64;
/// The largest sensible configuration is far below.
const MAX_NODES: usize = 200_000;
/// What aliases may repeat in all; a bomb of aliases ends here.
const MAX_REPEATED: usize = 20_000;
/// Merge keys (`<<`) in a document. Merging is costlier than repeating.
const MAX_MERGES: usize = 200;

/// Reads the only document of `text`. Templates leave empty ones beside it.
pub(crate) fn parse(text: &str) -> Result<Value, Problem> {
    let root = FieldPath::root();
    let documents = serde_saphyr::from_multiple_with_options::<Value>(text, limits());
    let mut documents = documents.map_err(|error| describe(error.without_snippet()))?;
    match (documents.pop(), documents.len()) {
        (None | Some(Value::Null), 0) => Err(empty()),
        (Some(document @ Value::Object(_)), 0) => Ok(document),
        (_, 0) => {
            Err(Problem::new(&root, "found no object, allowed: a KubeSchedulerConfiguration"))
        }
        (_, others) => {
            let found = others + 1;
            Err(Problem::new(&root, format!("found {found} documents, allowed: one a file")))
        }
    }
}

fn limits() -> Options {
    options! {
        budget: budget! {
            max_depth: MAX_DEPTH,
            max_nodes: MAX_NODES,
            max_merge_keys: MAX_MERGES,
        },
        alias_limits: alias_limits! {
            max_total_replayed_events: MAX_REPEATED,
            max_replay_stack_depth: MAX_DEPTH,
        },
        with_snippet: false,
    }
}

fn empty() -> Problem {
    let what = format!("found nothing, allowed: a {} of {}", wire::KIND, wire::API_VERSION);
    Problem::new(&FieldPath::root(), what)
}

fn describe(error: &Error) -> Problem {
    let what = match error {
        Error::Eof { .. } => return empty(),
        Error::Budget { breach: BudgetBreach::Depth { .. }, .. } => {
            format!("found more levels than are allowed: {MAX_DEPTH}")
        }
        Error::Budget { .. } => format!(
            "found more than a configuration can sensibly hold, allowed: {MAX_NODES} values"
        ),
        Error::NonFiniteFloat { value, .. } => {
            format!("found {value:?}, allowed: a finite number")
        }
        Error::RecursiveReferencesRequireWeakTypes { .. } => {
            "found an alias of what it stands in, allowed: aliases of what ends before".to_owned()
        }
        Error::DuplicateMappingKey { key: Some(key), .. } => {
            format!("the key {key:?} stands twice in one object; each may be set once")
        }
        other => other.to_string(),
    };
    let Some(place) = error.location() else { return Problem::new(&FieldPath::root(), what) };
    let place = format!("line {}, column {}", place.line(), place.column());
    // The parser puts the place last, where a long message hides it.
    let what = what.trim_end_matches(&format!(" at {place}"));
    Problem::new(&FieldPath::root(), format!("{place}: {what}"))
}

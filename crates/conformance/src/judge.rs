//! From a line of a corpus to pass or fail.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::de::DeserializeOwned;
use serde_json::Value;
use steersman_config::{Config, ConfigErrors};

use crate::compare::compare;
use crate::corpus::Line;
use crate::decide::{Notes, Start};
use crate::difference::Difference;
use crate::document::Document;
use crate::field::Field;
use crate::report::Cause;
use crate::scenario::Scenario;

/// Judges lines.
pub(crate) struct Judge<'a> {
    start: Start,
    ignore: &'a BTreeSet<Field>,
}

/// A line and what came of it.
pub(crate) struct Judged {
    pub(crate) line: Line,
    /// `line 7` when the line does not even say its name.
    pub(crate) name: String,
    /// `None` when all is as expected.
    pub(crate) cause: Option<Cause>,
    pub(crate) notes: Notes,
}

impl<'a> Judge<'a> {
    pub(crate) fn new(ignore: &'a BTreeSet<Field>) -> Result<Self, ConfigErrors> {
        let registry = steersman_plugins::table::in_tree();
        let default_config = Config::default_for(&registry)?;
        Ok(Self { start: Start { registry, default_config }, ignore })
    }

    pub(crate) fn judge(&self, line: Line) -> Judged {
        let mut notes = Notes::default();
        let mut name = format!("line {}", line.number);
        // A scenario that brings the core down must not take the others with
        // it: nothing that it can leave behind is used again.
        let judged =
            catch_unwind(AssertUnwindSafe(|| self.differences(&line.text, &mut name, &mut notes)));
        let cause = match judged {
            Ok(Ok(differences)) if differences.is_empty() => None,
            Ok(Ok(differences)) => Some(Cause::Differs(differences)),
            Ok(Err(problem)) => Some(Cause::Unusable(problem)),
            Err(panic) => {
                let said = panic.downcast_ref::<String>().map(String::as_str);
                let said = said.or_else(|| panic.downcast_ref::<&str>().copied());
                Some(Cause::Unusable(format!("panicked: {}", said.unwrap_or("without a word"))))
            }
        };
        Judged { line, name, cause, notes }
    }

    fn differences(
        &self,
        text: &[u8],
        name: &mut String,
        notes: &mut Notes,
    ) -> Result<Vec<Difference>, String> {
        let json: Value =
            serde_json::from_slice(text).map_err(|error| format!("is not JSON: {error}"))?;
        if let Some(given) = json["name"].as_str() {
            given.clone_into(name);
        }
        if json.get("yaml").is_some() {
            let document: Document = read(json)?;
            document.name.clone_into(name);
            return Ok(document.compare(&self.start.registry));
        }
        if json.get("pod").is_some() || json.get("expect").is_some() {
            let mut scenario: Scenario = read(json)?;
            scenario.name.clone_into(name);
            let actual = scenario.decide(&self.start, notes)?;
            return Ok(compare(&scenario.expect, &actual, self.ignore));
        }
        Err("is neither a document (with `yaml`) nor a scenario (with `pod` and `expect`)".into())
    }
}

fn read<T: DeserializeOwned>(json: Value) -> Result<T, String> {
    serde_path_to_error::deserialize(json).map_err(|error| error.to_string())
}

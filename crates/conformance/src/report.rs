//! What a run found.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use crate::difference::Difference;
use crate::judge::Judged;

/// The result of a run; serializes to JSON, and [`Report::render`] makes it
/// readable.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Per family, in the order of the files.
    pub families: Vec<FamilyReport>,
    /// In the order of the files and their lines.
    pub failures: Vec<Failure>,
    /// How many objects of kinds that no scheduling rule reads were left out.
    pub ignored_objects: BTreeMap<String, usize>,
    /// What the scheduler says about itself, and in how many scenarios.
    pub notices: BTreeMap<String, usize>,
}

/// The lines of one family: of files with the same name up to their endings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FamilyReport {
    /// The files' name.
    pub name: String,
    /// Lines that are as expected.
    pub passed: usize,
    /// The others.
    pub failed: usize,
}

/// A line that is not as expected.
#[derive(Clone, Debug, Serialize)]
pub struct Failure {
    /// The scenario's or document's name.
    pub scenario: String,
    /// Its family.
    pub family: String,
    /// The file it stands in.
    pub file: PathBuf,
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong.
    pub cause: Cause,
}

/// Why a line fails.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Cause {
    /// Something differs from the expectation.
    Differs(Vec<Difference>),
    /// The line cannot be used: it is malformed, its configuration or an
    /// object is refused, or the scheduler panicked.
    Unusable(String),
}

impl Report {
    /// How many lines are as expected.
    pub fn passed(&self) -> usize {
        self.families.iter().map(|family| family.passed).sum()
    }

    /// How many are not.
    pub fn failed(&self) -> usize {
        self.families.iter().map(|family| family.failed).sum()
    }

    pub(crate) fn add(&mut self, judged: Judged) {
        let Judged { line, name, cause, notes } = judged;
        let family = self.family(&line.source.family);
        match cause {
            None => family.passed += 1,
            Some(cause) => {
                family.failed += 1;
                self.failures.push(Failure {
                    scenario: name,
                    family: line.source.family.clone(),
                    file: line.source.path.clone(),
                    line: line.number,
                    cause,
                });
            }
        }
        for (kind, count) in notes.ignored_objects {
            *self.ignored_objects.entry(kind).or_default() += count;
        }
        for notice in notes.notices {
            *self.notices.entry(notice).or_default() += 1;
        }
    }

    fn family(&mut self, name: &str) -> &mut FamilyReport {
        let at = self.families.iter().position(|family| family.name == name);
        let at = at.unwrap_or_else(|| {
            self.families.push(FamilyReport { name: name.to_owned(), passed: 0, failed: 0 });
            self.families.len() - 1
        });
        &mut self.families[at]
    }
}

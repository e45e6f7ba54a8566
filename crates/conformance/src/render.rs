//! A report for people.

use std::fmt;

use crate::difference::Difference;
use crate::report::{Cause, Failure, Report};

/// How much of the failures to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Show {
    /// So many failures, and of each the first dozen
    /// differences.
    First(usize),
    /// Everything.
    All,
}

impl Default for Show {
    fn default() -> Self {
        Self::First(20)
    }
}

/// How many differences of a failure are shown, unless all are.
const DIFFERENCES_SHOWN: usize = 12;

/// Values up to this many bytes, both together, stand in one line.
const SHORT: usize = 40;

/// A [`Report`] that displays. Its last line is `N passed, M failed`.
#[derive(Clone, Copy, Debug)]
pub struct Rendered<'a> {
    report: &'a Report,
    show: Show,
}

impl Report {
    /// The report for people: a table of families, the differences, and what
    /// else is worth knowing.
    pub fn render(&self, show: Show) -> Rendered<'_> {
        Rendered { report: self, show }
    }
}

impl fmt::Display for Rendered<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let report = self.report;
        let (n_failures, n_differences) = match self.show {
            Show::First(n) => (n, DIFFERENCES_SHOWN),
            Show::All => (usize::MAX, usize::MAX),
        };
        let longest = report.families.iter().map(|family| family.name.len()).max();
        let width = longest.unwrap_or_default().max("family".len());
        writeln!(f, "{:width$}  passed/failed", "family")?;
        for family in &report.families {
            writeln!(f, "{:width$}  {:>6}/{}", family.name, family.passed, family.failed)?;
        }
        for failure in report.failures.iter().take(n_failures) {
            writeln!(f)?;
            write_failure(f, failure, n_differences)?;
        }
        let hidden = report.failures.len().saturating_sub(n_failures);
        if hidden > 0 {
            writeln!(f, "\n{hidden} more failures are not shown")?;
        }
        writeln!(f)?;
        for (kind, count) in &report.ignored_objects {
            writeln!(f, "note: {count} objects of kind {kind} were ignored")?;
        }
        for (notice, count) in &report.notices {
            writeln!(f, "note: {notice} ({count} scenarios)")?;
        }
        writeln!(f, "{} passed, {} failed", report.passed(), report.failed())
    }
}

fn write_failure(
    f: &mut fmt::Formatter<'_>,
    failure: &Failure,
    n_differences: usize,
) -> fmt::Result {
    writeln!(f, "{} ({}:{})", failure.scenario, failure.file.display(), failure.line)?;
    match &failure.cause {
        Cause::Unusable(problem) => {
            for line in problem.lines() {
                writeln!(f, "  {line}")?;
            }
        }
        Cause::Differs(differences) => {
            for difference in differences.iter().take(n_differences) {
                write_difference(f, difference)?;
            }
            let hidden = differences.len().saturating_sub(n_differences);
            if hidden > 0 {
                writeln!(f, "  {hidden} more differences are not shown")?;
            }
        }
    }
    Ok(())
}

fn write_difference(f: &mut fmt::Formatter<'_>, difference: &Difference) -> fmt::Result {
    let Difference { field, at, expected, actual } = difference;
    let (expected, actual) = (or_empty(expected), or_empty(actual));
    let gap = if at.is_empty() { "" } else { " " };
    let short = expected.len() + actual.len() <= SHORT && !actual.contains('\n');
    if short {
        return writeln!(f, "  {field}{gap}{at}: expected {expected}, actual {actual}");
    }
    writeln!(f, "  {field}{gap}{at}")?;
    for (label, text) in [("expected:", expected), ("actual:  ", actual)] {
        let indented = text.replace('\n', "\n              ");
        writeln!(f, "    {label} {indented}")?;
    }
    Ok(())
}

/// An empty text is there to be seen.
fn or_empty(text: &str) -> &str {
    if text.is_empty() { "(empty)" } else { text }
}

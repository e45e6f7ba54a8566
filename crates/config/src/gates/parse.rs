//! The value of the flag `--feature-gates`.
//!
//! Source: the flag of kube-scheduler v1.36 and the wording of its complaints
//! (`component-base`, packages `featuregate` and `compatibility`).

use std::collections::BTreeMap;
use std::fmt;

use steersman_api::problem::{FieldPath, Problem};
use thiserror::Error;

use super::scheduling::{Effect, Gate};
use super::table::{NEEDS, ROWS};
use super::{ALL_ALPHA, ALL_BETA, FeatureGates, Row, Stage};

/// The component whose gates these are.
const COMPONENT: &str = "kube";
/// How many letters a slip of the pen may change.
const MAX_SLIP: usize = 3;

/// Why a gate cannot be set.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum GateError {
    /// A name without a value.
    #[error("missing bool value for {0}")]
    NoValue(String),
    /// A value that is neither true nor false.
    #[error("invalid value of {name}={found}, allowed: true, false")]
    NoBool {
        /// The gate.
        name: String,
        /// What stands after the `=`.
        found: String,
    },
    /// A name before a colon that is not `kube`.
    #[error("component not registered: {0}")]
    Component(String),
    /// Gates with and without a component.
    #[error("set feature gates with the prefix kube: or without it, not in both ways")]
    Mixed,
    /// A name that is none of a gate.
    #[error("unrecognized feature gate: {name}{}", meant(.nearest.as_deref()))]
    Unknown {
        /// What was written.
        name: String,
        /// The gate that may be meant.
        nearest: Option<&'static str>,
    },
    /// The gate may not be changed any more.
    #[error("cannot set feature gate {name} to {found}, feature is locked to {}", !.found)]
    Locked {
        /// The gate.
        name: &'static str,
        /// What it was to be.
        found: bool,
    },
    /// A feature is on that needs others that are off.
    #[error("{name} is enabled, but depends on features that are disabled: [{}]", .missing.join(" "))]
    Needs {
        /// The gate.
        name: &'static str,
        /// Those that it needs.
        missing: Vec<&'static str>,
    },
}

fn meant(nearest: Option<&str>) -> String {
    nearest.map_or(String::new(), |name| format!("; did you mean {name}?"))
}

/// Everything that is wrong with the value of the flag. Displays one a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateErrors {
    errors: Vec<GateError>,
}

impl GateErrors {
    /// The errors, at least one.
    pub fn errors(&self) -> &[GateError] {
        &self.errors
    }
}

impl fmt::Display for GateErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, error) in self.errors.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for GateErrors {}

pub(super) fn parse(text: &str) -> Result<(FeatureGates, Vec<Problem>), GateErrors> {
    let mut errors = Vec::new();
    let mut gates = FeatureGates::default();
    for (name, value) in assignments(text, &mut errors) {
        match Row::find(name) {
            None => {
                errors.push(GateError::Unknown { name: name.to_owned(), nearest: nearest(name) });
            }
            Some(row) if row.locked && row.default != value => {
                errors.push(GateError::Locked { name: row.name, found: value });
            }
            Some(row) => {
                gates.set.insert(row.name, value);
            }
        }
    }
    let notices = notices(&gates.set);
    switch_others(&mut gates);
    errors.extend(missing(&gates));
    if errors.is_empty() { Ok((gates, notices)) } else { Err(GateErrors { errors }) }
}

/// Takes the text apart. The last of several values of a gate counts.
fn assignments<'a>(text: &'a str, errors: &mut Vec<GateError>) -> BTreeMap<&'a str, bool> {
    let mut found = BTreeMap::new();
    let mut prefixed = [false, false];
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (component, assignment) = match part.split_once(':') {
            Some((component, rest)) => (Some(component.trim()), rest),
            None => (None, part),
        };
        prefixed[usize::from(component.is_some())] = true;
        if let Some(other) = component.filter(|name| *name != COMPONENT) {
            errors.push(GateError::Component(other.to_owned()));
            continue;
        }
        let Some((name, value)) = assignment.split_once('=') else {
            errors.push(GateError::NoValue(assignment.trim().to_owned()));
            continue;
        };
        let (name, value) = (name.trim(), value.trim());
        match read_bool(value) {
            Some(value) => {
                found.insert(name, value);
            }
            None => {
                errors.push(GateError::NoBool { name: name.to_owned(), found: value.to_owned() });
            }
        }
    }
    if prefixed == [true, true] {
        errors.push(GateError::Mixed);
    }
    found
}

/// What Go's `strconv.ParseBool` takes for a truth value.
fn read_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// `AllAlpha` and `AllBeta` set what was not set by name.
fn switch_others(gates: &mut FeatureGates) {
    for (switch, stage) in [(ALL_ALPHA, Stage::Alpha), (ALL_BETA, Stage::Beta)] {
        let Some(&value) = gates.set.get(switch) else { continue };
        for row in ROWS.iter().filter(|row| row.stage == stage && !row.is_switch()) {
            gates.set.entry(row.name).or_insert(value);
        }
    }
}

fn missing(gates: &FeatureGates) -> impl Iterator<Item = GateError> {
    let is_on = |name: &str| Row::find(name).is_some_and(|row| gates.value(row));
    NEEDS.iter().filter(move |(name, _)| is_on(name)).filter_map(move |(name, needed)| {
        let missing: Vec<_> = needed.iter().copied().filter(|other| !is_on(other)).collect();
        (!missing.is_empty()).then_some(GateError::Needs { name, missing })
    })
}

/// What to say about the gates that were set by name.
fn notices(set: &BTreeMap<&'static str, bool>) -> Vec<Problem> {
    let at = FieldPath::from("--feature-gates");
    let mut notices = Vec::new();
    for (name, value) in set {
        let Some(row) = Row::find(name) else { continue };
        let going = match row.stage {
            Stage::Ga => Some("the feature is GA"),
            Stage::Deprecated => Some("the gate is deprecated"),
            Stage::Alpha | Stage::Beta => None,
        };
        if let Some(why) = going {
            let what =
                format!("{name}={value}: {why}; the gate will be removed in a future release");
            notices.push(Problem::new(&at, what));
        }
        let effect = Gate::named(name).map(Gate::effect);
        if let (Some(Effect::None(why)), true) = (effect, *value != row.default) {
            notices.push(Problem::new(&at, format!("{name}={value}: no effect here: {why}")));
        }
    }
    notices
}

/// The gate whose name is most like `name`, if one is much like it.
fn nearest(name: &str) -> Option<&'static str> {
    // Comparing takes the longer the longer it is, and no gate is that long.
    if name.len() > 100 {
        return None;
    }
    let slips =
        |gate: &str| strsim::damerau_levenshtein(&name.to_lowercase(), &gate.to_lowercase());
    let (slips, nearest) = ROWS.iter().map(|row| (slips(row.name), row.name)).min()?;
    (slips <= MAX_SLIP && slips < name.len() / 2).then_some(nearest)
}

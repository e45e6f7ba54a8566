//! Feature gates: which ones kube-scheduler v1.36 knows, their stages and
//! defaults, and the value of its `--feature-gates` flag.
//!
//! All gates of the reference are accepted, since whoever replaces it keeps its
//! command line; what those that concern scheduling do here is in
//! [`Gate::effect`]. Setting one of these to something that has no effect is
//! said in a notice.
//!
//! ```
//! use steersman_config::gates::{FeatureGates, Gate};
//!
//! let (gates, notices) = FeatureGates::parse("SchedulerPopFromBackoffQ=false").unwrap();
//! assert!(!gates.enabled(Gate::SchedulerPopFromBackoffQ));
//! assert!(gates.enabled(Gate::NodeDeclaredFeatures));
//! assert!(notices.is_empty());
//! ```

mod parse;
mod scheduling;
mod table;

use std::collections::BTreeMap;

use steersman_api::problem::Problem;

pub use parse::{GateError, GateErrors};
pub use scheduling::{Effect, Gate};

/// The gate that switches all alpha features.
const ALL_ALPHA: &str = "AllAlpha";
/// The gate that switches all beta features.
const ALL_BETA: &str = "AllBeta";

/// How finished a feature is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Off by default, may go away.
    Alpha,
    /// Mostly on by default.
    Beta,
    /// Done; its gate goes away some releases later.
    Ga,
    /// On its way out.
    Deprecated,
}

impl Stage {
    /// As the label `stage` of the metric `kubernetes_feature_enabled` has it:
    /// empty for finished features.
    pub fn as_label(self) -> &'static str {
        match self {
            Self::Alpha => "ALPHA",
            Self::Beta => "BETA",
            Self::Ga => "",
            Self::Deprecated => "DEPRECATED",
        }
    }
}

/// What is known about a gate.
#[derive(Clone, Copy, Debug)]
struct Row {
    name: &'static str,
    stage: Stage,
    default: bool,
    locked: bool,
}

impl Row {
    fn find(name: &str) -> Option<&'static Self> {
        table::ROWS.iter().find(|row| row.name == name)
    }

    /// Whether this gate switches others.
    fn is_switch(&self) -> bool {
        self.name == ALL_ALPHA || self.name == ALL_BETA
    }
}

/// Which features are on.
///
/// The default is that of kube-scheduler v1.36 without the flag.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeatureGates {
    /// What differs from the defaults, or was set to them.
    set: BTreeMap<&'static str, bool>,
}

/// A gate as it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GateState {
    /// The name in the flag.
    pub name: &'static str,
    /// How finished the feature is.
    pub stage: Stage,
    /// What it is when nobody sets it.
    pub default: bool,
    /// Whether it may not be set to anything else.
    pub locked: bool,
    /// What it is.
    pub enabled: bool,
}

impl FeatureGates {
    /// Reads the value of `--feature-gates`: `A=true,B=false`, where a name may
    /// be preceded by the component `kube:`. Join the values of a repeated flag
    /// with commas. The notices tell of gates that will go away and of those
    /// that have no effect in this scheduler; their path is `--feature-gates`.
    ///
    /// # Errors
    /// All at once: text that is no list of assignments, gates that do not
    /// exist, gates that are locked, and gates that are on while others that
    /// they need are off.
    pub fn parse(text: &str) -> Result<(Self, Vec<Problem>), GateErrors> {
        parse::parse(text)
    }

    /// Whether a feature is on.
    pub fn enabled(&self, gate: Gate) -> bool {
        Row::find(gate.name()).is_some_and(|row| self.value(row))
    }

    /// Every gate of the reference, by name; `AllAlpha` and `AllBeta` among
    /// them.
    pub fn iter(&self) -> impl Iterator<Item = GateState> {
        table::ROWS.iter().map(|row| GateState {
            name: row.name,
            stage: row.stage,
            default: row.default,
            locked: row.locked,
            enabled: self.value(row),
        })
    }

    fn value(&self, row: &Row) -> bool {
        self.set.get(row.name).copied().unwrap_or(row.default)
    }
}

/// A line for every gate that a help text should offer, as the reference
/// lists them: those of finished and deprecated features are not worth setting.
pub fn help() -> impl Iterator<Item = String> {
    let offered = table::ROWS.iter().filter(|r| matches!(r.stage, Stage::Alpha | Stage::Beta));
    offered.map(|row| {
        format!("{}=true|false ({} - default={})", row.name, row.stage.as_label(), row.default)
    })
}

#[cfg(test)]
mod tests;

//! The parts of a decision that are compared.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// A part of a scenario's expectation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Field {
    /// Which nodes are feasible.
    Feasible,
    /// How a node that is feasible on neither side is rejected.
    Rejected,
    /// The verdict on nodes that no Filter saw.
    RejectedOthers,
    /// Scores by node and plugin.
    Scores,
    /// Scores by node.
    Totals,
    /// The message before PostFilter.
    Message,
    /// The message after PostFilter.
    FullMessage,
    /// The plugins whose events may bring the pod back.
    UnschedulablePlugins,
    /// How a failed cycle words its error; that it fails is always compared.
    Error,
    /// What PostFilter did.
    Preemption,
}

impl Field {
    /// All of them, in the order of the format's description.
    pub const ALL: [Self; 10] = [
        Self::Error,
        Self::Feasible,
        Self::Rejected,
        Self::RejectedOthers,
        Self::Scores,
        Self::Totals,
        Self::Message,
        Self::FullMessage,
        Self::UnschedulablePlugins,
        Self::Preemption,
    ];

    /// The name in the corpus.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Feasible => "feasible",
            Self::Rejected => "rejected",
            Self::RejectedOthers => "rejectedOthers",
            Self::Scores => "scores",
            Self::Totals => "totals",
            Self::Message => "message",
            Self::FullMessage => "fullMessage",
            Self::UnschedulablePlugins => "unschedulablePlugins",
            Self::Error => "error",
            Self::Preemption => "preemption",
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that is no [`Field`]'s.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown field {0:?}, allowed: {all}", all = Field::ALL.map(Field::name).join(", "))]
pub struct UnknownField(pub String);

impl FromStr for Field {
    type Err = UnknownField;

    fn from_str(name: &str) -> Result<Self, UnknownField> {
        let found = Self::ALL.into_iter().find(|field| field.name() == name);
        found.ok_or_else(|| UnknownField(name.to_owned()))
    }
}

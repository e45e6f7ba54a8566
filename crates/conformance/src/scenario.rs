//! A scenario as the corpus writes it. Fields that are not known are refused:
//! an expectation that nobody reads would always be met.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Deserialize;
use serde_json::Value;

/// A cluster, a pending pod, and what is decided about it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scenario {
    pub(crate) name: String,
    pub(crate) config: Option<Value>,
    pub(crate) objects: Vec<Value>,
    pub(crate) pod: Value,
    pub(crate) expect: Expect,
}

/// What the reference did.
#[derive(Debug, Deserialize)]
#[serde(try_from = "ExpectFields")]
pub(crate) enum Expect {
    /// The cycle failed for another reason than fit.
    Error(String),
    /// It decided.
    Decision(Box<Expected>),
}

/// A decision. What is `None` was not recorded and is not compared; what is
/// empty was recorded by leaving it out.
#[derive(Debug, Default)]
pub(crate) struct Expected {
    pub(crate) feasible: BTreeSet<String>,
    pub(crate) rejected: BTreeMap<String, Rejected>,
    pub(crate) rejected_others: Option<Rejected>,
    pub(crate) scores: Option<Scores>,
    pub(crate) totals: Option<BTreeMap<String, i64>>,
    pub(crate) message: Option<String>,
    pub(crate) full_message: Option<String>,
    pub(crate) unschedulable_plugins: BTreeSet<String>,
    pub(crate) preemption: Option<Preemption>,
}

/// Normalised and weighted scores: node, plugin, score.
pub(crate) type Scores = BTreeMap<String, BTreeMap<String, i64>>;

/// A node's rejection.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rejected {
    pub(crate) code: String,
    pub(crate) plugin: Option<String>,
    /// In any order: [`Rejected::sorted`].
    #[serde(default)]
    pub(crate) reasons: Vec<String>,
}

/// What PostFilter did.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Preemption {
    pub(crate) code: String,
    #[serde(default)]
    pub(crate) message: String,
    /// One of these must be chosen.
    #[serde(default)]
    pub(crate) any_of: Vec<Nomination>,
}

/// A nominated node, and who makes room on it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Nomination {
    pub(crate) nominated_node: String,
    /// Namespace and name.
    #[serde(default)]
    pub(crate) victims: BTreeSet<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ExpectFields {
    error: Option<String>,
    feasible: Option<BTreeSet<String>>,
    rejected: Option<BTreeMap<String, Rejected>>,
    rejected_others: Option<Rejected>,
    scores: Option<Scores>,
    totals: Option<BTreeMap<String, i64>>,
    message: Option<String>,
    full_message: Option<String>,
    unschedulable_plugins: Option<BTreeSet<String>>,
    preemption: Option<Preemption>,
}

impl TryFrom<ExpectFields> for Expect {
    type Error = &'static str;

    fn try_from(fields: ExpectFields) -> Result<Self, &'static str> {
        match (fields.error, fields.feasible) {
            (Some(error), None) => Ok(Self::Error(error)),
            (None, Some(feasible)) => Ok(Self::Decision(Box::new(Expected {
                feasible,
                rejected: sorted(fields.rejected.unwrap_or_default()),
                rejected_others: fields.rejected_others.map(Rejected::sorted),
                scores: fields.scores,
                totals: fields.totals,
                message: fields.message,
                full_message: fields.full_message,
                unschedulable_plugins: fields.unschedulable_plugins.unwrap_or_default(),
                preemption: fields.preemption,
            }))),
            _ => Err("one of the fields `error` and `feasible` must be there, and only one"),
        }
    }
}

fn sorted(rejected: BTreeMap<String, Rejected>) -> BTreeMap<String, Rejected> {
    rejected.into_iter().map(|(node, rejected)| (node, rejected.sorted())).collect()
}

impl Rejected {
    /// The same with its reasons in order, for comparing.
    pub(crate) fn sorted(mut self) -> Self {
        self.reasons.sort();
        self
    }
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.code)?;
        if let Some(plugin) = &self.plugin {
            write!(f, " by {plugin}")?;
        }
        if !self.reasons.is_empty() {
            write!(f, ": {}", self.reasons.join(", "))?;
        }
        Ok(())
    }
}

impl fmt::Display for Nomination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.nominated_node)?;
        for (i, victim) in self.victims.iter().enumerate() {
            write!(f, "{}{victim}", if i == 0 { " without " } else { ", " })?;
        }
        Ok(())
    }
}

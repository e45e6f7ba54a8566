//! Selectors over labels.
//!
//! Source: the API documentation of `LabelSelector` and `NodeSelector`.

use k8s_openapi::api::core::v1 as core_v1;
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta_v1;

use crate::labels::Labels;
use crate::name::Name;
use crate::problem::{FieldPath, Problem};

/// Which sets of labels are meant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Selector {
    /// None at all: what an absent selector means in most places.
    Nothing,
    /// Those that meet every requirement; with no requirement, all.
    All(Box<[Requirement]>),
}

/// One condition on labels.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Requirement {
    /// The label's key.
    pub key: Name,
    /// What its value must be.
    pub operator: Operator,
}

/// What a label's value must be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operator {
    /// One of these.
    In(Box<[Name]>),
    /// Absent, or none of these.
    NotIn(Box<[Name]>),
    /// Anything, as long as the label is there.
    Exists,
    /// The label must be absent.
    DoesNotExist,
    /// A whole number above this one.
    Gt(i64),
    /// A whole number below this one.
    Lt(i64),
}

impl Requirement {
    /// `key` must have exactly this value.
    pub fn equals(key: Name, value: Name) -> Self {
        Self { key, operator: Operator::In(Box::new([value])) }
    }

    /// Whether `labels` meet the condition.
    pub fn matches(&self, labels: &Labels) -> bool {
        let value = labels.get(&self.key);
        match &self.operator {
            Operator::In(allowed) => value.is_some_and(|v| allowed.contains(v)),
            Operator::NotIn(refused) => value.is_none_or(|v| !refused.contains(v)),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::Gt(bound) => number(value).is_some_and(|n| n > *bound),
            Operator::Lt(bound) => number(value).is_some_and(|n| n < *bound),
        }
    }
}

fn number(value: Option<&Name>) -> Option<i64> {
    value.and_then(|v| v.parse().ok())
}

impl Selector {
    /// All sets of labels.
    pub fn everything() -> Self {
        Self::All(Box::default())
    }

    /// The sets that hold every pair of `labels`.
    pub fn from_labels(labels: &Labels) -> Self {
        Self::All(labels.iter().map(|(k, v)| Requirement::equals(k.clone(), v.clone())).collect())
    }

    /// Whether `labels` are meant.
    pub fn matches(&self, labels: &Labels) -> bool {
        match self {
            Self::Nothing => false,
            Self::All(requirements) => requirements.iter().all(|r| r.matches(labels)),
        }
    }

    /// Whether every set of labels is meant.
    pub fn is_everything(&self) -> bool {
        matches!(self, Self::All(requirements) if requirements.is_empty())
    }

    /// The sets that this selector means and that meet `more` as well.
    #[must_use]
    pub fn and(self, more: impl IntoIterator<Item = Requirement>) -> Self {
        let Self::All(requirements) = self else { return Self::Nothing };
        let mut requirements = requirements.into_vec();
        requirements.extend(more);
        requirements.sort();
        requirements.dedup();
        Self::All(requirements.into())
    }

    /// Reads a label selector; an absent one means nothing, an empty one
    /// everything. A requirement that cannot be read makes it match nothing.
    pub fn from_k8s(
        selector: Option<&meta_v1::LabelSelector>,
        at: &FieldPath,
        problems: &mut Vec<Problem>,
    ) -> Self {
        let Some(selector) = selector else { return Self::Nothing };
        let mut requirements: Vec<Requirement> = selector
            .match_labels
            .iter()
            .flatten()
            .map(|(k, v)| Requirement::equals(k.as_str().into(), v.as_str().into()))
            .collect();
        let found_before = problems.len();
        for (i, expression) in selector.match_expressions.iter().flatten().enumerate() {
            let at = at.field("matchExpressions").index(i);
            let values = expression.values.as_deref().unwrap_or_default();
            let operator = match expression.operator.as_str() {
                op @ ("In" | "NotIn" | "Exists" | "DoesNotExist") => set_operator(op, values, &at),
                other => Err(Problem::invalid(
                    &at.field("operator"),
                    format_args!("{other:?}"),
                    "In, NotIn, Exists, DoesNotExist",
                )),
            };
            match operator {
                Ok(operator) => {
                    requirements.push(Requirement { key: expression.key.as_str().into(), operator })
                }
                Err(problem) => problems.push(problem),
            }
        }
        if problems.len() > found_before {
            return Self::Nothing;
        }
        // Equal selectors in different order are one selector.
        requirements.sort();
        requirements.dedup();
        Self::All(requirements.into())
    }
}

fn names(values: &[String]) -> Box<[Name]> {
    let mut names: Vec<Name> = values.iter().map(|v| v.as_str().into()).collect();
    names.sort();
    names.dedup();
    names.into()
}

/// The operators that labels and nodes share.
fn set_operator(operator: &str, values: &[String], at: &FieldPath) -> Result<Operator, Problem> {
    let wants_values = matches!(operator, "In" | "NotIn");
    if wants_values && values.is_empty() {
        return Err(Problem::required(
            &at.field("values"),
            format_args!("operator {operator} needs at least one value"),
        ));
    }
    if !wants_values && !values.is_empty() {
        return Err(Problem::invalid(
            &at.field("values"),
            format_args!("{} values", values.len()),
            format_args!("none with operator {operator}"),
        ));
    }
    Ok(match operator {
        "In" => Operator::In(names(values)),
        "NotIn" => Operator::NotIn(names(values)),
        "Exists" => Operator::Exists,
        _ => Operator::DoesNotExist,
    })
}

/// Which nodes are meant: those that meet any of the terms.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeSelector {
    /// The terms; a node must meet one. None means no node.
    pub terms: Box<[NodeSelectorTerm]>,
}

/// Conditions of which a node must meet all.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeSelectorTerm {
    /// On the node's labels.
    pub labels: Box<[Requirement]>,
    /// On the node's fields.
    pub fields: Box<[FieldRequirement]>,
    /// `false` for a term that is empty or cannot be read: no node meets it.
    pub usable: bool,
}

/// A condition on a node's name, the only field that can be selected by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldRequirement {
    /// The field, `metadata.name` in practice; any other is always empty.
    pub field: Name,
    /// The value to compare with.
    pub value: Name,
    /// Whether it must be equal (`In`) or differ (`NotIn`).
    pub equal: bool,
}

/// The one field that nodes can be selected by.
pub const METADATA_NAME: &str = "metadata.name";

impl NodeSelector {
    /// Whether a node of that name and those labels is meant.
    pub fn matches(&self, node_name: &str, labels: &Labels) -> bool {
        self.terms.iter().any(|term| term.matches(node_name, labels))
    }

    /// Reads a node selector. Terms that cannot be read match no node; the
    /// others still count.
    pub fn from_k8s(
        selector: &core_v1::NodeSelector,
        at: &FieldPath,
        problems: &mut Vec<Problem>,
    ) -> Self {
        let at = at.field("nodeSelectorTerms");
        let terms = selector.node_selector_terms.iter().enumerate();
        Self {
            terms: terms
                .map(|(i, term)| NodeSelectorTerm::from_k8s(term, &at.index(i), problems))
                .collect(),
        }
    }
}

impl NodeSelectorTerm {
    /// Whether a node of that name and those labels meets every condition.
    pub fn matches(&self, node_name: &str, labels: &Labels) -> bool {
        self.usable
            && self.labels.iter().all(|r| r.matches(labels))
            && self.fields.iter().all(|r| r.matches(node_name))
    }

    /// Reads a term. One without conditions matches no node.
    pub fn from_k8s(
        term: &core_v1::NodeSelectorTerm,
        at: &FieldPath,
        problems: &mut Vec<Problem>,
    ) -> Self {
        let expressions = term.match_expressions.as_deref().unwrap_or_default();
        let fields = term.match_fields.as_deref().unwrap_or_default();
        let found_before = problems.len();
        let labels = collect(expressions, &at.field("matchExpressions"), problems, |r, at| {
            Ok(Requirement { key: r.key.as_str().into(), operator: node_operator(r, at)? })
        });
        let fields = collect(fields, &at.field("matchFields"), problems, field_requirement);
        let usable = problems.len() == found_before && !(labels.is_empty() && fields.is_empty());
        Self { labels, fields, usable }
    }
}

fn collect<T>(
    requirements: &[core_v1::NodeSelectorRequirement],
    at: &FieldPath,
    problems: &mut Vec<Problem>,
    read: impl Fn(&core_v1::NodeSelectorRequirement, &FieldPath) -> Result<T, Problem>,
) -> Box<[T]> {
    let mut read_well = Vec::with_capacity(requirements.len());
    for (i, requirement) in requirements.iter().enumerate() {
        match read(requirement, &at.index(i)) {
            Ok(good) => read_well.push(good),
            Err(problem) => problems.push(problem),
        }
    }
    read_well.into()
}

fn node_operator(
    requirement: &core_v1::NodeSelectorRequirement,
    at: &FieldPath,
) -> Result<Operator, Problem> {
    let values = requirement.values.as_deref().unwrap_or_default();
    match requirement.operator.as_str() {
        op @ ("In" | "NotIn" | "Exists" | "DoesNotExist") => set_operator(op, values, at),
        op @ ("Gt" | "Lt") => {
            let [value] = values else {
                return Err(Problem::invalid(
                    &at.field("values"),
                    format_args!("{} values", values.len()),
                    format_args!("exactly one with operator {op}"),
                ));
            };
            let bound = value.parse().map_err(|_| {
                Problem::invalid(
                    &at.field("values").index(0),
                    format_args!("{value:?}"),
                    "a whole number",
                )
            })?;
            Ok(if op == "Gt" { Operator::Gt(bound) } else { Operator::Lt(bound) })
        }
        other => Err(Problem::invalid(
            &at.field("operator"),
            format_args!("{other:?}"),
            "In, NotIn, Exists, DoesNotExist, Gt, Lt",
        )),
    }
}

fn field_requirement(
    requirement: &core_v1::NodeSelectorRequirement,
    at: &FieldPath,
) -> Result<FieldRequirement, Problem> {
    let equal = match requirement.operator.as_str() {
        "In" => true,
        "NotIn" => false,
        other => {
            return Err(Problem::invalid(
                &at.field("operator"),
                format_args!("{other:?}"),
                "In, NotIn",
            ));
        }
    };
    let values = requirement.values.as_deref().unwrap_or_default();
    let [value] = values else {
        let found = format!("{} values", values.len());
        return Err(Problem::invalid(&at.field("values"), found, "exactly one"));
    };
    Ok(FieldRequirement {
        field: requirement.key.as_str().into(),
        value: value.as_str().into(),
        equal,
    })
}

impl FieldRequirement {
    fn matches(&self, node_name: &str) -> bool {
        let found = if self.field == METADATA_NAME { node_name } else { "" };
        (self.value == found) == self.equal
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node_selector(json: serde_json::Value) -> (NodeSelector, Vec<String>) {
        let mut problems = Vec::new();
        let selector = serde_json::from_value(json).expect("a node selector");
        let read = NodeSelector::from_k8s(&selector, &"s".into(), &mut problems);
        (read, problems.iter().map(ToString::to_string).collect())
    }

    #[track_caller]
    fn check(operator: &str, values: &[&str], label: Option<&str>, matches: bool) {
        let (selector, problems) = node_selector(serde_json::json!({"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "k", "operator": operator, "values": values}]}]}));
        assert_eq!(problems, Vec::<String>::new());
        let labels = Labels::from_pairs(label.map(|v| ("k", v)));
        assert_eq!(selector.matches("n", &labels), matches, "{operator} {values:?} {label:?}");
    }

    #[test]
    fn compares_labels_by_operator() {
        check("In", &["a", "b"], Some("b"), true);
        check("In", &["a", "b"], Some("c"), false);
        check("In", &["a"], None, false);
        check("NotIn", &["a"], Some("b"), true);
        check("NotIn", &["a"], Some("a"), false);
        check("NotIn", &["a"], None, true);
        check("Exists", &[], Some(""), true);
        check("Exists", &[], None, false);
        check("DoesNotExist", &[], None, true);
        check("DoesNotExist", &[], Some(""), false);
        check("Gt", &["3"], Some("4"), true);
        check("Gt", &["3"], Some("3"), false);
        check("Gt", &["3"], Some("many"), false);
        check("Lt", &["3"], Some("-4"), true);
        check("Lt", &["3"], None, false);
    }

    #[test]
    fn unreadable_terms_match_no_node_and_leave_the_others() {
        let (selector, problems) = node_selector(serde_json::json!({"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "k", "operator": "Like", "values": ["a"]}]},
            {},
            {"matchExpressions": [{"key": "k", "operator": "Gt", "values": ["x"]}]},
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]}));
        assert_eq!(
            problems,
            [
                "s.nodeSelectorTerms[0].matchExpressions[0].operator: found \"Like\", \
                 allowed: In, NotIn, Exists, DoesNotExist, Gt, Lt",
                "s.nodeSelectorTerms[2].matchExpressions[0].values[0]: found \"x\", \
                 allowed: a whole number",
            ]
        );
        let labels = Labels::from_pairs([("k", "a")]);
        assert!(selector.matches("n1", &labels));
        assert!(!selector.matches("n2", &labels));
    }

    #[test]
    fn absent_label_selector_means_nothing_and_empty_one_everything() {
        let mut problems = Vec::new();
        let at = FieldPath::root();
        let empty = meta_v1::LabelSelector::default();
        assert!(Selector::from_k8s(Some(&empty), &at, &mut problems).matches(&Labels::default()));
        assert!(!Selector::from_k8s(None, &at, &mut problems).matches(&Labels::default()));
    }
}

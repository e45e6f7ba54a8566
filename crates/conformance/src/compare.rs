//! Compares a decision with what is expected.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use crate::decide::{Actual, Decision, Unschedulable};
use crate::difference::Difference;
use crate::field::Field;
use crate::scenario::{Expect, Expected, Preemption, Rejected, Scores};

/// Everything that differs, but for fields in `ignore`.
pub(crate) fn compare(
    expect: &Expect,
    actual: &Actual,
    ignore: &BTreeSet<Field>,
) -> Vec<Difference> {
    let mut found = Differences { ignore, list: Vec::new() };
    match (expect, actual) {
        (Expect::Error(expected), Actual::Error(actual)) => {
            found.of_texts(Field::Error, "", expected, actual);
        }
        // That a cycle fails is more than a field: it cannot be ignored.
        (Expect::Error(expected), Actual::Decision(decision)) => {
            let actual = format!("a decision, feasible nodes: {}", decision.scores.len());
            found.list.push(difference(Field::Error, "", expected, actual));
        }
        (Expect::Decision(_), Actual::Error(error)) => {
            found.list.push(difference(Field::Error, "", "no error", error));
        }
        (Expect::Decision(expected), Actual::Decision(actual)) => {
            found.of_decisions(expected, actual);
        }
    }
    found.list
}

struct Differences<'a> {
    ignore: &'a BTreeSet<Field>,
    list: Vec<Difference>,
}

/// What one side says about a node.
#[derive(PartialEq)]
enum Verdict<'a> {
    Feasible,
    Rejected(&'a Rejected),
    /// What stands for all other nodes.
    Others,
}

impl Differences<'_> {
    fn of_decisions(&mut self, expected: &Expected, actual: &Decision) {
        self.of_nodes(expected, actual);
        if let Some(scores) = &expected.scores {
            self.of_scores(scores, &actual.scores);
        }
        if let Some(totals) = &expected.totals {
            self.of_totals(totals, &actual.totals);
        }
        self.of_texts(
            Field::UnschedulablePlugins,
            "",
            &listed(&expected.unschedulable_plugins),
            &listed(&actual.unschedulable_plugins),
        );
        let said = actual.unschedulable.as_ref();
        let none = "none, a node is feasible";
        if let Some(message) = &expected.message {
            self.of_texts(Field::Message, "", message, said.map_or(none, |s| &s.message));
        }
        if let Some(message) = &expected.full_message {
            self.of_texts(Field::FullMessage, "", message, said.map_or(none, |s| &s.full_message));
        }
        match (&expected.preemption, said) {
            (Some(expected), Some(said)) => self.of_preemptions(expected, said),
            (Some(expected), None) => self.add(Field::Preemption, "code", &expected.code, none),
            (None, _) => {}
        }
    }

    fn of_nodes(&mut self, expected: &Expected, actual: &Decision) {
        let expects = |node: &str| match expected.rejected.get(node) {
            _ if expected.feasible.contains(node) => Verdict::Feasible,
            Some(rejected) => Verdict::Rejected(rejected),
            None => Verdict::Others,
        };
        let says = |node: &str| match actual.rejected.get(node) {
            _ if actual.scores.contains_key(node) => Verdict::Feasible,
            Some(rejected) => Verdict::Rejected(rejected),
            None => Verdict::Others,
        };
        let nodes: BTreeSet<&String> =
            actual.nodes.iter().chain(&expected.feasible).chain(expected.rejected.keys()).collect();
        for node in &nodes {
            let (expects, says) = (expects(node), says(node));
            if expects == says {
                continue;
            }
            let field = if expects == Verdict::Feasible || says == Verdict::Feasible {
                Field::Feasible
            } else {
                Field::Rejected
            };
            let said = if actual.nodes.contains(*node) {
                words(&says, actual.rejected_others.as_ref())
            } else {
                "there is no such node".to_owned()
            };
            self.add(field, node, words(&expects, expected.rejected_others.as_ref()), said);
        }
        // Where only one side speaks of others, the nodes told so above.
        let others_expected = actual.nodes.iter().any(|node| expects(node) == Verdict::Others);
        let others_said = actual.nodes.iter().any(|node| says(node) == Verdict::Others);
        if others_expected && others_said {
            let (expected, actual) = (&expected.rejected_others, &actual.rejected_others);
            if expected != actual {
                let text = |others: &Option<Rejected>| {
                    others.as_ref().map_or("nothing".to_owned(), ToString::to_string)
                };
                self.add(Field::RejectedOthers, "", text(expected), text(actual));
            }
        }
    }

    fn of_scores(&mut self, expected: &Scores, actual: &Scores) {
        let nodes: BTreeSet<&String> = expected.keys().chain(actual.keys()).collect();
        for node in nodes {
            match (expected.get(node), actual.get(node)) {
                (Some(expected), Some(actual)) => {
                    let plugins: BTreeSet<&String> = expected.keys().chain(actual.keys()).collect();
                    for plugin in plugins {
                        let of = |scores: &BTreeMap<String, i64>| {
                            scores.get(plugin).copied().unwrap_or(0).to_string()
                        };
                        let at = format!("{node} {plugin}");
                        self.of_texts(Field::Scores, &at, &of(expected), &of(actual));
                    }
                }
                (expected, actual) => {
                    self.add(Field::Scores, node, scored(expected), scored(actual));
                }
            }
        }
    }

    fn of_totals(&mut self, expected: &BTreeMap<String, i64>, actual: &BTreeMap<String, i64>) {
        let nodes: BTreeSet<&String> = expected.keys().chain(actual.keys()).collect();
        let total = |total: Option<&i64>| total.map_or("none".to_owned(), ToString::to_string);
        for node in nodes {
            let (expected, actual) = (total(expected.get(node)), total(actual.get(node)));
            self.of_texts(Field::Totals, node, &expected, &actual);
        }
    }

    fn of_preemptions(&mut self, expected: &Preemption, actual: &Unschedulable) {
        self.of_texts(Field::Preemption, "code", &expected.code, actual.code);
        self.of_texts(Field::Preemption, "message", &expected.message, &actual.post_filter_message);
        let met = match &actual.nomination {
            Some(nomination) => expected.any_of.contains(nomination),
            None => expected.any_of.is_empty(),
        };
        if !met {
            let any_of: Vec<String> = expected.any_of.iter().map(ToString::to_string).collect();
            let actual = actual.nomination.as_ref().map_or("none".to_owned(), ToString::to_string);
            let expected = if any_of.is_empty() { "none".to_owned() } else { any_of.join(", or ") };
            self.add(Field::Preemption, "nomination", expected, actual);
        }
    }

    /// Adds a difference if the texts differ.
    fn of_texts(&mut self, field: Field, at: &str, expected: &str, actual: &str) {
        if expected != actual {
            self.add(field, at, expected, actual);
        }
    }

    fn add(&mut self, field: Field, at: &str, expected: impl Display, actual: impl Display) {
        let with_preemption =
            field == Field::FullMessage && self.ignore.contains(&Field::Preemption);
        if !self.ignore.contains(&field) && !with_preemption {
            self.list.push(difference(field, at, expected, actual));
        }
    }
}

fn difference(field: Field, at: &str, expected: impl Display, actual: impl Display) -> Difference {
    Difference {
        field: field.name(),
        at: at.to_owned(),
        expected: expected.to_string(),
        actual: actual.to_string(),
    }
}

fn words(verdict: &Verdict<'_>, others: Option<&Rejected>) -> String {
    match (verdict, others) {
        (Verdict::Feasible, _) => "feasible".to_owned(),
        (Verdict::Rejected(rejected), _) => rejected.to_string(),
        (Verdict::Others, Some(others)) => format!("like all others, {others}"),
        (Verdict::Others, None) => "not mentioned".to_owned(),
    }
}

fn scored(scores: Option<&BTreeMap<String, i64>>) -> String {
    let Some(scores) = scores else { return "no scores".to_owned() };
    let parts: Vec<String> =
        scores.iter().map(|(plugin, score)| format!("{plugin} {score}")).collect();
    if parts.is_empty() { "every score is 0".to_owned() } else { parts.join(", ") }
}

fn listed(names: &BTreeSet<String>) -> String {
    if names.is_empty() {
        return "none".to_owned();
    }
    names.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

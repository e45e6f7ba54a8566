//! Sets of field paths, as tries in the shape of `FieldsV1`.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::path;
use crate::schema::At;

/// A set of paths below some place, and whether that place itself is in it.
///
/// Steps are written as in `FieldsV1`: `f:spec`, `k:{"name":"a"}`, `v:"x"`.
/// No part of the trie is without a member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FieldSet {
    pub(super) member: bool,
    below: BTreeMap<Box<str>, FieldSet>,
}

impl FieldSet {
    /// The place itself and nothing below.
    pub(super) fn leaf() -> Self {
        Self { member: true, below: BTreeMap::new() }
    }

    pub(super) fn from_paths(paths: &[&[&str]]) -> Self {
        let mut set = Self::default();
        for path in paths {
            let mut place = &mut set;
            for step in *path {
                place = place.below.entry((*step).into()).or_default();
            }
            place.member = true;
        }
        set
    }

    /// Reads `FieldsV1`. `None` when it has steps of an unknown form.
    pub(super) fn from_json(fields: &Value) -> Option<Self> {
        let mut set = Self::default();
        let fields = fields.as_object()?;
        for (step, below) in fields {
            if step == "." {
                set.member = true;
                continue;
            }
            let mut child = Self::from_json(below)?;
            // No fields below a step stand for the step itself.
            child.member |= child.below.is_empty();
            set.below.insert(path::canonical(step)?.into(), child);
        }
        Some(set)
    }

    pub(super) fn to_json(&self) -> Value {
        let mut fields = Map::new();
        for (step, child) in &self.below {
            fields.insert(step.to_string(), child.to_json());
        }
        if self.member && !self.below.is_empty() {
            fields.insert(".".to_owned(), Value::Object(Map::new()));
        }
        Value::Object(fields)
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.member && self.below.is_empty()
    }

    /// What is below a step.
    pub(super) fn below(&self, step: &str) -> Option<&Self> {
        self.below.get(step)
    }

    /// Adds what is below a step.
    pub(super) fn add_below(&mut self, step: impl Into<Box<str>>, child: Self) {
        if !child.is_empty() {
            self.below.entry(step.into()).or_default().add(child);
        }
    }

    pub(super) fn add(&mut self, other: Self) {
        self.member |= other.member;
        for (step, child) in other.below {
            self.below.entry(step).or_default().add(child);
        }
    }

    pub(super) fn union(mut self, other: &Self) -> Self {
        self.add(other.clone());
        self
    }

    pub(super) fn intersection(&self, other: &Self) -> Self {
        let mut result = Self { member: self.member && other.member, below: BTreeMap::new() };
        for (step, child) in &self.below {
            if let Some(other) = other.below.get(step) {
                result.add_below(step.clone(), child.intersection(other));
            }
        }
        result
    }

    /// Without the members of the other; what is below those stays.
    pub(super) fn difference(&self, other: &Self) -> Self {
        self.clone().minus(other)
    }

    /// The same for a set that is needed no more.
    pub(super) fn minus(mut self, other: &Self) -> Self {
        self.member &= !other.member;
        self.shrink(other, |child, other| child.minus(other));
        self
    }

    /// Without the members of the other and all that is below those.
    pub(super) fn without_subtrees(mut self, other: &Self) -> Self {
        self.shrink(other, |child, other| match other.member {
            true => Self::default(),
            false => child.without_subtrees(other),
        });
        self
    }

    /// Makes less of what is below the steps that the other has, too.
    fn shrink(&mut self, other: &Self, less: impl Fn(Self, &Self) -> Self) {
        for (step, other) in &other.below {
            let Some(child) = self.below.get_mut(step) else { continue };
            *child = less(std::mem::take(child), other);
            if child.is_empty() {
                self.below.remove(step);
            }
        }
    }

    /// With the fields of structs that lead to members. Fields of maps and
    /// entries of lists that do are not added: they can be there or not, while
    /// a struct's field is there as soon as something is in it.
    pub(super) fn with_named_fields(&self, at: Option<At<'_>>) -> Self {
        let mut result = Self { member: self.member, below: BTreeMap::new() };
        for (step, child) in &self.below {
            let name = step.strip_prefix("f:");
            let below = at.and_then(|at| match name {
                Some(name) => at.field(name),
                None => at.item(),
            });
            let mut child = child.with_named_fields(below);
            let declared = at.zip(name).is_some_and(|(at, name)| at.declares(name));
            child.member |= declared;
            result.below.insert(step.clone(), child);
        }
        result
    }

    /// Every path as errors show it: `.spec.containers[name="a"].image`.
    pub(super) fn paths(&self) -> Vec<String> {
        let mut all = Vec::new();
        self.collect(&mut String::new(), &mut all);
        all
    }

    fn collect(&self, prefix: &mut String, all: &mut Vec<String>) {
        let length = prefix.len();
        for (step, child) in &self.below {
            prefix.push_str(&path::shown(step));
            if child.member {
                all.push(prefix.clone());
            }
            child.collect(prefix, all);
            prefix.truncate(length);
        }
    }
}

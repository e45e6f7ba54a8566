//! What differs between two versions of an object, and what an object has, as
//! sets of fields.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::path;
use super::set::FieldSet;
use crate::schema::{At, Kind, ListMerge};

/// Fields by what happened to them.
#[derive(Debug, Default)]
pub(super) struct Comparison {
    pub(super) added: FieldSet,
    pub(super) removed: FieldSet,
    pub(super) modified: FieldSet,
}

/// How a value is looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Granularity {
    /// As a whole.
    Leaf,
    /// By its fields.
    Fields,
    /// By its entries.
    Entries,
}

/// How values of a place are looked at. `sample` is one of them.
pub(super) fn granularity(at: At<'_>, sample: &Value) -> Granularity {
    match at.kind() {
        Kind::Struct | Kind::Map if !at.is_atomic() => Granularity::Fields,
        Kind::Any if sample.is_object() => Granularity::Fields,
        Kind::List if *at.list_merge() != ListMerge::Atomic => Granularity::Entries,
        _ => Granularity::Leaf,
    }
}

impl Comparison {
    pub(super) fn without_subtrees(mut self, fields: &FieldSet) -> Self {
        if !fields.is_empty() {
            self.added = self.added.without_subtrees(fields);
            self.removed = self.removed.without_subtrees(fields);
            self.modified = self.modified.without_subtrees(fields);
        }
        self
    }

    /// What has another value than before.
    pub(super) fn changed(&self) -> FieldSet {
        self.added.clone().union(&self.modified)
    }

    fn add_below(&mut self, step: &str, child: Self) {
        self.added.add_below(step, child.added);
        self.removed.add_below(step, child.removed);
        self.modified.add_below(step, child.modified);
    }
}

/// Compares two versions, of which one may be missing.
pub(super) fn compare(at: At<'_>, old: Option<&Value>, new: Option<&Value>) -> Comparison {
    let mut result = Comparison::default();
    if old == new {
        return result;
    }
    let sample = new.or(old).unwrap_or(&Value::Null);
    let granularity = granularity(at, sample);
    let descended = !(is_blank(old) && is_blank(new))
        && match granularity {
            Granularity::Leaf => false,
            Granularity::Fields => compare_fields(at, old, new, &mut result),
            Granularity::Entries => compare_entries(at, old, new, &mut result),
        };
    match (old, new) {
        (None, Some(_)) => result.added.member = true,
        (Some(_), None) => result.removed.member = true,
        _ if !descended => result.modified.member = true,
        _ => {}
    }
    result
}

/// Missing, null or without content.
fn is_blank(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::Object(fields)) => fields.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        Some(_) => false,
    }
}

fn compare_fields(
    at: At<'_>,
    old: Option<&Value>,
    new: Option<&Value>,
    result: &mut Comparison,
) -> bool {
    let is_object = |value: Option<&Value>| value.is_none_or(|v| v.is_object() || v.is_null());
    if !is_object(old) || !is_object(new) {
        return false;
    }
    let before = old.and_then(Value::as_object);
    let after = new.and_then(Value::as_object);
    let gone = before
        .into_iter()
        .flatten()
        .map(|(name, _)| name)
        .filter(|name| after.is_none_or(|after| !after.contains_key(*name)));
    let names = gone.chain(after.into_iter().flatten().map(|(name, _)| name));
    for name in names {
        let Some(field) = at.field(name) else { continue };
        let blank = blank(at, field, name);
        // Where there is an object, there are the parts that it always has.
        let old = before.and_then(|before| before.get(name)).or(blank.filter(|_| old.is_some()));
        let new = after.and_then(|after| after.get(name)).or(blank.filter(|_| new.is_some()));
        if old != new {
            result.add_below(&path::field(name), compare(field, old, new));
        }
    }
    true
}

/// What a field is before anybody set it, if not absent. The reference's types
/// hold some parts by value, so that these are there from the beginning and
/// nobody adds them. The schema does not say which; these are the ones that
/// matter.
fn blank(at: At<'_>, field: At<'_>, name: &str) -> Option<&'static Value> {
    const BY_VALUE: &[&str] =
        &["metadata", "spec", "status", "strategy", "template", "updateStrategy"];
    static EMPTY: LazyLock<Value> = LazyLock::new(|| Value::Object(Map::new()));
    static NULL: Value = Value::Null;
    match field.kind() {
        Kind::Struct if at.requires(name) || BY_VALUE.contains(&name) => Some(&EMPTY),
        Kind::List if at.requires(name) => Some(&NULL),
        _ => None,
    }
}

/// Entries by step. Several entries may have the same: the reference tolerates
/// that in what is stored, and then takes them as one value.
type Entries<'a> = BTreeMap<Box<str>, Vec<&'a Value>>;

fn entries<'a>(at: At<'_>, list: Option<&'a Value>) -> Option<Entries<'a>> {
    let mut entries = Entries::new();
    let items = match list {
        None | Some(Value::Null) => return Some(entries),
        Some(Value::Array(items)) => items,
        Some(_) => return None,
    };
    for item in items {
        entries.entry(path::entry(at, item).ok()?).or_default().push(item);
    }
    Some(entries)
}

fn compare_entries(
    at: At<'_>,
    old: Option<&Value>,
    new: Option<&Value>,
    result: &mut Comparison,
) -> bool {
    let (Some(item), Some(old), Some(new)) = (at.item(), entries(at, old), entries(at, new)) else {
        return false;
    };
    let none = Vec::new();
    let steps = old.keys().chain(new.keys().filter(|step| !old.contains_key(*step)));
    for step in steps {
        let before = old.get(step).unwrap_or(&none);
        let after = new.get(step).unwrap_or(&none);
        match (before.as_slice(), after.as_slice()) {
            (before @ ([] | [_]), after @ ([] | [_])) => {
                let comparison = compare(item, before.first().copied(), after.first().copied());
                result.add_below(step, comparison);
            }
            (before @ [_, _, ..], after @ [_, _, ..]) => {
                if before != after {
                    result.modified.add_below(step.clone(), FieldSet::leaf());
                }
            }
            ([_, _, ..], after) => {
                result.add_below(step, compare(item, None, after.first().copied()));
                result.removed.add_below(step.clone(), FieldSet::leaf());
            }
            (before, _) => {
                result.add_below(step, compare(item, before.first().copied(), None));
                result.added.add_below(step.clone(), FieldSet::leaf());
            }
        }
    }
    true
}

/// Everything that an object has: what its applier owns.
pub(super) fn fields_of(at: At<'_>, value: &Value) -> FieldSet {
    let mut set = FieldSet::default();
    match (granularity(at, value), value) {
        (Granularity::Fields, Value::Object(fields)) => {
            for (name, value) in fields {
                let Some(field) = at.field(name) else { continue };
                let mut child = fields_of(field, value);
                // A map's field may be there or not; a struct's is where its
                // content is.
                let is_empty = value.is_null() || value.as_object().is_some_and(|o| o.is_empty());
                child.member |= is_empty || !at.declares(name);
                set.add_below(path::field(name), child);
            }
        }
        (Granularity::Entries, Value::Array(_)) => {
            let (Some(item), Some(entries)) = (at.item(), entries(at, Some(value))) else {
                return FieldSet::leaf();
            };
            for (step, items) in entries {
                let mut child = match items.as_slice() {
                    [one] => fields_of(item, one),
                    _ => FieldSet::leaf(),
                };
                child.member = true;
                set.add_below(step, child);
            }
        }
        (Granularity::Fields | Granularity::Entries, Value::Null) => {}
        _ => set.member = true,
    }
    set
}

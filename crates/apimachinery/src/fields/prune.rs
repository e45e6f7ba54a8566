//! Takes away what an applier no longer lists.

use serde_json::Value;

use super::compare::fields_of;
use super::remove::remove;
use super::set::FieldSet;
use crate::schema::At;

/// The merged object without the fields that the applier listed last time,
/// does not list now, and that nobody owns. `owned` is what anybody owns now,
/// the applier's new fields included.
pub(super) fn prune(at: At<'_>, merged: Value, last: &FieldSet, owned: &FieldSet) -> Value {
    if last.is_empty() {
        return merged;
    }
    let last = last.with_named_fields(Some(at));
    let owned = owned.with_named_fields(Some(at));
    let all = fields_of(at, &merged).with_named_fields(Some(at));
    let has = |object: &Value| fields_of(at, object).with_named_fields(Some(at));
    // Removing an entry takes along what others own of it, so what is to go is
    // found in steps: everything of the last time, less what somebody owns,
    // less what the applier never had.
    let bare = remove(at, &merged, &last);
    let with_owned = remove(at, &merged, &all.difference(&has(&bare).union(&owned)));
    let gone = all.difference(&has(&with_owned)).intersection(&last);
    remove(at, &merged, &gone)
}

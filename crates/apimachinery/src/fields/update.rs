//! The bookkeeping of plain writes.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::compare::{Comparison, compare};
use super::entries::{Entries, Manager};
use super::{reset_fields, set_managed_fields, take_managed_fields, unowned_fields};
use crate::schema::{At, Schema};

/// Sets `metadata.managedFields` of an object that is being written by
/// anything but apply. `old` is the stored object, `None` when this creates;
/// `new` is what will be stored, and its `managedFields` are those that the
/// client sent. `subresource` is empty for the main resource.
///
/// What the write changed belongs to the writer alone afterwards. An object
/// without entries that is not new stays without.
#[expect(clippy::too_many_arguments, reason = "they are all needed and have nothing in common")]
pub fn update(
    schema: &Schema,
    type_name: &str,
    api_version: &str,
    old: Option<&Value>,
    new: &mut Value,
    manager: &str,
    subresource: &str,
    now: Timestamp,
) {
    let at = schema.get_or_any(type_name);
    let sent = take_managed_fields(new);
    let mut entries = known_entries(old, sent.as_ref(), subresource);
    if entries.all.is_empty() && old.is_some() {
        return;
    }
    let manager = Manager::updater(manager, api_version, subresource);
    record(at, &mut entries, old, new, manager, now);
    entries.limit();
    if let Some(fields) = entries.write() {
        set_managed_fields(new, fields);
    }
}

/// The entries to start from: the client's, if it sent valid ones. A client
/// that leaves them out does not mean to delete them; one that means to sends a
/// single empty entry.
fn known_entries(old: Option<&Value>, sent: Option<&Value>, subresource: &str) -> Entries {
    let stored = || old.map(Entries::of).unwrap_or_default();
    let sent = sent.filter(|_| subresource.is_empty());
    let is_reset = sent.and_then(Value::as_array).is_some_and(|entries| {
        matches!(entries.as_slice(), [entry] if entry.as_object().is_some_and(Map::is_empty))
    });
    if is_reset {
        return Entries::default();
    }
    match sent.and_then(Entries::read) {
        Some(entries) if !entries.all.is_empty() => entries,
        _ => stored(),
    }
}

/// Gives to the manager what differs, and takes it from all others. `new` is
/// without `managedFields`.
pub(super) fn record(
    at: At<'_>,
    entries: &mut Entries,
    old: Option<&Value>,
    new: &Value,
    manager: Manager,
    now: Timestamp,
) {
    let nothing = Value::Object(Map::new());
    // That `old` has `managedFields` does no harm: nobody owns those.
    let old = old.unwrap_or(&nothing);
    let reset = reset_fields(at, &manager.subresource);
    let comparison = compare(at, Some(old), Some(new)).without_subtrees(&reset);
    let Comparison { added, removed, modified } = comparison;
    let mut changed = added;
    changed.add(modified);
    if !entries.all.is_empty() {
        entries.take(&removed.union(&changed));
    }
    let changed = changed.minus(unowned_fields());
    if !changed.is_empty() {
        let api_version = manager.api_version.clone();
        entries.give(manager, &api_version, changed, now);
    }
}

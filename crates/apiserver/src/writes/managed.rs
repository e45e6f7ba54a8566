//! Who owns which field.

use serde_json::Value;
use steersman_apimachinery::fields;
use steersman_apimachinery::rules::Part;
use steersman_apimachinery::schema::Schema;

use super::Writer;
use crate::meta;

/// How `managedFields` names what is written.
pub(super) fn subresource(part: Part) -> &'static str {
    match part {
        Part::Main => "",
        Part::Status => "status",
        Part::Subresource(name) => name,
    }
}

impl Writer<'_> {
    /// Records in `new` (in storage form) that its differences from `old` are
    /// this writer's. Paths are those of the version that is written.
    pub(super) fn own_changes(&self, new: &mut Value, old: Option<&Value>, part: Part) {
        let resource = self.entry.resource;
        let record = |old: Option<&Value>, new: &mut Value| {
            fields::update(
                Schema::kubernetes(),
                resource.schema,
                &resource.api_version(),
                old,
                new,
                self.manager,
                subresource(part),
                self.now,
            );
        };
        if std::ptr::eq(resource, self.entry.storage) {
            record(old, new);
        } else {
            let old = old.map(|old| self.view(old));
            let mut view = self.view(new);
            record(old.as_ref(), &mut view);
            meta::keep(new, &view, "managedFields");
        }
    }
}

/// Whether two versions differ in nothing but when fields were last written.
pub(super) fn is_same(new: &Value, old: &Value) -> bool {
    let (entries, known) = (managed_fields(new), managed_fields(old));
    fields_but(new, "metadata").eq(fields_but(old, "metadata"))
        && metadata_but(new, "managedFields").eq(metadata_but(old, "managedFields"))
        && entries.len() == known.len()
        && entries
            .iter()
            .zip(known)
            .all(|(entry, known)| fields_but(entry, "time").eq(fields_but(known, "time")))
}

fn managed_fields(object: &Value) -> &[Value] {
    let list = object.pointer("/metadata/managedFields").and_then(Value::as_array);
    list.map_or(&[], Vec::as_slice)
}

fn metadata_but<'a>(
    object: &'a Value,
    left_out: &'a str,
) -> impl Iterator<Item = (&'a String, &'a Value)> {
    object.get("metadata").into_iter().flat_map(move |metadata| fields_but(metadata, left_out))
}

fn fields_but<'a>(
    object: &'a Value,
    left_out: &'a str,
) -> impl Iterator<Item = (&'a String, &'a Value)> {
    let fields = object.as_object().into_iter().flatten();
    fields.filter(move |(name, _)| *name != left_out)
}

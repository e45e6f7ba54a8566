//! Who manages which field: the bookkeeping of `metadata.managedFields`, and
//! server-side apply, which decides by it.
//!
//! [`update`] is for all writes but apply: it finds what the write changed and
//! hands those fields to the writer. [`apply`] merges a configuration into an
//! object, takes away what the applier no longer lists and nobody else
//! manages, and refuses to change what others manage.
//!
//! All versions of a kind are taken to have the same fields.

mod apply;
mod compare;
mod entries;
mod merge;
mod path;
mod prune;
mod remove;
mod set;
mod update;
mod validate;

#[cfg(test)]
mod tests;

pub use apply::{apply, check_config};
pub use update::update;

use std::borrow::Cow;
use std::sync::LazyLock;

use serde_json::Value;

use crate::schema::At;

/// The object without `metadata.managedFields`, which never manages itself.
fn without_managed_fields(object: &Value) -> Cow<'_, Value> {
    if object.pointer("/metadata/managedFields").is_none() {
        return Cow::Borrowed(object);
    }
    let mut bare = object.clone();
    take_managed_fields(&mut bare);
    Cow::Owned(bare)
}

fn take_managed_fields(object: &mut Value) -> Option<Value> {
    object.get_mut("metadata")?.as_object_mut()?.remove("managedFields")
}

fn set_managed_fields(object: &mut Value, fields: Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("managedFields".to_owned(), fields);
    }
}

/// Fields that a request cannot change, and that its manager therefore never
/// owns: the status unless it is what is written, the rest when it is.
fn reset_fields(at: At<'_>, subresource: &str) -> set::FieldSet {
    let paths: &[&[&str]] = match subresource {
        "" if at.declares("status") => &[&["f:status"]],
        "status" => &[
            &["f:spec"],
            &["f:metadata", "f:deletionTimestamp"],
            &["f:metadata", "f:ownerReferences"],
        ],
        _ => &[],
    };
    set::FieldSet::from_paths(paths)
}

/// Fields that identify an object or belong to the server. Nobody owns them.
fn unowned_fields() -> &'static set::FieldSet {
    static FIELDS: LazyLock<set::FieldSet> = LazyLock::new(|| {
        set::FieldSet::from_paths(&[
            &["f:apiVersion"],
            &["f:kind"],
            &["f:metadata"],
            &["f:metadata", "f:name"],
            &["f:metadata", "f:namespace"],
            &["f:metadata", "f:creationTimestamp"],
            &["f:metadata", "f:selfLink"],
            &["f:metadata", "f:uid"],
            &["f:metadata", "f:clusterName"],
            &["f:metadata", "f:generation"],
            &["f:metadata", "f:managedFields"],
            &["f:metadata", "f:resourceVersion"],
        ])
    });
    &FIELDS
}

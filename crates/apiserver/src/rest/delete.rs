//! `DELETE` of an object and of a collection.

use std::sync::Arc;

use http::Response;
use serde_json::{Value, json};
use steersman_apimachinery::error::ApiError;

use super::body::Expected;
use super::respond::Body;
use super::{Call, Selection};
use crate::meta;
use crate::store::{Stored, range};
use crate::writes::{DeleteOptions, Deleted, Propagation};

const SCHEMA: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";

/// Kinds whose deletion is answered with the object, not with a `Status`.
const ANSWERED_WITH_OBJECT: [(&str, &str); 8] = [
    ("", "namespaces"),
    ("", "persistentvolumeclaims"),
    ("", "persistentvolumes"),
    ("", "pods"),
    ("", "podtemplates"),
    ("", "resourcequotas"),
    ("", "serviceaccounts"),
    ("", "services"),
];

pub(super) fn answer(call: &Call<'_>) -> Result<Response<Body>, ApiError> {
    let (options, dry_run) = options(call)?;
    let mut writer = call.writer()?;
    writer.dry_run |= dry_run;
    match writer.delete(&call.path.namespace, &call.path.name, &options)? {
        Deleted::Gone(object) => {
            if ANSWERED_WITH_OBJECT.contains(&(call.resource.group, call.resource.plural)) {
                return call.respond(200, &object);
            }
            Ok(call.respond_value(200, &success(call, &object)))
        }
        Deleted::Waiting(object) => {
            let code = match options.propagation {
                Some(Propagation::Foreground) => 202,
                _ => 200,
            };
            call.respond(code, &object)
        }
    }
}

pub(super) fn answer_collection(call: &Call<'_>) -> Result<Response<Body>, ApiError> {
    let (options, dry_run) = options(call)?;
    let mut writer = call.writer()?;
    writer.dry_run |= dry_run;
    let selection = Selection::of(call)?;
    let snapshot = call.server.store.snapshot(call.table()?);
    let limit = call.query.number("limit")?.unwrap_or(0);
    let limit = usize::try_from(limit).ok().filter(|limit| *limit > 0).unwrap_or(usize::MAX);
    let wanted = range(&snapshot.objects, selection.namespace(), None);
    let wanted = wanted.map(|(_, object)| object).filter(|object| selection.matches(object));
    let mut items = Vec::new();
    for object in wanted.take(limit) {
        let (namespace, name) = (meta::namespace(&object.value), meta::name(&object.value));
        match writer.delete(namespace, name, &options) {
            Ok(Deleted::Gone(object) | Deleted::Waiting(object)) => items.push(call.shown(&object)),
            // Somebody else deleted it meanwhile.
            Err(error) if error.code == 404 => {}
            Err(error) => return Err(error),
        }
    }
    let list = json!({
        "kind": format!("{}List", call.resource.kind),
        "apiVersion": call.resource.api_version(),
        "metadata": { "resourceVersion": call.server.store.revision().to_string() },
        "items": items,
    });
    Ok(call.respond_value(200, &list))
}

/// The options in the body, or else those in the query; and whether nothing is
/// to be deleted in truth.
fn options(call: &Call<'_>) -> Result<(DeleteOptions, bool), ApiError> {
    if call.request.body.iter().all(u8::is_ascii_whitespace) {
        let query = call.query;
        let policy = query.text("propagationPolicy");
        let orphan = query.maybe_flag("orphanDependents");
        let options = DeleteOptions {
            grace: query.number("gracePeriodSeconds")?,
            propagation: propagation(policy, orphan)?,
            uid: None,
            resource_version: None,
        };
        return Ok((options, false));
    }
    let mut document = call.document()?;
    // Clients send it in the version of any group that they know it from.
    let kind = document.value.get("kind").and_then(Value::as_str).unwrap_or("DeleteOptions");
    if kind != "DeleteOptions" {
        return Err(ApiError::bad_request(format!("{kind} cannot be handled as a DeleteOptions")));
    }
    if let Some(fields) = document.value.as_object_mut() {
        fields.insert("apiVersion".to_owned(), Value::from("v1"));
        fields.remove("metadata");
    }
    let expected = Expected { api_version: "v1", kind: "DeleteOptions", schema: SCHEMA };
    read_options(&call.conform_to(document, expected)?)
}

/// Reads a `DeleteOptions`; the flag is its `dryRun`.
pub(super) fn read_options(body: &Value) -> Result<(DeleteOptions, bool), ApiError> {
    let text = |path: &str| body.pointer(path).and_then(Value::as_str).map(str::to_owned);
    let policy = text("/propagationPolicy").unwrap_or_default();
    let orphan = body.get("orphanDependents").and_then(Value::as_bool);
    let dry_run = dry_run(body)?;
    let options = DeleteOptions {
        grace: body.get("gracePeriodSeconds").and_then(Value::as_i64),
        propagation: propagation(&policy, orphan)?,
        uid: text("/preconditions/uid"),
        resource_version: text("/preconditions/resourceVersion"),
    };
    Ok((options, dry_run))
}

/// Whether nothing is to be deleted: `dryRun` is a list, of which the only
/// entry there is, is `All`.
fn dry_run(body: &Value) -> Result<bool, ApiError> {
    let stages = body.get("dryRun").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    match stages.iter().find(|stage| *stage != "All") {
        None => Ok(!stages.is_empty()),
        Some(other) => Err(ApiError::new(
            422,
            "Invalid",
            format!(
                "DeleteOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: {other}: supported values: \"All\""
            ),
        )),
    }
}

fn propagation(policy: &str, orphan: Option<bool>) -> Result<Option<Propagation>, ApiError> {
    let invalid = |why: String| {
        Err(ApiError::new(
            422,
            "Invalid",
            format!("DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: {why}"),
        ))
    };
    match (policy, orphan) {
        ("", None) => Ok(None),
        ("", Some(true)) | ("Orphan", None) => Ok(Some(Propagation::Orphan)),
        ("", Some(false)) | ("Background", None) => Ok(Some(Propagation::Background)),
        ("Foreground", None) => Ok(Some(Propagation::Foreground)),
        (policy, Some(_)) => invalid(format!(
            "Invalid value: {policy:?}: orphanDependents and deletionPropagation cannot be both set"
        )),
        (policy, None) => invalid(format!(
            "Unsupported value: {policy:?}: supported values: \"Background\", \"Foreground\", \"Orphan\""
        )),
    }
}

/// The `Status` that says that an object is gone.
fn success(call: &Call<'_>, object: &Arc<Stored>) -> Value {
    let mut details = json!({
        "name": call.path.name,
        "kind": call.resource.plural,
        "uid": meta::uid(&object.value),
    });
    if !call.resource.group.is_empty() {
        details["group"] = Value::from(call.resource.group);
    }
    json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": details,
    })
}

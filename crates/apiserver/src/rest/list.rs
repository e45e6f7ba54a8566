//! `GET` of a collection.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use http::Response;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use steersman_apimachinery::error::ApiError;

use super::negotiate::{Shape, Syntax};
use super::respond::{self, Body};
use super::table::partial;
use super::{Call, Selection};
use crate::store::{Snapshot, Stored, Unavailable, range};

/// Where a list that was cut goes on.
#[derive(Serialize, Deserialize)]
struct Continue {
    /// The state that it shows.
    rv: u64,
    /// The last key shown.
    start: String,
}

/// What of a collection is to be shown, and of which state.
struct Page {
    snapshot: Snapshot,
    after: Option<String>,
    limit: usize,
}

/// What was found.
struct Found {
    objects: Vec<Arc<Stored>>,
    /// `metadata` of the list.
    metadata: Value,
}

pub(super) fn answer(call: &Call<'_>) -> Result<Response<Body>, ApiError> {
    let selection = Selection::of(call)?;
    let page = page(call)?;
    let found = find(&selection, &page);
    show(call, found)
}

/// Reads a `resourceVersion`; none is 0.
pub(crate) fn parse_revision(text: &str) -> Result<u64, ApiError> {
    match text {
        "" => Ok(0),
        text => text.parse().map_err(|_| {
            ApiError::bad_request(format!(
                "resourceVersion: Invalid value: {text:?}: it has to be a number"
            ))
        }),
    }
}

/// The refusal of a version that has not happened yet.
pub(crate) fn too_large(wanted: u64, current: u64) -> ApiError {
    let message = format!("Timeout: Too large resource version: {wanted}, current: {current}");
    let mut error = ApiError::new(504, "Timeout", message);
    error.details = Some(json!({
        "retryAfterSeconds": 1,
        "causes": [{
            "reason": "ResourceVersionTooLarge",
            "message": "Too large resource version",
        }],
    }));
    error
}

/// The refusal of a version that can no longer be shown.
pub(crate) fn too_old(wanted: u64, oldest: u64) -> ApiError {
    ApiError::new(410, "Expired", format!("too old resource version: {wanted} ({oldest})"))
}

fn page(call: &Call<'_>) -> Result<Page, ApiError> {
    let (table, store) = (call.table()?, &call.server.store);
    let limit = call.query.number("limit")?.unwrap_or(0);
    let limit = usize::try_from(limit).ok().filter(|limit| *limit > 0).unwrap_or(usize::MAX);
    let text = call.query.text("resourceVersion");
    let wanted = parse_revision(text)?;
    let matching = call.query.text("resourceVersionMatch");
    let token = call.query.text("continue");
    check_match(matching, text, token)?;
    if !token.is_empty() {
        let token = Continue::read(token)?;
        if wanted != 0 {
            return Err(ApiError::bad_request(
                "specifying resource version is not allowed when using continue",
            ));
        }
        let snapshot = store.at(table, token.rv).map_err(|_| {
            let message = "The provided continue parameter is too old to display a consistent list result. You must start a new list without the continue parameter.";
            ApiError::new(410, "Expired", message)
        })?;
        return Ok(Page { snapshot, after: Some(token.start), limit });
    }
    // A limited list of a version meant exactly that version before there was
    // a parameter to say so.
    let is_exact = matching == "Exact" || (matching.is_empty() && limit != usize::MAX);
    let snapshot = if is_exact && wanted != 0 {
        store.at(table, wanted).map_err(|why| match why {
            Unavailable::TooOld { oldest } => too_old(wanted, oldest),
            Unavailable::TooLarge { current } => too_large(wanted, current),
        })?
    } else {
        store.snapshot(table)
    };
    if wanted > snapshot.revision {
        return Err(too_large(wanted, snapshot.revision));
    }
    Ok(Page { snapshot, after: None, limit })
}

/// Refuses combinations that make no sense.
fn check_match(matching: &str, version: &str, token: &str) -> Result<(), ApiError> {
    let forbidden = |why: String| {
        Err(ApiError::new(422, "Invalid", format!("resourceVersionMatch: Forbidden: {why}")))
    };
    match matching {
        "" => Ok(()),
        "Exact" | "NotOlderThan" if !token.is_empty() => {
            forbidden("resourceVersionMatch is forbidden when continue is provided".to_owned())
        }
        "Exact" | "NotOlderThan" if version.is_empty() => forbidden(
            "resourceVersionMatch is forbidden unless resourceVersion is provided".to_owned(),
        ),
        "Exact" if version == "0" => forbidden(
            "resourceVersionMatch \"Exact\" is forbidden for resourceVersion \"0\"".to_owned(),
        ),
        "Exact" | "NotOlderThan" => Ok(()),
        other => Err(ApiError::new(
            422,
            "Invalid",
            format!(
                "resourceVersionMatch: Unsupported value: {other:?}: supported values: \"Exact\", \"NotOlderThan\""
            ),
        )),
    }
}

fn find(selection: &Selection, page: &Page) -> Found {
    let Page { snapshot, after, limit } = page;
    let mut objects = Vec::new();
    let mut metadata = Map::new();
    metadata.insert("resourceVersion".to_owned(), snapshot.revision.to_string().into());
    if let Some(key) = selection.only_key() {
        let found = snapshot.objects.get(key.as_str()).filter(|found| selection.matches(found));
        objects.extend(found.cloned());
        return Found { objects, metadata: metadata.into() };
    }
    let mut rest = range(&snapshot.objects, selection.namespace(), after.as_deref());
    let mut last = None;
    while let Some((key, object)) = rest.next() {
        if !selection.matches(object) {
            continue;
        }
        if objects.len() < *limit {
            objects.push(object.clone());
            last = Some(key);
            continue;
        }
        let start = last.map(|key| key.to_string()).unwrap_or_default();
        let token = Continue { rv: snapshot.revision, start };
        metadata.insert("continue".to_owned(), token.write().into());
        if selection.is_everything() {
            metadata.insert("remainingItemCount".to_owned(), (rest.count() + 1).into());
        }
        break;
    }
    Found { objects, metadata: metadata.into() }
}

fn show(call: &Call<'_>, found: Found) -> Result<Response<Body>, ApiError> {
    let Found { objects, metadata } = found;
    match call.form.shape {
        Shape::Table(version) => {
            let table = call.tables(version)?;
            let row = |object: &Arc<Stored>| {
                if call.is_own_form() {
                    table.row(&object.value)
                } else {
                    table.row(&call.resource.rules.from_storage(&object.value))
                }
            };
            let rows = objects.iter().map(row).collect();
            Ok(call.respond_value(200, &table.document(rows, metadata, true)))
        }
        Shape::Metadata(version) => {
            let items = objects.iter().map(|object| partial(&call.shown(object), version));
            let list = json!({
                "kind": "PartialObjectMetadataList",
                "apiVersion": format!("meta.k8s.io/{version}"),
                "metadata": metadata,
                "items": items.collect::<Vec<Value>>(),
            });
            Ok(call.respond_value(200, &list))
        }
        Shape::Whole | Shape::Discovery(_)
            if call.form.syntax == Syntax::Yaml || call.is_pretty() =>
        {
            let items: Vec<Value> = objects.iter().map(|object| call.shown(object)).collect();
            Ok(call.respond_value(200, &whole(call, &metadata, items)))
        }
        Shape::Whole | Shape::Discovery(_) => Ok(stream(call, &metadata, objects)),
    }
}

fn whole(call: &Call<'_>, metadata: &Value, items: Vec<Value>) -> Value {
    json!({
        "kind": format!("{}List", call.resource.kind),
        "apiVersion": call.resource.api_version(),
        "metadata": metadata,
        "items": items,
    })
}

/// The list from the bytes that objects are stored as.
fn stream(call: &Call<'_>, metadata: &Value, objects: Vec<Arc<Stored>>) -> Response<Body> {
    let head = format!(
        r#"{{"kind":"{}List","apiVersion":"{}","metadata":{metadata},"items":["#,
        call.resource.kind,
        call.resource.api_version(),
    );
    let converter = (!call.is_own_form()).then_some(call.resource.rules);
    let items = objects.into_iter().enumerate().flat_map(move |(index, object)| {
        let comma = (index > 0).then(|| Bytes::from_static(b","));
        let json = match converter {
            None => object.json.clone(),
            Some(rules) => Bytes::from(rules.from_storage(&object.full()).to_string()),
        };
        comma.into_iter().chain([json])
    });
    let head = std::iter::once(Bytes::from(head));
    respond::pieces(head.chain(items).chain([Bytes::from_static(b"]}")]))
}

impl Continue {
    fn read(text: &str) -> Result<Self, ApiError> {
        let token = URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok();
        let token = token.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        token.ok_or_else(|| ApiError::bad_request("continue key is not valid"))
    }

    fn write(&self) -> String {
        let json = serde_json::to_vec(self).expect("a number and a text are JSON");
        URL_SAFE_NO_PAD.encode(json)
    }
}

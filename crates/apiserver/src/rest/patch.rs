//! `PATCH` of an object, in its four kinds.

use http::{Response, header};
use serde_json::Value;
use steersman_apimachinery::error::ApiError;
use steersman_apimachinery::rules::Part;
use steersman_apimachinery::schema::Schema;
use steersman_apimachinery::{fields, patch};

use super::Call;
use super::body::{self, Document, Expected, unsupported_media_type};
use super::respond::Body;
use crate::meta;
use crate::writes::Proposal;

const JSON: &str = "application/json-patch+json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// A patch that is read and not yet applied.
pub(super) enum Patch {
    Json(Value),
    Merge(Value),
    Strategic(Value),
    /// Server-side apply.
    Apply {
        config: Document,
        force: bool,
    },
}

pub(super) fn answer(call: &Call<'_>) -> Result<Response<Body>, ApiError> {
    write(call, Part::Main)
}

/// Patches the part of the object that the request names.
pub(super) fn write(call: &Call<'_>, part: Part) -> Result<Response<Body>, ApiError> {
    match Patch::read(call)? {
        Patch::Apply { config, force } => apply(call, config, force, part),
        patch => {
            let (namespace, name) = (call.path.namespace.as_str(), call.path.name.as_str());
            let written = call.writer()?.update(namespace, name, part, &mut |old| {
                let new = patch.apply(call.resource.schema, old)?;
                Ok(Proposal::plain(conform_result(call, new, old)?))
            })?;
            call.respond(200, &written)
        }
    }
}

impl Patch {
    /// Reads the body as the kind of patch that its content type names.
    pub(super) fn read(call: &Call<'_>) -> Result<Self, ApiError> {
        let content_type = call.request.header(header::CONTENT_TYPE);
        let content_type = content_type.split(';').next().unwrap_or("").trim();
        let force = call.query.maybe_flag("force");
        if content_type != APPLY && force.is_some() {
            let why = "force: Forbidden: may not be specified for non-apply patch";
            return Err(invalid_options(why));
        }
        let json = || body::read_json(call.request.body).map(|document| document.value);
        match content_type {
            JSON => Ok(Self::Json(json()?)),
            MERGE => Ok(Self::Merge(json()?)),
            STRATEGIC => Ok(Self::Strategic(json()?)),
            APPLY => {
                if call.query.text("fieldManager").is_empty() {
                    let why = "fieldManager: Required value: is required for apply patch";
                    return Err(invalid_options(why));
                }
                let config = body::read_yaml(call.request.body)?;
                Ok(Self::Apply { config, force: force.unwrap_or(false) })
            }
            _ => Err(unsupported_media_type(&[JSON, MERGE, APPLY, STRATEGIC])),
        }
    }

    /// The patched document. Server-side apply needs more than the document and
    /// is done elsewhere.
    pub(super) fn apply(&self, schema: &str, old: &Value) -> Result<Value, ApiError> {
        match self {
            Self::Json(patch) => patch::json::apply(old, patch),
            Self::Merge(patch) => {
                if !patch.is_object() {
                    return Err(ApiError::bad_request("the patch has to be a JSON object"));
                }
                Ok(patch::merge::apply(old, patch))
            }
            Self::Strategic(patch) => {
                patch::strategic::apply(Schema::kubernetes(), schema, old, patch)
            }
            Self::Apply { .. } => Err(unsupported_media_type(&[JSON, MERGE, STRATEGIC])),
        }
    }
}

fn apply(
    call: &Call<'_>,
    config: Document,
    force: bool,
    part: Part,
) -> Result<Response<Body>, ApiError> {
    fields::check_config(
        Schema::kubernetes(),
        call.resource.schema,
        &call.resource.api_version(),
        &config.value,
    )?;
    let config = call.conform(config)?;
    if meta::has_managed_fields(&config) {
        return Err(ApiError::bad_request("metadata.managedFields must be nil"));
    }
    let mut config = config;
    if meta::name(&config).is_empty() {
        meta::set(&mut config, "name", Value::from(call.path.name.as_str()));
    }
    super::update::check_name(call, &config)?;
    let writer = call.writer()?;
    let (namespace, name) = (call.path.namespace.as_str(), call.path.name.as_str());
    if !namespace.is_empty() {
        meta::set(&mut config, "namespace", Value::from(namespace));
    }
    let subresource = match part {
        Part::Main => "",
        Part::Status => "status",
        Part::Subresource(name) => name,
    };
    let merge = |live: Option<&Value>| {
        fields::apply(
            Schema::kubernetes(),
            call.resource.schema,
            live,
            &config,
            writer.manager,
            force,
            subresource,
            call.now,
        )
    };
    let written = writer.update(namespace, name, part, &mut |old| {
        let object = merge(Some(old))?;
        Ok(Proposal { object, is_managed: true, needs_revision: false })
    });
    match written {
        Err(error) if error.code == 404 && part == Part::Main => {
            call.check("create")?;
            if !meta::uid(&config).is_empty() {
                let why = "uid mismatch: the provided object specified a uid, and no object with this name was found";
                return Err(ApiError::conflict(call.resource, name, why));
            }
            call.respond(201, &writer.create_applied(namespace, merge(None)?)?)
        }
        written => call.respond(200, &written?),
    }
}

/// The result of a patch has to be an object of the kind, too. Its name cannot
/// be patched away, and what it does not say of ownership stays as it was.
fn conform_result(call: &Call<'_>, new: Value, old: &Value) -> Result<Value, ApiError> {
    let api_version = call.resource.api_version();
    let expected = Expected {
        api_version: &api_version,
        kind: call.resource.kind,
        schema: call.resource.schema,
    };
    let mut new = call.conform_to(Document { value: new, duplicates: Vec::new() }, expected)?;
    for field in ["name", "namespace"] {
        if meta::text(&new, field).is_empty() {
            meta::keep(&mut new, old, field);
        }
    }
    super::update::check_name(call, &new)?;
    Ok(new)
}

fn invalid_options(why: &str) -> ApiError {
    let message = format!("PatchOptions.meta.k8s.io \"\" is invalid: {why}");
    ApiError::new(422, "Invalid", message)
}

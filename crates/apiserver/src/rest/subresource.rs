//! Subresources: `/status`, and those that a kind brings.

use http::{Method, Response};
use serde_json::{Value, json};
use steersman_apimachinery::error::ApiError;
use steersman_apimachinery::resource::{Action, Subresource};
use steersman_apimachinery::rules::{Part, Request};

use super::body::{Document, Expected};
use super::patch::Patch;
use super::respond::Body;
use super::{Call, evict, get, method_not_allowed, no_such_path, patch, token, update};
use crate::meta;
use crate::writes::{MODIFIED, Proposal};

pub(super) fn answer(call: &Call<'_>) -> Result<Response<Body>, ApiError> {
    if call.path.subresource == "status" && call.resource.has_status {
        return match call.request.parts.method {
            Method::GET => get::answer(call),
            Method::PUT => update::write(call, Part::Status),
            Method::PATCH => patch::write(call, Part::Status),
            _ => Err(method_not_allowed()),
        };
    }
    if let Some(absent) = call.resource.absent.iter().find(|sub| sub.name == call.path.subresource)
    {
        call.writer()?.get(&call.path.namespace, &call.path.name)?;
        return Err(ApiError::new(501, "NotImplemented", absent.why));
    }
    let found = call.resource.subresource(&call.path.subresource);
    let subresource = found.ok_or_else(no_such_path)?;
    match (subresource.action, &call.request.parts.method) {
        (Action::View, &Method::GET) => {
            let (object, _) = newest(call)?;
            let view = view(call, subresource, &object)?;
            Ok(call.respond_value(200, &view))
        }
        (Action::View, &(Method::PUT | Method::PATCH)) => write_view(call, subresource),
        (Action::Perform, &Method::POST) if token::is_token(call.resource, subresource) => {
            token::answer(call, subresource)
        }
        (Action::Perform, &Method::POST) => perform(call, subresource),
        (Action::Finalize, &Method::PUT) => finalize(call, subresource),
        (Action::Evict, &Method::POST) => evict::answer(call, subresource),
        _ => Err(method_not_allowed()),
    }
}

/// The body as the kind that the subresource takes. The name may be left out,
/// but not be another one.
pub(super) fn body(
    call: &Call<'_>,
    subresource: &Subresource,
    document: Document,
) -> Result<Value, ApiError> {
    let api_version = api_version(subresource);
    let schema = schema(subresource);
    let expected = Expected { api_version: &api_version, kind: subresource.kind, schema: &schema };
    let mut value = call.conform_to(document, expected)?;
    if meta::name(&value).is_empty() {
        meta::set(&mut value, "name", Value::from(call.path.name.as_str()));
    }
    update::check_name(call, &value)?;
    Ok(value)
}

fn api_version(subresource: &Subresource) -> String {
    match subresource.group {
        "" => subresource.version.to_owned(),
        group => format!("{group}/{}", subresource.version),
    }
}

/// Schemas of built-in kinds are named after the first word of their group.
fn schema(subresource: &Subresource) -> String {
    let group = match subresource.group.split('.').next() {
        None | Some("") => "core",
        Some(first) => first,
    };
    format!("io.k8s.api.{group}.{}.{}", subresource.version, subresource.kind)
}

fn newest(call: &Call<'_>) -> Result<(Value, String), ApiError> {
    let stored = call.writer()?.get(&call.path.namespace, &call.path.name)?;
    let revision = stored.revision.to_string();
    Ok((call.shown(&stored), revision))
}

/// The view of an object, with the metadata that identifies it.
fn view(call: &Call<'_>, subresource: &Subresource, object: &Value) -> Result<Value, ApiError> {
    let mut view = call.resource.rules.read_view(object, subresource)?;
    if let Some(fields) = view.as_object_mut() {
        fields.entry("kind").or_insert_with(|| json!(subresource.kind));
        fields.entry("apiVersion").or_insert_with(|| json!(api_version(subresource)));
    }
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        meta::keep(&mut view, object, field);
    }
    Ok(view)
}

fn write_view(call: &Call<'_>, subresource: &Subresource) -> Result<Response<Body>, ApiError> {
    let patch = match call.request.parts.method {
        Method::PATCH => Some(Patch::read(call)?),
        _ => None,
    };
    let part = Part::Subresource(subresource.name);
    let (namespace, name) = (call.path.namespace.as_str(), call.path.name.as_str());
    let schema = schema(subresource);
    let written = call.writer()?.update(namespace, name, part, &mut |old| {
        let document = match &patch {
            Some(patch) => {
                let value = patch.apply(&schema, &view(call, subresource, old)?)?;
                Document { value, duplicates: Vec::new() }
            }
            None => call.document()?,
        };
        let wanted = body(call, subresource, document)?;
        let mut object = old.clone();
        // What the client says of version and uid is what it wants to be true.
        for field in ["resourceVersion", "uid"] {
            if !meta::text(&wanted, field).is_empty() {
                meta::keep(&mut object, &wanted, field);
            }
        }
        call.resource.rules.write_view(&mut object, &wanted, subresource)?;
        Ok(Proposal::plain(object))
    })?;
    let shown = view(call, subresource, &call.shown(&written))?;
    Ok(call.respond_value(200, &shown))
}

/// Says what an object still waits for: its last word lets it go.
fn finalize(call: &Call<'_>, subresource: &Subresource) -> Result<Response<Body>, ApiError> {
    let wanted = body(call, subresource, call.document()?)?;
    let finalizers = wanted.pointer("/spec/finalizers").cloned().unwrap_or_else(|| json!([]));
    let (namespace, name) = (call.path.namespace.as_str(), call.path.name.as_str());
    let object = call.writer()?.modify(namespace, name, &mut |object| {
        for field in ["resourceVersion", "uid"] {
            let given = meta::text(&wanted, field);
            if !given.is_empty() && given != meta::text(object, field) {
                return Err(ApiError::conflict(call.resource, name, MODIFIED));
            }
        }
        if let Some(fields) = object.as_object_mut() {
            let spec = fields.entry("spec").or_insert_with(|| json!({}));
            if spec.is_object() {
                spec["finalizers"] = finalizers.clone();
            }
        }
        Ok(object.clone())
    })?;
    Ok(call.respond_value(200, &object))
}

fn perform(call: &Call<'_>, subresource: &Subresource) -> Result<Response<Body>, ApiError> {
    let wanted = body(call, subresource, call.document()?)?;
    let writer = call.writer()?;
    let request = Request {
        resource: call.resource,
        user: &call.request.user.name,
        groups: &call.request.user.groups,
        now: call.now,
        view: call.server,
        random: call.server.random(),
    };
    let (namespace, name) = (call.path.namespace.as_str(), call.path.name.as_str());
    let answer = writer.modify(namespace, name, &mut |object| {
        call.resource.rules.perform(object, &wanted, subresource, &request)
    })?;
    Ok(call.respond_value(201, &answer))
}

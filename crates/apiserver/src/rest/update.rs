//! `PUT` of an object.

use http::Response;
use serde_json::Value;
use steersman_apimachinery::error::ApiError;
use steersman_apimachinery::rules::Part;

use super::Call;
use super::respond::Body;
use crate::meta;
use crate::writes::Proposal;

pub(super) fn answer(call: &Call<'_>) -> Result<Response<Body>, ApiError> {
    write(call, Part::Main)
}

/// Replaces the part of the object that the request names.
pub(super) fn write(call: &Call<'_>, part: Part) -> Result<Response<Body>, ApiError> {
    let object = call.object()?;
    check_name(call, &object)?;
    let writer = call.writer()?;
    let (namespace, name) = (call.path.namespace.as_str(), call.path.name.as_str());
    let rules = call.entry.storage.rules;
    let needs_revision = part == Part::Main && !rules.allows_unconditional_update();
    let written = writer.update(namespace, name, part, &mut |_| {
        let mut object = object.clone();
        meta::set(&mut object, "namespace", optional(namespace));
        Ok(Proposal { object, is_managed: false, needs_revision })
    });
    match written {
        Err(error) if error.code == 404 && part == Part::Main && rules.creates_on_update() => {
            call.check("create")?;
            let mut object = object;
            meta::set(&mut object, "resourceVersion", Value::Null);
            call.respond(201, &writer.create(namespace, object)?)
        }
        written => call.respond(200, &written?),
    }
}

/// The name and namespace in the body have to be those of the path.
pub(super) fn check_name(call: &Call<'_>, object: &Value) -> Result<(), ApiError> {
    let (name, namespace) = (meta::name(object), meta::namespace(object));
    if name != call.path.name {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            call.path.name
        )));
    }
    if call.resource.namespaced && !namespace.is_empty() && namespace != call.path.namespace {
        return Err(ApiError::bad_request(format!(
            "the namespace of the object ({namespace}) does not match the namespace on the request ({})",
            call.path.namespace
        )));
    }
    Ok(())
}

fn optional(text: &str) -> Value {
    if text.is_empty() { Value::Null } else { Value::from(text) }
}

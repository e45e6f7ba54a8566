//! `serviceaccounts/token`: a new token for a service account.

use http::Response;
use serde_json::{Value, json};
use steersman_apimachinery::error::{ApiError, FieldError};
use steersman_apimachinery::resource::{Resource, Subresource};
use steersman_apimachinery::rules::View;

use super::respond::Body;
use super::{Call, subresource};
use crate::clock::rfc3339;
use crate::meta;
use crate::tokens::ISSUER;
use crate::tokens::service_account::{Claims, LIFETIME};

/// The shortest and the longest time that may be asked for, in seconds.
const SHORTEST: i64 = 10 * 60;
const LONGEST: i64 = 1 << 32;

/// Whether this subresource issues tokens.
pub(super) fn is_token(resource: &Resource, subresource: &Subresource) -> bool {
    (resource.group, resource.plural, subresource.name) == ("", "serviceaccounts", "token")
}

pub(super) fn answer(
    call: &Call<'_>,
    subresource: &Subresource,
) -> Result<Response<Body>, ApiError> {
    let mut request = subresource::body(call, subresource, call.document()?)?;
    let account = call.writer()?.get(&call.path.namespace, &call.path.name)?;
    let audiences = request.pointer("/spec/audiences").and_then(Value::as_array);
    let audiences = audiences.into_iter().flatten().filter_map(Value::as_str);
    let mut audiences: Vec<String> = audiences.map(str::to_owned).collect();
    if audiences.is_empty() {
        audiences.push(ISSUER.to_owned());
    }
    let asked = request.pointer("/spec/expirationSeconds").and_then(Value::as_i64);
    let lifetime = lifetime(call, asked)?;
    let reference = request.pointer("/spec/boundObjectRef").filter(|bound| !bound.is_null());
    let bound = reference.map(|reference| bound(call, reference)).transpose()?;
    let claims = Claims {
        account: &account.value,
        bound: bound.as_ref().map(|(kind, object)| (*kind, &**object)),
        audiences: &audiences,
        lifetime,
    };
    let issued = call.server.issue_token(&claims);
    let (token, until) = issued.map_err(|error| ApiError::internal(error.to_string()))?;
    if !request["spec"].is_object() {
        request["spec"] = json!({});
    }
    request["spec"]["audiences"] = json!(audiences);
    request["spec"]["expirationSeconds"] = json!(lifetime);
    request["status"] = json!({ "token": token, "expirationTimestamp": rfc3339(until) });
    meta::set(&mut request, "namespace", json!(call.path.namespace));
    meta::set(&mut request, "creationTimestamp", json!(rfc3339(call.now)));
    Ok(call.respond_value(201, &request))
}

fn lifetime(call: &Call<'_>, asked: Option<i64>) -> Result<i64, ApiError> {
    let seconds = asked.unwrap_or(LIFETIME);
    let why = if seconds < SHORTEST {
        "may not specify a duration less than 10 minutes"
    } else if seconds > LONGEST {
        "may not specify a duration larger than 2^32 seconds"
    } else {
        return Ok(seconds);
    };
    let line = FieldError::invalid("spec.expirationSeconds", seconds, why);
    let name = &call.path.name;
    let message = format!(
        "TokenRequest.authentication.k8s.io {name:?} is invalid: {}: {}",
        line.field,
        line.body()
    );
    let mut error = ApiError::new(422, "Invalid", message);
    error.details = Some(json!({
        "name": name, "group": "authentication.k8s.io", "kind": "TokenRequest",
        "causes": [{
            "reason": line.kind.reason(), "message": line.body(), "field": line.field,
        }],
    }));
    Err(error)
}

type Bound = (&'static str, std::sync::Arc<Value>);

/// The object without which the token is to be void.
fn bound(call: &Call<'_>, reference: &Value) -> Result<Bound, ApiError> {
    let text = |field: &str| reference.get(field).and_then(Value::as_str).unwrap_or("");
    let (kind, name, uid) = (text("kind"), text("name"), text("uid"));
    let namespace = call.path.namespace.as_str();
    let (claim, plural, namespace) = match (text("apiVersion"), kind) {
        ("v1", "Pod") => ("pod", "pods", namespace),
        ("v1", "Secret") => ("secret", "secrets", namespace),
        ("v1", "Node") => ("node", "nodes", ""),
        (version, kind) => {
            let message = format!("cannot bind token to object of type {version}, Kind={kind}");
            return Err(ApiError::bad_request(message));
        }
    };
    let object = call.server.get("", plural, namespace, name).ok_or_else(|| {
        match call.server.registry.find("", "v1", plural) {
            Some(entry) => ApiError::not_found(entry.resource, name),
            None => ApiError::new(404, "NotFound", format!("{plural} {name:?} not found")),
        }
    })?;
    let runs_as = object.pointer("/spec/serviceAccountName").and_then(Value::as_str).unwrap_or("");
    if claim == "pod" && runs_as != call.path.name {
        return Err(ApiError::bad_request(format!(
            "cannot bind token for serviceaccount {:?} to pod running with different serviceaccount name.",
            call.path.name
        )));
    }
    if !uid.is_empty() && uid != meta::uid(&object) {
        let message = format!(
            "Operation cannot be fulfilled on {kind} {name:?}: the UID in the bound object reference ({uid}) does not match the UID in record. The object might have been deleted and then recreated"
        );
        return Err(ApiError::new(409, "Conflict", message));
    }
    Ok((claim, object))
}

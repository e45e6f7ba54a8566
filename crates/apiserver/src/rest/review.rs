//! Questions that are answered on the spot: whose token is this, who am I, may
//! I or they do this.

use serde_json::{Value, json};
use steersman_apimachinery::error::{ApiError, FieldError};

use super::Call;
use crate::access::{Attributes, Target};
use crate::auth::User;
use crate::meta;
use crate::tokens::ISSUER;

/// The answer to a review; `None` if the object is none.
pub(super) fn answer(call: &Call<'_>, object: &Value) -> Option<Result<Value, ApiError>> {
    let resource = call.resource;
    if resource.keeps_objects() {
        return None;
    }
    let mut object = object.clone();
    let status = match (resource.group, resource.plural) {
        ("authentication.k8s.io", "tokenreviews") => token(call, &object),
        ("authentication.k8s.io", "selfsubjectreviews") => {
            Ok(json!({ "userInfo": user_info(call.request.user) }))
        }
        ("authorization.k8s.io", "selfsubjectaccessreviews") => {
            access(call, &object, call.request.user)
        }
        ("authorization.k8s.io", "subjectaccessreviews" | "localsubjectaccessreviews") => {
            subject(call, &object).and_then(|user| access(call, &object, &user))
        }
        ("authorization.k8s.io", "selfsubjectrulesreviews") => rules(call, &object),
        _ => return None,
    };
    Some(status.map(|status| {
        object["status"] = status;
        object
    }))
}

/// A user as the API shows one.
fn user_info(user: &User) -> Value {
    let mut info = json!({ "username": user.name, "groups": user.groups });
    if !user.uid.is_empty() {
        info["uid"] = json!(user.uid);
    }
    if !user.extra.is_empty() {
        info["extra"] = json!(user.extra);
    }
    info
}

/// The status of a `TokenReview`.
fn token(call: &Call<'_>, review: &Value) -> Result<Value, ApiError> {
    let token = text(review, "/spec/token");
    if token.is_empty() {
        let message = "token is required for TokenReview in authentication";
        return Err(ApiError::bad_request(message));
    }
    let mut audiences = texts(review, "/spec/audiences");
    if audiences.is_empty() {
        audiences.push(ISSUER.to_owned());
    }
    match call.server.user_of_bearer(token, &audiences) {
        Ok((user, audiences)) => Ok(json!({
            "authenticated": true, "user": user_info(&user), "audiences": audiences,
        })),
        Err(error) => Ok(json!({ "user": {}, "error": error.to_string() })),
    }
}

/// Whom a `SubjectAccessReview` is about.
fn subject(call: &Call<'_>, review: &Value) -> Result<User, ApiError> {
    let mut user = User {
        name: text(review, "/spec/user").to_owned(),
        groups: texts(review, "/spec/groups"),
        uid: text(review, "/spec/uid").to_owned(),
        ..User::default()
    };
    let extra = review.pointer("/spec/extra").and_then(Value::as_object);
    for (key, values) in extra.into_iter().flatten() {
        let values = values.as_array().into_iter().flatten().filter_map(Value::as_str);
        user.extra.insert(key.clone(), values.map(str::to_owned).collect());
    }
    let mut errors = check(review);
    if user.name.is_empty() && user.groups.is_empty() {
        let why = "at least one of user or group must be specified";
        errors.push(FieldError::invalid("spec.user", "", why));
    }
    if call.resource.namespaced {
        let namespace = text(review, "/spec/resourceAttributes/namespace");
        let own = match meta::namespace(review) {
            "" => call.path.namespace.as_str(),
            own => own,
        };
        if own != call.path.namespace {
            return Err(ApiError::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        if namespace != own {
            let field = "spec.resourceAttributes.namespace";
            errors.push(FieldError::invalid(field, namespace, "must match metadata.namespace"));
        }
        if given(review, "nonResourceAttributes").is_some() {
            let why = "disallowed on this kind of request";
            errors.push(FieldError::invalid("spec.nonResourceAttributes", "", why));
        }
    }
    refuse(call, &errors)?;
    Ok(user)
}

/// The status of an access review.
fn access(call: &Call<'_>, review: &Value, user: &User) -> Result<Value, ApiError> {
    refuse(call, &check(review))?;
    let field = |name: &str| text(review, &format!("/spec/resourceAttributes/{name}"));
    let (verb, target) = match given(review, "nonResourceAttributes") {
        Some(_) => {
            let field = |name: &str| text(review, &format!("/spec/nonResourceAttributes/{name}"));
            (field("verb"), Target::Path(field("path")))
        }
        None => {
            let target = Target::Resource {
                group: field("group"),
                resource: field("resource"),
                subresource: field("subresource"),
                namespace: field("namespace"),
                name: field("name"),
            };
            (field("verb"), target)
        }
    };
    let server = call.server;
    let decision = server.access.decide(&server.store, user, &Attributes { verb, target });
    let mut status = json!({ "allowed": decision.is_allowed() });
    let reason = decision.reason();
    if !reason.is_empty() {
        status["reason"] = json!(reason);
    }
    Ok(status)
}

/// The status of a `SelfSubjectRulesReview`.
fn rules(call: &Call<'_>, review: &Value) -> Result<Value, ApiError> {
    let namespace = text(review, "/spec/namespace");
    if namespace.is_empty() {
        return Err(ApiError::bad_request("no namespace on request"));
    }
    let server = call.server;
    let held = server.access.rules(&server.store, call.request.user, namespace);
    let (mut resources, mut paths) = (Vec::new(), Vec::new());
    for (is_local, rule) in held {
        if !rule.resources.is_empty() {
            resources.push(rule.to_value());
        } else if !is_local {
            paths.push(rule.to_value());
        }
    }
    Ok(json!({ "incomplete": false, "resourceRules": resources, "nonResourceRules": paths }))
}

/// What is wrong with the question.
fn check(review: &Value) -> Vec<FieldError> {
    let resource = given(review, "resourceAttributes");
    match (resource, given(review, "nonResourceAttributes")) {
        (Some(_), Some(_)) => {
            let why = "cannot be specified in combination with resourceAttributes";
            vec![FieldError::invalid("spec.nonResourceAttributes", "", why)]
        }
        (None, None) => {
            let why =
                "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            vec![FieldError::invalid("spec.resourceAttributes", "", why)]
        }
        _ => Vec::new(),
    }
}

fn refuse(call: &Call<'_>, errors: &[FieldError]) -> Result<(), ApiError> {
    match errors {
        [] => Ok(()),
        errors => Err(ApiError::invalid(call.resource, "", errors)),
    }
}

fn given<'a>(review: &'a Value, field: &str) -> Option<&'a Value> {
    review.pointer(&format!("/spec/{field}")).filter(|value| !value.is_null())
}

fn text<'a>(review: &'a Value, path: &str) -> &'a str {
    review.pointer(path).and_then(Value::as_str).unwrap_or("")
}

fn texts(review: &Value, path: &str) -> Vec<String> {
    let list = review.pointer(path).and_then(Value::as_array).into_iter().flatten();
    list.filter_map(Value::as_str).map(str::to_owned).collect()
}

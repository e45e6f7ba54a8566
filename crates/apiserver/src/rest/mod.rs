//! The REST interface: from a request to an answer.
//!
//! [`answer`] reads the body, [`route`] finds out what the path names, and a
//! file per verb does the rest. All of it but the body is plain synchronous
//! code: nothing in it waits. A watch answers at once with a body that goes on.

pub(crate) mod body;
mod call;
mod create;
mod delete;
mod evict;
mod get;
mod intake;
mod list;
mod negotiate;
mod patch;
mod path;
mod query;
mod respond;
mod select;
mod subresource;
mod table;
mod update;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{Method, Request, Response, header};
use serde_json::json;
use steersman_apimachinery::error::ApiError;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

pub(crate) use self::call::Call;
pub(crate) use self::list::{parse_revision, too_large, too_old};
pub(crate) use self::negotiate::{Offer, Shape, negotiate};
pub use self::respond::Body;
pub(crate) use self::respond::{bytes, json, text, value};
pub(crate) use self::select::Selection;
pub(crate) use self::table::{Include, Table, partial};

use self::path::{ResourcePath, Target};
use self::query::Query;
use crate::auth::User;
use crate::server::ApiServer;
use crate::{discovery, health, openapi, version};

/// How long a body may take to arrive.
const BODY_TIME: Duration = Duration::from_secs(60);

/// Answers a request of a user; `None` is nobody known, who may ask how the
/// server is and no more. Watches end when `closing` is cancelled.
pub(crate) async fn answer<B>(
    server: &ApiServer,
    user: Option<&User>,
    request: Request<B>,
    closing: &CancellationToken,
) -> Response<Body>
where
    B: http_body::Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (parts, body) = request.into_parts();
    let path = parts.uri.path();
    let Some(user) = user else {
        return match health::answer(path, parts.uri.query().unwrap_or("")) {
            Some(response) => response,
            None if path == "/version" || path == "/version/" => json(200, &version::version()),
            None => respond::error(&ApiError::new(401, "Unauthorized", "Unauthorized")),
        };
    };
    let body = match timeout(BODY_TIME, intake::read(body)).await {
        Ok(Ok(body)) => body,
        Ok(Err(error)) => return respond::error(&error),
        Err(_) => {
            let message = "the request's body did not arrive in time";
            return respond::error(&ApiError::new(408, "Timeout", message));
        }
    };
    let user = match impersonated(user, &parts) {
        Ok(user) => user,
        Err(error) => return respond::error(&error),
    };
    let request = Incoming { server, user: &user, parts: &parts, body: &body, closing };
    // One broken object or a bug in one kind's rules must not end the server.
    // Nothing is left half done: a write is one call of the store.
    match catch_unwind(AssertUnwindSafe(|| route(&request))) {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => respond::error(&error),
        Err(_) => {
            tracing::error!(method = %parts.method, path, "a request caused a panic");
            let message = "This request caused apiserver to panic. Look in the logs for details.";
            respond::error(&ApiError::internal(message))
        }
    }
}

/// A request whose body has been read.
pub(crate) struct Incoming<'a> {
    pub(crate) server: &'a ApiServer,
    pub(crate) user: &'a User,
    pub(crate) parts: &'a Parts,
    pub(crate) body: &'a Bytes,
    pub(crate) closing: &'a CancellationToken,
}

impl<'a> Incoming<'a> {
    /// A header, empty if not given.
    pub(crate) fn header(&self, name: impl header::AsHeaderName) -> &'a str {
        self.parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("")
    }

    /// All `Accept` headers as one.
    pub(crate) fn accept(&self) -> Option<String> {
        let values = self.parts.headers.get_all(header::ACCEPT).iter();
        let values: Vec<&str> = values.filter_map(|value| value.to_str().ok()).collect();
        (!values.is_empty()).then(|| values.join(","))
    }
}

/// The refusal of a method that makes no sense here.
pub(crate) fn method_not_allowed() -> ApiError {
    let message = "the server does not allow this method on the requested resource";
    ApiError { details: Some(json!({})), ..ApiError::new(405, "MethodNotAllowed", message) }
}

/// The refusal of a path that names nothing.
pub(crate) fn no_such_path() -> ApiError {
    let message = "the server could not find the requested resource";
    ApiError { details: Some(json!({})), ..ApiError::new(404, "NotFound", message) }
}

/// Who the request is to be taken for. Only masters may speak for others.
fn impersonated(user: &User, parts: &Parts) -> Result<User, ApiError> {
    let text = |value: &header::HeaderValue| value.to_str().map(str::to_owned).unwrap_or_default();
    let Some(name) = parts.headers.get("impersonate-user").map(text) else {
        // Whoever asks to be less than they are must not be taken for more.
        let halves = ["impersonate-group", "impersonate-uid"];
        let is_half = |name: &&header::HeaderName| {
            halves.contains(&name.as_str()) || name.as_str().starts_with("impersonate-extra-")
        };
        return match parts.headers.keys().find(is_half) {
            Some(half) => {
                Err(ApiError::bad_request(format!("{half} is given without impersonate-user")))
            }
            None => Ok(user.clone()),
        };
    };
    if !user.is_master() {
        let message = format!(
            "users {name:?} is forbidden: User {:?} cannot impersonate resource \"users\" in API group \"\" at the cluster scope",
            user.name
        );
        return Err(ApiError::new(403, "Forbidden", message));
    }
    let mut groups: Vec<String> =
        parts.headers.get_all("impersonate-group").iter().map(text).collect();
    groups.push("system:authenticated".to_owned());
    Ok(User { name, groups })
}

fn route(request: &Incoming<'_>) -> Result<Response<Body>, ApiError> {
    let path = request.parts.uri.path();
    let inner = &request.server.inner;
    if let Target::Resource(target) = path::parse(path) {
        return resource(request, &target);
    }
    if request.parts.method != Method::GET && request.parts.method != Method::HEAD {
        return Err(no_such_path());
    }
    match path::parse(path) {
        Target::CoreVersions => discovery::core_versions(request),
        Target::Groups => discovery::groups(request),
        Target::Group(group) => discovery::group(inner, &group),
        Target::GroupVersion(group, version) => discovery::resources(inner, &group, &version),
        Target::Resource(_) | Target::Other => {
            let query = request.parts.uri.query().unwrap_or("");
            if let Some(response) = health::answer(path, query) {
                return Ok(response);
            }
            match path.trim_end_matches('/') {
                "" => Ok(discovery::paths(inner)),
                "/version" => Ok(json(200, &version::version())),
                path => openapi::answer(request, path),
            }
        }
    }
}

/// Finds the resource and the verb.
fn resource(request: &Incoming<'_>, target: &ResourcePath) -> Result<Response<Body>, ApiError> {
    let registry = &request.server.inner.registry;
    let entry = registry
        .find(&target.group, &target.version, &target.plural)
        .filter(|entry| entry.resource.namespaced || target.namespace.is_empty())
        .ok_or_else(no_such_path)?;
    let is_local = entry.resource.namespaced && target.namespace.is_empty();
    if is_local && !target.name.is_empty() {
        return Err(no_such_path());
    }
    let query = Query::parse(request.parts.uri.query());
    let call = Call::new(request, entry, target, &query)?;
    let mut response = match (&request.parts.method, target.name.is_empty()) {
        _ if !target.subresource.is_empty() => subresource::answer(&call)?,
        (&Method::GET | &Method::HEAD, _) if target.is_watch || query.flag("watch") => {
            crate::watch::start(&call)?
        }
        (&Method::GET | &Method::HEAD, true) => list::answer(&call)?,
        (&Method::GET | &Method::HEAD, false) => get::answer(&call)?,
        (&Method::POST, true) if !is_local || entry.table.is_none() => create::answer(&call)?,
        (&Method::PUT, false) => update::answer(&call)?,
        (&Method::PATCH, false) => patch::answer(&call)?,
        (&Method::DELETE, false) => delete::answer(&call)?,
        (&Method::DELETE, true) if !is_local => delete::answer_collection(&call)?,
        _ => return Err(method_not_allowed()),
    };
    for warning in call.warnings.borrow().iter() {
        respond::warn(&mut response, warning);
    }
    Ok(response)
}

#[cfg(test)]
mod tests;

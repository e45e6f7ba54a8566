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
mod review;
mod select;
mod subresource;
mod table;
mod token;
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
#[cfg(test)]
pub(crate) use self::path::parse as parse_path;
pub(crate) use self::path::{ResourcePath, Target as PathTarget, decode};
pub(crate) use self::query::Query;
pub use self::respond::Body;
pub(crate) use self::respond::{bytes, json, text, value};
pub(crate) use self::select::Selection;
pub(crate) use self::table::{Include, Table, partial};

use self::path::Target;
use crate::access::{self, Authorization};
use crate::auth::User;
use crate::server::ApiServer;
use crate::{discovery, health, openapi, version};

/// How long a body may take to arrive.
const BODY_TIME: Duration = Duration::from_secs(60);

/// Answers a request of a user; `None` is nobody known. A server that does not
/// ask for roles tells even them how it is, and no more. Watches end when
/// `closing` is cancelled.
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
        return unknown(server, &parts);
    };
    let target = path::parse(path);
    let query = Query::parse(parts.uri.query());
    let admitted = admit(server, user, &parts, &target, &query);
    if let Err(error) = &admitted
        && user.is_anonymous()
    {
        return respond::error(error);
    }
    let body = match timeout(BODY_TIME, intake::read(body)).await {
        Ok(Ok(body)) => body,
        Ok(Err(error)) => return respond::error(&error),
        Err(_) => {
            let message = "the request's body did not arrive in time";
            return respond::error(&ApiError::new(408, "Timeout", message));
        }
    };
    let user = match admitted {
        Ok(user) => user,
        Err(error) => return respond::error(&error),
    };
    let request = Incoming { server, user: &user, parts: &parts, body: &body, closing };
    // One broken object or a bug in one kind's rules must not end the server.
    // Nothing is left half done: a write is one call of the store.
    match catch_unwind(AssertUnwindSafe(|| route(&request, &target, &query))) {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => respond::error(&error),
        Err(_) => {
            tracing::error!(method = %parts.method, path, "a request caused a panic");
            let message = "This request caused apiserver to panic. Look in the logs for details.";
            respond::error(&ApiError::internal(message))
        }
    }
}

/// The answer for somebody who brings nothing that the server knows.
fn unknown(server: &ApiServer, parts: &Parts) -> Response<Body> {
    let path = parts.uri.path();
    let is_open = server.inner.access.mode == Authorization::AlwaysAllow;
    let health = || health::answer(path, parts.uri.query().unwrap_or(""));
    match is_open.then(health).flatten() {
        Some(response) => response,
        None if is_open && (path == "/version" || path == "/version/") => {
            json(200, &version::version())
        }
        None => respond::error(&ApiError::new(401, "Unauthorized", "Unauthorized")),
    }
}

/// Who the request is to be taken for, if they may make it.
fn admit(
    server: &ApiServer,
    user: &User,
    parts: &Parts,
    target: &Target,
    query: &Query,
) -> Result<User, ApiError> {
    let inner = &server.inner;
    let user = access::impersonation::apply(inner, user.clone(), &parts.headers)?;
    access::check_request(inner, &user, &parts.method, parts.uri.path(), target, query)?;
    Ok(user)
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

fn route(
    request: &Incoming<'_>,
    target: &Target,
    query: &Query,
) -> Result<Response<Body>, ApiError> {
    let path = request.parts.uri.path();
    let inner = &request.server.inner;
    let method = &request.parts.method;
    let is_reading = method == Method::GET || method == Method::HEAD;
    match target {
        Target::Resource(target) => resource(request, target, query),
        _ if !is_reading => Err(no_such_path()),
        Target::CoreVersions => discovery::core_versions(request),
        Target::Groups => discovery::groups(request),
        Target::Group(group) => discovery::group(inner, group),
        Target::GroupVersion(group, version) => discovery::resources(inner, group, version),
        Target::Other => {
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
fn resource(
    request: &Incoming<'_>,
    target: &ResourcePath,
    query: &Query,
) -> Result<Response<Body>, ApiError> {
    let registry = &request.server.inner.registry;
    let entry = registry
        .find(&target.group, &target.version, &target.plural)
        .filter(|entry| entry.resource.namespaced || target.namespace.is_empty())
        .ok_or_else(no_such_path)?;
    let is_local = entry.resource.namespaced && target.namespace.is_empty();
    if is_local && !target.name.is_empty() {
        return Err(no_such_path());
    }
    let call = Call::new(request, entry, target, query)?;
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

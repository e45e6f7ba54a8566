//! `GET` of one object.

use http::Response;
use steersman_apimachinery::error::ApiError;

use super::Call;
use super::list::{parse_revision, too_large};
use super::respond::Body;

pub(super) fn answer(call: &Call<'_>) -> Result<Response<Body>, ApiError> {
    let table = call.table()?;
    let wanted = parse_revision(call.query.text("resourceVersion"))?;
    let current = call.server.store.revision();
    if wanted > current {
        return Err(too_large(wanted, current));
    }
    let key = crate::store::key(&call.path.namespace, &call.path.name);
    let found = call.server.store.get(table, &key);
    let found = found.ok_or_else(|| ApiError::not_found(call.resource, &call.path.name))?;
    call.respond(200, &found)
}

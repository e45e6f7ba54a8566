//! `POST` of a new object.

use http::Response;
use steersman_apimachinery::error::ApiError;
use steersman_apimachinery::resource::Storage;
use steersman_apimachinery::rules::Request;

use super::path::ResourcePath;
use super::respond::Body;
use super::{Call, no_such_path, review, subresource};
use crate::meta;

pub(super) fn answer(call: &Call<'_>) -> Result<Response<Body>, ApiError> {
    if let Storage::Through { group, plural, subresource } = call.resource.storage {
        return through(call, [group, plural, subresource]);
    }
    let object = call.object()?;
    let writer = call.writer()?;
    if let Some(answer) = review::answer(call, &object) {
        return Ok(call.respond_value(201, &answer?));
    }
    if call.entry.table.is_none() {
        let request = Request {
            resource: call.resource,
            user: &call.request.user.name,
            groups: &call.request.user.groups,
            now: call.now,
            view: call.server,
            random: call.server.random(),
        };
        let answer = call.resource.rules.answer(object, &request)?;
        return Ok(call.respond_value(201, &answer));
    }
    let written = writer.create(&call.path.namespace, object)?;
    call.respond(201, &written)
}

/// Posts to the subresource of the object that the body names.
fn through(
    call: &Call<'_>,
    [group, plural, subresource]: [&'static str; 3],
) -> Result<Response<Body>, ApiError> {
    let version = call.resource.version;
    let entry = call.server.registry.find(group, version, plural).ok_or_else(no_such_path)?;
    let path = ResourcePath {
        group: group.to_owned(),
        version: version.to_owned(),
        namespace: call.path.namespace.clone(),
        plural: plural.to_owned(),
        name: meta::name(&call.document()?.value).to_owned(),
        subresource: subresource.to_owned(),
        is_watch: false,
    };
    if path.name.is_empty() {
        return Err(ApiError::bad_request("name must be provided"));
    }
    let inner = Call::new(call.request, entry, &path, call.query)?;
    let answer = subresource::answer(&inner)?;
    call.warnings.borrow_mut().append(&mut inner.warnings.borrow_mut());
    Ok(answer)
}

//! `POST` of a new object.

use http::Response;
use steersman_apimachinery::error::ApiError;
use steersman_apimachinery::rules::Request;

use super::Call;
use super::respond::Body;

pub(super) fn answer(call: &Call<'_>) -> Result<Response<Body>, ApiError> {
    let object = call.object()?;
    let writer = call.writer()?;
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

//! The bytes of a request's body.

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use steersman_apimachinery::error::ApiError;

/// The largest body, in bytes: as much as the reference takes.
const LIMIT: usize = 3 * 1024 * 1024;
/// How much is read, and thrown away, of a body that is too large. Many clients
/// send everything before they look for an answer; one that finds the
/// connection closed meanwhile never learns why.
const PATIENCE: usize = 64 * 1024 * 1024;

/// Reads a body to its end.
pub(super) async fn read<B>(body: B) -> Result<Bytes, ApiError>
where
    B: http_body::Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let mut body = std::pin::pin!(body);
    let mut bytes = BytesMut::new();
    let mut length = 0_usize;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            let error: Box<dyn std::error::Error + Send + Sync> = error.into();
            ApiError::bad_request(format!("cannot read the request's body: {error}"))
        })?;
        let Ok(data) = frame.into_data() else { continue };
        length = length.saturating_add(data.len());
        if length > PATIENCE {
            break;
        }
        if length <= LIMIT {
            bytes.extend_from_slice(&data);
        }
    }
    if length > LIMIT {
        let message = format!("Request entity too large: limit is {LIMIT}");
        return Err(ApiError::new(413, "RequestEntityTooLarge", message));
    }
    Ok(bytes.freeze())
}

//! How the server is.

use http::Response;

use crate::rest::{Body, text};

/// Answers for the health endpoints; `None` for other paths. An answer at all
/// is the check: a server that holds its objects in memory has nothing that can
/// be away.
pub(crate) fn answer(path: &str, query: &str) -> Option<Response<Body>> {
    let name = path.trim_matches('/');
    let endpoint = name.split('/').next().unwrap_or("");
    if !matches!(endpoint, "healthz" | "livez" | "readyz") {
        return None;
    }
    let is_verbose = query.split('&').any(|part| part.split('=').next() == Some("verbose"));
    Some(match (name == endpoint, is_verbose) {
        (true, true) => text(200, format!("[+]ping ok\n{endpoint} check passed\n")),
        (true, false) => text(200, "ok".to_owned()),
        (false, _) if name == format!("{endpoint}/ping") => text(200, "ok".to_owned()),
        (false, _) => text(404, "404 page not found\n".to_owned()),
    })
}

//! The API described in OpenAPI, as `kubectl explain`, `apply` and validation
//! read it. Documents are made when they are first asked for, and kept.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use bytes::Bytes;
use http::Response;
use http::header::{ETAG, HeaderValue, IF_NONE_MATCH, VARY};
use parking_lot::Mutex;
use steersman_apimachinery::error::ApiError;
use steersman_apimachinery::openapi;
use steersman_apimachinery::resource::Resource;

use crate::rest::{Body, Incoming, bytes, no_such_path};

const V2_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// Documents that have been asked for.
#[derive(Default)]
pub(crate) struct Documents {
    v2_json: OnceLock<Bytes>,
    v2_protobuf: OnceLock<Bytes>,
    v3_index: OnceLock<Bytes>,
    v3_groups: Mutex<BTreeMap<String, Bytes>>,
}

/// Answers below `/openapi`; other paths name nothing.
pub(crate) fn answer(request: &Incoming<'_>, path: &str) -> Result<Response<Body>, ApiError> {
    let inner = &request.server.inner;
    let (documents, resources) = (&inner.documents, inner.resources);
    let accept = request.accept().unwrap_or_default();
    if path == "/openapi/v2" {
        // kubectl writes the type with an at sign, older ones with a dot.
        let wants_protobuf = accept.contains("com.github.proto-openapi.spec.v2");
        let (content_type, document) = if wants_protobuf {
            let make = || Bytes::from(openapi::v2_protobuf(resources));
            (V2_PROTOBUF, documents.v2_protobuf.get_or_init(make))
        } else {
            let make = || Bytes::from(openapi::v2_json(resources).to_string());
            ("application/json", documents.v2_json.get_or_init(make))
        };
        return Ok(tagged(request, content_type, document));
    }
    let rest = path.strip_prefix("/openapi/v3").ok_or_else(no_such_path)?;
    let takes_json = accept.is_empty()
        || ["application/json", "application/*", "*/*"].iter().any(|json| accept.contains(json));
    if !takes_json {
        let message = "only the following media types are accepted: application/json";
        return Err(ApiError::new(406, "NotAcceptable", message));
    }
    let Some(group) = rest.strip_prefix('/') else {
        if !rest.is_empty() {
            return Err(no_such_path());
        }
        let make = || Bytes::from(openapi::v3_index(resources).to_string());
        let index = documents.v3_index.get_or_init(make);
        return Ok(tagged(request, "application/json", index));
    };
    let known = documents.v3_groups.lock().get(group).cloned();
    let document = match known {
        Some(known) => known,
        None => {
            if !is_served(resources, group) {
                return Err(no_such_path());
            }
            let made = openapi::v3_group(resources, group);
            let made = Bytes::from(made.to_string());
            documents.v3_groups.lock().insert(group.to_owned(), made.clone());
            made
        }
    };
    Ok(tagged(request, "application/json", &document))
}

/// Whether this is `api/v1`, `apis/apps/v1` or the like.
fn is_served(resources: &[Resource], group: &str) -> bool {
    resources.iter().any(|resource| {
        let root = if resource.group.is_empty() { "api" } else { "apis" };
        let version = group.strip_prefix(root).and_then(|rest| rest.strip_prefix('/'));
        version == Some(&resource.api_version())
    })
}

/// A document, or only that it is still the one that the client has.
fn tagged(request: &Incoming<'_>, content_type: &'static str, document: &Bytes) -> Response<Body> {
    let tag = format!("\"{:016x}\"", fingerprint(document));
    let mut response = if request.header(IF_NONE_MATCH) == tag {
        bytes(304, content_type, Bytes::new())
    } else {
        bytes(200, content_type, document.clone())
    };
    let headers = response.headers_mut();
    headers.insert(VARY, HeaderValue::from_static("Accept"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(ETAG, tag);
    }
    response
}

/// FNV-1a: equal documents have equal tags in every run.
fn fingerprint(document: &[u8]) -> u64 {
    document.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

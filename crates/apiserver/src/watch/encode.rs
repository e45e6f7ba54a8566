//! Watch events as they are sent: one JSON document a line.

use bytes::{BufMut, BytesMut};
use serde_json::{Value, json};
use steersman_apimachinery::error::ApiError;
use steersman_apimachinery::resource::Resource;

use crate::meta;
use crate::rest::{Call, Include, Shape, Table, partial};
use crate::server::ApiServer;
use crate::store::Stored;

/// Writes events in the form that the client asked for.
pub(super) struct Encoder {
    server: ApiServer,
    resource: &'static Resource,
    is_own_form: bool,
    shape: Shape,
    include: Include,
    /// Tables describe their columns once.
    has_header: bool,
}

impl Encoder {
    pub(super) fn of(call: &Call<'_>) -> Result<Self, ApiError> {
        Ok(Self {
            server: call.request.server.clone(),
            resource: call.resource,
            is_own_form: call.is_own_form(),
            shape: call.form.shape,
            include: Include::parse(call.query.text("includeObject"))?,
            has_header: false,
        })
    }

    /// An event about a stored object.
    pub(super) fn object(&mut self, out: &mut BytesMut, kind: &str, object: &Stored) {
        if self.is_own_form && self.shape == Shape::Whole {
            event(out, kind, &object.json);
        } else {
            self.value(out, kind, object.full());
        }
    }

    /// An object left the selection: what it was, at the version of the change.
    pub(super) fn left(&mut self, out: &mut BytesMut, before: &Stored, revision: u64) {
        let mut object = before.full();
        meta::set(&mut object, "resourceVersion", Value::from(revision.to_string()));
        self.value(out, "DELETED", object);
    }

    /// How far the client knows everything; `ends_initial` after the objects
    /// that were there at the beginning.
    pub(super) fn bookmark(&mut self, out: &mut BytesMut, revision: u64, ends_initial: bool) {
        let mut object = json!({
            "kind": self.resource.kind,
            "apiVersion": self.resource.api_version(),
            "metadata": { "resourceVersion": revision.to_string() },
        });
        if ends_initial {
            object["metadata"]["annotations"] = json!({ "k8s.io/initial-events-end": "true" });
        }
        let shown = self.shape(object);
        event(out, "BOOKMARK", shown.to_string().as_bytes());
    }

    /// Why the watch ends.
    pub(super) fn error(&mut self, out: &mut BytesMut, error: &ApiError) {
        event(out, "ERROR", error.to_status().to_string().as_bytes());
    }

    /// An event about an object in storage form.
    fn value(&mut self, out: &mut BytesMut, kind: &str, object: Value) {
        let object =
            if self.is_own_form { object } else { self.resource.rules.from_storage(&object) };
        let shown = self.shape(object);
        event(out, kind, shown.to_string().as_bytes());
    }

    fn shape(&mut self, object: Value) -> Value {
        match self.shape {
            Shape::Table(version) => {
                let (resource, include) = (self.resource, self.include);
                let table = Table { resource, version, include, now: self.server.inner.now() };
                let metadata = json!({ "resourceVersion": meta::text(&object, "resourceVersion") });
                let with_header = !std::mem::replace(&mut self.has_header, true);
                table.document(vec![table.row(&object)], metadata, with_header)
            }
            Shape::Metadata(version) => partial(&object, version),
            Shape::Whole | Shape::Discovery(_) => object,
        }
    }
}

fn event(out: &mut BytesMut, kind: &str, object: &[u8]) {
    out.put_slice(b"{\"type\":\"");
    out.put_slice(kind.as_bytes());
    out.put_slice(b"\",\"object\":");
    out.put_slice(object);
    out.put_slice(b"}\n");
}

//! One version of one object.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

/// One version of one object. Everybody who reads or watches it shares it.
pub(crate) struct Stored {
    /// Its `resourceVersion`.
    pub(crate) revision: u64,
    /// The object without `managedFields`: what selectors, admission and tables
    /// read. (Field ownership is most of a small object's tree, and only writes
    /// look at it.)
    pub(crate) value: Arc<Value>,
    /// All of it, as it is sent.
    pub(crate) json: Bytes,
    /// Where in `json` the value of `managedFields` is.
    managed: Option<Range<usize>>,
}

impl Stored {
    /// An object that is answered without having been stored.
    pub(crate) fn unstored(mut object: Value) -> Arc<Self> {
        let json = Bytes::from(object.to_string());
        take_managed_fields(&mut object);
        Arc::new(Self { revision: 0, value: Arc::new(object), json, managed: None })
    }

    /// The whole object.
    pub(crate) fn full(&self) -> Value {
        serde_json::from_slice(&self.json).expect("the store wrote this JSON itself")
    }

    /// The JSON of its `managedFields`.
    pub(crate) fn managed_fields(&self) -> Option<Bytes> {
        self.managed.clone().map(|range| self.json.slice(range))
    }
}

/// An object that lacks nothing but its revision, so that the store's lock is
/// not held while it is written down.
pub(super) struct Draft {
    /// Without `managedFields`.
    value: Value,
    /// Before and behind the revision.
    json: [Vec<u8>; 2],
    /// Where `managedFields` are in the part before the revision: names are
    /// sorted.
    managed: Option<Range<usize>>,
}

impl Draft {
    /// Writes an object down. Its `managedFields` may be JSON already.
    pub(super) fn new(mut object: Value, managed: Option<Bytes>) -> Self {
        let own = take_managed_fields(&mut object);
        let managed = own.map(|fields| Bytes::from(fields.to_string())).or(managed);
        object["metadata"]["resourceVersion"] = Value::Null;
        let mut writer = Writer { managed: managed.as_ref(), ..Writer::default() };
        writer.object(&object).expect("objects are written to memory");
        let Writer { before, behind, range, .. } = writer;
        Self { value: object, json: [before, behind], managed: range }
    }

    /// Stamps the object with its revision.
    pub(super) fn stamp(self, revision: u64) -> Arc<Stored> {
        let Self { mut value, json: [before, behind], managed } = self;
        let text = revision.to_string();
        let mut json = Vec::with_capacity(before.len() + text.len() + 2 + behind.len());
        json.extend_from_slice(&before);
        json.push(b'"');
        json.extend_from_slice(text.as_bytes());
        json.push(b'"');
        json.extend_from_slice(&behind);
        value["metadata"]["resourceVersion"] = Value::from(text);
        Arc::new(Stored { revision, value: Arc::new(value), json: Bytes::from(json), managed })
    }
}

/// Writes an object's JSON up to the value of its `resourceVersion`, and from
/// there on.
#[derive(Default)]
struct Writer<'a> {
    managed: Option<&'a Bytes>,
    before: Vec<u8>,
    behind: Vec<u8>,
    range: Option<Range<usize>>,
    is_behind: bool,
}

const MANAGED: &str = "managedFields";
const REVISION: &str = "resourceVersion";

impl Writer<'_> {
    fn object(&mut self, object: &Value) -> serde_json::Result<()> {
        let mut separator = b'{';
        for (name, value) in object.as_object().into_iter().flatten() {
            self.name(std::mem::replace(&mut separator, b','), name)?;
            match value {
                Value::Object(metadata) if name == "metadata" => self.metadata(metadata)?,
                value => serde_json::to_writer(self.out(), value)?,
            }
        }
        self.out().push(b'}');
        Ok(())
    }

    fn metadata(&mut self, metadata: &serde_json::Map<String, Value>) -> serde_json::Result<()> {
        let mut separator = b'{';
        let mut managed = self.managed;
        for (name, value) in metadata {
            // In its place among the names.
            if let Some(fields) = managed.filter(|_| name.as_str() > MANAGED) {
                managed = None;
                self.name(std::mem::replace(&mut separator, b','), MANAGED)?;
                let start = self.before.len();
                self.before.extend_from_slice(fields);
                self.range = Some(start..self.before.len());
            }
            self.name(std::mem::replace(&mut separator, b','), name)?;
            if name == REVISION {
                self.is_behind = true;
            } else {
                serde_json::to_writer(self.out(), value)?;
            }
        }
        self.out().push(b'}');
        Ok(())
    }

    fn name(&mut self, separator: u8, name: &str) -> serde_json::Result<()> {
        let out = self.out();
        out.push(separator);
        serde_json::to_writer(&mut *out, name)?;
        out.push(b':');
        Ok(())
    }

    fn out(&mut self) -> &mut Vec<u8> {
        if self.is_behind { &mut self.behind } else { &mut self.before }
    }
}

fn take_managed_fields(object: &mut Value) -> Option<Value> {
    object.get_mut("metadata")?.as_object_mut()?.remove(MANAGED)
}

/// The key of an object in its table. Keys sort as in the reference's store:
/// `-` comes before the slash that ends a namespace.
pub(crate) fn key(namespace: &str, name: &str) -> String {
    if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") }
}

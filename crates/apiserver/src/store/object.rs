//! One version of one object.

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
}

impl Stored {
    /// Stamps an object with its revision and keeps it.
    pub(super) fn new(mut object: Value, revision: u64) -> Arc<Self> {
        object["metadata"]["resourceVersion"] = Value::from(revision.to_string());
        Self::keep(object, revision)
    }

    /// An object that is answered without having been stored.
    pub(crate) fn unstored(object: Value) -> Arc<Self> {
        Self::keep(object, 0)
    }

    fn keep(mut object: Value, revision: u64) -> Arc<Self> {
        let json = Bytes::from(object.to_string());
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("managedFields");
        }
        Arc::new(Self { revision, value: Arc::new(object), json })
    }

    /// The whole object.
    pub(crate) fn full(&self) -> Value {
        serde_json::from_slice(&self.json).expect("the store wrote this JSON itself")
    }
}

/// The key of an object in its table. Keys sort as in the reference's store:
/// `-` comes before the slash that ends a namespace.
pub(crate) fn key(namespace: &str, name: &str) -> String {
    if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") }
}

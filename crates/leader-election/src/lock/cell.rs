//! One object with a record in it.

use http::{Method, Request};
use kube::Client;
use serde_json::{Map, Value, json};

use super::LockError;
use super::kind::Object;
use crate::record::Record;

/// Where older locks keep their record.
const ANNOTATION: &str = "control-plane.alpha.kubernetes.io/leader";

/// An object of the API server, and what it looked like last.
pub(crate) struct Cell {
    client: Client,
    object: Object,
    namespace: String,
    name: String,
    /// As it was read or written last, with its version.
    last: Option<Map<String, Value>>,
}

impl std::fmt::Debug for Cell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}/{}", self.object.kind(), self.namespace, self.name)
    }
}

impl Cell {
    pub(super) fn new(client: Client, object: Object, namespace: &str, name: &str) -> Self {
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        Self { client, object, namespace, name, last: None }
    }

    /// Whether it was there when it was last read.
    pub(super) fn exists(&self) -> bool {
        self.last.is_some()
    }

    pub(super) async fn read(&mut self) -> Result<Option<Record>, LockError> {
        let path = format!("{}/{}", self.object.path(&self.namespace), self.name);
        match self.ask(Method::GET, &path, Vec::new()).await {
            Ok(()) => self.record().map(Some),
            Err(error) if error.is_not_found() => {
                self.last = None;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    pub(super) async fn create(&mut self, record: &Record) -> Result<(), LockError> {
        let mut object = Map::new();
        object.insert("apiVersion".to_owned(), json!(self.object.api_version()));
        object.insert("kind".to_owned(), json!(self.object.kind()));
        let metadata = json!({ "namespace": self.namespace, "name": self.name });
        object.insert("metadata".to_owned(), metadata);
        self.write(&mut object, record);
        let path = self.object.path(&self.namespace);
        self.ask(Method::POST, &path, Value::Object(object).to_string().into_bytes()).await
    }

    /// Replaces the object that was seen last. Its version goes along, and the
    /// API server refuses if it has another one by now.
    pub(super) async fn update(&mut self, record: &Record) -> Result<(), LockError> {
        let mut object = self.last.clone().ok_or(LockError::Unread)?;
        self.write(&mut object, record);
        let path = format!("{}/{}", self.object.path(&self.namespace), self.name);
        self.ask(Method::PUT, &path, Value::Object(object).to_string().into_bytes()).await
    }

    /// How an event refers to it.
    pub(crate) fn reference(&self) -> Value {
        let metadata = self.last.as_ref().and_then(|last| last.get("metadata"));
        let field = |name| metadata.and_then(|m| m.get(name)).cloned();
        json!({
            "apiVersion": self.object.api_version(),
            "kind": self.object.kind(),
            "namespace": self.namespace,
            "name": self.name,
            "uid": field("uid"),
            "resourceVersion": field("resourceVersion"),
        })
    }

    fn record(&self) -> Result<Record, LockError> {
        let Some(last) = &self.last else { return Err(LockError::Unread) };
        if self.object == Object::Lease {
            return Ok(Record::from_lease_spec(last.get("spec").unwrap_or(&Value::Null)));
        }
        // An object that nobody held an election on yet is a free lock.
        let text = last.get("metadata").and_then(|m| m["annotations"][ANNOTATION].as_str());
        text.map_or_else(
            || Ok(Record::default()),
            |text| Record::from_annotation(text).map_err(LockError::Record),
        )
    }

    fn write(&self, object: &mut Map<String, Value>, record: &Record) {
        if self.object == Object::Lease {
            record.write_lease_spec(field(object, "spec"));
        } else {
            let annotations = field(field(object, "metadata"), "annotations");
            annotations.insert(ANNOTATION.to_owned(), json!(record.to_annotation()));
        }
    }

    async fn ask(&mut self, method: Method, path: &str, body: Vec<u8>) -> Result<(), LockError> {
        let failed = |error| LockError::Request(Box::new(error));
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", "application/json")
            .body(body)
            .map_err(|error| failed(kube::Error::HttpError(error)))?;
        let answer: Value = self.client.request(request).await.map_err(failed)?;
        let Value::Object(answer) = answer else { return Err(LockError::Answer) };
        if !answer.get("metadata").is_some_and(Value::is_object) {
            return Err(LockError::Answer);
        }
        self.last = Some(answer);
        Ok(())
    }
}

/// The object in a field; made if there is none.
fn field<'a>(object: &'a mut Map<String, Value>, name: &str) -> &'a mut Map<String, Value> {
    let value = object.entry(name).or_insert_with(|| json!({}));
    if !value.is_object() {
        *value = json!({});
    }
    value.as_object_mut().expect("it was just made an object")
}

//! A cluster for tests: objects by resource, and requests to it.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;
use steersman_apimachinery::error::FieldError;
use steersman_apimachinery::rules::{Request, View};

use crate::fields::{name, namespace};
use crate::resources;

/// What is in the cluster.
#[derive(Default)]
pub(crate) struct Cluster {
    objects: BTreeMap<(String, String), Vec<Arc<Value>>>,
}

impl Cluster {
    /// Adds an object, which says of what kind it is.
    pub(crate) fn with(mut self, object: Value) -> Self {
        let found = resources().iter().find(|resource| {
            object["apiVersion"] == resource.api_version() && object["kind"] == resource.kind
        });
        let resource = found.expect("a known kind");
        let key = (resource.group.to_owned(), resource.plural.to_owned());
        self.objects.entry(key).or_default().push(Arc::new(object));
        self
    }

    /// A request for a resource, in the first minute of 2026.
    pub(crate) fn request(&self, group: &str, plural: &str) -> Request<'_> {
        let mut found = resources().iter();
        let found = found.find(|resource| resource.group == group && resource.plural == plural);
        Request {
            resource: found.expect("a known resource"),
            user: "admin",
            groups: &[],
            now: now(),
            view: self,
            random: 41,
        }
    }
}

impl View for Cluster {
    fn get(&self, group: &str, plural: &str, ns: &str, wanted: &str) -> Option<Arc<Value>> {
        let objects = self.objects.get(&(group.to_owned(), plural.to_owned()))?;
        let mut found = objects.iter().filter(|object| namespace(object) == ns);
        found.find(|object| name(object) == wanted).cloned()
    }

    fn list(&self, group: &str, plural: &str, ns: Option<&str>) -> Vec<Arc<Value>> {
        let objects = self.objects.get(&(group.to_owned(), plural.to_owned()));
        let objects = objects.into_iter().flatten();
        objects.filter(|object| ns.is_none_or(|ns| namespace(object) == ns)).cloned().collect()
    }
}

/// The time of requests.
pub(crate) fn now() -> Timestamp {
    "2026-01-01T00:01:00Z".parse().expect("a time")
}

/// Errors, one a line.
pub(crate) fn lines(errors: &[FieldError]) -> String {
    let lines: Vec<String> =
        errors.iter().map(|error| format!("{}: {}", error.field, error.body())).collect();
    lines.join("\n")
}

//! What a request asks for, as authorisation sees it.

use http::Method;
use serde_json::json;
use steersman_apimachinery::error::ApiError;
use steersman_apimachinery::selector::FieldSelector;

use crate::rest::{Query, ResourcePath};

/// A verb, and what it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Attributes<'a> {
    pub(crate) verb: &'a str,
    pub(crate) target: Target<'a>,
}

/// What a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target<'a> {
    /// A resource; what does not apply is empty.
    Resource {
        group: &'a str,
        resource: &'a str,
        subresource: &'a str,
        namespace: &'a str,
        name: &'a str,
    },
    /// Another path.
    Path(&'a str),
}

impl<'a> Attributes<'a> {
    /// Those of a request for a resource. `selected` is the name that the
    /// request's field selector asks for, if it names one.
    pub(crate) fn of(
        method: &Method,
        path: &'a ResourcePath,
        query: &Query,
        selected: Option<&'a str>,
    ) -> Self {
        let is_watch = path.is_watch || query.flag("watch");
        let is_named = !path.name.is_empty();
        let (verb, name) = match *method {
            Method::POST => ("create", path.name.as_str()),
            Method::PUT => ("update", path.name.as_str()),
            Method::PATCH => ("patch", path.name.as_str()),
            Method::DELETE if is_named => ("delete", path.name.as_str()),
            Method::DELETE => ("deletecollection", ""),
            // What is read of a subresource is not watched.
            Method::GET | Method::HEAD if is_watch && path.subresource.is_empty() => {
                ("watch", if is_named { &path.name } else { selected.unwrap_or("") })
            }
            Method::GET | Method::HEAD if is_named => ("get", path.name.as_str()),
            Method::GET | Method::HEAD => ("list", selected.unwrap_or("")),
            // Nothing serves other methods, and no rule of the built-in ones allows them.
            _ => ("", path.name.as_str()),
        };
        // A namespace lies in itself, so that its own roles can speak of it.
        let is_namespace = path.group.is_empty() && path.plural == "namespaces";
        let namespace = if is_namespace { &path.name } else { &path.namespace };
        Self {
            verb,
            target: Target::Resource {
                group: &path.group,
                resource: &path.plural,
                subresource: &path.subresource,
                namespace,
                name,
            },
        }
    }

    /// The refusal. `why` may be empty.
    pub(crate) fn forbidden(&self, user: &str, why: &str) -> ApiError {
        let colon = if why.is_empty() { "" } else { ": " };
        match self.target {
            Target::Path(path) => {
                let message = format!(
                    "forbidden: User {user:?} cannot {} path {path:?}{colon}{why}",
                    self.verb
                );
                let details = Some(json!({}));
                ApiError { details, ..ApiError::new(403, "Forbidden", message) }
            }
            Target::Resource { group, resource, subresource, namespace, name } => {
                let slash = if subresource.is_empty() { "" } else { "/" };
                let place = if namespace.is_empty() {
                    "at the cluster scope".to_owned()
                } else {
                    format!("in the namespace {namespace:?}")
                };
                let dot = if group.is_empty() { "" } else { "." };
                let quoted = if name.is_empty() { String::new() } else { format!(" {name:?}") };
                let message = format!(
                    "{resource}{dot}{group}{quoted} is forbidden: User {user:?} cannot {} resource \"{resource}{slash}{subresource}\" in API group {group:?} {place}{colon}{why}",
                    self.verb
                );
                let mut details = json!({ "kind": resource });
                for (field, text) in [("name", name), ("group", group)] {
                    if !text.is_empty() {
                        details[field] = json!(text);
                    }
                }
                ApiError { details: Some(details), ..ApiError::new(403, "Forbidden", message) }
            }
        }
    }
}

/// The one name that a field selector asks for.
pub(crate) fn selected_name(query: &Query) -> Option<String> {
    let selector = FieldSelector::parse(query.text("fieldSelector")).ok()?;
    selector.required_value("metadata.name").map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rest::{PathTarget, parse_path};

    #[test]
    fn requests_ask_for_what_they_ask_for_in_the_reference() {
        for (method, uri, expected) in [
            ("GET", "/api/v1/pods", "list pods @ #"),
            ("GET", "/api/v1/pods?watch=1", "watch pods @ #"),
            ("GET", "/api/v1/watch/pods", "watch pods @ #"),
            ("HEAD", "/api/v1/namespaces/a/pods", "list pods @a #"),
            ("GET", "/api/v1/namespaces/a/pods/p", "get pods @a #p"),
            ("GET", "/api/v1/nodes?fieldSelector=metadata.name%3Dn1", "list nodes @ #n1"),
            ("GET", "/api/v1/nodes?watch=true&fieldSelector=metadata.name=n1", "watch nodes @ #n1"),
            ("GET", "/api/v1/namespaces/a/pods/p/status", "get pods/status @a #p"),
            ("POST", "/api/v1/namespaces/a/pods/p/binding", "create pods/binding @a #p"),
            ("POST", "/api/v1/namespaces/a/pods", "create pods @a #"),
            ("PUT", "/apis/apps/v1/namespaces/a/deployments/d", "update deployments.apps @a #d"),
            ("PATCH", "/api/v1/nodes/n", "patch nodes @ #n"),
            ("DELETE", "/api/v1/nodes/n", "delete nodes @ #n"),
            ("DELETE", "/api/v1/namespaces/a/pods", "deletecollection pods @a #"),
            ("GET", "/api/v1/namespaces", "list namespaces @ #"),
            ("GET", "/api/v1/namespaces/a", "get namespaces @a #a"),
            ("PUT", "/api/v1/namespaces/a/finalize", "update namespaces/finalize @a #a"),
        ] {
            let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
            let PathTarget::Resource(path) = parse_path(path) else { panic!("{uri}") };
            let query = Query::parse(Some(query));
            let selected = selected_name(&query);
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            let asked = Attributes::of(&method, &path, &query, selected.as_deref());
            let Target::Resource { group, resource, subresource, namespace, name } = asked.target
            else {
                panic!("{uri}")
            };
            let dot = if group.is_empty() { "" } else { "." };
            let slash = if subresource.is_empty() { "" } else { "/" };
            let verb = asked.verb;
            let found =
                format!("{verb} {resource}{slash}{subresource}{dot}{group} @{namespace} #{name}");
            assert_eq!(found, expected, "{method} {uri}");
        }
    }

    #[test]
    fn refusals_read_as_in_the_reference() {
        let pods = |namespace, name, subresource| Target::Resource {
            group: "",
            resource: "pods",
            subresource,
            namespace,
            name,
        };
        let leases = Target::Resource {
            group: "coordination.k8s.io",
            resource: "leases",
            subresource: "",
            namespace: "kube-system",
            name: "l",
        };
        for (verb, target, expected) in [
            (
                "list",
                pods("", "", ""),
                r#"pods is forbidden: User "x" cannot list resource "pods" in API group "" at the cluster scope"#,
            ),
            (
                "create",
                pods("y", "p", "binding"),
                r#"pods "p" is forbidden: User "x" cannot create resource "pods/binding" in API group "" in the namespace "y""#,
            ),
            (
                "get",
                leases,
                r#"leases.coordination.k8s.io "l" is forbidden: User "x" cannot get resource "leases" in API group "coordination.k8s.io" in the namespace "kube-system""#,
            ),
            ("get", Target::Path("/metrics"), r#"forbidden: User "x" cannot get path "/metrics""#),
        ] {
            assert_eq!(Attributes { verb, target }.forbidden("x", "").message, expected);
        }
        let error = Attributes { verb: "get", target: leases }.forbidden("x", "a reason");
        assert!(error.message.ends_with(r#""kube-system": a reason"#), "{}", error.message);
        let details = json!({"kind": "leases", "name": "l", "group": "coordination.k8s.io"});
        assert_eq!((error.code, error.reason, error.details), (403, "Forbidden", Some(details)));
    }
}

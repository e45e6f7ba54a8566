//! What can be done with resources, free of any version of OpenAPI.

use super::{definitions, prefix};
use crate::resource::{Action, Resource};

pub(super) const STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";
const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
const PATCH: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch";

/// Media types of patches.
pub(super) const PATCH_TYPES: &[&str] = &[
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
];

/// One operation on one path.
#[derive(Clone, Debug)]
pub(super) struct Operation {
    /// `/api/v1/namespaces/{namespace}/pods/{name}`.
    pub(super) path: String,
    /// `get`, `put`, `post`, `delete` or `patch`.
    pub(super) method: &'static str,
    /// `x-kubernetes-action`.
    pub(super) action: &'static str,
    /// A name that no other operation of the document has.
    pub(super) id: String,
    /// Group, version and kind of what is sent or received.
    pub(super) kind: (&'static str, &'static str, &'static str),
    /// The definition of what is sent.
    pub(super) body: Option<String>,
    /// The definition of what comes back.
    pub(super) answer: Option<String>,
}

/// A parameter in the query.
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) json_type: &'static str,
    pub(super) description: &'static str,
}

const fn parameter(
    name: &'static str,
    json_type: &'static str,
    description: &'static str,
) -> Parameter {
    Parameter { name, json_type, description }
}

const PRETTY: Parameter = parameter("pretty", "string", "Whether the output is indented.");
const DRY_RUN: Parameter =
    parameter("dryRun", "string", "With All, everything is checked and nothing is stored.");
const FIELD_MANAGER: Parameter =
    parameter("fieldManager", "string", "Who the written fields belong to.");
const FIELD_VALIDATION: Parameter = parameter(
    "fieldValidation",
    "string",
    "What becomes of unknown and duplicate fields: Ignore, Warn or Strict.",
);

const LIST: &[Parameter] = &[
    PRETTY,
    parameter("allowWatchBookmarks", "boolean", "Whether watches send bookmarks."),
    parameter("continue", "string", "Where a list in pages goes on."),
    parameter("fieldSelector", "string", "Restricts the objects by their fields."),
    parameter("labelSelector", "string", "Restricts the objects by their labels."),
    parameter("limit", "integer", "The most objects of one page."),
    parameter("resourceVersion", "string", "Which state of the objects is asked for."),
    parameter(
        "resourceVersionMatch",
        "string",
        "How resourceVersion is meant: Exact, NotOlderThan.",
    ),
    parameter("sendInitialEvents", "boolean", "Whether a watch starts with what is there."),
    parameter("timeoutSeconds", "integer", "How long the request may take."),
    parameter("watch", "boolean", "Whether changes are sent as they happen."),
];
const READ: &[Parameter] = &[PRETTY];
const WRITE: &[Parameter] = &[PRETTY, DRY_RUN, FIELD_MANAGER, FIELD_VALIDATION];
const APPLY: &[Parameter] = &[
    PRETTY,
    DRY_RUN,
    FIELD_MANAGER,
    FIELD_VALIDATION,
    parameter("force", "boolean", "Whether apply takes fields from other managers."),
];
const DELETE: &[Parameter] = &[
    PRETTY,
    DRY_RUN,
    parameter("gracePeriodSeconds", "integer", "How long the object has before it goes."),
    parameter("orphanDependents", "boolean", "Replaced by propagationPolicy."),
    parameter(
        "propagationPolicy",
        "string",
        "What becomes of dependents: Orphan, Background or Foreground.",
    ),
];

impl Operation {
    /// The parameters in the query.
    pub(super) fn parameters(&self) -> &'static [Parameter] {
        match self.action {
            "list" => LIST,
            "get" => READ,
            "patch" => APPLY,
            "delete" | "deletecollection" => DELETE,
            _ => WRITE,
        }
    }

    /// The parameters in the path.
    pub(super) fn path_parameters(&self) -> impl Iterator<Item = &'static str> {
        let path = self.path.clone();
        ["name", "namespace"].into_iter().filter(move |name| path.contains(&format!("{{{name}}}")))
    }
}

/// All operations of some resources.
pub(super) fn of(resources: &[&Resource]) -> Vec<Operation> {
    let mut all = Vec::new();
    for resource in resources {
        Builder { resource, all: &mut all }.add_resource();
    }
    all
}

struct Builder<'a> {
    resource: &'a Resource,
    all: &'a mut Vec<Operation>,
}

impl Builder<'_> {
    fn add_resource(&mut self) {
        let resource = self.resource;
        let root = format!("/{}", prefix(resource));
        let everywhere = format!("{root}/{}", resource.plural);
        let collection = if resource.namespaced {
            format!("{root}/namespaces/{{namespace}}/{}", resource.plural)
        } else {
            everywhere.clone()
        };
        let own = || Some(resource.schema.to_owned());
        if !resource.keeps_objects() {
            self.add(&collection, "post", "", own(), own());
            return;
        }
        let list = || Some(format!("{}List", resource.schema)).filter(|n| definitions::exists(n));
        if resource.namespaced {
            self.add(&everywhere, "get", "ForAllNamespaces", None, list());
            self.last().action = "list";
        }
        self.add(&collection, "get", "", None, list());
        self.last().action = "list";
        self.add(&collection, "post", "", own(), own());
        self.add(&collection, "delete", "", Some(DELETE_OPTIONS.to_owned()), status());
        self.last().action = "deletecollection";
        let item = format!("{collection}/{{name}}");
        self.add_view(&item, "", own());
        self.add(&item, "delete", "", Some(DELETE_OPTIONS.to_owned()), status());
        if resource.has_status {
            self.add_view(&format!("{item}/status"), "Status", own());
        }
        for subresource in resource.subresources {
            let path = format!("{item}/{}", subresource.name);
            let suffix = capitalised(subresource.name);
            let kind = (subresource.group, subresource.version, subresource.kind);
            let body = schema_of(kind);
            let before = self.all.len();
            match subresource.action {
                Action::View => self.add_view(&path, &suffix, body),
                Action::Perform | Action::Evict => {
                    self.add(&path, "post", &suffix, body.clone(), body);
                }
                Action::Finalize => self.add(&path, "put", &suffix, body.clone(), body),
            }
            self.all[before..].iter_mut().for_each(|operation| operation.kind = kind);
        }
    }

    /// Reading and writing of one thing.
    fn add_view(&mut self, path: &str, suffix: &str, body: Option<String>) {
        self.add(path, "get", suffix, None, body.clone());
        self.add(path, "put", suffix, body.clone(), body.clone());
        self.add(path, "patch", suffix, Some(PATCH.to_owned()), body);
    }

    fn add(
        &mut self,
        path: &str,
        method: &'static str,
        suffix: &str,
        body: Option<String>,
        answer: Option<String>,
    ) {
        let resource = self.resource;
        let action = match method {
            "get" => "get",
            "put" => "put",
            "post" => "post",
            "patch" => "patch",
            _ => "delete",
        };
        let id = operation_id(resource, path, method, suffix);
        self.all.push(Operation {
            path: path.to_owned(),
            method,
            action,
            id,
            kind: (resource.group, resource.version, resource.kind),
            body,
            answer,
        });
    }

    fn last(&mut self) -> &mut Operation {
        self.all.last_mut().expect("an operation was added just before")
    }
}

fn status() -> Option<String> {
    Some(STATUS.to_owned())
}

/// `readAppsV1NamespacedDeploymentStatus`.
fn operation_id(resource: &Resource, path: &str, method: &str, suffix: &str) -> String {
    let of_one = path.contains("{name}");
    let verb = match (method, of_one) {
        ("get", true) => "read",
        ("get", false) => "list",
        ("put", _) => "replace",
        ("post", _) => "create",
        ("patch", _) => "patch",
        (_, true) => "delete",
        (_, false) => "deleteCollection",
    };
    let group = match resource.group {
        "" => "Core".to_owned(),
        group => group.trim_end_matches(".k8s.io").split('.').map(capitalised).collect(),
    };
    let version = capitalised(resource.version);
    let namespaced = if path.contains("{namespace}") { "Namespaced" } else { "" };
    format!("{verb}{group}{version}{namespaced}{}{suffix}", resource.kind)
}

/// The definition of a kind, by the packages that kinds are in.
fn schema_of((group, version, kind): (&str, &str, &str)) -> Option<String> {
    let package = match group {
        "" => "core",
        group => group.split('.').next().unwrap_or(group),
    };
    let name = format!("io.k8s.api.{package}.{version}.{kind}");
    definitions::exists(&name).then_some(name)
}

fn capitalised(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(chars).collect()
}

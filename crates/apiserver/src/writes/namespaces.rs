//! What is special about namespaces: they have to be there, and they go only
//! when they are empty.

use serde_json::{Value, json};
use steersman_apimachinery::error::ApiError;
use steersman_apimachinery::resource::Resource;

use super::Writer;
use crate::auth::User;
use crate::meta;
use crate::server::ApiServer;

const BUILT_IN: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];
/// Those of them that cannot be deleted.
const IMMORTAL: [&str; 3] = ["default", "kube-public", "kube-system"];

/// Whether this namespace cannot be deleted.
pub(crate) fn is_immortal(name: &str) -> bool {
    IMMORTAL.contains(&name)
}

/// Whether this is the resource of namespaces.
pub(super) fn are_namespaces(resource: &Resource) -> bool {
    resource.group.is_empty() && resource.plural == "namespaces"
}

/// A new namespace is active, and waits to be emptied before it goes.
pub(super) fn prepare(namespace: &mut Value) {
    let Some(fields) = namespace.as_object_mut() else { return };
    let spec = fields.entry("spec").or_insert_with(|| json!({}));
    if spec.get("finalizers").is_none() && spec.is_object() {
        spec["finalizers"] = json!(["kubernetes"]);
    }
    fields.insert("status".to_owned(), json!({ "phase": "Active" }));
}

/// Whether it still waits to be emptied.
pub(super) fn awaits_emptying(namespace: &Value) -> bool {
    namespace
        .pointer("/spec/finalizers")
        .and_then(Value::as_array)
        .is_some_and(|finalizers| !finalizers.is_empty())
}

impl Writer<'_> {
    /// Refuses an object whose namespace is not there or is going.
    pub(super) fn check_namespace(&self, namespace: &str, name: &str) -> Result<(), ApiError> {
        let Some(entry) = self.server.registry.find("", "v1", "namespaces") else {
            return Ok(());
        };
        let found = entry.table.and_then(|table| self.server.store.get(table, namespace));
        let Some(found) = found else {
            return Err(ApiError::not_found(entry.resource, namespace));
        };
        if !meta::is_terminating(&found.value) {
            return Ok(());
        }
        let why = format!(
            "unable to create new content in namespace {namespace} because it is being terminated"
        );
        let mut error = ApiError::forbidden(self.entry.resource, name, &why);
        if let Some(details) = &mut error.details {
            details["causes"] = json!([{
                "reason": "NamespaceTerminating",
                "message": format!("namespace {namespace} is being terminated"),
                "field": "metadata.namespace",
            }]);
        }
        Err(error)
    }
}

impl ApiServer {
    /// The namespaces that every cluster has, if namespaces are served.
    pub(crate) fn create_namespaces(&self) {
        let Some(entry) = self.inner.registry.find("", "v1", "namespaces") else { return };
        let user = User::admin();
        let writer = Writer {
            server: &self.inner,
            entry,
            user: &user,
            now: self.inner.now(),
            dry_run: false,
            manager: "steersman",
        };
        for name in BUILT_IN {
            let namespace = json!({
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": { "name": name, "labels": { "kubernetes.io/metadata.name": name } },
            });
            if let Err(error) = writer.create("", namespace) {
                tracing::error!(namespace = name, %error, "a built-in namespace was refused");
            }
        }
    }
}

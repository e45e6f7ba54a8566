//! All resources of all groups in one document.

use bytes::Bytes;
use http::Response;
use serde_json::{Value, json};
use steersman_apimachinery::resource::Resource;

use super::{STATUS_VERBS, groups_of, sub_verbs, verbs};
use crate::rest::{Body, bytes};
use crate::server::Inner;

/// The groups that `wanted` picks, in a version of `apidiscovery.k8s.io`.
pub(super) fn document(
    inner: &Inner,
    version: &'static str,
    wanted: impl Fn(&str) -> bool,
) -> Response<Body> {
    let groups = groups_of(inner.resources).into_iter().filter(|(group, _)| wanted(group));
    let items = groups.map(|(group, versions)| {
        let versions = versions.into_iter().map(|version| {
            let resources = inner.resources.iter();
            let resources = resources.filter(|r| r.group == group && r.version == version);
            json!({
                "version": version,
                "freshness": "Current",
                "resources": resources.map(describe).collect::<Vec<Value>>(),
            })
        });
        json!({ "metadata": { "name": group }, "versions": versions.collect::<Vec<Value>>() })
    });
    let document = json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": format!("apidiscovery.k8s.io/{version}"),
        "metadata": {},
        "items": items.collect::<Vec<Value>>(),
    });
    // Clients tell the old discovery from this one by the content type.
    let content_type = match version {
        "v2" => "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        _ => "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList",
    };
    bytes(200, content_type, Bytes::from(document.to_string()))
}

fn describe(resource: &'static Resource) -> Value {
    let own_kind = json!({
        "group": resource.group, "version": resource.version, "kind": resource.kind,
    });
    let mut subresources = Vec::new();
    if resource.has_status {
        subresources.push(json!({
            "subresource": "status", "responseKind": own_kind, "verbs": STATUS_VERBS,
        }));
    }
    for sub in resource.subresources {
        subresources.push(json!({
            "subresource": sub.name,
            "responseKind": { "group": sub.group, "version": sub.version, "kind": sub.kind },
            "verbs": sub_verbs(sub.action),
        }));
    }
    let mut described = json!({
        "resource": resource.plural,
        "responseKind": own_kind,
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular,
        "verbs": verbs(resource),
    });
    for (field, list) in [("shortNames", resource.short_names), ("categories", resource.categories)]
    {
        if !list.is_empty() {
            described[field] = json!(list);
        }
    }
    if !subresources.is_empty() {
        described["subresources"] = Value::from(subresources);
    }
    described
}

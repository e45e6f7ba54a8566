//! What the server serves, as clients ask for it: group by group, or all at
//! once.

mod aggregated;

use std::collections::BTreeMap;

use http::Response;
use serde_json::{Value, json};
use steersman_apimachinery::error::ApiError;
use steersman_apimachinery::resource::{Action, Resource};

use crate::rest::{Body, Incoming, Offer, Shape, json as answer, negotiate, no_such_path, value};
use crate::server::Inner;

/// Names of groups with their versions, in the order of the resources.
type Groups = Vec<(&'static str, Vec<&'static str>)>;

/// `GET /api`.
pub(crate) fn core_versions(request: &Incoming<'_>) -> Result<Response<Body>, ApiError> {
    let form = negotiate(request.accept().as_deref(), Offer::Discovery)?;
    let inner = &request.server.inner;
    if let Shape::Discovery(version) = form.shape {
        return Ok(aggregated::document(inner, version, |group| group.is_empty()));
    }
    let versions = groups_of(inner.resources).into_iter();
    let versions: Vec<_> =
        versions.filter(|(group, _)| group.is_empty()).flat_map(|(_, versions)| versions).collect();
    let host = request.header(http::header::HOST);
    Ok(value(
        200,
        &json!({
            "kind": "APIVersions",
            "versions": versions,
            "serverAddressByClientCIDRs": [{ "clientCIDR": "0.0.0.0/0", "serverAddress": host }],
        }),
        form.syntax,
    ))
}

/// `GET /apis`.
pub(crate) fn groups(request: &Incoming<'_>) -> Result<Response<Body>, ApiError> {
    let form = negotiate(request.accept().as_deref(), Offer::Discovery)?;
    let inner = &request.server.inner;
    if let Shape::Discovery(version) = form.shape {
        return Ok(aggregated::document(inner, version, |group| !group.is_empty()));
    }
    let groups = groups_of(inner.resources).into_iter().filter(|(group, _)| !group.is_empty());
    let groups: Vec<Value> = groups.map(|(group, versions)| describe(group, &versions)).collect();
    let list = json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": groups });
    Ok(value(200, &list, form.syntax))
}

/// `GET /apis/GROUP`.
pub(crate) fn group(inner: &Inner, name: &str) -> Result<Response<Body>, ApiError> {
    let groups = groups_of(inner.resources);
    let found = groups.iter().find(|(group, _)| !group.is_empty() && *group == name);
    let (group, versions) = found.ok_or_else(no_such_path)?;
    let mut group = describe(group, versions);
    group["kind"] = Value::from("APIGroup");
    group["apiVersion"] = Value::from("v1");
    Ok(answer(200, &group))
}

/// `GET /apis/GROUP/VERSION` and `GET /api/v1`.
pub(crate) fn resources(
    inner: &Inner,
    group: &str,
    version: &str,
) -> Result<Response<Body>, ApiError> {
    let served = inner.resources.iter();
    let served: Vec<&Resource> =
        served.filter(|found| found.group == group && found.version == version).collect();
    let first = served.first().ok_or_else(no_such_path)?;
    let group_version = first.api_version();
    let mut rows: Vec<Value> = served.iter().flat_map(|resource| rows(resource)).collect();
    rows.sort_by(|a, b| a["name"].as_str().cmp(&b["name"].as_str()));
    Ok(answer(
        200,
        &json!({
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": group_version,
            "resources": rows,
        }),
    ))
}

/// `GET /`.
pub(crate) fn paths(inner: &Inner) -> Response<Body> {
    let mut paths: Vec<String> = ["/api", "/apis", "/healthz", "/livez", "/readyz", "/version"]
        .into_iter()
        .chain(["/openapi/v2", "/openapi/v3"])
        .map(str::to_owned)
        .collect();
    for (group, versions) in groups_of(inner.resources) {
        if group.is_empty() {
            paths.extend(versions.iter().map(|version| format!("/api/{version}")));
        } else {
            paths.push(format!("/apis/{group}"));
            paths.extend(versions.iter().map(|version| format!("/apis/{group}/{version}")));
        }
    }
    paths.sort();
    answer(200, &json!({ "paths": paths }))
}

fn describe(group: &str, versions: &[&str]) -> Value {
    let version = |version: &&str| json!({ "groupVersion": format!("{group}/{version}"), "version": version });
    json!({
        "name": group,
        "versions": versions.iter().map(version).collect::<Vec<Value>>(),
        "preferredVersion": versions.first().map(version),
    })
}

fn groups_of(resources: &'static [Resource]) -> Groups {
    let mut groups: Groups = Vec::new();
    let mut places = BTreeMap::new();
    for resource in resources {
        let place = *places.entry(resource.group).or_insert_with(|| {
            groups.push((resource.group, Vec::new()));
            groups.len() - 1
        });
        if !groups[place].1.contains(&resource.version) {
            groups[place].1.push(resource.version);
        }
    }
    groups
}

/// What can be done with a resource.
fn verbs(resource: &Resource) -> &'static [&'static str] {
    if resource.keeps_objects() {
        &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
    } else {
        &["create"]
    }
}

const STATUS_VERBS: &[&str] = &["get", "patch", "update"];

fn sub_verbs(action: Action) -> &'static [&'static str] {
    match action {
        Action::View => STATUS_VERBS,
        Action::Perform | Action::Evict => &["create"],
        Action::Finalize => &["update"],
    }
}

fn rows(resource: &Resource) -> Vec<Value> {
    let mut main = json!({
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": verbs(resource),
    });
    if !resource.short_names.is_empty() {
        main["shortNames"] = json!(resource.short_names);
    }
    if !resource.categories.is_empty() {
        main["categories"] = json!(resource.categories);
    }
    let mut rows = vec![main];
    if resource.has_status {
        rows.push(json!({
            "name": format!("{}/status", resource.plural),
            "singularName": "",
            "namespaced": resource.namespaced,
            "kind": resource.kind,
            "verbs": STATUS_VERBS,
        }));
    }
    for sub in resource.subresources {
        let mut row = json!({
            "name": format!("{}/{}", resource.plural, sub.name),
            "singularName": "",
            "namespaced": resource.namespaced,
            "kind": sub.kind,
            "verbs": sub_verbs(sub.action),
        });
        if sub.group != resource.group || sub.version != resource.version {
            row["group"] = Value::from(sub.group);
            row["version"] = Value::from(sub.version);
        }
        rows.push(row);
    }
    rows
}

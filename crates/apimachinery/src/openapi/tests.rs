use serde_json::{Value, json};

use super::{v2_json, v2_protobuf, v3_group, v3_index};
use crate::resource::{Action, Resource, Storage, Subresource};
use crate::rules::Plain;

const PLAIN: Resource = Resource {
    group: "",
    version: "v1",
    kind: "",
    plural: "",
    singular: "",
    namespaced: true,
    short_names: &[],
    categories: &[],
    schema: "",
    storage: Storage::Own,
    has_status: true,
    subresources: &[],
    absent: &[],
    rules: &Plain,
};

static RESOURCES: &[Resource] = &[
    Resource {
        kind: "Pod",
        plural: "pods",
        schema: "io.k8s.api.core.v1.Pod",
        subresources: &[Subresource {
            name: "binding",
            group: "",
            version: "v1",
            kind: "Binding",
            action: Action::Perform,
        }],
        ..PLAIN
    },
    Resource {
        kind: "Namespace",
        plural: "namespaces",
        namespaced: false,
        schema: "io.k8s.api.core.v1.Namespace",
        ..PLAIN
    },
    Resource {
        group: "apps",
        kind: "Deployment",
        plural: "deployments",
        schema: "io.k8s.api.apps.v1.Deployment",
        subresources: &[Subresource {
            name: "scale",
            group: "autoscaling",
            version: "v1",
            kind: "Scale",
            action: Action::View,
        }],
        ..PLAIN
    },
    Resource {
        group: "authorization.k8s.io",
        kind: "SelfSubjectAccessReview",
        plural: "selfsubjectaccessreviews",
        namespaced: false,
        schema: "io.k8s.api.authorization.v1.SelfSubjectAccessReview",
        storage: Storage::Nowhere,
        has_status: false,
        ..PLAIN
    },
];

fn kind(group: &str, kind: &str) -> Value {
    json!({ "group": group, "version": "v1", "kind": kind })
}

/// Every path with its methods, the action and the kind of each.
fn listing(document: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    for (path, item) in document["paths"].as_object().expect("paths") {
        for (method, operation) in item.as_object().expect("a path") {
            if let Some(action) = operation.get("x-kubernetes-action").and_then(Value::as_str) {
                let kind = &operation["x-kubernetes-group-version-kind"]["kind"];
                let id = &operation["operationId"];
                lines.push(format!("{path} {method} {action} {kind} {id}"));
            }
        }
    }
    lines
}

#[test]
fn a_group_has_the_operations_of_its_resources() {
    let document = v3_group(RESOURCES, "apis/apps/v1");
    let expected = [
        r#"/apis/apps/v1/deployments get list "Deployment" "listAppsV1DeploymentForAllNamespaces""#,
        r#"/apis/apps/v1/namespaces/{namespace}/deployments delete deletecollection "Deployment" "deleteCollectionAppsV1NamespacedDeployment""#,
        r#"/apis/apps/v1/namespaces/{namespace}/deployments get list "Deployment" "listAppsV1NamespacedDeployment""#,
        r#"/apis/apps/v1/namespaces/{namespace}/deployments post post "Deployment" "createAppsV1NamespacedDeployment""#,
        r#"/apis/apps/v1/namespaces/{namespace}/deployments/{name} delete delete "Deployment" "deleteAppsV1NamespacedDeployment""#,
        r#"/apis/apps/v1/namespaces/{namespace}/deployments/{name} get get "Deployment" "readAppsV1NamespacedDeployment""#,
        r#"/apis/apps/v1/namespaces/{namespace}/deployments/{name} patch patch "Deployment" "patchAppsV1NamespacedDeployment""#,
        r#"/apis/apps/v1/namespaces/{namespace}/deployments/{name} put put "Deployment" "replaceAppsV1NamespacedDeployment""#,
        r#"/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale get get "Scale" "readAppsV1NamespacedDeploymentScale""#,
        r#"/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale patch patch "Scale" "patchAppsV1NamespacedDeploymentScale""#,
        r#"/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale put put "Scale" "replaceAppsV1NamespacedDeploymentScale""#,
        r#"/apis/apps/v1/namespaces/{namespace}/deployments/{name}/status get get "Deployment" "readAppsV1NamespacedDeploymentStatus""#,
        r#"/apis/apps/v1/namespaces/{namespace}/deployments/{name}/status patch patch "Deployment" "patchAppsV1NamespacedDeploymentStatus""#,
        r#"/apis/apps/v1/namespaces/{namespace}/deployments/{name}/status put put "Deployment" "replaceAppsV1NamespacedDeploymentStatus""#,
    ];
    assert_eq!(listing(&document), expected);
    let document = v3_group(RESOURCES, "apis/authorization.k8s.io/v1");
    assert_eq!(listing(&document).len(), 1, "it can only be asked");
    assert!(listing(&v3_group(RESOURCES, "apis/apps/v2")).is_empty());
}

#[test]
fn every_operation_has_a_name_of_its_own() {
    let mut ids: Vec<String> = listing(&v2_json(RESOURCES))
        .iter()
        .map(|line| line.rsplit(' ').next().expect("a name").to_owned())
        .collect();
    let all = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), all);
}

#[test]
fn patches_say_that_dry_run_and_field_validation_are_supported() {
    let documents = [
        (v2_json(RESOURCES), "/api/v1/namespaces/{namespace}/pods/{name}", kind("", "Pod")),
        (
            v3_group(RESOURCES, "apis/apps/v1"),
            "/apis/apps/v1/namespaces/{namespace}/deployments/{name}",
            kind("apps", "Deployment"),
        ),
    ];
    for (document, path, kind) in documents {
        let patch = &document["paths"][path]["patch"];
        assert_eq!(patch["x-kubernetes-group-version-kind"], kind);
        let names: Vec<&str> = patch["parameters"]
            .as_array()
            .expect("parameters")
            .iter()
            .filter(|parameter| parameter["in"] == "query")
            .filter_map(|parameter| parameter["name"].as_str())
            .collect();
        assert_eq!(names, ["pretty", "dryRun", "fieldManager", "fieldValidation", "force"]);
    }
}

#[test]
fn all_references_lead_somewhere() {
    let mut documents = vec![(v2_json(RESOURCES), "/definitions")];
    for name in v3_index(RESOURCES)["paths"].as_object().expect("paths").keys() {
        documents.push((v3_group(RESOURCES, name), "/components/schemas"));
    }
    assert_eq!(documents.len(), 4);
    for (document, place) in documents {
        let mut references = Vec::new();
        collect(&document, &mut references);
        assert!(references.len() > 10);
        for reference in references {
            let pointer = reference.strip_prefix('#').expect("inside of the document");
            assert!(pointer.starts_with(place), "{reference}");
            assert!(document.pointer(pointer).is_some(), "{reference}");
        }
    }
}

fn collect<'a>(node: &'a Value, into: &mut Vec<&'a str>) {
    match node {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value.as_str() {
                    Some(target) if name == "$ref" => into.push(target),
                    _ => collect(value, into),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, into)),
        _ => {}
    }
}

#[test]
fn version_3_keeps_descriptions_beside_references() {
    let document = v3_group(RESOURCES, "api/v1");
    let schemas = &document["components"]["schemas"];
    let spec = &schemas["io.k8s.api.core.v1.Pod"]["properties"]["spec"];
    assert_eq!(
        spec["allOf"],
        json!([{ "$ref": "#/components/schemas/io.k8s.api.core.v1.PodSpec" }])
    );
    assert!(spec["description"].as_str().is_some_and(|text| text.starts_with("Specification")));
    assert_eq!(
        schemas["io.k8s.api.core.v1.Pod"]["x-kubernetes-group-version-kind"],
        json!([kind("", "Pod")])
    );
    let quantity = &schemas["io.k8s.apimachinery.pkg.api.resource.Quantity"];
    assert_eq!(quantity["oneOf"], json!([{ "type": "string" }, { "type": "number" }]));
    let containers = &schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"];
    assert_eq!(containers["x-kubernetes-patch-merge-key"], "name");
    assert!(schemas.get("io.k8s.api.core.v1.Node").is_none(), "what nothing needs is left out");
}

#[test]
fn addresses_change_with_the_resources() {
    let index = |resources| v3_index(resources)["paths"]["api/v1"]["serverRelativeURL"].to_string();
    assert!(index(RESOURCES).starts_with("\"/openapi/v3/api/v1?hash="));
    assert_ne!(index(RESOURCES), index(&RESOURCES[1..]));
    assert_eq!(index(RESOURCES), index(&RESOURCES[..2]), "others do not matter");
}

/// A protobuf message taken apart: numbers and contents of its fields.
fn take_apart(mut bytes: &[u8]) -> Vec<(u64, &[u8])> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (first, rest) = bytes.split_first().expect("more");
            *bytes = rest;
            value |= u64::from(first & 0x7f) << shift;
            if first & 0x80 == 0 {
                break;
            }
        }
        value
    }
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let value = varint(&mut bytes);
        let content = if key & 7 == 2 {
            let (content, rest) = bytes.split_at(usize::try_from(value).expect("small"));
            bytes = rest;
            content
        } else {
            assert_eq!((key & 7, value), (0, 1), "only true is written");
            &[1]
        };
        fields.push((key >> 3, content));
    }
    fields
}

/// The one field of a number, of a field of a number, and so on.
fn inside<'a>(bytes: &'a [u8], path: &[u64]) -> &'a [u8] {
    path.iter().fold(bytes, |bytes, number| {
        take_apart(bytes).into_iter().find(|(found, _)| found == number).expect("a field").1
    })
}

/// The value of a name in a repeated field of named values.
fn named<'a>(bytes: &'a [u8], number: u64, name: &str) -> &'a [u8] {
    let entry = take_apart(bytes)
        .into_iter()
        .find(|(found, entry)| *found == number && inside(entry, &[1]) == name.as_bytes())
        .expect(name);
    inside(entry.1, &[2])
}

#[test]
fn the_protobuf_form_says_the_same() {
    let bytes = v2_protobuf(RESOURCES);
    assert_eq!(inside(&bytes, &[1]), b"2.0");
    assert_eq!(inside(&bytes, &[2, 1]), b"Kubernetes");
    let definitions = inside(&bytes, &[9]);
    let spec = named(definitions, 1, "io.k8s.api.core.v1.PodSpec");
    assert_eq!(inside(spec, &[22, 1]), b"object");
    assert_eq!(inside(spec, &[19]), b"containers");
    let containers = named(inside(spec, &[25]), 1, "containers");
    assert_eq!(inside(containers, &[23, 1, 1]), b"#/definitions/io.k8s.api.core.v1.Container");
    let key = named(containers, 31, "x-kubernetes-patch-merge-key");
    assert_eq!(inside(key, &[2]), b"\"name\"");
    let selector = named(inside(spec, &[25]), 1, "nodeSelector");
    assert_eq!(inside(selector, &[21, 1, 22, 1]), b"string");
    let path = named(inside(&bytes, &[8]), 2, "/api/v1/namespaces/{namespace}/pods/{name}");
    let patch = inside(path, &[8]);
    let kind = named(patch, 13, "x-kubernetes-group-version-kind");
    let kind: Value = serde_json::from_slice(inside(kind, &[2])).expect("JSON");
    assert_eq!(kind, json!({ "group": "", "version": "v1", "kind": "Pod" }));
    let queries: Vec<&[u8]> = take_apart(patch)
        .into_iter()
        .filter(|(number, _)| *number == 8)
        .map(|(_, item)| inside(item, &[1]))
        .filter(|parameter| take_apart(parameter)[0].0 == 2)
        .map(|parameter| inside(parameter, &[2, 3, 4]))
        .collect();
    assert!(queries.contains(&b"dryRun".as_slice()), "{queries:?}");
}

//! Requests that make no sense are refused, and never break the server.

use serde_json::{Value, json};

use crate::harness::{Answer, Harness, JSON, JSON_PATCH, MERGE, STRATEGIC};

/// The collection of a resource.
fn collection(resource: &steersman_apimachinery::resource::Resource) -> String {
    let root = if resource.group.is_empty() { "/api" } else { "/apis" };
    let at = if resource.namespaced { "/namespaces/default" } else { "" };
    format!("{root}/{}{at}/{}", resource.api_version(), resource.plural)
}

/// The answer may be a refusal, but not the one that a bug gets. (Other internal
/// errors are the reference's: it says 500 to some patches.)
#[track_caller]
fn check(answer: &Answer, request: &str) {
    let text = String::from_utf8_lossy(&answer.body);
    assert!(!text.contains("InternalError"), "{request}: {text}");
}

/// Whatever is in the place of an object's parts.
fn odd_values() -> Vec<Value> {
    vec![
        Value::Null,
        json!(5),
        json!("text"),
        json!([]),
        json!({}),
        json!([{}]),
        json!([null]),
        json!({ "template": {}, "selector": {}, "containers": [{}], "metadata": {} }),
        json!({ "template": { "spec": { "containers": [{ "resources": { "limits": { "cpu": "x" } } }] } } }),
        json!({ "containers": [{ "name": "c", "ports": [{}], "env": [{}] }], "tolerations": [{}] }),
        json!({ "affinity": { "podAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [{}] } } }),
        json!({ "taints": [{}], "unschedulable": true, "podCIDRs": [] }),
        json!({ "ports": [{ "port": -1 }], "clusterIP": "x", "clusterIPs": ["y"] }),
        json!({ "replicas": -1, "parallelism": -1, "completions": -1 }),
    ]
}

#[tokio::test]
async fn no_body_breaks_the_server() {
    let harness = Harness::new();
    for resource in steersman_apikinds::resources() {
        let uri = format!("{}?fieldValidation=Ignore", collection(resource));
        for (index, odd) in odd_values().into_iter().enumerate() {
            for field in ["spec", "status", "metadata", "data", "value", "involvedObject", "rules"]
            {
                let mut body = json!({
                    "apiVersion": resource.api_version(), "kind": resource.kind,
                    "metadata": { "name": format!("odd-{index}-{}", field.to_lowercase()) },
                });
                body[field] = odd.clone();
                let answer = harness.post(&uri, &body).await;
                check(&answer, &format!("{body}"));
            }
        }
    }
    // What was let in can be shown in any form.
    for resource in steersman_apikinds::resources() {
        for accept in [JSON, crate::harness::TABLE, "application/yaml"] {
            let answer = harness.get_as(&collection(resource), accept).await;
            assert!(answer.code == 200 || answer.code == 405, "{resource:?}: {:?}", answer.body);
        }
    }
}

#[tokio::test]
async fn no_patch_breaks_the_server() {
    let harness = Harness::new();
    harness.post(crate::harness::PODS, &crate::harness::pod("p")).await.ok();
    let uri = format!("{}/p", crate::harness::PODS);
    let mut patches = odd_values();
    for odd in odd_values() {
        for field in ["metadata", "spec", "status", "kind", "apiVersion"] {
            patches.push(json!({ field: odd.clone() }));
        }
    }
    for operation in ["remove", "replace", "add", "test", "move", "copy", "none"] {
        for path in ["", "/", "/metadata", "/metadata/name", "/spec/containers/-", "/a/b", "x"] {
            patches.push(json!([{ "op": operation, "path": path, "from": path, "value": 5 }]));
        }
    }
    for part in ["", "/status"] {
        for content_type in [MERGE, STRATEGIC, JSON_PATCH] {
            for patch in &patches {
                let answer = harness.patch(&format!("{uri}{part}"), content_type, patch).await;
                check(&answer, &format!("{patch}"));
            }
        }
        for patch in &patches {
            let apply = format!("{uri}{part}?fieldManager=m&force=true");
            let answer = harness.patch(&apply, crate::harness::APPLY, patch).await;
            check(&answer, &format!("{patch}"));
        }
    }
    let pod = harness.get(&uri).await.ok();
    assert_eq!((&pod["kind"], &pod["metadata"]["name"]), (&json!("Pod"), &json!("p")));
}

#[tokio::test]
async fn no_path_and_no_parameter_breaks_the_server() {
    let harness = Harness::new();
    for uri in [
        "//",
        "/api//v1///pods",
        "/api/v1/%2e%2e/pods",
        "/apis/%ff/v1",
        "/api/v1/namespaces//pods",
        "/api/v1/pods?limit=-1",
        "/api/v1/pods?limit=99999999999999999999",
        "/api/v1/pods?&&==&a",
        "/api/v1/pods?continue=AAAA",
        "/api/v1/pods?fieldSelector=%5C",
        "/api/v1/pods?labelSelector=,",
        "/api/v1/pods?watch=1&timeoutSeconds=-5&resourceVersion=-1",
        "/openapi/v3/",
        "/openapi/v3/x",
        "/apis/apps/v1/watch",
        "/api/v1/watch/",
        "/api/v1/namespaces/default/pods/x/y/z",
        "/api/v1/pods?resourceVersion=18446744073709551615",
        "/api/v1/pods?watch=1&resourceVersion=18446744073709551615",
    ] {
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"] {
            if method == "GET" && uri.contains("watch=1&timeout") {
                continue;
            }
            let answer = harness.ask(method, uri, JSON, "{}", &[]).await;
            check(&answer, &format!("{method} {uri}"));
        }
    }
}

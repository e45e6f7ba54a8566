//! What was wrong once.

use bytes::Bytes;
use serde_json::{Value, json};

use crate::harness::{APPLY, CONFIG_MAPS, Harness, JSON, MERGE, PODS, config_map, pod};

const NAMESPACES: &str = "/api/v1/namespaces";

#[tokio::test]
async fn what_needs_a_kubelet_says_that_there_is_none() {
    let harness = Harness::new();
    harness.post(PODS, &pod("p")).await.ok();
    for sub in ["log", "exec", "attach", "portforward", "proxy", "ephemeralcontainers", "resize"] {
        for method in ["GET", "POST"] {
            let answer = harness.ask(method, &format!("{PODS}/p/{sub}"), JSON, "{}", &[]).await;
            let refusal = answer.refusal();
            assert!(refusal.starts_with("501 NotImplemented: "), "{sub}: {refusal}");
            assert!(refusal.contains("simulated"), "{sub}: {refusal}");
        }
    }
    let missing = harness.get(&format!("{PODS}/none/log")).await.refusal();
    assert_eq!(missing, "404 NotFound: pods \"none\" not found");
    assert_eq!(harness.get(&format!("{PODS}/p/nothing")).await.code, 404);
}

#[tokio::test]
async fn a_binding_may_be_created_as_an_object_of_its_own() {
    let harness = Harness::new();
    harness.post(PODS, &pod("p")).await.ok();
    let bindings = "/api/v1/namespaces/default/bindings";
    let mut binding = json!({
        "apiVersion": "v1", "kind": "Binding", "metadata": { "name": "p" },
        "target": { "apiVersion": "v1", "kind": "Node", "name": "n1" },
    });
    assert_eq!(harness.post(bindings, &binding).await.ok()["status"], "Success");
    let bound = harness.get(&format!("{PODS}/p")).await.ok();
    assert_eq!(bound["spec"]["nodeName"], "n1");
    assert_eq!(harness.post(bindings, &binding).await.code, 409);
    binding["metadata"] = json!({});
    assert_eq!(harness.post(bindings, &binding).await.code, 400);
    assert_eq!(harness.get(bindings).await.code, 405);
}

#[tokio::test]
async fn a_namespace_that_waits_for_ever_can_be_finalized() {
    let harness = Harness::new();
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "stuck" },
    });
    harness.post(NAMESPACES, &namespace).await.ok();
    harness.delete(&format!("{NAMESPACES}/stuck")).await.ok();
    let uri = format!("{NAMESPACES}/stuck/finalize");
    let mut stale = namespace.clone();
    stale["metadata"]["resourceVersion"] = json!("1");
    assert_eq!(harness.put(&uri, &stale).await.code, 409);
    assert_eq!(harness.get(&format!("{NAMESPACES}/stuck")).await.code, 200);
    harness.put(&uri, &namespace).await.ok();
    assert_eq!(harness.get(&format!("{NAMESPACES}/stuck")).await.code, 404);
}

#[tokio::test]
async fn a_body_that_is_too_large_is_read_to_its_end_and_refused() {
    let harness = Harness::new();
    let body = Bytes::from(vec![b'x'; 5 * 1024 * 1024]);
    let answer = harness.ask("POST", CONFIG_MAPS, JSON, body, &[]).await;
    let expected = "413 RequestEntityTooLarge: Request entity too large: limit is 3145728";
    assert_eq!(answer.refusal(), expected);
}

#[tokio::test]
async fn half_an_impersonation_is_refused() {
    let harness = Harness::new();
    for header in ["impersonate-group", "impersonate-uid", "impersonate-extra-scopes"] {
        let answer = harness.ask("GET", CONFIG_MAPS, JSON, "", &[(header, "x")]).await;
        assert_eq!(answer.code, 400, "{header}");
    }
}

#[tokio::test]
async fn apply_refuses_fields_that_the_kind_does_not_have() {
    let harness = Harness::new();
    let uri = format!("{CONFIG_MAPS}/a?fieldManager=m");
    let apply = async |body: Value| harness.patch(&uri, APPLY, &body).await.refusal();
    let mut unknown = config_map("a");
    unknown["zap"] = json!(1);
    assert_eq!(
        apply(unknown).await,
        "500 : failed to create typed patch object (/a; v1, Kind=ConfigMap): .zap: field not declared in schema"
    );
    assert_eq!(
        apply(json!({ "metadata": { "name": "a" } })).await,
        "400 BadRequest: Incorrect version specified in apply patch. Specified patch version: , expected: v1"
    );
    assert_eq!(harness.get(&format!("{CONFIG_MAPS}/a")).await.code, 404);
}

#[tokio::test]
async fn small_things_are_refused_as_in_the_reference() {
    let harness = Harness::new();
    harness.config_maps(&["a"]).await;
    let uri = format!("{CONFIG_MAPS}/a");
    let renamed = harness.patch(&uri, MERGE, &json!({ "metadata": { "name": "b" } })).await;
    assert_eq!(
        renamed.refusal(),
        "400 BadRequest: the name of the object (b) does not match the name on the URL (a)"
    );
    let options = json!({ "dryRun": ["Some"] }).to_string();
    assert_eq!(
        harness.ask("DELETE", &uri, JSON, options, &[]).await.refusal(),
        "422 Invalid: DeleteOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: \"Some\": supported values: \"All\""
    );
    let unprintable = format!("{uri}?fieldManager=a%0Ab");
    assert_eq!(harness.patch(&unprintable, MERGE, &json!({})).await.code, 422);
    let mut kept = config_map("kept");
    kept["metadata"]["finalizers"] = json!(["unqualified"]);
    assert_eq!(
        harness.post(CONFIG_MAPS, &kept).await.refusal(),
        "422 Invalid: ConfigMap \"kept\" is invalid: metadata.finalizers[0]: Invalid value: \"unqualified\": name is neither a standard finalizer name nor is it fully qualified"
    );
    kept["metadata"]["finalizers"] = json!(["kubernetes", "example.com/x"]);
    harness.post(CONFIG_MAPS, &kept).await.ok();
}

#[tokio::test]
async fn quantities_are_texts_in_one_form_for_every_kind() {
    let harness = Harness::new();
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": { "name": "q" },
        "spec": { "hard": { "pods": 5, "requests.cpu": "0.5", "limits.memory": "2048Mi" } },
    });
    let quotas = "/api/v1/namespaces/default/resourcequotas";
    let made = harness.post(quotas, &quota).await.ok();
    let hard = json!({ "pods": "5", "requests.cpu": "500m", "limits.memory": "2Gi" });
    assert_eq!(made["spec"]["hard"], hard);
    let patched = harness
        .patch(&format!("{quotas}/q"), MERGE, &json!({ "spec": { "hard": { "pods": 1000 } } }))
        .await
        .ok();
    assert_eq!(patched["spec"]["hard"]["pods"], "1k");
}

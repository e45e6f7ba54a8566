use serde_json::{Value, json};

use crate::harness::{CONFIG_MAPS, Harness, JSON, MERGE, PODS, config_map, names, pod};

async fn delete_with(harness: &Harness, uri: &str, options: Value) -> crate::harness::Answer {
    harness.ask("DELETE", uri, JSON, options.to_string(), &[]).await
}

#[tokio::test]
async fn deletion_is_answered_with_a_status_that_names_the_object() {
    let harness = Harness::new();
    let made = harness.post(CONFIG_MAPS, &config_map("a")).await.ok();
    let answer = harness.delete(&format!("{CONFIG_MAPS}/a")).await.ok();
    assert_eq!(answer["status"], "Success");
    let details = json!({ "name": "a", "kind": "configmaps", "uid": made["metadata"]["uid"] });
    assert_eq!(answer["details"], details);
    let again = harness.delete(&format!("{CONFIG_MAPS}/a")).await;
    assert_eq!(again.refusal(), "404 NotFound: configmaps \"a\" not found");
    assert_eq!(again.json()["details"], json!({ "name": "a", "kind": "configmaps" }));
}

#[tokio::test]
async fn a_finalizer_keeps_the_object_until_it_is_removed() {
    let harness = Harness::new();
    let mut map = config_map("a");
    map["metadata"]["finalizers"] = json!(["example.com/wait"]);
    harness.post(CONFIG_MAPS, &map).await.ok();
    let uri = format!("{CONFIG_MAPS}/a");
    let waiting = harness.delete(&uri).await.ok();
    assert_eq!(waiting["metadata"]["deletionTimestamp"], "2024-01-01T00:00:00Z");
    assert_eq!(waiting["metadata"]["deletionGracePeriodSeconds"], 0);
    assert_eq!(harness.delete(&uri).await.ok(), waiting);
    let more = json!({ "metadata": { "finalizers": ["example.com/wait", "example.com/more"] } });
    let refusal = harness.patch(&uri, MERGE, &more).await.refusal();
    assert!(refusal.contains("no new finalizers can be added"), "{refusal}");
    let none = json!({ "metadata": { "finalizers": null } });
    harness.patch(&uri, MERGE, &none).await.ok();
    assert_eq!(harness.get(&uri).await.code, 404);
}

#[tokio::test]
async fn preconditions_hold_or_it_is_a_conflict() {
    let harness = Harness::new();
    let made = harness.post(CONFIG_MAPS, &config_map("a")).await.ok();
    let uri = format!("{CONFIG_MAPS}/a");
    for wrong in [json!({ "uid": "other" }), json!({ "resourceVersion": "1" })] {
        let refused = delete_with(&harness, &uri, json!({ "preconditions": wrong })).await;
        assert!(refused.refusal().starts_with("409 Conflict"), "{wrong}");
    }
    let right = json!({
        "kind": "DeleteOptions", "apiVersion": "v1",
        "preconditions": {
            "uid": made["metadata"]["uid"],
            "resourceVersion": made["metadata"]["resourceVersion"],
        },
    });
    let deleted = delete_with(&harness, &uri, right).await;
    assert!(deleted.warnings.is_empty(), "{:?}", deleted.warnings);
    deleted.ok();
}

#[tokio::test]
async fn a_pod_on_a_node_ends_gracefully_and_can_be_hurried() {
    let harness = Harness::new();
    let mut running = pod("p");
    running["spec"]["nodeName"] = json!("n1");
    harness.post(PODS, &running).await.ok();
    let uri = format!("{PODS}/p");
    let waiting = harness.delete(&uri).await.ok();
    assert_eq!(waiting["metadata"]["deletionGracePeriodSeconds"], 30);
    assert_eq!(waiting["metadata"]["deletionTimestamp"], "2024-01-01T00:00:30Z");
    let sooner = harness.delete(&format!("{uri}?gracePeriodSeconds=10")).await.ok();
    assert_eq!(sooner["metadata"]["deletionTimestamp"], "2024-01-01T00:00:10Z");
    let later = harness.delete(&format!("{uri}?gracePeriodSeconds=50")).await.ok();
    assert_eq!(later["metadata"]["deletionTimestamp"], "2024-01-01T00:00:10Z");
    let gone = delete_with(&harness, &uri, json!({ "gracePeriodSeconds": 0 })).await.ok();
    assert_eq!(gone["kind"], "Pod");
    assert_eq!(harness.get(&uri).await.code, 404);
    // Nobody runs a pod without a node, so nobody has to end it.
    harness.post(PODS, &pod("q")).await.ok();
    harness.delete(&format!("{PODS}/q")).await.ok();
    assert_eq!(harness.get(&format!("{PODS}/q")).await.code, 404);
}

#[tokio::test]
async fn propagation_is_written_as_finalizers() {
    let harness = Harness::new();
    for (policy, code, finalizer) in
        [("Foreground", 202, "foregroundDeletion"), ("Orphan", 200, "orphan")]
    {
        harness.post(CONFIG_MAPS, &config_map("a")).await.ok();
        let uri = format!("{CONFIG_MAPS}/a");
        let waiting = delete_with(&harness, &uri, json!({ "propagationPolicy": policy })).await;
        assert_eq!(waiting.code, code);
        assert_eq!(waiting.ok()["metadata"]["finalizers"], json!([finalizer]));
        delete_with(&harness, &uri, json!({ "propagationPolicy": "Background" })).await.ok();
        assert_eq!(harness.get(&uri).await.code, 404);
    }
    harness.post(CONFIG_MAPS, &config_map("a")).await.ok();
    let bad = json!({ "propagationPolicy": "Sideways" });
    let refused = delete_with(&harness, &format!("{CONFIG_MAPS}/a"), bad).await.refusal();
    assert!(refused.starts_with("422 Invalid: DeleteOptions"), "{refused}");
}

#[tokio::test]
async fn collections_are_deleted_by_selector() {
    let harness = Harness::new();
    harness.config_maps(&["a", "b", "c"]).await;
    let deleted = harness.delete(&format!("{CONFIG_MAPS}?labelSelector=name+in+(a,c)")).await.ok();
    assert_eq!(names(&deleted), ["a", "c"]);
    assert_eq!(names(&harness.get(CONFIG_MAPS).await.ok()), ["b"]);
    assert!(harness.delete("/api/v1/configmaps").await.refusal().starts_with("405 MethodNotAll"));
}

#[tokio::test]
async fn some_namespaces_stay() {
    let harness = Harness::new();
    let refused = harness.delete("/api/v1/namespaces/default").await.refusal();
    assert_eq!(
        refused,
        "403 Forbidden: namespaces \"default\" is forbidden: this namespace may not be deleted"
    );
    let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "x" } });
    let made = harness.post("/api/v1/namespaces", &namespace).await.ok();
    assert_eq!(made["spec"]["finalizers"], json!(["kubernetes"]));
    assert_eq!(made["status"]["phase"], "Active");
    let going = harness.delete("/api/v1/namespaces/x").await.ok();
    assert_eq!(going["status"]["phase"], "Terminating");
    let refused = harness.post("/api/v1/namespaces/x/configmaps", &config_map("a")).await;
    assert_eq!(refused.json()["details"]["causes"][0]["reason"], "NamespaceTerminating");
    assert!(refused.refusal().starts_with("403 Forbidden: configmaps \"a\" is forbidden: unable"));
}

#[tokio::test]
async fn system_priority_classes_stay() {
    let harness = Harness::new();
    let uri = "/apis/scheduling.k8s.io/v1/priorityclasses";
    let cases = [
        (
            "system-node-critical",
            2_000_001_000,
            "403 Forbidden: priorityclasses.scheduling.k8s.io \"system-node-critical\" is \
             forbidden: this is a system priority class and cannot be deleted",
        ),
        ("mine", 5, ""),
    ];
    for (name, value, refusal) in cases {
        let class = json!({
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
            "metadata": { "name": name }, "value": value,
        });
        harness.post(uri, &class).await;
        let answer = harness.delete(&format!("{uri}/{name}")).await;
        if refusal.is_empty() {
            answer.ok();
        } else {
            assert_eq!(answer.refusal(), refusal);
        }
        let code = harness.get(&format!("{uri}/{name}")).await.code;
        assert_eq!(code, if refusal.is_empty() { 404 } else { 200 }, "{name}");
    }
}

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{CONFIG_MAPS, Harness, PODS, config_map, pod};

#[tokio::test]
async fn what_is_saved_can_be_loaded_again() {
    let first = Harness::new();
    let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "x" } });
    first.post("/api/v1/namespaces", &namespace).await.ok();
    first.post("/api/v1/namespaces/x/configmaps", &config_map("a")).await.ok();
    let mut running = pod("p");
    running["spec"]["nodeName"] = json!("n1");
    first.post(PODS, &running).await.ok();
    let status = json!({ "status": { "phase": "Running" } });
    let uri = format!("{PODS}/p/status");
    first.patch(&uri, crate::harness::MERGE, &status).await.ok();

    let second = Harness::new();
    for answer in second.server.load(first.server.dump()) {
        answer.unwrap();
    }
    let without_version = |mut object: Value| {
        object["metadata"]["resourceVersion"].take();
        object
    };
    for uri in [
        "/api/v1/namespaces/x",
        "/api/v1/namespaces/default",
        "/api/v1/namespaces/x/configmaps/a",
        &format!("{PODS}/p"),
    ] {
        let (before, after) = (first.get(uri).await.ok(), second.get(uri).await.ok());
        assert_eq!(without_version(before), without_version(after), "{uri}");
    }
    assert_eq!(first.server.dump(), second.server.dump());
}

#[tokio::test]
async fn manifests_are_admitted_and_keep_their_status() {
    let harness = Harness::new();
    let list = json!({
        "apiVersion": "v1", "kind": "List", "items": [
            config_map("a"),
            {
                "apiVersion": "v1", "kind": "Node", "metadata": { "name": "n1" },
                "status": { "capacity": { "cpu": "4" }, "allocatable": { "cpu": "3" } },
            },
            { "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "b", "namespace": "x" } },
            { "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "x" } },
            { "apiVersion": "v1", "kind": "Nothing", "metadata": { "name": "n" } },
            { "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "_" } },
            {
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": { "name": "c", "namespace": "gone", "uid": "u" },
            },
        ],
    });
    let answers = harness.server.load(vec![list]);
    let reasons: Vec<&str> =
        answers.iter().map(|answer| answer.as_ref().map_or_else(|e| e.reason, |_| "")).collect();
    assert_eq!(reasons, ["", "", "", "", "NotFound", "Invalid", "NotFound"]);
    let node = harness.get("/api/v1/nodes/n1").await.ok();
    assert_eq!(node["status"]["allocatable"]["cpu"], "3");
    assert!(node["metadata"]["uid"].is_string());
    assert_eq!(harness.get("/api/v1/namespaces/x/configmaps/b").await.code, 200);
    assert_eq!(harness.get("/api/v1/namespaces/default/configmaps/a").await.code, 200);
}

/// A dump is not in the order of ownership; whoever collects garbage meanwhile
/// must not take a dependent whose owner is still to come for an orphan.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn loading_and_collecting_do_not_meet() {
    const PAIRS: usize = 100;
    let harness = Harness::new();
    let server = harness.server.clone();
    let collector = tokio::spawn(async move { server.run_garbage_collector().await });
    let map = |name: String, owner: Option<String>| {
        let mut map = config_map(&name);
        map["metadata"]["namespace"] = json!("default");
        map["metadata"]["uid"] = json!(format!("uid-{name}"));
        if let Some(owner) = owner {
            map["metadata"]["ownerReferences"] = json!([{
                "apiVersion": "v1", "kind": "ConfigMap", "name": owner,
                "uid": format!("uid-{owner}"),
            }]);
        }
        map
    };
    let children = (0..PAIRS).map(|at| map(format!("child-{at}"), Some(format!("owner-{at}"))));
    let owners = (0..PAIRS).map(|at| map(format!("owner-{at}"), None));
    let objects: Vec<Value> = children.chain(owners).collect();
    let server = harness.server.clone();
    let loaded = tokio::task::spawn_blocking(move || server.load(objects)).await.unwrap();
    assert!(loaded.iter().all(Result::is_ok));
    // When one child has followed its owner, all that came before is decided.
    harness.delete(&format!("{CONFIG_MAPS}/owner-0")).await.ok();
    let gone = async {
        while harness.get(&format!("{CONFIG_MAPS}/child-0")).await.code != 404 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), gone).await.unwrap();
    let left = harness.get(CONFIG_MAPS).await.ok();
    assert_eq!(left["items"].as_array().unwrap().len(), 2 * (PAIRS - 1));
    collector.abort();
}

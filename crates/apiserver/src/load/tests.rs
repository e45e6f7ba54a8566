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

#[tokio::test]
async fn manifests_are_checked_as_strictly_as_requests() {
    let deployment = |spec: Value| {
        let mut deployment = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": { "name": "web", "namespace": "default" },
            "spec": {
                "selector": { "matchLabels": { "app": "web" } },
                "template": {
                    "metadata": { "labels": { "app": "web" } },
                    "spec": { "containers": [{ "name": "c", "image": "i" }] },
                },
            },
        });
        deployment["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        deployment
    };
    for (spec, expected) in [
        (json!({ "replicas": "3" }), Some(("BadRequest", "spec.replicas"))),
        (json!({ "replcas": 3 }), Some(("BadRequest", "unknown field \"spec.replcas\""))),
        (json!({ "replicas": -1 }), Some(("Invalid", "spec.replicas"))),
        (json!({ "replicas": 3 }), None),
    ] {
        for uid in [None, Some("u")] {
            let harness = Harness::new();
            let mut object = deployment(spec.clone());
            if let Some(uid) = uid {
                object["metadata"]["uid"] = json!(uid);
            }
            let answer = harness.server.load(vec![object]).remove(0);
            match (expected, answer) {
                (None, Ok(loaded)) => assert_eq!(loaded["spec"]["replicas"], 3),
                (Some((reason, words)), Err(error)) => {
                    assert_eq!(error.reason, reason, "{spec} {uid:?}: {error}");
                    assert!(error.message.contains(words), "{error}");
                    assert!(error.message.contains("web\""), "{error}");
                }
                (_, answer) => panic!("{spec} {uid:?}: {answer:?}"),
            }
        }
    }
    for odd in [json!(1), json!({ "apiVersion": "v1", "kind": "Pod", "metadata": "x" })] {
        assert!(Harness::new().server.load(vec![odd.clone()])[0].is_err(), "{odd}");
    }
}

#[tokio::test]
async fn what_every_cluster_has_is_taken() {
    let server = Harness::new().server;
    for object in steersman_apikinds::bootstrap("2024-01-01T00:00:00Z".parse().unwrap()) {
        match server.load(vec![object.clone()]).remove(0) {
            Ok(_) => {}
            // Some namespaces are there from the start.
            Err(error) => assert_eq!(error.reason, "AlreadyExists", "{error}: {object}"),
        }
    }
}

#[tokio::test]
async fn a_uid_belongs_to_one_object() {
    let harness = Harness::new();
    let map = |name: &str, uid: &str| {
        let mut map = config_map(name);
        map["metadata"]["uid"] = json!(uid);
        map
    };
    let load = |objects: Vec<Value>| -> Vec<String> {
        let answers = harness.server.load(objects).into_iter();
        answers.map(|answer| answer.map_or_else(|error| error.message, |_| String::new())).collect()
    };
    let answers = load(vec![map("a", "u"), map("b", "u"), map("a", "u"), map("a", "v")]);
    let refused = "Operation cannot be fulfilled on configmaps \"b\": the uid u of \
                   configmaps \"default/b\" is that of configmaps \"default/a\" already";
    assert_eq!(answers, ["", refused, "", ""]);
    assert_eq!(harness.get(&format!("{CONFIG_MAPS}/b")).await.code, 404);
    // The first has another one by now; the second time others are there before.
    assert_eq!(load(vec![map("b", "u")]), [""]);
    assert!(load(vec![map("c", "v")])[0].contains("is that of configmaps \"default/a\" already"));
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

use serde_json::json;

use crate::harness::{CONFIG_MAPS, Harness, TABLE, config_map, names};

#[tokio::test]
async fn pages_show_one_state_whatever_happens_between_them() {
    let harness = Harness::new();
    harness.config_maps(&["a", "b", "c", "d", "e"]).await;
    let first = harness.get(&format!("{CONFIG_MAPS}?limit=2")).await.ok();
    assert_eq!(names(&first), ["a", "b"]);
    assert_eq!(first["metadata"]["remainingItemCount"], 3);
    harness.delete(&format!("{CONFIG_MAPS}/c")).await.ok();
    harness.config_maps(&["cc"]).await;
    let token = first["metadata"]["continue"].as_str().unwrap();
    let second = harness.get(&format!("{CONFIG_MAPS}?limit=2&continue={token}")).await.ok();
    assert_eq!(names(&second), ["c", "d"]);
    assert_eq!(second["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
    let token = second["metadata"]["continue"].as_str().unwrap();
    let third = harness.get(&format!("{CONFIG_MAPS}?limit=2&continue={token}")).await.ok();
    assert_eq!(names(&third), ["e"]);
    assert!(third["metadata"].get("continue").is_none());
    let now = harness.get(CONFIG_MAPS).await.ok();
    assert_eq!(names(&now), ["a", "b", "cc", "d", "e"]);
}

#[tokio::test]
async fn a_page_of_a_state_that_is_gone_is_refused() {
    let harness = Harness::with(|config| config.watch_window = 2);
    harness.config_maps(&["a", "b"]).await;
    let first = harness.get(&format!("{CONFIG_MAPS}?limit=1")).await.ok();
    harness.config_maps(&["c", "d", "e"]).await;
    let token = first["metadata"]["continue"].as_str().unwrap();
    let refusal = harness.get(&format!("{CONFIG_MAPS}?limit=1&continue={token}")).await.refusal();
    assert!(refusal.starts_with("410 Expired: The provided continue"), "{refusal}");
    let bad = harness.get(&format!("{CONFIG_MAPS}?continue=xyz")).await.refusal();
    assert_eq!(bad, "400 BadRequest: continue key is not valid");
}

#[tokio::test]
async fn versions_are_shown_exactly_or_not_older() {
    let harness = Harness::new();
    harness.config_maps(&["a"]).await;
    let old = harness.get(CONFIG_MAPS).await.ok()["metadata"]["resourceVersion"].clone();
    let old = old.as_str().unwrap();
    harness.config_maps(&["b"]).await;
    for (query, expected) in [
        (format!("resourceVersion={old}&resourceVersionMatch=Exact"), vec!["a"]),
        (format!("resourceVersion={old}&resourceVersionMatch=NotOlderThan"), vec!["a", "b"]),
        (format!("resourceVersion={old}"), vec!["a", "b"]),
        (format!("resourceVersion={old}&limit=5"), vec!["a"]),
        ("resourceVersion=0".to_owned(), vec!["a", "b"]),
    ] {
        let list = harness.get(&format!("{CONFIG_MAPS}?{query}")).await.ok();
        assert_eq!(names(&list), expected, "{query}");
    }
    for (query, expected) in [
        ("resourceVersion=99999", "504 Timeout: Timeout: Too large resource version: 99999"),
        ("resourceVersionMatch=Exact", "422 Invalid: resourceVersionMatch: Forbidden"),
        ("resourceVersion=0&resourceVersionMatch=Exact", "422 Invalid: resourceVersionMatch: Forb"),
        ("resourceVersion=1&resourceVersionMatch=x", "422 Invalid: resourceVersionMatch: Unsupp"),
        ("resourceVersion=x", "400 BadRequest: resourceVersion: Invalid value"),
        (
            "resourceVersion=1&resourceVersionMatch=Exact",
            "410 Expired: too old resource version: 1",
        ),
    ] {
        let refusal = harness.get(&format!("{CONFIG_MAPS}?{query}")).await.refusal();
        assert!(refusal.starts_with(expected), "{query}: {refusal}");
    }
}

#[tokio::test]
async fn selectors_select() {
    let harness = Harness::new();
    harness.config_maps(&["a", "b", "c"]).await;
    let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "x" } });
    harness.post("/api/v1/namespaces", &namespace).await.ok();
    harness.post("/api/v1/namespaces/x/configmaps", &config_map("a")).await.ok();
    for (uri, expected) in [
        ("/api/v1/configmaps", vec!["a", "b", "c", "a"]),
        ("/api/v1/configmaps?labelSelector=name%3Da", vec!["a", "a"]),
        ("/api/v1/namespaces/x/configmaps?labelSelector=name+in+(a,b)", vec!["a"]),
        ("/api/v1/configmaps?labelSelector=name!%3Da", vec!["b", "c"]),
        ("/api/v1/configmaps?fieldSelector=metadata.name%3Db", vec!["b"]),
        ("/api/v1/configmaps?fieldSelector=metadata.namespace!%3Dx", vec!["a", "b", "c"]),
        ("/api/v1/namespaces/x/configmaps?fieldSelector=metadata.name%3Db", vec![]),
        ("/api/v1/namespaces/none/configmaps", vec![]),
    ] {
        assert_eq!(names(&harness.get(uri).await.ok()), expected, "{uri}");
    }
    let refusal = harness.get("/api/v1/pods?fieldSelector=spec.foo%3Dx").await.refusal();
    assert_eq!(refusal, "400 BadRequest: field label not supported: spec.foo");
    let refusal = harness.get("/api/v1/pods?labelSelector=a%3D%3D%3D").await.refusal();
    assert!(refusal.starts_with("400 BadRequest: unable to parse"), "{refusal}");
}

#[tokio::test]
async fn lists_come_as_tables_and_as_metadata() {
    let harness = Harness::new();
    harness.config_maps(&["a"]).await;
    harness.clock.advance(90);
    let table = harness.get_as(CONFIG_MAPS, TABLE).await.ok();
    assert_eq!(table["kind"], "Table");
    assert_eq!(table["apiVersion"], "meta.k8s.io/v1");
    assert_eq!(table["columnDefinitions"][0]["name"], "Name");
    assert_eq!(table["rows"][0]["cells"][0], "a");
    assert_eq!(table["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    assert_eq!(table["rows"][0]["object"]["metadata"]["namespace"], "default");
    let columns = table["columnDefinitions"].as_array().unwrap().len();
    assert_eq!(table["rows"][0]["cells"].as_array().unwrap().len(), columns);

    let whole = harness.get_as(&format!("{CONFIG_MAPS}?includeObject=Object"), TABLE).await.ok();
    assert_eq!(whole["rows"][0]["object"]["data"]["key"], "value");
    let none = harness.get_as(&format!("{CONFIG_MAPS}?includeObject=None"), TABLE).await.ok();
    assert!(none["rows"][0].get("object").is_none());

    let metadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    let list = harness.get_as(CONFIG_MAPS, metadata).await.ok();
    assert_eq!(list["kind"], "PartialObjectMetadataList");
    assert_eq!(list["items"][0]["metadata"]["name"], "a");
    assert!(list["items"][0].get("data").is_none());

    let one = harness.get_as(&format!("{CONFIG_MAPS}/a"), TABLE).await.ok();
    assert_eq!(one["rows"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn forms_that_are_not_served_are_refused() {
    let harness = Harness::new();
    let protobuf = harness.get_as(CONFIG_MAPS, "application/vnd.kubernetes.protobuf").await;
    assert!(protobuf.refusal().starts_with("406 NotAcceptable"));
    let both = "application/vnd.kubernetes.protobuf,application/json";
    assert_eq!(harness.get_as(CONFIG_MAPS, both).await.ok()["kind"], "ConfigMapList");
    let yaml = harness.get_as(CONFIG_MAPS, "application/yaml").await;
    assert_eq!((yaml.code, yaml.content_type.as_str()), (200, "application/yaml"));
    assert!(yaml.body.starts_with(b"apiVersion: v1\n"), "{:?}", yaml.body);
}

#[tokio::test]
async fn a_long_list_arrives_whole() {
    let harness = Harness::new();
    for index in 0..40 {
        let mut map = config_map(&format!("m{index:02}"));
        map["data"]["key"] = json!("x".repeat(10_000));
        harness.post(CONFIG_MAPS, &map).await.ok();
    }
    let list = harness.get(CONFIG_MAPS).await.ok();
    assert_eq!(names(&list).len(), 40);
    assert_eq!(list["items"][39]["metadata"]["name"], "m39");
}

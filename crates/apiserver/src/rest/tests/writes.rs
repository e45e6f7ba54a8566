use expect_test::expect;
use serde_json::{Value, json};

use crate::harness::{
    APPLY, CONFIG_MAPS, Harness, JSON, JSON_PATCH, MERGE, PODS, STRATEGIC, config_map, pod,
};

#[tokio::test]
async fn a_new_object_gets_its_metadata() {
    let harness = Harness::new();
    let created = harness.post(CONFIG_MAPS, &config_map("a")).await;
    assert_eq!(created.code, 201);
    let created = created.ok();
    let metadata = &created["metadata"];
    assert_eq!(metadata["uid"].as_str().unwrap().len(), 36);
    assert_eq!(metadata["creationTimestamp"], "2024-01-01T00:00:00Z");
    assert_eq!(metadata["namespace"], "default");
    assert_eq!(metadata["managedFields"][0]["manager"], "tests");
    assert_eq!(metadata["managedFields"][0]["operation"], "Update");
    assert!(metadata["resourceVersion"].as_str().unwrap().parse::<u64>().unwrap() > 100);
    assert_eq!(harness.get(&format!("{CONFIG_MAPS}/a")).await.ok(), created);
}

#[tokio::test]
async fn what_cannot_be_created_is_refused_as_in_the_reference() {
    let harness = Harness::new();
    harness.config_maps(&["a"]).await;
    let map =
        |metadata: Value| json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata });
    let cases = [
        (CONFIG_MAPS, config_map("a")),
        (CONFIG_MAPS, map(json!({}))),
        (CONFIG_MAPS, map(json!({ "name": "A" }))),
        (CONFIG_MAPS, map(json!({ "name": "b", "namespace": "other" }))),
        (CONFIG_MAPS, map(json!({ "name": "b", "resourceVersion": "5" }))),
        (CONFIG_MAPS, map(json!({ "name": "b", "labels": { "a": "b c" } }))),
        (CONFIG_MAPS, json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "b" } })),
        (
            CONFIG_MAPS,
            json!({ "apiVersion": "v2", "kind": "ConfigMap", "metadata": { "name": "b" } }),
        ),
        (CONFIG_MAPS, json!([])),
        ("/api/v1/namespaces/none/configmaps", config_map("a")),
        ("/api/v1/configmaps", config_map("a")),
        ("/api/v1/namespaces/default/nothings", config_map("a")),
    ];
    let mut refusals = String::new();
    for (uri, body) in cases {
        refusals.push_str(&harness.post(uri, &body).await.refusal());
        refusals.push('\n');
    }
    expect![[r#"
        409 AlreadyExists: configmaps "a" already exists
        422 Invalid: ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required
        422 Invalid: ConfigMap "A" is invalid: metadata.name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        400 BadRequest: the namespace of the provided object does not match the namespace sent on the request
        400 BadRequest: resourceVersion should not be set on objects to be created
        422 Invalid: ConfigMap "b" is invalid: metadata.labels: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')
        400 BadRequest: Secret in version "v1" cannot be handled as a ConfigMap: the kind has to be ConfigMap
        400 BadRequest: the API version in the data (v2) does not match the expected API version (v1)
        400 BadRequest: the object provided is unrecognized (must be of type ConfigMap): an object is needed ([])
        404 NotFound: namespaces "none" not found
        405 MethodNotAllowed: the server does not allow this method on the requested resource
        404 NotFound: the server could not find the requested resource
    "#]].assert_eq(&refusals);
}

#[tokio::test]
async fn bodies_that_cannot_be_read_are_refused() {
    let harness = Harness::new();
    let mut refusals = String::new();
    for (content_type, body) in [
        (JSON, "{\"a\": }"),
        (JSON, ""),
        ("application/yaml", "a: [\n"),
        ("application/vnd.kubernetes.protobuf", "k8s"),
        ("text/plain", "{}"),
    ] {
        let answer = harness.ask("POST", CONFIG_MAPS, content_type, body, &[]).await;
        refusals.push_str(&answer.refusal());
        refusals.push('\n');
    }
    let huge = vec![b' '; 3 * 1024 * 1024 + 1];
    refusals.push_str(&harness.ask("POST", CONFIG_MAPS, JSON, huge, &[]).await.refusal());
    expect![[r#"
        400 BadRequest: the body is not valid JSON: expected value at line 1 column 7
        400 BadRequest: the body is not valid JSON: EOF while parsing a value at line 1 column 0
        400 BadRequest: error decoding YAML: error: line 1 column 4: unclosed bracket '['
        400 BadRequest: the body is not valid protobuf: the body does not begin as protobuf bodies do
        415 UnsupportedMediaType: the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf
        413 RequestEntityTooLarge: Request entity too large: limit is 3145728"#]].assert_eq(&refusals);
}

#[tokio::test]
async fn yaml_is_as_good_as_json() {
    let harness = Harness::new();
    let yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  key: 'on'\n";
    let answer = harness.ask("POST", CONFIG_MAPS, "application/yaml", yaml, &[]).await;
    assert_eq!(answer.ok()["data"]["key"], "on");
}

#[tokio::test]
async fn generated_names_are_new_ones() {
    let harness = Harness::new();
    let map =
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "generateName": "m-" } });
    let mut names = Vec::new();
    for _ in 0..5 {
        let name = harness.post(CONFIG_MAPS, &map).await.ok()["metadata"]["name"].clone();
        let name = name.as_str().unwrap().to_owned();
        assert!(name.starts_with("m-") && name.len() == 7, "{name}");
        names.push(name);
    }
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 5);
}

#[tokio::test]
async fn unknown_fields_warn_or_are_refused() {
    let harness = Harness::new();
    let body = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","foo":1},"data":{"a":"1","a":"2"},"bar":true}"#;
    let uri = |validation: &str| format!("{CONFIG_MAPS}?dryRun=All&fieldValidation={validation}");
    let warned = harness.ask("POST", &uri("Warn"), JSON, body, &[]).await;
    expect![[r#"
        299 - "unknown field \"bar\""
        299 - "unknown field \"metadata.foo\""
        299 - "duplicate field \"data.a\"""#]]
    .assert_eq(&warned.warnings.join("\n"));
    assert!(warned.ok().get("bar").is_none());
    let ignored = harness.ask("POST", &uri("Ignore"), JSON, body, &[]).await;
    assert!(ignored.warnings.is_empty() && ignored.code == 201);
    let strict = harness.ask("POST", &uri("Strict"), JSON, body, &[]).await.refusal();
    expect![[r#"400 BadRequest: ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "bar", unknown field "metadata.foo", duplicate field "data.a""#]].assert_eq(&strict);
    let types = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":5}}"#;
    let types = harness.ask("POST", &uri("Ignore"), JSON, types, &[]).await.refusal();
    assert!(types.starts_with("400 BadRequest: ConfigMap in version \"v1\" cannot be"), "{types}");
}

#[tokio::test]
async fn a_dry_run_answers_and_changes_nothing() {
    let harness = Harness::new();
    let before = harness.server.inner.store.revision();
    let dry = format!("{CONFIG_MAPS}?dryRun=All");
    assert_eq!(harness.post(&dry, &config_map("a")).await.ok()["metadata"]["name"], "a");
    assert_eq!(harness.get(&format!("{CONFIG_MAPS}/a")).await.code, 404);
    assert_eq!(harness.server.inner.store.revision(), before);
    harness.config_maps(&["a"]).await;
    let before = harness.server.inner.store.revision();
    let dry = format!("{CONFIG_MAPS}/a?dryRun=All");
    let patched = harness.patch(&dry, MERGE, &json!({ "data": { "key": "new" } })).await.ok();
    assert_eq!(patched["data"]["key"], "new");
    harness.delete(&dry).await.ok();
    assert_eq!(harness.server.inner.store.revision(), before);
    let bad = harness.post(&format!("{CONFIG_MAPS}?dryRun=Some"), &config_map("b")).await;
    assert!(bad.refusal().starts_with("422 Invalid: dryRun"));
}

#[tokio::test]
async fn an_update_of_an_older_version_is_a_conflict() {
    let harness = Harness::new();
    let uri = format!("{CONFIG_MAPS}/a");
    let first = harness.post(CONFIG_MAPS, &config_map("a")).await.ok();
    let mut second = first.clone();
    second["data"]["key"] = json!("2");
    let second = harness.put(&uri, &second).await.ok();
    assert_ne!(second["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
    let late = harness.put(&uri, &first).await.refusal();
    expect![[r#"409 Conflict: Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to the latest version and try again"#]].assert_eq(&late);
    // The same again changes nothing, so it is no new version.
    assert_eq!(harness.put(&uri, &second).await.ok(), second);
    // Without a version it overwrites whatever is there.
    let mut any = config_map("a");
    any["data"]["key"] = json!("3");
    assert_eq!(harness.put(&uri, &any).await.ok()["data"]["key"], "3");
    let mut other = any.clone();
    other["metadata"]["uid"] = json!("someone-else");
    assert!(harness.put(&uri, &other).await.refusal().starts_with("409 Conflict"));
    any["metadata"]["name"] = json!("b");
    expect!["400 BadRequest: the name of the object (b) does not match the name on the URL (a)"]
        .assert_eq(&harness.put(&uri, &any).await.refusal());
    assert_eq!(harness.put(&format!("{CONFIG_MAPS}/b"), &any).await.code, 404);
}

#[tokio::test]
async fn the_four_kinds_of_patches() {
    let harness = Harness::new();
    harness.post(PODS, &pod("p")).await.ok();
    let uri = format!("{PODS}/p");
    let merge = json!({ "metadata": { "labels": { "app": null, "tier": "front" } } });
    let merged = harness.patch(&uri, MERGE, &merge).await.ok();
    assert_eq!(merged["metadata"]["labels"], json!({ "tier": "front" }));
    let json = json!([{ "op": "replace", "path": "/metadata/labels/tier", "value": "back" }]);
    let patched = harness.patch(&uri, JSON_PATCH, &json).await.ok();
    assert_eq!(patched["metadata"]["labels"]["tier"], "back");
    let strategic = json!({ "spec": { "containers": [{ "name": "c", "image": "new" }] } });
    let patched = harness.patch(&uri, STRATEGIC, &strategic).await.ok();
    assert_eq!(patched["spec"]["containers"][0]["image"], "new");
    assert_eq!(patched["spec"]["containers"][0]["terminationMessagePath"], "/dev/termination-log");
    let applied = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "p", "labels": { "a": "b" } },
    });
    let applied = harness.patch(&format!("{uri}?fieldManager=me"), APPLY, &applied).await.ok();
    assert_eq!(applied["metadata"]["labels"], json!({ "a": "b", "tier": "back" }));
    let before = applied["metadata"]["resourceVersion"].clone();
    let nothing = harness.patch(&uri, MERGE, &json!({})).await.ok();
    assert_eq!(nothing["metadata"]["resourceVersion"], before);
}

#[tokio::test]
async fn patches_that_are_refused() {
    let harness = Harness::new();
    harness.post(PODS, &pod("p")).await.ok();
    let uri = format!("{PODS}/p");
    let label = json!({ "metadata": { "labels": { "app": "x" } } });
    let config = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": label["metadata"] });
    let old = json!({ "metadata": { "resourceVersion": "101" } });
    let name = json!({ "metadata": { "name": "q" } });
    let test = json!([{ "op": "test", "path": "/kind", "value": "x" }]);
    let mut refusals = String::new();
    for (uri, content_type, body) in [
        (uri.clone(), JSON, &label),
        (format!("{uri}?force=true"), MERGE, &label),
        (uri.clone(), APPLY, &config),
        (format!("{uri}?fieldManager=me"), APPLY, &config),
        (uri.clone(), MERGE, &old),
        (uri.clone(), MERGE, &name),
        (uri.clone(), JSON_PATCH, &test),
        (format!("{PODS}/none"), MERGE, &label),
        (format!("{uri}?fieldValidation=Strict"), MERGE, &json!({ "spec": { "foo": 1 } })),
    ] {
        refusals.push_str(&harness.patch(&uri, content_type, body).await.refusal());
        refusals.push('\n');
    }
    expect![[r#"
        415 UnsupportedMediaType: the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml, application/strategic-merge-patch+json
        422 Invalid: PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be specified for non-apply patch
        422 Invalid: PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch
        409 Conflict: Apply failed with 1 conflict: conflict with "tests" using v1: .metadata.labels.app
        409 Conflict: Operation cannot be fulfilled on pods "p": the object has been modified; please apply your changes to the latest version and try again
        400 BadRequest: the name of the object (q) does not match the name on the URL (p)
        422 Invalid: the server rejected our request due to an error in our request
        404 NotFound: pods "none" not found
        400 BadRequest: Pod in version "v1" cannot be handled as a Pod: strict decoding error: unknown field "spec.foo"
    "#]].assert_eq(&refusals);
}

#[tokio::test]
async fn server_side_apply_creates_takes_away_and_forces() {
    let harness = Harness::new();
    let uri = |manager: &str| format!("{CONFIG_MAPS}/a?fieldManager={manager}");
    let config = |data: Value| json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": data });
    let created = harness.patch(&uri("one"), APPLY, &config(json!({ "a": "1", "b": "1" }))).await;
    assert_eq!(created.code, 201);
    let created = created.ok();
    assert_eq!(created["metadata"]["managedFields"][0]["operation"], "Apply");
    assert_eq!(created["metadata"]["managedFields"].as_array().unwrap().len(), 1);
    let fewer = harness.patch(&uri("one"), APPLY, &config(json!({ "a": "1" }))).await.ok();
    assert_eq!(fewer["data"], json!({ "a": "1" }));
    let conflict = harness.patch(&uri("two"), APPLY, &config(json!({ "a": "2" }))).await;
    assert_eq!(conflict.json()["details"]["causes"][0]["reason"], "FieldManagerConflict");
    assert!(conflict.refusal().starts_with("409 Conflict: Apply failed with 1 conflict"));
    let force = format!("{}&force=true", uri("two"));
    let forced = harness.patch(&force, APPLY, &config(json!({ "a": "2" }))).await.ok();
    assert_eq!(forced["data"], json!({ "a": "2" }));
    // The same again is no new version, whatever the time.
    harness.clock.advance(60);
    let again = harness.patch(&force, APPLY, &config(json!({ "a": "2" }))).await.ok();
    assert_eq!(again, forced);
}

#[tokio::test]
async fn generations_count_changes_of_what_is_wanted() {
    let harness = Harness::new();
    let uri = "/apis/apps/v1/namespaces/default/deployments";
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "d" },
        "spec": {
            "selector": { "matchLabels": { "app": "d" } },
            "template": {
                "metadata": { "labels": { "app": "d" } },
                "spec": { "containers": [{ "name": "c", "image": "i" }] },
            },
        },
    });
    assert_eq!(harness.post(uri, &deployment).await.ok()["metadata"]["generation"], 1);
    let at = format!("{uri}/d");
    for (uri, patch, generation) in [
        (at.clone(), json!({ "metadata": { "labels": { "a": "b" } } }), 1),
        (at.clone(), json!({ "spec": { "replicas": 3 } }), 2),
        (at.clone(), json!({ "status": { "replicas": 9 } }), 2),
        (format!("{at}/status"), json!({ "status": { "replicas": 2 } }), 2),
        (format!("{at}/status"), json!({ "spec": { "replicas": 9 } }), 2),
    ] {
        let patched = harness.patch(&uri, MERGE, &patch).await.ok();
        assert_eq!(patched["metadata"]["generation"], generation, "{patch}");
    }
    let now = harness.get(&at).await.ok();
    assert_eq!((&now["spec"]["replicas"], &now["status"]["replicas"]), (&json!(3), &json!(2)));
    let scale = harness.get(&format!("{at}/scale")).await.ok();
    assert_eq!((&scale["kind"], &scale["spec"]["replicas"]), (&json!("Scale"), &json!(3)));
    let five = json!({ "spec": { "replicas": 5 } });
    let scaled = harness.patch(&format!("{at}/scale"), MERGE, &five).await.ok();
    assert_eq!(scaled["spec"]["replicas"], 5);
    let now = harness.get(&at).await.ok();
    assert_eq!((&now["spec"]["replicas"], &now["metadata"]["generation"]), (&json!(5), &json!(3)));
}

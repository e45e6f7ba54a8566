//! Kinds that show what the built-in ones do not.

use std::sync::Arc;

use serde_json::{Value, json};
use steersman_apimachinery::error::ApiError;
use steersman_apimachinery::resource::{Resource, Storage};
use steersman_apimachinery::rules::{Plain, Request, Rules};

use crate::harness::{Harness, MERGE};

struct Panicking;

impl Rules for Panicking {
    fn prepare_create(&self, _: &mut Value, _: &Request<'_>) -> Result<(), ApiError> {
        panic!("a bug in a kind's rules")
    }
}

struct Careful;

impl Rules for Careful {
    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn creates_on_update(&self) -> bool {
        true
    }
}

const fn resource(plural: &'static str, rules: &'static dyn Rules) -> Resource {
    Resource {
        group: "test",
        version: "v1",
        kind: "ConfigMap",
        plural,
        singular: "",
        namespaced: false,
        short_names: &[],
        categories: &[],
        schema: "io.k8s.api.core.v1.ConfigMap",
        storage: Storage::Own,
        has_status: false,
        subresources: &[],
        absent: &[],
        rules,
    }
}

static RESOURCES: [Resource; 3] =
    [resource("panicking", &Panicking), resource("careful", &Careful), resource("plain", &Plain)];

fn object(name: &str, value: &str) -> Value {
    json!({
        "apiVersion": "test/v1", "kind": "ConfigMap", "metadata": { "name": name },
        "data": { "key": value },
    })
}

#[tokio::test]
async fn a_panic_is_an_internal_error_and_the_server_goes_on() {
    let harness = Harness::with(|config| config.resources = &RESOURCES);
    let refusal = harness.post("/apis/test/v1/panicking", &object("a", "")).await.refusal();
    assert!(refusal.starts_with("500 InternalError: This request caused"), "{refusal}");
    harness.post("/apis/test/v1/plain", &object("a", "")).await.ok();
}

#[tokio::test]
async fn some_kinds_need_a_version_and_are_created_by_updates() {
    let harness = Harness::with(|config| config.resources = &RESOURCES);
    let uri = "/apis/test/v1/careful/a";
    let made = harness.put(uri, &object("a", "1")).await;
    assert_eq!(made.code, 201);
    let mut made = made.ok();
    let refusal = harness.put(uri, &object("a", "2")).await.refusal();
    assert!(refusal.contains("must be specified for an update"), "{refusal}");
    made["data"]["key"] = json!("3");
    assert_eq!(harness.put(uri, &made).await.ok()["data"]["key"], "3");
}

#[tokio::test]
async fn two_kinds_of_events_are_one() {
    let harness = Harness::new();
    let event = json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event",
        "metadata": { "name": "e", "namespace": "default" },
        "eventTime": "2024-01-01T00:00:00.000000Z", "reportingController": "tests",
        "reportingInstance": "here", "action": "Testing", "reason": "Tested", "type": "Normal",
        "note": "all is well", "regarding": { "kind": "Pod", "name": "p", "namespace": "default" },
    });
    let new = "/apis/events.k8s.io/v1/namespaces/default/events";
    let old = "/api/v1/namespaces/default/events";
    let made = harness.post(new, &event).await.ok();
    assert_eq!(made["note"], "all is well");
    let fields = &made["metadata"]["managedFields"][0];
    assert_eq!(fields["apiVersion"], "events.k8s.io/v1");
    assert!(fields["fieldsV1"]["f:note"].is_object(), "{fields}");
    let core = harness.get(&format!("{old}/e")).await.ok();
    assert_eq!((&core["message"], &core["apiVersion"]), (&json!("all is well"), &json!("v1")));
    assert_eq!(core["involvedObject"]["name"], "p");
    let list = harness.get(&format!("{old}?fieldSelector=involvedObject.name%3Dp")).await.ok();
    assert_eq!(list["items"].as_array().unwrap().len(), 1);
    let list = harness.get(new).await.ok();
    assert_eq!(list["items"][0]["regarding"]["name"], "p");
    let patch =
        json!({ "series": { "count": 2, "lastObservedTime": "2024-01-01T00:00:01.000000Z" } });
    let patched = harness.patch(&format!("{new}/e"), MERGE, &patch).await.ok();
    assert_eq!(patched["series"]["count"], 2);
    assert_eq!(harness.get(&format!("{old}/e")).await.ok()["series"]["count"], 2);
}

/// Every one of many writers at once must find its own change in the end.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_write_is_lost_when_many_write_at_once() {
    const WRITERS: usize = 8;
    const WRITES: usize = 25;
    let harness = Arc::new(Harness::with(|config| config.resources = &RESOURCES));
    harness.post("/apis/test/v1/plain", &object("a", "")).await.ok();
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let harness = harness.clone();
            tokio::spawn(async move {
                for write in 0..WRITES {
                    let patch = json!({ "data": { format!("w{writer}"): write.to_string() } });
                    harness.patch("/apis/test/v1/plain/a", MERGE, &patch).await.ok();
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    let object = harness.get("/apis/test/v1/plain/a").await.ok();
    for writer in 0..WRITERS {
        assert_eq!(object["data"][format!("w{writer}")], (WRITES - 1).to_string());
    }
    let list = harness.get("/apis/test/v1/plain").await.ok();
    let revision: usize = list["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
    assert_eq!(revision, 101 + WRITERS * WRITES);
}

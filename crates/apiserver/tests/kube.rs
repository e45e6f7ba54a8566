//! kube-rs, in-process: the client that the rest of the project uses.

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{
    Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams,
};
use kube::{Client, ResourceExt};
use serde_json::json;
use steersman_apiserver::{ApiServer, Config};

fn client() -> Client {
    let resources = steersman_apikinds::resources();
    let server = ApiServer::new(Config { resources, ..Config::default() });
    Client::new(server.service(), "default")
}

#[tokio::test]
async fn typed_objects_are_written_read_and_watched() {
    let maps: Api<ConfigMap> = Api::default_namespaced(client());
    let map = serde_json::from_value(json!({ "metadata": { "generateName": "m-" } })).unwrap();
    let made = maps.create(&PostParams::default(), &map).await.unwrap();
    let name = made.name_any();
    let listed = maps.list(&ListParams::default()).await.unwrap();
    assert_eq!(listed.items.len(), 1);
    let from = listed.metadata.resource_version.unwrap();

    let mut events = maps.watch(&WatchParams::default(), &from).await.unwrap().boxed();
    let patch = json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "a": "b" } });
    let applied =
        maps.patch(&name, &PatchParams::apply("test"), &Patch::Apply(&patch)).await.unwrap();
    assert_eq!(applied.data.unwrap()["a"], "b");
    let merge = json!({ "data": { "a": null } });
    maps.patch(&name, &PatchParams::default(), &Patch::Merge(&merge)).await.unwrap();
    maps.delete(&name, &DeleteParams::default()).await.unwrap();
    let mut seen = Vec::new();
    while seen.len() < 3 {
        seen.push(match events.try_next().await.unwrap().unwrap() {
            WatchEvent::Modified(map) => format!("modified {}", map.data.unwrap_or_default().len()),
            WatchEvent::Deleted(map) => format!("deleted {}", map.name_any() == name),
            other => format!("{other:?}"),
        });
    }
    assert_eq!(seen, ["modified 1", "modified 0", "deleted true"]);
}

#[tokio::test]
async fn refusals_are_understood() {
    let pods: Api<Pod> = Api::default_namespaced(client());
    let error = pods.get("none").await.unwrap_err();
    let kube::Error::Api(status) = error else { panic!("{error}") };
    assert_eq!((status.code, status.message.as_str()), (404, "pods \"none\" not found"));
    let pod: Pod = serde_json::from_value(json!({
        "metadata": { "name": "p" }, "spec": { "containers": [] },
    }))
    .unwrap();
    let error = pods.create(&PostParams::default(), &pod).await.unwrap_err();
    assert!(matches!(error, kube::Error::Api(status) if status.code == 422));
}

#[tokio::test]
async fn what_is_served_is_discovered() {
    let discovery = kube::Discovery::new(client()).run_aggregated().await.unwrap();
    let groups: Vec<&str> = discovery.groups().map(|group| group.name()).collect();
    assert!(groups.contains(&"apps"), "{groups:?}");
    let discovery = kube::Discovery::new(client()).run().await.unwrap();
    assert!(discovery.has_group("policy"));
}

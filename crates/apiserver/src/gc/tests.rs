use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use crate::harness::{CONFIG_MAPS, Harness, JSON, PODS, config_map, pod};

/// A server whose garbage is collected. Time is paused: waiting costs nothing.
fn collected() -> Harness {
    let harness = Harness::new();
    let server = harness.server.clone();
    tokio::spawn(async move { server.run_garbage_collector().await });
    harness
}

/// Lets everybody do what there is to do.
async fn settle() {
    let until = Instant::now() + Duration::from_millis(1);
    while Instant::now() < until {
        let wait = timeout(Duration::from_millis(1), std::future::pending::<()>());
        assert!(wait.await.is_err());
    }
}

async fn exists(harness: &Harness, name: &str) -> bool {
    harness.get(&format!("{CONFIG_MAPS}/{name}")).await.code == 200
}

/// Creates a config map that others own.
async fn owned(harness: &Harness, name: &str, owners: &[&Value]) -> Value {
    let reference = |owner: &&Value| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"], "blockOwnerDeletion": true,
        })
    };
    let mut map = config_map(name);
    if !owners.is_empty() {
        map["metadata"]["ownerReferences"] = owners.iter().map(reference).collect();
    }
    harness.post(CONFIG_MAPS, &map).await.ok()
}

async fn delete(harness: &Harness, name: &str, policy: &str) {
    let body = json!({ "propagationPolicy": policy }).to_string();
    harness.ask("DELETE", &format!("{CONFIG_MAPS}/{name}"), JSON, body, &[]).await.ok();
}

#[tokio::test(start_paused = true)]
async fn dependents_go_after_their_owner() {
    let harness = collected();
    let owner = owned(&harness, "owner", &[]).await;
    let child = owned(&harness, "child", &[&owner]).await;
    owned(&harness, "grandchild", &[&child]).await;
    owned(&harness, "other", &[]).await;
    settle().await;
    assert!(exists(&harness, "grandchild").await);
    delete(&harness, "owner", "Background").await;
    settle().await;
    for (name, is_there) in
        [("owner", false), ("child", false), ("grandchild", false), ("other", true)]
    {
        assert_eq!(exists(&harness, name).await, is_there, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_second_owner_keeps_a_dependent() {
    let harness = collected();
    let one = owned(&harness, "one", &[]).await;
    let two = owned(&harness, "two", &[]).await;
    owned(&harness, "child", &[&one, &two]).await;
    delete(&harness, "one", "Background").await;
    settle().await;
    let child = harness.get(&format!("{CONFIG_MAPS}/child")).await.ok();
    let owners = child["metadata"]["ownerReferences"].as_array().unwrap();
    assert_eq!((owners.len(), &owners[0]["name"]), (1, &json!("two")));
    delete(&harness, "two", "Background").await;
    settle().await;
    assert!(!exists(&harness, "child").await);
}

#[tokio::test(start_paused = true)]
async fn orphans_stay_without_their_owner() {
    let harness = collected();
    let owner = owned(&harness, "owner", &[]).await;
    owned(&harness, "child", &[&owner]).await;
    delete(&harness, "owner", "Orphan").await;
    settle().await;
    assert!(!exists(&harness, "owner").await);
    let child = harness.get(&format!("{CONFIG_MAPS}/child")).await.ok();
    assert!(child["metadata"].get("ownerReferences").is_none());
}

#[tokio::test(start_paused = true)]
async fn in_the_foreground_the_owner_goes_last() {
    let harness = collected();
    let owner = owned(&harness, "owner", &[]).await;
    let mut child = owned(&harness, "child", &[&owner]).await;
    child["metadata"]["finalizers"] = json!(["example.com/wait"]);
    let uri = format!("{CONFIG_MAPS}/child");
    harness.put(&uri, &child).await.ok();
    delete(&harness, "owner", "Foreground").await;
    settle().await;
    assert!(exists(&harness, "owner").await);
    let mut child = harness.get(&uri).await.ok();
    assert!(child["metadata"]["deletionTimestamp"].is_string());
    child["metadata"]["finalizers"] = json!([]);
    harness.put(&uri, &child).await.ok();
    settle().await;
    assert!(!exists(&harness, "child").await);
    assert!(!exists(&harness, "owner").await);
}

#[tokio::test(start_paused = true)]
async fn what_is_born_to_an_owner_that_is_gone_goes() {
    let harness = collected();
    let gone = json!({ "metadata": { "name": "gone", "uid": "no-such-uid" } });
    owned(&harness, "late", &[&gone]).await;
    let mut foreign = config_map("foreign");
    foreign["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "example.com/v1", "kind": "Thing", "name": "t", "uid": "u",
    }]);
    harness.post(CONFIG_MAPS, &foreign).await.ok();
    settle().await;
    assert!(!exists(&harness, "late").await);
    // Nobody here can say whether an owner of an unknown kind is gone.
    assert!(exists(&harness, "foreign").await);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_goes_when_everything_in_it_has_gone() {
    let harness = collected();
    let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "x" } });
    harness.post("/api/v1/namespaces", &namespace).await.ok();
    let pods = "/api/v1/namespaces/x/pods";
    let mut running = pod("p");
    running["spec"]["nodeName"] = json!("n1");
    harness.post(pods, &running).await.ok();
    harness.post("/api/v1/namespaces/x/configmaps", &config_map("a")).await.ok();
    harness.delete("/api/v1/namespaces/x").await.ok();
    settle().await;
    assert_eq!(harness.get("/api/v1/namespaces/x/configmaps/a").await.code, 404);
    // The pod has its grace period; the namespace waits for it.
    let waiting = harness.get(&format!("{pods}/p")).await.ok();
    assert_eq!(waiting["metadata"]["deletionGracePeriodSeconds"], 30);
    assert_eq!(harness.get("/api/v1/namespaces/x").await.code, 200);
    harness.delete(&format!("{pods}/p?gracePeriodSeconds=0")).await.ok();
    settle().await;
    assert_eq!(harness.get("/api/v1/namespaces/x").await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn an_empty_namespace_goes_at_once() {
    let harness = collected();
    let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "x" } });
    harness.post("/api/v1/namespaces", &namespace).await.ok();
    settle().await;
    harness.delete("/api/v1/namespaces/x").await.ok();
    settle().await;
    assert_eq!(harness.get("/api/v1/namespaces/x").await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn events_go_after_an_hour() {
    let harness = collected();
    let event = json!({
        "apiVersion": "v1", "kind": "Event", "metadata": { "name": "e" },
        "involvedObject": { "kind": "Pod", "name": "p", "namespace": "default" },
        "reason": "Tested", "message": "m", "type": "Normal",
    });
    let uri = "/api/v1/namespaces/default/events";
    harness.post(uri, &event).await.ok();
    settle().await;
    harness.clock.advance(3_599);
    tokio::time::advance(Duration::from_secs(31)).await;
    settle().await;
    assert_eq!(harness.get(&format!("{uri}/e")).await.code, 200);
    harness.clock.advance(2);
    tokio::time::advance(Duration::from_secs(31)).await;
    settle().await;
    assert_eq!(harness.get(&format!("{uri}/e")).await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn a_collector_that_starts_late_catches_up() {
    let harness = Harness::new();
    let owner = owned(&harness, "owner", &[]).await;
    owned(&harness, "child", &[&owner]).await;
    delete(&harness, "owner", "Background").await;
    harness.post(PODS, &pod("p")).await.ok();
    assert!(exists(&harness, "child").await);
    let server = harness.server.clone();
    tokio::spawn(async move { server.run_garbage_collector().await });
    settle().await;
    assert!(!exists(&harness, "child").await);
    assert_eq!(harness.get(&format!("{PODS}/p")).await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn a_circle_of_owners_goes_in_the_foreground_too() {
    let harness = collected();
    let one = owned(&harness, "one", &[]).await;
    let two = owned(&harness, "two", &[&one]).await;
    let three = owned(&harness, "three", &[&two]).await;
    let references = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "three",
        "uid": three["metadata"]["uid"], "blockOwnerDeletion": true,
    }]);
    let patch = json!({ "metadata": { "ownerReferences": references } });
    harness.patch(&format!("{CONFIG_MAPS}/one"), crate::harness::MERGE, &patch).await.ok();
    delete(&harness, "one", "Foreground").await;
    settle().await;
    for name in ["one", "two", "three"] {
        assert!(!exists(&harness, name).await, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_owner_in_another_namespace_or_of_another_name_is_none() {
    let harness = collected();
    let elsewhere = "/api/v1/namespaces/kube-system/configmaps";
    let distant = harness.post(elsewhere, &config_map("distant")).await.ok();
    let mut misnamed = owned(&harness, "near", &[]).await;
    misnamed["metadata"]["name"] = json!("other");
    owned(&harness, "child-of-distant", &[&distant]).await;
    owned(&harness, "child-of-misnamed", &[&misnamed]).await;
    settle().await;
    assert!(!exists(&harness, "child-of-distant").await);
    assert!(!exists(&harness, "child-of-misnamed").await);
    assert!(exists(&harness, "near").await);
}

#[tokio::test(start_paused = true)]
async fn an_owner_goes_when_a_dependent_that_it_waits_for_is_let_go() {
    let harness = collected();
    let owner = owned(&harness, "owner", &[]).await;
    owned(&harness, "child", &[&owner]).await;
    let uri = format!("{CONFIG_MAPS}/child");
    let kept = json!({ "metadata": { "finalizers": ["example.com/wait"] } });
    harness.patch(&uri, crate::harness::MERGE, &kept).await.ok();
    delete(&harness, "owner", "Foreground").await;
    settle().await;
    assert!(exists(&harness, "owner").await);
    let freed = json!({ "metadata": { "ownerReferences": null } });
    harness.patch(&uri, crate::harness::MERGE, &freed).await.ok();
    settle().await;
    assert!(!exists(&harness, "owner").await);
    assert!(exists(&harness, "child").await);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_may_take_for_ever_to_end_does_not_end_the_collector() {
    let harness = collected();
    let owner = owned(&harness, "owner", &[]).await;
    let mut forever = pod("forever");
    forever["spec"]["nodeName"] = json!("n1");
    forever["spec"]["terminationGracePeriodSeconds"] = json!(i64::MAX);
    forever["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"],
    }]);
    harness.post(PODS, &forever).await.ok();
    delete(&harness, "owner", "Background").await;
    settle().await;
    let uri = format!("{PODS}/forever");
    let ending = harness.get(&uri).await.ok();
    assert_eq!(ending["metadata"]["deletionTimestamp"], "9999-12-30T22:00:00Z");
    assert_eq!(ending["metadata"]["deletionGracePeriodSeconds"], json!(i64::MAX));
    // It can be hurried, and others are still collected.
    let sooner = harness.delete(&format!("{uri}?gracePeriodSeconds=10")).await.ok();
    assert_eq!(sooner["metadata"]["deletionGracePeriodSeconds"], json!(10));
    let until = harness.server.inner.now() + jiff::SignedDuration::from_secs(10);
    assert_eq!(sooner["metadata"]["deletionTimestamp"], crate::clock::rfc3339(until));
    let next = owned(&harness, "next", &[]).await;
    owned(&harness, "child", &[&next]).await;
    delete(&harness, "next", "Background").await;
    settle().await;
    assert!(!exists(&harness, "child").await);
}

#[test]
fn a_panic_ends_one_thing_only() {
    assert_eq!(super::guarded("a test", || -> u8 { panic!("a bug") }), None);
    assert_eq!(super::guarded("a test", || 1), Some(1));
}

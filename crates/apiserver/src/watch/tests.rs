use std::time::Duration;

use futures::StreamExt;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::harness::{CONFIG_MAPS, Harness, JSON, MERGE, PODS, TABLE, config_map, pod};
use crate::rest::Body;

/// A watch that is read event by event.
struct Events {
    body: Body,
    rest: Vec<u8>,
}

impl Events {
    async fn start(harness: &Harness, uri: &str) -> Self {
        Self::start_as(harness, uri, JSON).await
    }

    async fn start_as(harness: &Harness, uri: &str, accept: &str) -> Self {
        let response = harness.send("GET", uri, JSON, "", &[("accept", accept)]).await;
        assert_eq!(response.status(), 200, "{uri}");
        Self { body: response.into_body(), rest: Vec::new() }
    }

    /// The next event; `None` at the end of the watch.
    async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).unwrap());
            }
            let frame = self.body.frame().await?.unwrap();
            self.rest.extend_from_slice(&frame.into_data().unwrap());
        }
    }

    /// `TYPE name`, for so many events.
    async fn take(&mut self, count: usize) -> Vec<String> {
        let mut taken = Vec::new();
        for _ in 0..count {
            let event = self.next().await.unwrap();
            taken.push(format!(
                "{} {}",
                text(&event["type"]),
                text(&event["object"]["metadata"]["name"])
            ));
        }
        taken
    }

    /// Whether nothing is there to be read.
    async fn is_silent(&mut self) -> bool {
        // With paused time this passes as soon as everybody waits.
        timeout(Duration::from_millis(1), self.next()).await.is_err()
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

async fn revision(harness: &Harness) -> String {
    text(&harness.get(CONFIG_MAPS).await.ok()["metadata"]["resourceVersion"]).to_owned()
}

async fn relabel(harness: &Harness, name: &str, label: &str) {
    let patch = json!({ "metadata": { "labels": { "name": label } } });
    harness.patch(&format!("{CONFIG_MAPS}/{name}"), MERGE, &patch).await.ok();
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_nowhere_begins_with_what_is_there() {
    let harness = Harness::new();
    harness.config_maps(&["a", "b"]).await;
    for from in ["", "&resourceVersion=0"] {
        let mut events = Events::start(&harness, &format!("{CONFIG_MAPS}?watch=1{from}")).await;
        assert_eq!(events.take(2).await, ["ADDED a", "ADDED b"]);
        assert!(events.is_silent().await);
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_a_version_shows_what_came_after_it() {
    let harness = Harness::new();
    harness.config_maps(&["a"]).await;
    let from = revision(&harness).await;
    harness.config_maps(&["b"]).await;
    let uri = format!("{CONFIG_MAPS}?watch=true&resourceVersion={from}");
    let mut events = Events::start(&harness, &uri).await;
    assert_eq!(events.take(1).await, ["ADDED b"]);
    relabel(&harness, "a", "x").await;
    harness.delete(&format!("{CONFIG_MAPS}/b")).await.ok();
    assert_eq!(events.take(2).await, ["MODIFIED a", "DELETED b"]);
    // The old way to write it.
    let uri = format!("/api/v1/watch/namespaces/default/configmaps?resourceVersion={from}");
    assert_eq!(Events::start(&harness, &uri).await.take(1).await, ["ADDED b"]);
}

#[tokio::test(start_paused = true)]
async fn objects_enter_and_leave_a_selection() {
    let harness = Harness::new();
    harness.config_maps(&["a"]).await;
    let from = revision(&harness).await;
    let uri = format!("{CONFIG_MAPS}?watch=true&resourceVersion={from}&labelSelector=name%3Dx");
    let mut events = Events::start(&harness, &uri).await;
    relabel(&harness, "a", "x").await;
    relabel(&harness, "a", "y").await;
    relabel(&harness, "a", "z").await;
    assert_eq!(events.take(1).await, ["ADDED a"]);
    let left = events.next().await.unwrap();
    assert_eq!(left["type"], "DELETED");
    // It is shown as it was while it was selected, at the version of leaving.
    assert_eq!(left["object"]["metadata"]["labels"]["name"], "x");
    let version: u64 = text(&left["object"]["metadata"]["resourceVersion"]).parse().unwrap();
    assert_eq!(version, from.parse::<u64>().unwrap() + 2);
    assert!(events.is_silent().await);
}

#[tokio::test(start_paused = true)]
async fn a_field_selector_follows_pods_to_their_node() {
    let harness = Harness::new();
    harness.post(PODS, &pod("p")).await.ok();
    let uri = "/api/v1/pods?watch=1&fieldSelector=spec.nodeName%3Dn1";
    let mut events = Events::start(&harness, uri).await;
    let binding = json!({
        "apiVersion": "v1", "kind": "Binding", "metadata": { "name": "p" },
        "target": { "kind": "Node", "name": "n1" },
    });
    harness.post(&format!("{PODS}/p/binding"), &binding).await.ok();
    assert_eq!(events.take(1).await, ["ADDED p"]);
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_ends_with_a_bookmark() {
    let harness = Harness::new();
    harness.config_maps(&["a", "b"]).await;
    let now = revision(&harness).await;
    let uri = format!(
        "{CONFIG_MAPS}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    );
    let mut events = Events::start(&harness, &uri).await;
    assert_eq!(events.take(2).await, ["ADDED a", "ADDED b"]);
    let mark = events.next().await.unwrap();
    assert_eq!(mark["type"], "BOOKMARK");
    assert_eq!(mark["object"]["kind"], "ConfigMap");
    assert_eq!(mark["object"]["metadata"]["resourceVersion"], now);
    assert_eq!(mark["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    harness.config_maps(&["c"]).await;
    assert_eq!(events.take(1).await, ["ADDED c"]);
    for bad in [
        "sendInitialEvents=true",
        "resourceVersionMatch=NotOlderThan",
        "sendInitialEvents=true&resourceVersionMatch=Exact&resourceVersion=1",
    ] {
        let refusal = harness.get(&format!("{CONFIG_MAPS}?watch=1&{bad}")).await.refusal();
        assert!(refusal.starts_with("422 Invalid"), "{bad}: {refusal}");
    }
}

#[tokio::test(start_paused = true)]
async fn bookmarks_come_each_minute_and_at_the_end() {
    let harness = Harness::new();
    let uri = format!("{CONFIG_MAPS}?watch=1&allowWatchBookmarks=true&timeoutSeconds=100");
    let mut events = Events::start(&harness, &uri).await;
    assert!(events.is_silent().await);
    // A change of something else moves the version that the bookmark tells.
    harness.post(PODS, &pod("p")).await.ok();
    let begun = tokio::time::Instant::now();
    let mut versions = Vec::new();
    while let Some(event) = events.next().await {
        assert_eq!(event["type"], "BOOKMARK");
        versions.push(text(&event["object"]["metadata"]["resourceVersion"]).to_owned());
    }
    assert_eq!(versions, [revision(&harness).await, revision(&harness).await]);
    let took = begun.elapsed().as_secs();
    assert!((99..=101).contains(&took), "{took}");
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_when_its_time_is_over() {
    let harness = Harness::new();
    let uri = format!("{CONFIG_MAPS}?watch=1&timeoutSeconds=5");
    let mut events = Events::start(&harness, &uri).await;
    assert_eq!(events.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn versions_that_are_gone_or_to_come_are_refused() {
    let harness = Harness::with(|config| config.watch_window = 2);
    let from = revision(&harness).await;
    harness.config_maps(&["a", "b", "c"]).await;
    let at = |version: &str| format!("{CONFIG_MAPS}?watch=1&resourceVersion={version}");
    let refusal = harness.get(&at(&from)).await.refusal();
    assert!(refusal.starts_with("410 Expired: too old resource version"), "{refusal}");
    let refusal = harness.get(&at("99999")).await;
    assert_eq!(refusal.json()["details"]["causes"][0]["reason"], "ResourceVersionTooLarge");
    assert!(refusal.refusal().starts_with("504 Timeout"));
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_falls_behind_is_told_and_ends() {
    let harness = Harness::with(|config| config.watch_window = 2);
    let from = revision(&harness).await;
    let uri = format!("{CONFIG_MAPS}?watch=1&resourceVersion={from}");
    let mut slow = Events::start(&harness, &uri).await;
    harness.config_maps(&["a", "b", "c", "d"]).await;
    let event = slow.next().await.unwrap();
    assert_eq!((text(&event["type"]), event["object"]["code"].as_u64()), ("ERROR", Some(410)));
    assert_eq!(event["object"]["reason"], "Expired");
    assert_eq!(slow.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_table_watch_describes_its_columns_once() {
    let harness = Harness::new();
    harness.config_maps(&["a", "b"]).await;
    let uri = format!("{CONFIG_MAPS}?watch=1");
    let mut events = Events::start_as(&harness, &uri, TABLE).await;
    let first = events.next().await.unwrap();
    assert_eq!(first["object"]["kind"], "Table");
    assert_eq!(first["object"]["rows"][0]["cells"][0], "a");
    assert!(!first["object"]["columnDefinitions"].as_array().unwrap().is_empty());
    let second = events.next().await.unwrap();
    assert_eq!(second["object"]["rows"][0]["cells"][0], "b");
    assert!(second["object"]["columnDefinitions"].as_array().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_long_beginning_comes_in_pieces() {
    let harness = Harness::new();
    for index in 0..30 {
        let mut map = config_map(&format!("m{index:02}"));
        map["data"]["key"] = json!("x".repeat(10_000));
        harness.post(CONFIG_MAPS, &map).await.ok();
    }
    let response = harness.send("GET", &format!("{CONFIG_MAPS}?watch=1"), JSON, "", &[]).await;
    let mut stream = response.into_body().into_data_stream();
    let (mut pieces, mut lines) = (0, 0);
    while lines < 30 {
        let piece = stream.next().await.unwrap().unwrap();
        pieces += 1;
        lines += piece.iter().filter(|byte| **byte == b'\n').count();
    }
    assert_eq!(lines, 30);
    assert!(pieces > 3, "{pieces}");
}

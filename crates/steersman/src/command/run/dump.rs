//! What the scheduler knows and waits for, in the log when SIGUSR2 comes, and where
//! that differs from what the API server has: as kube-scheduler does with its
//! cache and its queue.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use http::Request;
use kube::Client;
use kube::core::ObjectMeta;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use steersman_runtime::Inspector;
use steersman_runtime::views::{Difference, Limit, Listed, PATIENCE};
use tokio::signal::unix::Signal;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::settled::Settled;

/// The API server's list may take so long.
const LISTING: Duration = Duration::from_secs(60);
/// What differs still after so long is no event on its way.
const SETTLING: Duration = Duration::from_secs(2);
/// Objects in one answer.
const CHUNK: usize = 500;

/// Who looks at what.
pub(super) struct Dumper {
    pub(super) inspector: Inspector,
    pub(super) client: Client,
    pub(super) configs: watch::Receiver<Arc<Settled>>,
    pub(super) asked: Signal,
}

impl Dumper {
    /// Writes all views into the log whenever it is asked to.
    pub(super) async fn run(mut self) -> anyhow::Result<Infallible> {
        loop {
            self.asked.recv().await;
            match self.inspector.dump(PATIENCE, Limit::default()).await {
                Ok(text) => tracing::info!("SIGUSR2: what the scheduler knows\n{text}"),
                Err(error) => {
                    tracing::info!("SIGUSR2: {error}");
                    continue;
                }
            }
            match self.compare().await {
                Ok(difference) if difference.is_empty() => {
                    tracing::info!("SIGUSR2: {difference}");
                }
                Ok(difference) => tracing::warn!("SIGUSR2: {difference}"),
                Err(error) => {
                    tracing::warn!("SIGUSR2: cannot compare with the API server: {error:#}");
                }
            }
        }
    }

    /// What differs for longer than events may be on their way.
    async fn compare(&self) -> anyhow::Result<Difference> {
        let first = self.compare_once().await?;
        if first.is_empty() {
            return Ok(first);
        }
        sleep(SETTLING).await;
        Ok(first.lasting(&self.compare_once().await?))
    }

    async fn compare_once(&self) -> anyhow::Result<Difference> {
        let listing = timeout(LISTING, self.listed());
        let listed = listing.await.context("listing takes too long")??;
        Ok(self.inspector.compare(PATIENCE, listed).await?)
    }

    async fn listed(&self) -> anyhow::Result<Listed> {
        let served: Vec<String> = {
            let settled = self.configs.borrow();
            settled.config.profiles.iter().map(|p| p.scheduler_name.clone()).collect()
        };
        let mut listed = Listed::default();
        self.list("nodes", |node: Node| {
            listed.nodes.extend(node.metadata.name);
        })
        .await?;
        self.list("pods", |pod: Pod| {
            if let Some((uid, place)) = pod.counted(&served) {
                listed.pods.insert(uid, place);
            }
        })
        .await?;
        Ok(listed)
    }

    /// Lists a kind chunk by chunk, of each object only what is looked at.
    async fn list<T: DeserializeOwned>(
        &self,
        kind: &str,
        mut take: impl FnMut(T),
    ) -> anyhow::Result<()> {
        let mut page = String::new();
        loop {
            let request = Request::get(format!("/api/v1/{kind}?limit={CHUNK}{page}"));
            let request = request.body(Vec::new()).context("an address that is none")?;
            let list: List<T> = self.client.request(request).await?;
            list.items.into_iter().for_each(&mut take);
            match list.metadata.r#continue {
                Some(token) if !token.is_empty() => {
                    page = format!("&continue={}", in_query(&token));
                }
                _ => return Ok(()),
            }
        }
    }
}

/// A token as a query's value.
fn in_query(token: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
            char::from(byte).to_string()
        }
        other => format!("%{other:02X}"),
    };
    token.bytes().map(byte).collect()
}

#[derive(Deserialize)]
struct List<T> {
    #[serde(default)]
    metadata: ListMeta,
    items: Vec<T>,
}

#[derive(Default, Deserialize)]
struct ListMeta {
    #[serde(default)]
    r#continue: Option<String>,
}

#[derive(Deserialize)]
struct Node {
    metadata: ObjectMeta,
}

#[derive(Deserialize)]
struct Pod {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: PodSpec,
    #[serde(default)]
    status: PodStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PodSpec {
    node_name: Option<String>,
    scheduler_name: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PodStatus {
    phase: Option<String>,
}

impl Pod {
    /// Its UID, name and node, if the scheduler of these profiles has to know it.
    fn counted(self, served: &[String]) -> Option<(String, (String, Option<String>))> {
        let Self { metadata, spec, status } = self;
        if matches!(status.phase.as_deref(), Some("Succeeded" | "Failed")) {
            return None;
        }
        let node = spec.node_name.filter(|node| !node.is_empty());
        // One that is going is not tried any more.
        let waits = metadata.deletion_timestamp.is_none()
            && spec.scheduler_name.is_some_and(|name| served.contains(&name));
        if node.is_none() && !waits {
            return None;
        }
        let namespace = metadata.namespace.unwrap_or_default();
        let name = format!("{namespace}/{}", metadata.name.unwrap_or_default());
        Some((metadata.uid?, (name, node)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn pods_that_the_scheduler_has_to_know_are_counted() {
        let counted = |metadata: Value, spec: Value, phase: &str| {
            let mut pod = json!({"metadata": {"namespace": "d", "name": "p", "uid": "u"}});
            if let (Value::Object(all), Value::Object(more)) = (&mut pod["metadata"], metadata) {
                all.extend(more);
            }
            pod["spec"] = spec;
            pod["status"] = json!({"phase": phase});
            let pod: Pod = serde_json::from_value(pod).unwrap();
            pod.counted(&["mine".to_owned()])
                .map(|(uid, (name, node))| format!("{uid} {name} {}", node.unwrap_or_default()))
        };
        let ours = json!({"schedulerName": "mine"});
        assert_eq!(counted(json!({}), ours.clone(), "Pending").as_deref(), Some("u d/p "));
        let going = json!({"deletionTimestamp": "2026-01-01T00:00:00Z"});
        assert_eq!(counted(going.clone(), ours, "Pending"), None);
        assert_eq!(counted(json!({}), json!({"schedulerName": "other"}), "Pending"), None);
        let on = json!({"schedulerName": "other", "nodeName": "n"});
        assert_eq!(counted(going, on.clone(), "Running").as_deref(), Some("u d/p n"));
        assert_eq!(counted(json!({}), on, "Succeeded"), None);
    }

    #[test]
    fn tokens_are_escaped() {
        assert_eq!(in_query("aZ9-_.~"), "aZ9-_.~");
        assert_eq!(in_query("a=b&c+/"), "a%3Db%26c%2B%2F");
    }
}

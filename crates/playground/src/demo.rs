//! A small workload for a first look.

use std::time::Duration;

use http::Request;
use kube::Client;
use serde_json::Value;

use crate::cluster::Kind;
use crate::manifests::{Manifest, ManifestError, parse};

const WORKLOAD: &str = include_str!("../demo/workload.yaml");

/// A deployment, one that is spread over zones, a daemon set, a job, and a pod
/// that fits on no node.
///
/// # Errors
/// None: the text is part of the program, and a test reads it.
pub fn workload() -> Result<Vec<Manifest>, ManifestError> {
    parse("the demo", WORKLOAD)
}

/// How often is looked whether the demo has settled.
const GLANCE: Duration = Duration::from_millis(100);

/// Waits until all pods of the demo are there, and each has a node or a reason
/// to have none. That may never be: with a single node, for instance, some pods
/// of the spread deployment wait, but with none at all there is no daemon set.
pub async fn settle(client: &Client) {
    loop {
        match has_settled(client).await {
            Ok(true) => return,
            Ok(false) => {}
            Err(error) => tracing::debug!(%error, "cannot look at the demo"),
        }
        tokio::time::sleep(GLANCE).await;
    }
}

async fn has_settled(client: &Client) -> kube::Result<bool> {
    let list = async |kind: Kind| -> kube::Result<Vec<Value>> {
        let request = Request::get(kind.collection("default")).body(Vec::new());
        let mut list: Value = client.request(request.map_err(kube::Error::HttpError)?).await?;
        Ok(match list["items"].take() {
            Value::Array(items) => items,
            _ => Vec::new(),
        })
    };
    let deployments = list(Kind::Deployment).await?;
    let complete = |d: &Value| d.pointer("/status/replicas") == d.pointer("/spec/replicas");
    let sets = list(Kind::DaemonSet).await?;
    let spread = |s: &Value| {
        let desired = s.pointer("/status/desiredNumberScheduled").and_then(Value::as_i64);
        desired > Some(0)
            && s.pointer("/status/currentNumberScheduled").and_then(Value::as_i64) == desired
    };
    let jobs = list(Kind::Job).await?;
    let begun = |j: &Value| {
        let n = |at: &str| j.pointer(at).and_then(Value::as_i64).unwrap_or_default();
        n("/status/active") + n("/status/succeeded") > 0
    };
    let pods = list(Kind::Pod).await?;
    Ok(deployments.iter().all(complete)
        && sets.iter().all(spread)
        && jobs.iter().all(begun)
        && pods.iter().all(is_decided))
}

fn is_decided(pod: &Value) -> bool {
    let conditions = pod.pointer("/status/conditions").and_then(Value::as_array);
    let refused = conditions.is_some_and(|all| {
        all.iter().any(|c| c["type"] == "PodScheduled" && c["status"] == "False")
    });
    refused || pod.pointer("/spec/nodeName").is_some_and(Value::is_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workload_can_be_read() {
        let kinds: Vec<String> = workload()
            .unwrap()
            .iter()
            .map(|m| m.object["kind"].as_str().unwrap_or_default().to_owned())
            .collect();
        assert_eq!(kinds, ["Deployment", "Deployment", "DaemonSet", "Job", "Pod"]);
    }
}

//! Events about the lock, for people.

use std::time::Duration;

use http::Request;
use jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::lock::Lock;

/// Writes events. They are a courtesy: failures are logged and forgotten.
#[derive(Clone)]
pub(crate) struct Events {
    pub(crate) client: Client,
    /// Who speaks; empty: nobody does.
    pub(crate) component: String,
}

/// How long the API server may take.
const PATIENCE: Duration = Duration::from_secs(5);

impl Events {
    /// Says what `identity` did, on each object of the lock. The future needs
    /// nothing of them any more.
    pub(crate) fn record(
        &self,
        lock: &Lock,
        identity: &str,
        did: &str,
        at: Timestamp,
    ) -> impl Future<Output = ()> + Send + use<> {
        let message = format!("{identity} {did}");
        let event = |object: Value| self.event(&object, &message, at);
        let events: Vec<Value> = match self.component.as_str() {
            "" => Vec::new(),
            _ => lock.cells().map(|cell| event(cell.reference())).collect(),
        };
        let client = self.client.clone();
        async move {
            for event in events {
                match timeout(PATIENCE, post(&client, &event)).await {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => tracing::debug!("cannot write an event: {error}"),
                    Err(_) => tracing::debug!("cannot write an event: the request is too slow"),
                }
            }
        }
    }

    fn event(&self, object: &Value, message: &str, at: Timestamp) -> Value {
        let name = object["name"].as_str().unwrap_or_default();
        let kind = object["kind"].as_str().unwrap_or_default().to_lowercase();
        json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "namespace": object["namespace"],
                // Two objects of one lock have the same name.
                "name": format!("{name}.{kind}.{:x}", at.as_nanosecond()),
            },
            "involvedObject": object,
            "type": "Normal",
            "reason": "LeaderElection",
            "message": message,
            "source": { "component": self.component },
            "reportingComponent": self.component,
            "reportingInstance": "",
            "firstTimestamp": format!("{at:.0}"),
            "lastTimestamp": format!("{at:.0}"),
            "count": 1,
        })
    }
}

async fn post(client: &Client, event: &Value) -> Result<(), kube::Error> {
    let namespace = event["metadata"]["namespace"].as_str().unwrap_or_default();
    let request = Request::post(format!("/api/v1/namespaces/{namespace}/events"))
        .header("content-type", "application/json")
        .body(event.to_string().into_bytes())
        .map_err(kube::Error::HttpError)?;
    client.request::<Value>(request).await.map(drop)
}

//! A service of which one replica works at a time: a counter in a `ConfigMap`
//! that goes up by one a second, whichever replica does it.
//!
//! Start it several times (in a cluster: as a Deployment with several replicas,
//! whose service account may get, create and update `leases` and `configmaps`,
//! and create `events`), and kill, freeze (`kill -STOP`) or cut off whichever
//! works:
//!
//! ```sh
//! cargo run -p steersman-leader-election --example singleton &
//! cargo run -p steersman-leader-election --example singleton &
//! kubectl get configmap singleton -o jsonpath='{.data}' --watch
//! ```
//!
//! Three things make it right. The work runs under the election, so that it is
//! dropped when the lease is lost. Its client has a fence, so that a replica that
//! was frozen between a decision and a write does not write any more. And the
//! program exits when it lost the lease, to begin again from nothing.

use std::sync::Arc;
use std::time::Duration;

use http::Request;
use kube::client::ClientBuilder;
use kube::{Client, Config as KubeConfig};
use serde_json::{Value, json};
use steersman_leader_election::{Config, Election, Leadership, Observer, unique_identity};

const PATH: &str = "/api/v1/namespaces/default/configmaps";

fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt().init();
    tokio::runtime::Runtime::new()?.block_on(Box::pin(serve()))
}

async fn serve() -> anyhow::Result<()> {
    let mut kube = KubeConfig::infer().await?;
    // Tries have a rhythm of their own.
    kube.default_retry = false;
    let identity = unique_identity(&format!("process-{}", std::process::id()));
    let mut config = Config::lease("default", "singleton", identity.clone());
    config.component = "singleton".to_owned();
    let election = Election::new(Client::try_from(kube.clone())?, config)?
        .with_observer(Arc::new(Announcer { identity }));

    // One after the other, and not `Election::run`, to stop cleanly at Ctrl-C.
    let mut term = tokio::select! {
        term = election.acquire() => term,
        _ = tokio::signal::ctrl_c() => return Ok(()),
    };
    let work = count(kube, term.leadership());
    let outcome = tokio::select! {
        // An error if the lease is lost, or if the work fails.
        outcome = term.hold(work) => outcome?,
        _ = tokio::signal::ctrl_c() => Ok(()),
    };
    // Here the work has ended, so another may begin at once.
    term.release().await;
    outcome
}

/// The work: nothing else may write the number meanwhile.
async fn count(kube: KubeConfig, leadership: Leadership) -> anyhow::Result<()> {
    let client = ClientBuilder::try_from(kube)?.with_layer(&leadership.fence()).build();
    let mut number = match read(&client).await {
        Ok(number) => number,
        Err(kube::Error::Api(status)) if status.code == 404 => {
            let metadata = json!({ "name": "singleton" });
            let new = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata });
            send(&client, Request::post(PATH), &new).await?;
            0
        }
        Err(error) => return Err(error.into()),
    };
    loop {
        number += 1;
        let change = json!({ "data": { "number": number.to_string() } });
        let patch = Request::patch(format!("{PATH}/singleton"));
        send(&client, patch, &change).await?;
        tracing::info!(number, "counted");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

async fn read(client: &Client) -> Result<u64, kube::Error> {
    let request = Request::get(format!("{PATH}/singleton")).body(Vec::new());
    let map: Value = client.request(request.map_err(kube::Error::HttpError)?).await?;
    Ok(map["data"]["number"].as_str().and_then(|n| n.parse().ok()).unwrap_or(0))
}

async fn send(
    client: &Client,
    request: http::request::Builder,
    body: &Value,
) -> Result<(), kube::Error> {
    let is_patch = request.method_ref() == Some(&http::Method::PATCH);
    let content = if is_patch { "application/merge-patch+json" } else { "application/json" };
    let request = request.header("content-type", content).body(body.to_string().into_bytes());
    client.request::<Value>(request.map_err(kube::Error::HttpError)?).await.map(drop)
}

/// Says who leads.
struct Announcer {
    identity: String,
}

impl Observer for Announcer {
    fn started_leading(&self) {
        tracing::info!("this replica works now");
    }

    fn stopped_leading(&self) {
        tracing::info!("this replica works no more");
    }

    fn new_leader(&self, identity: &str) {
        if identity != self.identity {
            tracing::info!(leader = identity, "standing by");
        }
    }
}

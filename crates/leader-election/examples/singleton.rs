//! A service of which one replica works at a time: a counter in a `ConfigMap`
//! that goes up by one a second, whichever replica does it.
//!
//! Start it several times (in a cluster: as a Deployment with several replicas,
//! whose service account may get, create and update `leases`, get, create and
//! patch `configmaps`, and create `events`), and kill, freeze (`kill -STOP`) or
//! cut off whichever works:
//!
//! ```sh
//! cargo run -p steersman-leader-election --example singleton &
//! cargo run -p steersman-leader-election --example singleton &
//! ```
//!
//! An argument says how many seconds the lease lasts (15 if there is none): how
//! long the others wait for one that does not answer any more.
//!
//! Ctrl-C and SIGTERM end it in order: another one works at its next look.
//!
//! Three things make it right. The work runs under the election, so that it is
//! dropped when the lease is lost. Its client has a fence, so that a replica that
//! was frozen between a decision and a write does not write any more. And the
//! program exits when it lost the lease, to begin again from nothing.

use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use http::Request;
use kube::client::ClientBuilder;
use kube::{Client, Config as KubeConfig};
use serde_json::{Value, json};
use steersman_leader_election::{Config, Election, Leadership, Observer, Timing, unique_identity};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

const PATH: &str = "/api/v1/namespaces/default/configmaps";

fn main() -> ExitCode {
    // What the library says is for programs whose logs are read later.
    let filter = EnvFilter::new("warn,singleton=info");
    let output = tracing_subscriber::fmt().with_env_filter(filter).with_target(false);
    output.with_ansi(std::io::stdout().is_terminal()).init();
    let name = format!("process-{}", std::process::id());
    match run(&name) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{name} ends: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(name: &str) -> anyhow::Result<()> {
    let seconds = std::env::args().nth(1).map_or(Ok(15), |text| text.parse());
    let seconds = seconds.context("usage: singleton [SECONDS OF THE LEASE]")?;
    tokio::runtime::Runtime::new()?.block_on(Box::pin(serve(name, seconds)))
}

async fn serve(name: &str, seconds: u32) -> anyhow::Result<()> {
    let mut kube = KubeConfig::infer().await?;
    // Tries have a rhythm of their own.
    kube.default_retry = false;
    let identity = unique_identity(name);
    let mut config = Config::lease("default", "singleton", identity.clone());
    let lease = Duration::from_secs(seconds.into());
    // In proportions that have proved themselves.
    config.timing = Timing::new(lease, lease * 2 / 3, lease * 2 / 15)?;
    config.component = "singleton".to_owned();
    let announcer = Announcer { name: name.to_owned(), identity };
    let election =
        Election::new(Client::try_from(kube.clone())?, config)?.with_observer(Arc::new(announcer));

    // SIGTERM is how Kubernetes ends a container; whoever is its first process and
    // does not listen for it is killed 30 seconds later, and the lease runs out.
    let mut terminated = signal(SignalKind::terminate())?;
    let stop = async {
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            _ = terminated.recv() => {}
        }
    };
    tokio::pin!(stop);

    // One after the other, and not `Election::run`, to stop cleanly when asked to.
    let mut term = tokio::select! {
        term = election.acquire() => term,
        () = &mut stop => return Ok(()),
    };
    let work = count(name, kube, term.leadership());
    let outcome = tokio::select! {
        // An error if the lease is lost, or if the work fails.
        outcome = term.hold(work) => outcome?,
        () = &mut stop => Ok(()),
    };
    // Here the work has ended, so another may begin at once.
    term.release().await;
    outcome
}

/// The work: nothing else may write the number meanwhile.
async fn count(name: &str, kube: KubeConfig, leadership: Leadership) -> anyhow::Result<()> {
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
        tracing::info!("{name} counted to {number}");
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

/// Says who works.
struct Announcer {
    name: String,
    identity: String,
}

impl Observer for Announcer {
    fn started_leading(&self) {
        tracing::info!("{} works now", self.name);
    }

    fn stopped_leading(&self) {
        tracing::info!("{} works no more", self.name);
    }

    fn new_leader(&self, identity: &str) {
        if identity != self.identity {
            tracing::info!("{} stands by: {identity} works", self.name);
        }
    }
}

//! The API server and its nodes.

use std::sync::Arc;

use kube::Client;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use steersman_apiserver::tls::Identity;
use steersman_apiserver::{ApiServer, Auth, LocalService, User};
use steersman_metrics::SchedulerMetrics;
use tokio::net::TcpListener;
use tower::Layer;
use tower::layer::layer_fn;
use tower::util::option_layer;

use crate::meter::{Meter, Metered};
use crate::{Failure, process};

/// An API server with nodes, in this process or behind a socket of it.
pub(crate) struct Cluster {
    pub(crate) server: ApiServer,
    pub(crate) meter: Meter,
    /// How to reach it through the socket.
    config: Option<Config>,
    /// Where it serves.
    _threads: Option<Threads>,
}

impl Cluster {
    pub(crate) async fn start(n_nodes: usize, http: bool) -> Result<Self, Failure> {
        let resources = steersman_apikinds::resources();
        let config = steersman_apiserver::Config { resources, ..Default::default() };
        let server = ApiServer::new(config);
        // Namespaces may be there already, which is as good.
        drop(server.load(steersman_apikinds::bootstrap(jiff::Timestamp::now())));
        for loaded in server.load((0..n_nodes).map(node).collect()) {
            loaded.map_err(|error| format!("a node was refused: {error}"))?;
        }
        let (config, threads) = match http {
            true => serve(&server).await.map(|(config, threads)| (Some(config), Some(threads)))?,
            false => (None, None),
        };
        Ok(Self { server, meter: Meter::default(), config, _threads: threads })
    }

    /// A client; its requests are counted under `who`, and for metrics if there
    /// are any.
    pub(crate) fn client(
        &self,
        who: &'static str,
        metrics: Option<&Arc<SchedulerMetrics>>,
    ) -> Result<Client, Failure> {
        let meter = self.meter.clone();
        let measure = option_layer(metrics.map(|metrics| metrics.rest_client("throughput")));
        let Some(config) = &self.config else {
            let service: LocalService = self.server.service();
            let service = measure.layer(Metered::new(service, meter, who));
            return Ok(Client::new(service, "default"));
        };
        let builder = kube::client::ClientBuilder::try_from(config.clone())?;
        let layer = layer_fn(move |inner| Metered::new(inner, meter.clone(), who));
        Ok(builder.with_layer(&layer).with_layer(&measure).build())
    }
}

/// Threads of a runtime that may be dropped anywhere.
struct Threads(Option<tokio::runtime::Runtime>);

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Serves with TLS and a token, on threads that are named `api`.
async fn serve(server: &ApiServer) -> Result<(Config, Threads), Failure> {
    const NAME: &str = "throughput";
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?.into_std()?;
    let address = listener.local_addr()?;
    let identity = Identity::generate(&[], jiff::Timestamp::now())?;
    let (tls, token) = (identity.tls()?, "only-for-this-run");
    let auth = Auth::tokens([(token.to_owned(), User::admin())]);
    let threads = process::runtime("api", 2)?;
    let server = server.clone();
    threads.spawn(async move {
        let Ok(listener) = TcpListener::from_std(listener) else { return };
        let _ = Box::pin(server.serve(listener, tls, auth, std::future::pending())).await;
    });
    let kubeconfig: Kubeconfig = serde_json::from_value(json!({
        "current-context": NAME,
        "clusters": [{"name": NAME, "cluster": {
            "server": format!("https://{address}"),
            "certificate-authority-data": base64(&identity.ca_pem),
        }}],
        "users": [{"name": NAME, "user": {"token": token}}],
        "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": NAME}}],
    }))?;
    let mut config =
        Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    // As in `steersman run`: the scheduler repeats requests itself.
    config.default_retry = false;
    Ok((config, Threads(Some(threads))))
}

fn base64(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(text)
}

fn node(n: usize) -> Value {
    let name = format!("node-{n:06}");
    let amounts = json!({"cpu": "32", "memory": "128Gi", "pods": "110"});
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {
            "kubernetes.io/hostname": name,
            "topology.kubernetes.io/zone": format!("zone-{}", n % 3),
        }},
        "status": {
            "allocatable": amounts,
            "capacity": amounts,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    })
}

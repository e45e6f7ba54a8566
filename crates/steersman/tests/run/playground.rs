//! A playground to schedule on, with what tests put there.

use std::path::Path;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Client;
use kube::api::{Api, PostParams};
use serde_json::json;

use crate::process::{Process, Scratch, connect};

const PATIENCE: Duration = Duration::from_secs(40);

/// An API server in a process of its own, with one node.
pub(crate) struct Playground {
    pub(crate) client: Client,
    /// Where its kubeconfig is.
    pub(crate) kubeconfig: String,
    _process: Process,
}

impl Playground {
    pub(crate) async fn start(scratch: &Scratch) -> Self {
        let kubeconfig = scratch.path("kubeconfig");
        let log = scratch.0.join("playground.log");
        let process = Process::playground(&kubeconfig, &log);
        let mut client = None;
        wait_for("API server", &log, async || {
            client = connect(Path::new(&kubeconfig)).await;
            client.is_some()
        })
        .await;
        let client = client.expect("it is connected");
        create_node(&client).await;
        Self { client, kubeconfig, _process: process }
    }

    pub(crate) async fn create_pod(&self, name: &str, scheduler: &str) {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name },
            "spec": {
                "schedulerName": scheduler,
                "containers": [{ "name": "main", "image": "busybox" }],
            },
        });
        let pod: Pod = serde_json::from_value(pod).expect("the pod is valid");
        self.pods().create(&PostParams::default(), &pod).await.expect("the pod is created");
    }

    pub(crate) async fn is_bound(&self, name: &str) -> bool {
        let pod = self.pods().get(name).await.expect("the pod is there");
        pod.spec.and_then(|spec| spec.node_name).is_some()
    }

    fn pods(&self) -> Api<Pod> {
        Api::default_namespaced(self.client.clone())
    }
}

async fn create_node(client: &Client) {
    let amounts = json!({ "cpu": "64", "memory": "64Gi", "pods": "110" });
    let node = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": { "name": "n" },
        "status": { "capacity": amounts, "allocatable": amounts },
    });
    let node: Node = serde_json::from_value(node).expect("the node is valid");
    let nodes: Api<Node> = Api::all(client.clone());
    nodes.create(&PostParams::default(), &node).await.expect("the node is created");
}

/// Waits until something is so.
pub(crate) async fn wait_for(what: &str, log: &Path, mut check: impl AsyncFnMut() -> bool) {
    #[expect(clippy::disallowed_methods, reason = "the test waits for another process")]
    let start = Instant::now();
    while !check().await {
        let log = std::fs::read_to_string(log).unwrap_or_default();
        assert!(start.elapsed() < PATIENCE, "no {what} in time; log:\n{log}");
        // Real time: another process is at work.
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

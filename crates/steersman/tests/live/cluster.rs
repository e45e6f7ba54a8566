//! Nodes and pods for the tests, and what must hold of them in the end.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Client;
use kube::api::{Api, ListParams, PostParams, WatchEvent, WatchParams};
use parking_lot::Mutex;
use serde_json::json;

/// CPU of a node, in milli-CPU.
const NODE_CPU: u64 = 4_000;
/// CPU of a pod, in milli-CPU.
const POD_CPU: u64 = 100;
const PODS_PER_NODE: usize = (NODE_CPU / POD_CPU) as usize;

/// Creates nodes with room for `pods` pods and not one more.
pub(crate) async fn create_nodes(client: &Client, pods: usize) {
    let nodes: Api<Node> = Api::all(client.clone());
    for n in 0..pods.div_ceil(PODS_PER_NODE) {
        let amounts = json!({ "cpu": format!("{NODE_CPU}m"), "memory": "64Gi", "pods": "110" });
        let node = json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": { "name": format!("n{n}") },
            "status": { "capacity": amounts, "allocatable": amounts },
        });
        let node = serde_json::from_value(node).expect("the node is valid");
        nodes.create(&PostParams::default(), &node).await.expect("the node is created");
    }
}

/// Creates pods `pn` for all `n` of the range.
pub(crate) async fn create_pods(client: &Client, range: std::ops::Range<usize>) {
    create(client, "default-scheduler", range.map(|n| (format!("p{n}"), POD_CPU)).collect()).await;
}

/// Creates pods `SCHEDULER-n`, which only that scheduler may give a node to.
pub(crate) async fn create_pods_for(
    client: &Client,
    scheduler: &str,
    range: std::ops::Range<usize>,
) {
    let pods = range.map(|n| (format!("{scheduler}-{n}"), POD_CPU)).collect();
    create(client, scheduler, pods).await;
}

/// Creates pods that fit on no node.
pub(crate) async fn create_misfits(client: &Client, n: usize) {
    create(
        client,
        "default-scheduler",
        (0..n).map(|n| (format!("misfit{n}"), NODE_CPU + 1)).collect(),
    )
    .await;
}

async fn create(client: &Client, scheduler: &str, pods: Vec<(String, u64)>) {
    let api: &Api<Pod> = &Api::default_namespaced(client.clone());
    futures::stream::iter(pods)
        .for_each_concurrent(8, async |(name, cpu)| {
            let requests = json!({ "cpu": format!("{cpu}m") });
            let container =
                json!({ "name": "main", "image": "busybox", "resources": { "requests": requests } });
            let pod = json!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": { "name": name },
                "spec": { "schedulerName": scheduler, "containers": [container] },
            });
            let pod = serde_json::from_value(pod).expect("the pod is valid");
            api.create(&PostParams::default(), &pod).await.expect("the pod is created");
        })
        .await;
}

/// A node that a pod was seen on, and the resource version that said so first.
#[derive(Clone, Debug)]
pub(crate) struct Placement {
    pub(crate) node: String,
    pub(crate) revision: u64,
}

/// Watches all pods from before the first, and remembers each node they get.
pub(crate) struct Audit {
    /// Every node that a pod was ever seen on, in order, by the pod's name.
    nodes: Mutex<BTreeMap<String, Vec<Placement>>>,
    client: Client,
}

impl Audit {
    pub(crate) fn new(client: &Client) -> Self {
        Self { nodes: Mutex::default(), client: client.clone() }
    }

    /// Watches until `done` pods have a node.
    pub(crate) async fn watch(&self, done: usize) {
        let api: Api<Pod> = Api::default_namespaced(self.client.clone());
        let mut bound = 0;
        let mut version = "0".to_owned();
        while bound < done {
            let parameters = WatchParams::default().timeout(60);
            let stream = api.watch(&parameters, &version).await.expect("the watch starts");
            let mut stream = stream.boxed();
            while let Some(event) = stream.try_next().await.expect("the watch goes on") {
                let pod = match event {
                    WatchEvent::Added(pod) | WatchEvent::Modified(pod) => pod,
                    WatchEvent::Deleted(pod) => panic!("{:?} was deleted", pod.metadata.name),
                    WatchEvent::Bookmark(bookmark) => {
                        version.clone_from(&bookmark.metadata.resource_version);
                        continue;
                    }
                    WatchEvent::Error(error) => panic!("the watch failed: {error:?}"),
                };
                version = pod.metadata.resource_version.clone().expect("objects have a version");
                bound += usize::from(self.note(&pod));
                if bound == done {
                    return;
                }
            }
        }
    }

    /// Whether the pod has got its first node with this version.
    fn note(&self, pod: &Pod) -> bool {
        let name = pod.metadata.name.clone().expect("pods have a name");
        let mut all = self.nodes.lock();
        let nodes = all.entry(name).or_default();
        let Some(node) = pod.spec.as_ref().and_then(|spec| spec.node_name.clone()) else {
            assert!(nodes.is_empty(), "a pod has lost its node");
            return false;
        };
        if nodes.last().is_some_and(|last| last.node == node) {
            return false;
        }
        let revision = pod.metadata.resource_version.as_ref().and_then(|text| text.parse().ok());
        nodes.push(Placement { node, revision: revision.expect("versions are numbers here") });
        nodes.len() == 1
    }

    /// How many pods have a node.
    pub(crate) fn n_bound(&self) -> usize {
        self.nodes.lock().values().filter(|nodes| !nodes.is_empty()).count()
    }

    /// The first node of each pod that has one, by the pod's name.
    pub(crate) fn placements(&self) -> BTreeMap<String, Placement> {
        let first = |(pod, nodes): (&String, &Vec<Placement>)| {
            nodes.first().map(|placement| (pod.clone(), placement.clone()))
        };
        self.nodes.lock().iter().filter_map(first).collect()
    }

    /// Checks the four promises: `n_pods` fit and are bound, once each; no node
    /// is over-committed; `n_misfits` are still there and say why they wait.
    pub(crate) async fn check(&self, n_pods: usize, n_misfits: usize) {
        for (pod, nodes) in self.nodes.lock().iter() {
            assert!(nodes.len() <= 1, "{pod} was on several nodes: {nodes:?}");
        }
        let api: Api<Pod> = Api::default_namespaced(self.client.clone());
        let pods = api.list(&ListParams::default()).await.expect("the pods are listed").items;
        assert_eq!(pods.len(), n_pods + n_misfits, "pods were lost");
        let mut used: BTreeMap<String, usize> = BTreeMap::new();
        for pod in &pods {
            let name = pod.metadata.name.as_deref().expect("pods have a name");
            let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
            match node {
                Some(node) => *used.entry(node).or_default() += 1,
                None => assert!(name.starts_with("misfit"), "{name} fits and has no node"),
            }
        }
        for (node, pods) in used {
            assert!(pods <= PODS_PER_NODE, "{node} has {pods} pods");
        }
        self.check_misfits(n_misfits).await;
    }

    async fn check_misfits(&self, n_misfits: usize) {
        let api: Api<Pod> = Api::default_namespaced(self.client.clone());
        let says_why = |pod: &Pod| {
            let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
            conditions.into_iter().flatten().any(|condition| {
                condition.type_ == "PodScheduled"
                    && condition.reason.as_deref() == Some("Unschedulable")
            })
        };
        for n in 0..n_misfits {
            let name = format!("misfit{n}");
            within(Duration::from_secs(60), &format!("{name} to say why it waits"), async || {
                says_why(&api.get(&name).await.expect("the pod is there"))
            })
            .await;
        }
    }
}

/// Waits until something is true.
pub(crate) async fn within(limit: Duration, what: &str, mut is_true: impl AsyncFnMut() -> bool) {
    let wait = async {
        let mut ticks = tokio::time::interval(Duration::from_millis(50));
        while !is_true().await {
            ticks.tick().await;
        }
    };
    let result = tokio::time::timeout(limit, wait).await;
    assert!(result.is_ok(), "waited {} s for {what}", limit.as_secs());
}

//! GPUs: a resource that only this extender counts. The scheduler is told to
//! leave it alone (`ignoredByScheduler`) and to send only pods that ask for it
//! (`managedResources`).

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{ListParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use steersman_extender::v1::{
    ExtenderArgs, ExtenderBindingArgs, ExtenderBindingResult, ExtenderFilterResult,
    ExtenderPreemptionArgs, ExtenderPreemptionResult, MetaPod, MetaVictims, NodeList,
};
use tokio::sync::Mutex;

use crate::nodes::name;

/// What pods ask for.
pub const RESOURCE: &str = "example.com/gpu";
/// How many a node has.
pub const ANNOTATION: &str = "example.com/gpus";

/// Knows who has which GPU.
#[derive(Clone)]
pub struct Gpus {
    cluster: Client,
    /// Held while a pod is bound: two pods must not get the last GPU.
    binding: Arc<Mutex<()>>,
}

impl Gpus {
    /// GPUs of this cluster.
    pub fn new(cluster: Client) -> Self {
        Self { cluster, binding: Arc::default() }
    }

    /// How many GPUs are taken, by node.
    async fn taken(&self) -> kube::Result<BTreeMap<String, u64>> {
        let pods = Api::<Pod>::all(self.cluster.clone()).list(&ListParams::default()).await?;
        let mut taken = BTreeMap::new();
        for pod in pods.items.iter().filter(|pod| !has_ended(pod)) {
            if let Some(node) = pod.spec.as_ref().and_then(|spec| spec.node_name.clone()) {
                *taken.entry(node).or_default() += wanted(pod);
            }
        }
        Ok(taken)
    }

    /// Binds the pod if its GPUs are still there.
    async fn bind(&self, asked: &ExtenderBindingArgs) -> Result<(), String> {
        let ExtenderBindingArgs { pod_name, pod_namespace, pod_uid, node } = asked;
        let _guard = self.binding.lock().await;
        let pods = Api::<Pod>::namespaced(self.cluster.clone(), pod_namespace);
        let pod = pods.get(pod_name).await.map_err(|error| error.to_string())?;
        let on = Api::<Node>::all(self.cluster.clone()).get(node).await;
        let on = on.map_err(|error| error.to_string())?;
        let taken = self.taken().await.map_err(|error| error.to_string())?;
        let free = capacity(&on).saturating_sub(taken.get(node).copied().unwrap_or_default());
        if wanted(&pod) > free {
            return Err(format!("node {node} has {free} GPUs left, {pod_name} wants more"));
        }
        // The UID keeps a later pod of the same name from being bound.
        let binding = json!({
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"namespace": pod_namespace, "name": pod_name, "uid": pod_uid},
            "target": {"kind": "Node", "name": node},
        });
        let bound: kube::Result<Value> =
            pods.create_subresource("binding", pod_name, &PostParams::default(), &binding).await;
        bound.map(drop).map_err(|error| error.to_string())
    }
}

/// The verb filter. A shortage is unresolvable: the scheduler, which does not
/// count GPUs, could not choose pods to evict.
pub async fn filter(
    State(gpus): State<Gpus>,
    Json(asked): Json<ExtenderArgs>,
) -> Json<ExtenderFilterResult> {
    let taken = match gpus.taken().await {
        Ok(taken) => taken,
        Err(error) => {
            let error = format!("cannot count GPUs: {error}");
            return Json(ExtenderFilterResult { error, ..ExtenderFilterResult::default() });
        }
    };
    let mut answer = ExtenderFilterResult::default();
    let mut passed = NodeList::default();
    for node in asked.nodes.unwrap_or_default().items {
        let used = taken.get(&name(&node)).copied().unwrap_or_default();
        if wanted(&asked.pod) <= capacity(&node).saturating_sub(used) {
            passed.items.push(node);
        } else {
            let reason = format!("Insufficient {RESOURCE}");
            answer.failed_and_unresolvable_nodes.insert(name(&node), reason);
        }
    }
    answer.nodes = Some(passed);
    Json(answer)
}

/// The verb preempt: the scheduler has found pods to evict for want of CPU or
/// memory; only nodes that have the GPUs as well are worth it.
pub async fn preempt(
    State(gpus): State<Gpus>,
    Json(asked): Json<ExtenderPreemptionArgs>,
) -> Json<ExtenderPreemptionResult> {
    let (taken, nodes) = match gpus.taken().await {
        Ok(taken) => (taken, Api::<Node>::all(gpus.cluster.clone())),
        // This verb has no way to tell of an error: nobody is evicted.
        Err(_) => return Json(ExtenderPreemptionResult::default()),
    };
    let mut answer = ExtenderPreemptionResult::default();
    for (node, victims) in asked.node_name_to_victims.unwrap_or_default() {
        let has = nodes.get(&node).await.map_or(0, |node| capacity(&node));
        let given_back: u64 = victims.pods.iter().map(wanted).sum();
        let used = taken.get(&node).copied().unwrap_or_default().saturating_sub(given_back);
        if wanted(&asked.pod) <= has.saturating_sub(used) {
            let uids = victims.pods.into_iter().filter_map(|pod| pod.metadata.uid);
            let pods = uids.map(|uid| MetaPod { uid }).collect();
            let num_pdb_violations = victims.num_pdb_violations;
            answer.node_name_to_meta_victims.insert(node, MetaVictims { pods, num_pdb_violations });
        }
    }
    Json(answer)
}

/// The verb bind: this extender binds its pods itself.
pub async fn bind(
    State(gpus): State<Gpus>,
    Json(asked): Json<ExtenderBindingArgs>,
) -> Json<ExtenderBindingResult> {
    let error = gpus.bind(&asked).await.err().unwrap_or_default();
    if error.is_empty() {
        tracing::info!(pod = asked.pod_name, node = asked.node, "bound");
    } else {
        tracing::warn!(pod = asked.pod_name, node = asked.node, error, "not bound");
    }
    Json(ExtenderBindingResult { error })
}

fn capacity(node: &Node) -> u64 {
    let said = node.metadata.annotations.as_ref().and_then(|all| all.get(ANNOTATION));
    said.and_then(|text| text.parse().ok()).unwrap_or_default()
}

/// How many GPUs the containers of a pod ask for.
fn wanted(pod: &Pod) -> u64 {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let requests =
        containers.filter_map(|container| container.resources.as_ref()?.requests.as_ref());
    let amounts = requests.filter_map(|requests| requests.get(RESOURCE)?.0.parse::<u64>().ok());
    amounts.sum()
}

fn has_ended(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

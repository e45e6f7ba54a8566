//! The whole playground, end to end, with the scheduler.

use std::fmt::Debug;
use std::pin::pin;
use std::time::Duration;

use futures::TryStreamExt;
use jiff::SignedDuration;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Event, Node, PersistentVolumeClaim, Pod};
use kube::api::{Api, DeleteParams, Patch, PatchParams, WatchParams};
use kube::core::WatchEvent;
use serde::de::DeserializeOwned;
use serde_json::json;
use steersman_runtime::Deaf;

use super::*;
use crate::manifests::parse;
use crate::{demo, node};

mod access;
mod storage;

/// Nothing here takes a tenth of it.
const PATIENCE: Duration = Duration::from_secs(60);

async fn playground(n_nodes: usize) -> Running {
    Box::pin(start(config(n_nodes))).await.unwrap()
}

fn config(n_nodes: usize) -> Config {
    let registry = steersman_plugins::table::in_tree();
    let config = steersman_config::Config::default_for(&registry).unwrap();
    let settings = Settings {
        start_delay: SignedDuration::ZERO,
        stop_delay: SignedDuration::ZERO,
        run_time: SignedDuration::ZERO,
        ..Settings::default()
    };
    let scheduler =
        SchedulerConfig { config, registry, extenders: Vec::new(), listener: Box::new(Deaf) };
    Config { n_nodes, settings, scheduler: Some(scheduler), ..Config::default() }
}

impl Running {
    fn apply(&self, text: &str) {
        self.add(parse("test", text).unwrap()).unwrap();
    }

    fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), "default")
    }
}

/// Watches objects until one satisfies the condition, and returns it.
async fn until<K>(api: &Api<K>, what: &str, is_it: impl Fn(&K) -> bool) -> K
where
    K: kube::Resource + Clone + Debug + DeserializeOwned,
{
    let watched = async {
        let events = api.watch(&WatchParams::default(), "0").await.unwrap();
        let mut events = pin!(events);
        while let Some(event) = events.try_next().await.unwrap() {
            if let WatchEvent::Added(object) | WatchEvent::Modified(object) = event
                && is_it(&object)
            {
                return object;
            }
        }
        panic!("the watch ended before {what}");
    };
    match tokio::time::timeout(PATIENCE, Box::pin(watched)).await {
        Ok(object) => object,
        Err(_) => panic!("waited in vain for {what}; the cluster: {:#?}", shown(api).await),
    }
}

/// Waits until no object is like this any more.
async fn gone<K>(api: &Api<K>, what: &str, is_it: impl Fn(&K) -> bool)
where
    K: kube::Resource + Clone + Debug + DeserializeOwned,
{
    let watched = async {
        let list = api.list(&Default::default()).await.unwrap();
        let mut n_left = list.iter().filter(|object| is_it(object)).count();
        let version = list.metadata.resource_version.unwrap_or_default();
        let events = api.watch(&WatchParams::default(), &version).await.unwrap();
        let mut events = pin!(events);
        while n_left > 0 {
            if let Some(WatchEvent::Deleted(object)) = events.try_next().await.unwrap()
                && is_it(&object)
            {
                n_left -= 1;
            }
        }
    };
    tokio::time::timeout(PATIENCE, Box::pin(watched)).await.unwrap_or_else(|_| panic!("{what}"));
}

async fn shown<K: Clone + Debug + DeserializeOwned>(api: &Api<K>) -> Vec<K> {
    api.list(&Default::default()).await.map(|list| list.items).unwrap_or_default()
}

fn names(pods: &[Pod]) -> Vec<String> {
    pods.iter().map(|pod| pod.metadata.name.clone().unwrap_or_default()).collect()
}

fn deployment(replicas: i32, image: &str) -> String {
    format!(
        "
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec: {{containers: [{{name: c, image: '{image}'}}]}}
"
    )
}

fn complete(deployment: &Deployment, replicas: i32) -> bool {
    let status = deployment.status.clone().unwrap_or_default();
    status.observed_generation == deployment.metadata.generation
        && [status.replicas, status.updated_replicas, status.available_replicas]
            .iter()
            .all(|n| n.unwrap_or_default() == replicas)
        && status
            .conditions
            .iter()
            .flatten()
            .any(|c| c.reason.as_deref() == Some("NewReplicaSetAvailable"))
}

#[tokio::test(flavor = "multi_thread")]
async fn deployment_rolls_out_over_nodes_and_rolls_on() {
    let running = playground(20).await;
    running.apply(&deployment(50, "a:1"));
    let api: Api<Deployment> = running.api();
    until(&api, "50 pods", |d| complete(d, 50)).await;
    let pods = running.api::<Pod>().list(&Default::default()).await.unwrap().items;
    assert_eq!(pods.len(), 50, "{:?}", names(&pods));
    let mut addresses: Vec<_> =
        pods.iter().map(|p| p.status.as_ref().unwrap().pod_ip.clone().unwrap()).collect();
    addresses.sort();
    addresses.dedup();
    assert_eq!(addresses.len(), 50, "every pod has an address of its own");

    let image =
        json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "a:2"}]}}}});
    api.patch("web", &PatchParams::default(), &Patch::Strategic(&image)).await.unwrap();
    let rolled =
        until(&api, "the second revision", |d| complete(d, 50) && d.metadata.generation == Some(2))
            .await;
    let revision = &rolled.metadata.annotations.unwrap()["deployment.kubernetes.io/revision"];
    assert_eq!(revision, "2");
    api.delete("web", &DeleteParams::default()).await.unwrap();
    Box::pin(running.shutdown()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn demo_comes_to_its_end_but_for_the_pod_that_fits_nowhere() {
    let running = playground(6).await;
    running.add(demo::workload().unwrap()).unwrap();
    let deployments: Api<Deployment> = running.api();
    for (name, n) in [("web", 6), ("spread", 3)] {
        let is_it = |d: &Deployment| d.metadata.name.as_deref() == Some(name) && complete(d, n);
        until(&deployments, name, is_it).await;
    }
    let ready = |d: &DaemonSet| d.status.as_ref().is_some_and(|s| s.number_ready == 6);
    until(&running.api::<DaemonSet>(), "the daemon set", ready).await;
    // Its pods run for three seconds each, two at a time.
    let done = |j: &Job| j.status.as_ref().is_some_and(|s| s.completion_time.is_some());
    let job = until(&running.api::<Job>(), "the job", done).await;
    assert_eq!(job.status.unwrap().succeeded, Some(3));
    let pod = until(&running.api::<Pod>(), "the pod that fits nowhere", |pod| {
        let conditions = pod.status.iter().flat_map(|s| s.conditions.iter().flatten());
        pod.metadata.name.as_deref() == Some("too-big")
            && conditions.clone().any(|c| c.reason.as_deref() == Some("Unschedulable"))
    })
    .await;
    let conditions = pod.status.unwrap().conditions.unwrap();
    let message = conditions[0].message.clone().unwrap();
    assert!(message.starts_with("0/6 nodes are available: 6 Insufficient cpu."), "{message}");
    Box::pin(running.shutdown()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn node_that_is_made_not_ready_is_tainted_and_loses_its_pods() {
    let running = playground(1).await;
    running.apply(
        "
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  tolerations:
  - {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 0}
  - {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 0}
  containers: [{name: c, image: i}]
",
    );
    let pods: Api<Pod> = running.api();
    let runs = |pod: &Pod| crate::workload::is_ready(pod);
    until(&pods, "a running pod", runs).await;
    let nodes: Api<Node> = Api::all(running.client.clone());
    let not_ready = json!({"metadata": {"annotations": {node::READY_ANNOTATION: "false"}}});
    let deleted = gone(&pods, "the pod is evicted", |_| true);
    let annotate = async {
        nodes.patch("node-1", &PatchParams::default(), &Patch::Merge(&not_ready)).await.unwrap();
    };
    tokio::join!(Box::pin(deleted), Box::pin(annotate));
    let tainted = until(&nodes, "the taints", |node| {
        node.spec.as_ref().is_some_and(|s| s.taints.as_ref().is_some_and(|t| t.len() == 2))
    })
    .await;
    let taints = tainted.spec.unwrap().taints.unwrap();
    let taints: Vec<String> = taints.iter().map(|t| format!("{}:{}", t.key, t.effect)).collect();
    assert_eq!(
        taints,
        ["node.kubernetes.io/not-ready:NoSchedule", "node.kubernetes.io/not-ready:NoExecute"]
    );
    Box::pin(running.shutdown()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stateful_set_makes_numbered_pods() {
    let running = playground(3).await;
    running.apply(
        "
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 3
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: c, image: i}]}
",
    );
    let ready = |s: &StatefulSet| {
        s.status
            .as_ref()
            .is_some_and(|s| s.ready_replicas == Some(3) && s.current_revision == s.update_revision)
    };
    until(&running.api::<StatefulSet>(), "the stateful set", ready).await;
    let pods = running.api::<Pod>().list(&Default::default()).await.unwrap().items;
    assert_eq!(names(&pods), ["db-0", "db-1", "db-2"]);
    Box::pin(running.shutdown()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_saved_can_be_loaded_again() {
    let running = playground(2).await;
    running.apply(&deployment(3, "a:1"));
    until(&running.api::<Deployment>(), "3 pods", |d| complete(d, 3)).await;
    let text = crate::manifests::write(&running.dump()).unwrap();
    Box::pin(running.shutdown()).await;

    let manifests = parse("saved", &text).unwrap();
    let again = Box::pin(start(Config { manifests, ..Config::default() })).await.unwrap();
    let pods: Api<Pod> = again.api();
    until(&pods, "a pod that ran before", crate::workload::is_ready).await;
    let listed = pods.list(&Default::default()).await.unwrap().items;
    assert_eq!(listed.len(), 3);
    Box::pin(again.shutdown()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kubeconfig_leads_to_the_server_and_its_token_opens_it() {
    let running = playground(1).await;
    let kubeconfig = kube::config::Kubeconfig::from_yaml(&running.kubeconfig).unwrap();
    let options = kube::config::KubeConfigOptions::default();
    let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
    let client = Client::try_from(config.clone()).unwrap();
    let nodes = Api::<Node>::all(client).list(&Default::default()).await.unwrap();
    assert_eq!(nodes.items.len(), 1);
    config.auth_info = kube::config::AuthInfo::default();
    let stranger = Client::try_from(config).unwrap();
    let refused = Api::<Node>::all(stranger).list(&Default::default()).await.unwrap_err();
    assert!(matches!(&refused, kube::Error::Api(status) if status.code == 401), "{refused}");
    Box::pin(running.shutdown()).await;
}

#[tokio::test]
async fn refused_objects_are_named() {
    let manifests = parse("f.yaml", "{apiVersion: v1, kind: Pod, metadata: {name: p}}").unwrap();
    let error = Box::pin(start(Config { manifests, ..Config::default() })).await.err().unwrap();
    let message = error.to_string();
    assert!(message.starts_with("f.yaml: document 1: "), "{message}");
}

#[tokio::test]
async fn refused_pods_are_tried_one_at_a_time_and_the_deployment_says_why() {
    let running = playground(2).await;
    running.apply(
        &deployment(50, "1")
            .replace("spec: {containers", "spec: {priorityClassName: high, containers"),
    );
    let deployments: Api<Deployment> = running.api();
    let failure = |d: &Deployment| {
        let mut conditions = d.status.clone().unwrap_or_default().conditions.unwrap_or_default();
        conditions.retain(|c| c.type_ == "ReplicaFailure");
        conditions.pop()
    };
    let failing = until(&deployments, "a failure", |d| failure(d).is_some()).await;
    let failure_message = failure(&failing).unwrap().message.unwrap();
    assert!(
        failure_message.ends_with("no PriorityClass with name high was found"),
        "{failure_message}"
    );
    running.apply(
        "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 5}",
    );
    let done = until(&deployments, "the rollout", |d| complete(d, 50)).await;
    let done = match failure(&done) {
        None => done,
        Some(_) => until(&deployments, "its end", |d| failure(d).is_none()).await,
    };
    assert!(complete(&done, 50));
    let events: Api<Event> = running.api();
    let events = shown(&events).await;
    let refused = events.iter().filter(|e| e.reason.as_deref() == Some("FailedCreate"));
    let n: i32 = refused.map(|event| event.count.unwrap_or(1)).sum();
    assert!((1..30).contains(&n), "{n} attempts for 50 pods");
    running.shutdown().await;
}

#[tokio::test]
async fn claims_of_a_stateful_set_go_with_their_pods_and_come_back() {
    let running = playground(2).await;
    running.apply(
        "
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 2
  serviceName: db
  persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete, whenScaled: Delete}
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: c, image: i}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
",
    );
    let sets: Api<StatefulSet> = running.api();
    let claims: Api<PersistentVolumeClaim> = running.api();
    let ready = |n: i32| {
        move |set: &StatefulSet| {
            let status = set.status.clone().unwrap_or_default();
            status.ready_replicas == Some(n) && status.replicas == n
        }
    };
    let scale = async |n: i32| {
        let patch = Patch::Merge(json!({ "spec": { "replicas": n } }));
        sets.patch("db", &PatchParams::default(), &patch).await.unwrap();
    };
    until(&sets, "two pods", ready(2)).await;
    let first = claims.get("data-db-1").await.unwrap().metadata.uid;
    scale(1).await;
    let is_first = |claim: &PersistentVolumeClaim| claim.metadata.uid == first;
    gone(&claims, "the claim goes with its pod", is_first).await;
    scale(2).await;
    // The set's status may still be the one from before it was scaled down.
    let comes_back = |claim: &PersistentVolumeClaim| {
        claim.metadata.name.as_deref() == Some("data-db-1") && !is_first(claim)
    };
    until(&claims, "another claim", comes_back).await;
    until(&sets, "two pods again", ready(2)).await;
    sets.delete("db", &DeleteParams::default()).await.unwrap();
    let is_other = |claim: &PersistentVolumeClaim| !is_first(claim);
    gone(&claims, "claims go with the set", is_other).await;
    running.shutdown().await;
}

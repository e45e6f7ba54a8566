//! Two schedulers with leader election and pods of their own.
//!
//! What separates schedulers is the lock, and not the names of their profiles:
//! with a lock for each, both work at the same time; with one for both, the first
//! that holds it works, and the other one stands by for as long as that lives.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{Api, ListParams};
use steersman_apiserver::{ApiServer, Config};

use crate::cluster::{create_nodes, create_pods_for, within};
use crate::process::Scratch;
use crate::replica::{Replica, TIMING};

const N_PODS: usize = 10;
const PATIENCE: Duration = Duration::from_secs(30);

struct World {
    server: ApiServer,
    client: Client,
    scratch: Scratch,
}

impl World {
    async fn new(name: &str) -> Self {
        let resources = steersman_apikinds::resources();
        let server = ApiServer::new(Config { resources, ..Config::default() });
        let client = Client::new(server.service(), "default");
        create_nodes(&client, 100).await;
        Self { server, client, scratch: Scratch::new(name) }
    }

    /// A scheduler whose only profile has its name.
    async fn scheduler(&self, name: &str, lock: &str) -> Replica {
        let text = format!(
            "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n\
             profiles: [{{schedulerName: {name}}}]\n"
        );
        let config = format!("--config={}", self.scratch.file(&format!("{name}.yaml"), &text));
        let lock = format!("--leader-elect-resource-name={lock}");
        let flags = [&TIMING[..], &[&config, &lock]].concat();
        Replica::start(&self.server, &self.scratch, name, (1, 0), &flags).await
    }

    /// The pods that have a node.
    async fn bound(&self) -> BTreeSet<String> {
        let pods: Api<Pod> = Api::default_namespaced(self.client.clone());
        let pods = pods.list(&ListParams::default()).await.expect("the pods are listed");
        let is_bound = |pod: &Pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
        pods.into_iter().filter(is_bound).filter_map(|pod| pod.metadata.name).collect()
    }

    /// Waits until exactly these schedulers' pods have a node.
    async fn wait_for(&self, schedulers: &[&str], n_pods: usize) {
        let expected = schedulers.iter().flat_map(|s| (0..n_pods).map(move |n| format!("{s}-{n}")));
        let expected: BTreeSet<String> = expected.collect();
        let what = format!("the pods of {schedulers:?} to be bound");
        within(PATIENCE, &what, async || self.bound().await == expected).await;
    }
}

/// How many pods came to a node through this one.
fn n_bound_by(replica: &Replica) -> usize {
    replica.proxy.counts().bound.len()
}

/// Whom this one named in its lock.
fn holder(replica: &Replica) -> Option<String> {
    replica.proxy.counts().leases.pop().map(|write| write.holder)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn schedulers_with_locks_of_their_own_work_at_the_same_time() {
    let world = World::new("two-locks").await;
    let one = world.scheduler("one", "kube-scheduler").await;
    let other = world.scheduler("other", "other-scheduler").await;
    create_pods_for(&world.client, "one", 0..N_PODS).await;
    create_pods_for(&world.client, "other", 0..N_PODS).await;
    world.wait_for(&["one", "other"], N_PODS).await;
    assert_eq!((n_bound_by(&one), n_bound_by(&other)), (N_PODS, N_PODS));
    assert!(holder(&one).is_some() && holder(&other).is_some(), "both elected");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn schedulers_with_one_lock_work_one_after_the_other() {
    let world = World::new("one-lock").await;
    let mut one = world.scheduler("one", "kube-scheduler").await;
    within(PATIENCE, "the first to lead", async || holder(&one).is_some()).await;
    let other = world.scheduler("other", "kube-scheduler").await;
    create_pods_for(&world.client, "other", 0..N_PODS).await;
    create_pods_for(&world.client, "one", 0..N_PODS).await;
    world.wait_for(&["one"], N_PODS).await;

    // Who made a mistake finds in the log what it was.
    let leader = holder(&one).expect("it leads");
    within(PATIENCE, "the second to say why it waits", async || {
        let said = other.tail();
        let line = said.lines().find(|line| line.contains("standing by"));
        let expected =
            [leader.as_str(), "kube-system/kube-scheduler", "--leader-elect-resource-name"];
        line.is_some_and(|line| expected.iter().all(|part| line.contains(part)))
    })
    .await;
    assert_eq!((holder(&other), n_bound_by(&other)), (None, 0), "it waits");

    one.signal("-TERM");
    within(PATIENCE, "the first to end", async || one.ended().is_some()).await;
    assert_eq!(one.ended(), Some(true), "it was asked to end");
    assert_eq!(holder(&one).as_deref(), Some(""), "it gives the lock back");
    world.wait_for(&["one", "other"], N_PODS).await;
    assert_eq!((n_bound_by(&one), n_bound_by(&other)), (N_PODS, N_PODS));
}

//! Two replicas under leader election: the one that leads is frozen for longer
//! than its lease, and goes on; the other one is killed.

use std::path::Path;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::Client;
use kube::api::Api;

use crate::cluster::{Audit, create_nodes, create_pods, within};
use crate::kill::{connect, tail};
use crate::process::{Process, Scratch};
use crate::replica::{RUN, TIMING};

const N_PODS: usize = 90;
const PATIENCE: Duration = Duration::from_secs(30);

/// Whom the lock names.
async fn holder(client: &Client) -> String {
    let leases: Api<Lease> = Api::namespaced(client.clone(), "kube-system");
    let lease = leases.get_opt("kube-scheduler").await.expect("the lease is read");
    lease.and_then(|lease| lease.spec?.holder_identity).unwrap_or_default()
}

/// Waits for a holder that is not this one.
async fn next_holder(client: &Client, old: &str) -> String {
    let mut found = String::new();
    within(PATIENCE, "another leader", async || {
        found = holder(client).await;
        !found.is_empty() && found != old
    })
    .await;
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_is_frozen_or_killed_is_replaced_and_does_not_bind_again() {
    let scratch = Scratch::new("replicas");
    let path = &*scratch.path("kubeconfig");
    let log = scratch.0.join("log");
    let _playground = Process::playground(path, &log);
    let client = connect(path, &log).await;
    create_nodes(&client, N_PODS).await;
    let audit = Audit::new(&client);

    let all = async { tokio::join!(audit.watch(N_PODS), disturb(&client, path, &scratch.0)) };
    let Ok(((), replicas)) = tokio::time::timeout(Duration::from_secs(150), all).await else {
        panic!("not all pods were bound in time; log:\n{}", tail(&log));
    };
    drop(replicas);
    audit.check(N_PODS, 0).await;
}

/// Pods arrive in three parts: before, while the first leader is frozen, and
/// after the second one was killed.
async fn disturb(client: &Client, path: &str, scratch: &Path) -> Vec<Process> {
    let replica = |name: &str| {
        let flags = [&RUN[..], &["--kubeconfig", path], &TIMING].concat();
        Process::start(&flags, &scratch.join(name))
    };
    let mut first = replica("first");
    let leads_first = next_holder(client, "").await;
    create_pods(client, 0..30).await;
    let second = replica("second");

    first.signal("-STOP");
    create_pods(client, 30..60).await;
    let leads_second = next_holder(client, &leads_first).await;
    first.signal("-CONT");
    within(PATIENCE, "the end of the replica that was frozen", async || {
        first.0.try_wait().expect("it is a child").is_some_and(|status| !status.success())
    })
    .await;
    let said = tail(&scratch.join("first"));
    assert!(said.contains("error: leader election lost: "), "it says why it ends:\n{said}");
    assert_eq!(holder(client).await, leads_second, "it did not take the lease back");

    let third = replica("third");
    drop(second);
    create_pods(client, 60..N_PODS).await;
    next_holder(client, &leads_second).await;
    vec![third]
}

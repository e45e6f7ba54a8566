//! Everything goes wrong between the scheduler and the API server.

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use steersman_apiserver::{ApiServer, Config};
use steersman_runtime::{Counters, Options, Scheduling};
use tokio_util::sync::CancellationToken;

use crate::cluster::{Audit, create_misfits, create_nodes, create_pods};
use crate::proxy::Proxy;

/// Of 100 requests, how many something goes wrong with.
const PERCENT: u64 = 25;
const N_MISFITS: usize = 5;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_thousand_pods_arrive_while_everything_goes_wrong() {
    check(1, 2_000).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_seed_goes_wrong_differently() {
    check(2, 400).await;
}

async fn check(seed: u64, n_pods: usize) {
    let resources = steersman_apikinds::resources();
    let server = ApiServer::new(Config { resources, ..Config::default() });
    let client = Client::new(server.service(), "default");
    create_nodes(&client, n_pods).await;

    let proxy = Proxy::start(server.clone(), seed, PERCENT).await.expect("a port is free");
    let shutdown = CancellationToken::new();
    let counters = Arc::new(Counters::default());
    let scheduler = tokio::spawn(schedule(&proxy, seed, Arc::clone(&counters), shutdown.clone()));

    let audit = Audit::new(&client);
    let arrivals = async {
        create_misfits(&client, N_MISFITS).await;
        for start in (0..n_pods).step_by(100) {
            create_pods(&client, start..(start + 100).min(n_pods)).await;
        }
    };
    let all = async { tokio::join!(arrivals, audit.watch(n_pods)) };
    let in_time = tokio::time::timeout(Duration::from_secs(150), all).await.is_ok();
    assert!(in_time, "not all pods were bound: {:?}, {:?}", counters.summary(), proxy.counts());
    audit.check(n_pods, N_MISFITS).await;

    shutdown.cancel();
    scheduler.await.expect("the scheduler does not panic");
    let counts = proxy.counts();
    let twice: Vec<_> = counts.bound.iter().filter(|(_, times)| **times > 1).collect();
    assert!(twice.is_empty(), "bound more than once: {twice:?}");
    assert_eq!(counts.bound.len(), n_pods);
    for kind in ["cut", "delay", "lost answer", "lost request", "refusal"] {
        assert!(counts.faults.get(kind) > Some(&0), "no {kind}: {:?}", counts.faults);
    }
}

fn schedule(
    proxy: &Proxy,
    seed: u64,
    counters: Arc<Counters>,
    shutdown: CancellationToken,
) -> impl Future<Output = ()> + Send + use<> {
    let uri = format!("http://{}", proxy.address).parse().expect("the address is a URI");
    async move {
        let client = Client::try_from(kube::Config::new(uri)).expect("the client is made");
        let registry = steersman_plugins::table::in_tree();
        let config = steersman_config::Config::default_for(&registry).expect("it is valid");
        let options = Options { seed, ..Options::default() };
        let scheduling =
            Scheduling { options, counters, ..Scheduling::new(client, &config, &registry) };
        steersman_runtime::run(scheduling, shutdown)
            .await
            .expect("the scheduler runs until it is told to stop");
    }
}

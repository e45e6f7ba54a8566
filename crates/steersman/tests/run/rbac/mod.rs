//! The scheduler with the rights of the deployment's manifests, on an API server
//! that enforces them: none is missing, and none is too much.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Pod, ServiceAccount};
use k8s_openapi::api::events::v1::Event;
use kube::Client;
use kube::api::{Api, ListParams};
use steersman_apiserver::User;
use steersman_playground::manifests::{Manifest, read};
use steersman_playground::{AuditLog, Authorization, Config, Running, start};

use crate::process::{Process, Scratch};

const MANIFESTS: &str = "../../deploy/manifests/second-scheduler.yaml";
const OBJECTS: &str = "tests/run/rbac/objects.yaml";
const IMPORTANT: &str = "tests/run/rbac/important.yaml";
const NAMESPACE: &str = "kube-system";
const NAME: &str = "steersman";
const PATIENCE: Duration = Duration::from_secs(60);

/// Rights that this test has no occasion to use, as the end of their text.
const RARE: [&str; 3] = [
    // API servers that do not stream lists.
    r#"Verbs:["list"]}"#,
    // As well: whether a binding whose answer was lost has taken place.
    r#"Resources:["pods"], Verbs:["get" "list"]}"#,
    // The cluster's own role, which also allows to follow changes.
    r#"ResourceNames:["extension-apiserver-authentication"], Verbs:["list" "watch"]}"#,
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_manifests_grant_what_the_scheduler_needs_and_nothing_else() {
    let scratch = Scratch::new("rbac");
    let log = Arc::new(AuditLog::default());
    let cluster = start(Config {
        n_nodes: 3,
        manifests: manifests(MANIFESTS),
        authorization: Authorization::Rbac,
        audit: Some(log.clone()),
        ..Config::default()
    })
    .await
    .expect("the playground starts");
    let kubeconfig = cluster.service_account_kubeconfig(NAMESPACE, NAME, 3600).expect("an account");
    let kubeconfig = scratch.file("kubeconfig", &kubeconfig);
    let config = scratch.file("config.yaml", &configuration(&cluster.client).await);
    let port = free_port();
    let port_flag = format!("--secure-port={port}");
    let args = ["run", "--master", cluster.url.as_str(), "--config", &config, &port_flag];
    let args = [&args[..], &["--bind-address=127.0.0.1", "--kubeconfig", &kubeconfig]].concat();
    let output = scratch.0.join("log");
    let mut scheduler = Process::start(&args, &output);

    let user = User::service_account(NAMESPACE, NAME);
    let denied =
        || -> Vec<String> { log.denied(&user.name).iter().map(|record| record.line()).collect() };
    if tokio::time::timeout(PATIENCE, work(&cluster, port)).await.is_err() {
        let output = std::fs::read_to_string(&output).unwrap_or_default();
        panic!("the work was not done in time; denied: {:#?}; log:\n{output}", denied());
    }
    scheduler.signal("-TERM");
    assert!(scheduler.0.wait().expect("it ends").success(), "it ends well");

    let none = Vec::<String>::new();
    assert_eq!(denied(), none, "denied");
    let mut unused = cluster.server().unused_permissions(&user, &log);
    unused.retain(|rule| !RARE.iter().any(|rare| rule.ends_with(rare)));
    assert_eq!(unused, none, "granted and not used");
    cluster.shutdown().await;
}

/// Everything that the scheduler does with the default plugins.
async fn work(cluster: &Running, port: u16) {
    let pods: Api<Pod> = Api::default_namespaced(cluster.client.clone());
    cluster.add(manifests(OBJECTS)).expect("the objects are good");
    for pod in ["late", "early", "humble"] {
        until(async || is_bound(&pods, pod).await).await;
    }
    let events: Api<Event> = Api::default_namespaced(cluster.client.clone());
    until(async || failures(&events).await.iter().any(|event| event.series.is_none())).await;
    cluster.add(manifests(IMPORTANT)).expect("the objects are good");
    until(async || is_bound(&pods, "vip").await).await;
    until(async || failures(&events).await.iter().any(|event| event.series.is_some())).await;
    // Somebody who may not asks for the metrics.
    let accounts: Api<ServiceAccount> = Api::default_namespaced(cluster.client.clone());
    accounts.get("default").await.expect("every namespace has an account");
    let curious = cluster.service_account_kubeconfig("default", "default", 3600);
    let kubeconfig = curious.expect("the account has a token");
    until(async || metrics(&kubeconfig, port).await == Some(403)).await;
}

/// The status of the answer to a request for the metrics, by the owner of a
/// kubeconfig.
async fn metrics(kubeconfig: &str, port: u16) -> Option<u16> {
    let kubeconfig = kube::config::Kubeconfig::from_yaml(kubeconfig).expect("it is valid");
    let options = kube::config::KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await;
    let mut config = config.expect("it is valid");
    config.cluster_url = format!("https://127.0.0.1:{port}").parse().expect("an address");
    // The scheduler's certificate is its own.
    config.accept_invalid_certs = true;
    let client = Client::try_from(config).expect("a client");
    let request = http::Request::get("/metrics").body(Vec::new()).expect("a request");
    match client.request_text(request).await {
        Ok(_) => Some(200),
        Err(kube::Error::Api(status)) => Some(status.code),
        Err(_) => None,
    }
}

async fn is_bound(pods: &Api<Pod>, name: &str) -> bool {
    let pod = pods.get_opt(name).await.expect("pods are read");
    pod.is_some_and(|pod| pod.spec.is_some_and(|spec| spec.node_name.is_some()))
}

async fn failures(events: &Api<Event>) -> Vec<Event> {
    let mut list = events.list(&ListParams::default()).await.expect("events are listed").items;
    list.retain(|event| event.reason.as_deref() == Some("FailedScheduling"));
    list
}

/// What the manifests have the scheduler read.
async fn configuration(client: &Client) -> String {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    let map = maps.get(NAME).await.expect("the configuration is there");
    map.data.unwrap_or_default().remove("config.yaml").expect("it has the file")
}

fn manifests(path: &str) -> Vec<Manifest> {
    let path = PathBuf::from(Path::new(env!("CARGO_MANIFEST_DIR"))).join(path);
    read(&[path], &mut std::io::empty()).expect("the manifests are read")
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("it has an address").port()
}

async fn until(mut done: impl AsyncFnMut() -> bool) {
    while !done().await {
        // Real time: another process has to do it.
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

//! What is served, and to whom.

use std::net::TcpListener;
use std::path::Path;

use http::{Method, Request};
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{Api, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::json;

use crate::playground::{Playground, wait_for};
use crate::process::{Process, Scratch, steersman};
use crate::program::output;

/// What a page answers: its status and text.
async fn get(client: &Client, path: &str) -> (u16, String) {
    let request = Request::builder().method(Method::GET).uri(path).body(Vec::new());
    match client.request_text(request.expect("a request")).await {
        Ok(text) => (200, text),
        Err(kube::Error::Api(status)) => (status.code, status.message.clone()),
        Err(error) => (0, error.to_string()),
    }
}

/// A client for what the scheduler serves, with the playground's credentials or
/// without any.
async fn scraper(kubeconfig: &Path, port: u16, known: bool) -> Client {
    let config = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
    let options = KubeConfigOptions::default();
    let mut config =
        kube::Config::from_custom_kubeconfig(config, &options).await.expect("it can be used");
    config.cluster_url = format!("https://127.0.0.1:{port}").parse().expect("an address");
    config.root_cert = None;
    // The certificate is made when the program starts.
    config.accept_invalid_certs = true;
    config.default_retry = false;
    if !known {
        config.auth_info = kube::config::AuthInfo::default();
    }
    Client::try_from(config).expect("a client")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn probes_are_for_all_and_pages_for_those_whom_the_api_server_lets() {
    let scratch = Scratch::new("serving");
    let playground = Playground::start(&scratch).await;
    let kubeconfig = &playground.kubeconfig;
    let log = scratch.0.join("log");

    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("its address").port();
    let port_flag = format!("--secure-port={port}");
    let run = ["run", "--bind-address=127.0.0.1", &port_flag, "--kubeconfig", kubeconfig];
    let refused = output(steersman(), &run);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(said.contains(&format!("127.0.0.1:{port}")), "{said}");
    assert!(said.contains("--secure-port=0"), "{said}");
    drop(taken);

    let _scheduler = Process::start(&run, &log);
    let (known, unknown) = (
        scraper(Path::new(kubeconfig), port, true).await,
        scraper(Path::new(kubeconfig), port, false).await,
    );
    wait_for("readiness", &log, async || get(&unknown, "/readyz").await.0 == 200).await;
    playground.create_pod("a", "default-scheduler").await;
    wait_for("pod", &log, async || playground.is_bound("a").await).await;
    create_pod_for_no_node(&playground).await;
    let no_room = "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.";
    wait_for("attempt", &log, async || {
        get(&known, "/debug/steersman/queue").await.1.contains(no_room)
    })
    .await;

    for path in ["/healthz", "/livez", "/readyz"] {
        assert_eq!(get(&unknown, path).await.0, 200, "{path}");
    }
    let (_, verbose) = get(&unknown, "/readyz?verbose").await;
    for check in ["leaderElection", "shutdown", "sched-handler-sync"] {
        assert!(verbose.contains(&format!("{check} ok")), "{verbose}");
    }
    let pages = [
        ("/metrics", "scheduler_schedule_attempts_total"),
        ("/metrics", "steersman_config_generation 1"),
        ("/metrics", "leader_election_master_status{name=\"kube-scheduler\"} 1"),
        ("/metrics", "kubernetes_feature_enabled"),
        ("/metrics/resources", ""),
        ("/metrics/slis", "kubernetes_healthcheck{name=\"leaderElection\",type=\"healthz\"} 1"),
        ("/metrics/slis", "kubernetes_healthcheck{name=\"ping\",type=\"livez\"} 1"),
        ("/configz", "componentconfig"),
        ("/flagz", &format!("secure-port={port}")),
        ("/statusz", "kube-scheduler statusz"),
        ("/debug/flags/v", ""),
        ("/debug/steersman/queue", no_room),
        ("/debug/steersman/queue?output=json", no_room),
        ("/debug/steersman/nominated?output=json", "{"),
        ("/debug/steersman/bindings", ""),
        ("/debug/steersman/cluster?output=json&limit=1", "\"n\""),
        ("/debug/steersman/node?name=n", "a"),
        ("/debug/steersman/dump", "everything that is watched is known"),
        ("/debug/steersman/dump", no_room),
        ("/livez/scheduling-thread", "ok"),
    ];
    for (path, part) in pages {
        let (status, _) = get(&unknown, path).await;
        assert!(matches!(status, 401 | 403), "{path} is for nobody, found {status}");
        let (status, text) = get(&known, path).await;
        assert_eq!(status, 200, "{path}: {text}");
        assert!(text.contains(part), "{path}: {part:?} is not in {text}");
    }
    assert_eq!(get(&known, "/debug/steersman/node?name=other").await.0, 404);
    stands_by(Path::new(kubeconfig), &scratch).await;
    for query in ["output=xml", "limit=0", "unknown"] {
        assert_eq!(get(&known, &format!("/debug/steersman/queue?{query}")).await.0, 400, "{query}");
    }
}

async fn create_pod_for_no_node(playground: &Playground) {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "nowhere" },
        "spec": {
            "nodeSelector": { "disk": "none" },
            "containers": [{ "name": "main", "image": "busybox" }],
        },
    });
    let pod: Pod = serde_json::from_value(pod).expect("the pod is valid");
    let pods: Api<Pod> = Api::default_namespaced(playground.client.clone());
    pods.create(&PostParams::default(), &pod).await.expect("the pod is created");
}

/// A second replica, which does not lead, is well and ready all the same.
async fn stands_by(kubeconfig: &Path, scratch: &Scratch) {
    let port = {
        let free = TcpListener::bind("127.0.0.1:0").expect("a port");
        free.local_addr().expect("its address").port()
    };
    let (log, port_flag) = (scratch.0.join("second.log"), format!("--secure-port={port}"));
    let path = kubeconfig.to_str().expect("a path in UTF-8");
    let run = ["run", "--bind-address=127.0.0.1", &port_flag, "--kubeconfig", path];
    let _second = Process::start(&run, &log);
    let known = scraper(kubeconfig, port, true).await;
    wait_for("readiness", &log, async || get(&known, "/readyz").await.0 == 200).await;
    assert_eq!(get(&known, "/metrics/resources").await, (200, String::new()));
    let (_, metrics) = get(&known, "/metrics").await;
    let follows = "leader_election_master_status{name=\"kube-scheduler\"} 0";
    assert!(metrics.contains(follows), "{metrics}");
    let (status, said) = get(&known, "/debug/steersman/queue").await;
    assert_eq!(status, 503, "{said}");
}

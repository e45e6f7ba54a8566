//! Another configuration while pods arrive.

use std::path::Path;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Client;
use kube::api::{Api, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::json;

use crate::program::{Process, Scratch};

const PATIENCE: Duration = Duration::from_secs(40);

fn config(profiles: &[&str]) -> String {
    let mut text = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n\
                    profiles:\n"
        .to_owned();
    for name in profiles {
        text.push_str(&format!("- schedulerName: {name}\n"));
    }
    text
}

pub(crate) async fn create_node(client: &Client) {
    let amounts = json!({ "cpu": "64", "memory": "64Gi", "pods": "110" });
    let node = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": { "name": "n" },
        "status": { "capacity": amounts, "allocatable": amounts },
    });
    let node: Node = serde_json::from_value(node).expect("the node is valid");
    let nodes: Api<Node> = Api::all(client.clone());
    nodes.create(&PostParams::default(), &node).await.expect("the node is created");
}

pub(crate) async fn create_pod(client: &Client, name: &str, scheduler: &str) {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name },
        "spec": {
            "schedulerName": scheduler,
            "containers": [{ "name": "main", "image": "busybox" }],
        },
    });
    let pod: Pod = serde_json::from_value(pod).expect("the pod is valid");
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    pods.create(&PostParams::default(), &pod).await.expect("the pod is created");
}

pub(crate) async fn is_bound(client: &Client, name: &str) -> bool {
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let pod = pods.get(name).await.expect("the pod is there");
    pod.spec.and_then(|spec| spec.node_name).is_some()
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

pub(crate) async fn connect(kubeconfig: &Path) -> Option<Client> {
    let config = Kubeconfig::read_from(kubeconfig).ok()?;
    let options = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(config, &options).await.ok()?;
    let client = Client::try_from(config).ok()?;
    client.apiserver_version().await.ok()?;
    Some(client)
}

fn logged(log: &Path, text: &str) -> bool {
    std::fs::read_to_string(log).is_ok_and(|log| log.contains(text))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_file_is_taken_over_while_pods_arrive_and_a_broken_one_is_not() {
    let scratch = Scratch::new("reload");
    let kubeconfig = scratch.path("kubeconfig");
    let (playground_log, log) = (scratch.0.join("playground.log"), scratch.0.join("log"));
    let playground =
        ["playground", "--no-scheduler", "--nodes=0", "--port=0", "--kubeconfig", &kubeconfig];
    let _playground = Process::start(&playground, &playground_log);
    let mut client = None;
    wait_for("API server", &playground_log, async || {
        client = connect(Path::new(&kubeconfig)).await;
        client.is_some()
    })
    .await;
    let client = client.expect("it is connected");
    create_node(&client).await;
    let file = scratch.file("config.yaml", &config(&["one"]));
    let run = ["run", "--secure-port=0", "-v=2", "--config", &file, "--kubeconfig", &kubeconfig];
    let scheduler = Process::start(&run, &log);

    create_pod(&client, "a", "one").await;
    create_pod(&client, "b", "two").await;
    wait_for("first pod", &log, async || is_bound(&client, "a").await).await;
    assert!(!is_bound(&client, "b").await, "nobody schedules for that profile yet");

    // Seen by looking at the file.
    scratch.file("config.yaml", &config(&["one", "two"]));
    wait_for("second profile", &log, async || is_bound(&client, "b").await).await;
    create_pod(&client, "c", "one").await;
    wait_for("pod of the first profile", &log, async || is_bound(&client, "c").await).await;

    // Broken, and asked for.
    scratch.file("config.yaml", "profiles: [");
    scheduler.signal("-HUP");
    wait_for("refusal", &log, async || logged(&log, "the configuration stays as it is")).await;
    create_pod(&client, "d", "two").await;
    wait_for("pod under the old one", &log, async || is_bound(&client, "d").await).await;

    // What cannot change is named.
    let fixed = format!("{}leaderElection: {{resourceName: other}}\n", config(&["three"]));
    scratch.file("config.yaml", &fixed);
    scheduler.signal("-HUP");
    create_pod(&client, "e", "three").await;
    wait_for("third profile", &log, async || is_bound(&client, "e").await).await;
    assert!(logged(&log, "changes of leaderElection count when the program is started again"));

    let mut scheduler = scheduler;
    scheduler.signal("-TERM");
    wait_for("end", &log, async || {
        scheduler.0.try_wait().is_ok_and(|status| status.is_some_and(|status| status.success()))
    })
    .await;
}

/// How often a pod was bound, by the log of `-v=2`.
fn times_bound(log: &Path, pod: &str) -> usize {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let pod = format!("pod=\"default/{pod}\"");
    text.lines().filter(|line| line.contains("\"bound\"") && line.contains(&pod)).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_stands_by_reads_it_too_and_no_pod_is_lost_or_bound_twice() {
    let scratch = Scratch::new("stand-by");
    let kubeconfig = scratch.path("kubeconfig");
    let playground_log = scratch.0.join("playground.log");
    let playground =
        ["playground", "--no-scheduler", "--nodes=0", "--port=0", "--kubeconfig", &kubeconfig];
    let _playground = Process::start(&playground, &playground_log);
    let mut client = None;
    wait_for("API server", &playground_log, async || {
        client = connect(Path::new(&kubeconfig)).await;
        client.is_some()
    })
    .await;
    let client = client.expect("it is connected");
    create_node(&client).await;
    let first_log = scratch.0.join("first.log");
    let first_file = scratch.file("first.yaml", &config(&["one"]));
    let run = |file| ["run", "--secure-port=0", "-v=2", "--config", file, "--kubeconfig"];
    let first = [&run(&first_file)[..], &[&kubeconfig]].concat();
    let first = Process::start(&first, &first_log);
    create_pod(&client, "a", "one").await;
    wait_for("first pod", &first_log, async || is_bound(&client, "a").await).await;

    let log = scratch.0.join("second.log");
    let file = scratch.file("second.yaml", &config(&["one"]));
    let second = [&run(&file)[..], &[&kubeconfig]].concat();
    let mut second = Process::start(&second, &log);
    wait_for("start", &log, async || logged(&log, "starting")).await;
    scratch.file("second.yaml", &config(&["one", "two"]));
    second.signal("-HUP");
    wait_for("reading", &log, async || logged(&log, "taken over")).await;
    first.signal("-TERM");
    create_pod(&client, "b", "two").await;
    wait_for("pod of the later profile", &log, async || is_bound(&client, "b").await).await;

    // What it knows, and that the API server knows the same.
    second.signal("-USR2");
    wait_for("dump", &log, async || logged(&log, "agree on nodes and pods")).await;
    assert!(logged(&log, "active: 0"), "the queue is shown");

    // An extender that is not there comes, and goes.
    let extender = "extenders: [{urlPrefix: 'http://127.0.0.1:1', filterVerb: filter}]\n";
    scratch.file("second.yaml", &format!("{}{extender}", config(&["one", "two"])));
    second.signal("-HUP");
    wait_for("extender", &log, async || logged(&log, "generation=3")).await;
    let goes_on = "scheduling goes on with another configuration";
    wait_for("change", &log, async || logged(&log, goes_on)).await;
    create_pod(&client, "c", "one").await;
    wait_for("refusal", &log, async || logged(&log, "127.0.0.1:1/filter")).await;
    assert!(!is_bound(&client, "c").await, "its extender did not answer");

    let pods: Vec<String> = (0..40).map(|n| format!("p{n}")).collect();
    for (n, pod) in pods.iter().enumerate() {
        if n % 10 == 0 {
            let text = format!("{}parallelism: {}\n", config(&["one", "two"]), n + 1);
            scratch.file("second.yaml", &text);
            second.signal("-HUP");
        }
        create_pod(&client, pod, "two").await;
    }
    for pod in pods.iter().map(String::as_str).chain(["c"]) {
        wait_for(pod, &log, async || is_bound(&client, pod).await).await;
        wait_for(pod, &log, async || times_bound(&log, pod) > 0).await;
        assert_eq!(times_bound(&log, pod), 1, "{pod}");
    }

    // The end may come while it takes over.
    scratch.file("second.yaml", &config(&["three"]));
    second.signal("-HUP");
    second.signal("-TERM");
    wait_for("end", &log, async || {
        second.0.try_wait().is_ok_and(|status| status.is_some_and(|status| status.success()))
    })
    .await;
}

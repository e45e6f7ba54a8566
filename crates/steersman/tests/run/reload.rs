//! Another configuration while pods arrive.

use std::path::Path;

use crate::playground::{Playground, wait_for};
use crate::process::{Process, Scratch};

fn config(profiles: &[&str]) -> String {
    let mut text = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n\
                    profiles:\n"
        .to_owned();
    for name in profiles {
        text.push_str(&format!("- schedulerName: {name}\n"));
    }
    text
}

fn logged(log: &Path, text: &str) -> bool {
    std::fs::read_to_string(log).is_ok_and(|log| log.contains(text))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_file_is_taken_over_while_pods_arrive_and_a_broken_one_is_not() {
    let scratch = Scratch::new("reload");
    let playground = Playground::start(&scratch).await;
    let kubeconfig = &playground.kubeconfig;
    let log = scratch.0.join("log");
    let file = scratch.file("config.yaml", &config(&["one"]));
    let run = ["run", "--secure-port=0", "-v=2", "--config", &file, "--kubeconfig", kubeconfig];
    let scheduler = Process::start(&run, &log);

    playground.create_pod("a", "one").await;
    playground.create_pod("b", "two").await;
    wait_for("first pod", &log, async || playground.is_bound("a").await).await;
    assert!(!playground.is_bound("b").await, "nobody schedules for that profile yet");

    // Seen by looking at the file.
    scratch.file("config.yaml", &config(&["one", "two"]));
    wait_for("second profile", &log, async || playground.is_bound("b").await).await;
    playground.create_pod("c", "one").await;
    wait_for("pod of the first profile", &log, async || playground.is_bound("c").await).await;

    // Broken, and asked for.
    scratch.file("config.yaml", "profiles: [");
    scheduler.signal("-HUP");
    wait_for("refusal", &log, async || logged(&log, "the configuration stays as it is")).await;
    playground.create_pod("d", "two").await;
    wait_for("pod under the old one", &log, async || playground.is_bound("d").await).await;

    // What cannot change is named.
    let fixed = format!("{}leaderElection: {{resourceName: other}}\n", config(&["three"]));
    scratch.file("config.yaml", &fixed);
    scheduler.signal("-HUP");
    playground.create_pod("e", "three").await;
    wait_for("third profile", &log, async || playground.is_bound("e").await).await;
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
    let playground = Playground::start(&scratch).await;
    let kubeconfig = &playground.kubeconfig;
    let first_log = scratch.0.join("first.log");
    let first_file = scratch.file("first.yaml", &config(&["one"]));
    let run = |file| ["run", "--secure-port=0", "-v=2", "--config", file, "--kubeconfig"];
    let first = [&run(&first_file)[..], &[kubeconfig]].concat();
    let first = Process::start(&first, &first_log);
    playground.create_pod("a", "one").await;
    wait_for("first pod", &first_log, async || playground.is_bound("a").await).await;

    let log = scratch.0.join("second.log");
    let file = scratch.file("second.yaml", &config(&["one"]));
    let second = [&run(&file)[..], &[kubeconfig]].concat();
    let mut second = Process::start(&second, &log);
    wait_for("start", &log, async || logged(&log, "starting")).await;
    scratch.file("second.yaml", &config(&["one", "two"]));
    second.signal("-HUP");
    wait_for("reading", &log, async || logged(&log, "taken over")).await;
    first.signal("-TERM");
    playground.create_pod("b", "two").await;
    wait_for("pod of the later profile", &log, async || playground.is_bound("b").await).await;

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
    playground.create_pod("c", "one").await;
    wait_for("refusal", &log, async || logged(&log, "127.0.0.1:1/filter")).await;
    assert!(!playground.is_bound("c").await, "its extender did not answer");

    let pods: Vec<String> = (0..40).map(|n| format!("p{n}")).collect();
    for (n, pod) in pods.iter().enumerate() {
        if n % 10 == 0 {
            let text = format!("{}parallelism: {}\n", config(&["one", "two"]), n + 1);
            scratch.file("second.yaml", &text);
            second.signal("-HUP");
        }
        playground.create_pod(pod, "two").await;
    }
    for pod in pods.iter().map(String::as_str).chain(["c"]) {
        wait_for(pod, &log, async || playground.is_bound(pod).await).await;
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

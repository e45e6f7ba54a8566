//! Right numbers, and the flags that change what is shown.

use std::time::Duration;

use serde_json::json;
use steersman_metrics::{AllowList, Choice, Options, Reload};
use steersman_testing::{node, pod};

use crate::scene::{Scene, value};

const PROFILE: &str = "profile=\"default-scheduler\"";

#[track_caller]
fn check(page: &str, expected: &[(&str, f64)]) {
    for (series, number) in expected {
        assert_eq!(value(page, series), Some(*number), "{series}\n{page}");
    }
}

#[track_caller]
fn check_pending(page: &str, counts: [f64; 4]) {
    let queues = ["active", "backoff", "unschedulable", "gated"];
    for (queue, count) in queues.iter().zip(counts) {
        check(page, &[(&format!("scheduler_pending_pods{{queue=\"{queue}\"}}"), count)]);
    }
}

#[tokio::test(start_paused = true)]
async fn gauges_follow_a_pod_from_gated_to_unschedulable_to_deleted() {
    let mut scene = Scene::new(Options::default());
    scene.see(node("n1"));
    let gates = json!({"schedulingGates": [{"name": "wait"}]});
    scene.see(pod("a").cpu("8").spec(gates));
    let page = scene.page().await;
    check_pending(&page, [0.0, 0.0, 0.0, 1.0]);
    let by = |plugin| format!("scheduler_unschedulable_pods{{plugin=\"{plugin}\",{PROFILE}}}");
    check(&page, &[(&by("SchedulingGates"), 1.0)]);

    scene.see(pod("a").cpu("8"));
    scene.schedule();
    let page = scene.page().await;
    check_pending(&page, [0.0, 0.0, 1.0, 0.0]);
    check(&page, &[(&by("NodeResourcesFit"), 1.0)]);
    check(&page, &[(&by("SchedulingGates"), 0.0)]);

    scene.handle(steersman_core::Event::PodDeleted("uid-default-a".into()));
    let page = scene.page().await;
    check_pending(&page, [0.0; 4]);
    check(
        &page,
        &[
            (&by("NodeResourcesFit"), 0.0),
            ("scheduler_cache_size{type=\"nodes\"}", 1.0),
            ("scheduler_cache_size{type=\"pods\"}", 0.0),
            ("steersman_scheduling_thread_answers", 1.0),
        ],
    );
}

#[tokio::test(start_paused = true)]
async fn a_profile_that_a_reload_removes_takes_its_gauges_along_and_no_counter() {
    let mut scene = Scene::new(Options::default());
    scene.see(node("n1"));
    scene.see(pod("a").cpu("8"));
    scene.schedule();
    let gauge = format!("scheduler_unschedulable_pods{{plugin=\"NodeResourcesFit\",{PROFILE}}}");
    let counter =
        format!("scheduler_schedule_attempts_total{{{PROFILE},result=\"unschedulable\"}}");
    scene.metrics.serves(["default-scheduler".into(), "second".into()]);
    check(&scene.page().await, &[(&gauge, 1.0), (&counter, 1.0)]);

    scene.metrics.serves(["second".into()]);
    // The scheduler of before may have answered last.
    let page = scene.page().await;
    assert_eq!(value(&page, &gauge), None, "{page}");
    check(&page, &[(&counter, 1.0)]);

    scene.metrics.serves(["default-scheduler".into()]);
    check(&scene.page().await, &[(&gauge, 1.0), (&counter, 1.0)]);
}

#[tokio::test(start_paused = true)]
async fn attempts_and_their_durations_are_counted_by_result() {
    let mut scene = Scene::new(Options::default());
    scene.see(node("n1"));
    scene.see(node("n2"));
    scene.see(pod("a").cpu("1"));
    scene.see(pod("big").cpu("64"));
    scene.schedule();
    let page = scene.page().await;
    check(
        &page,
        &[
            ("scheduler_goroutines{operation=\"binding\"}", 1.0),
            ("scheduler_cache_size{type=\"assumed_pods\"}", 1.0),
            ("scheduler_inflight_events{event=\"PodPopped\"}", 1.0),
        ],
    );
    scene.pass(Duration::from_secs(3));
    scene.bind_all();
    let page = scene.page().await;
    let attempts =
        |result| format!("scheduler_schedule_attempts_total{{{PROFILE},result=\"{result}\"}}");
    let sum = format!(
        "scheduler_scheduling_attempt_duration_seconds_sum{{{PROFILE},result=\"scheduled\"}}"
    );
    let point = |point, status| {
        format!(
            "scheduler_framework_extension_point_duration_seconds_count{{extension_point=\"{point}\",{PROFILE},status=\"{status}\"}}"
        )
    };
    let asked = |point, plugin| {
        format!(
            "scheduler_plugin_evaluation_total{{extension_point=\"{point}\",plugin=\"{plugin}\",{PROFILE}}}"
        )
    };
    check(
        &page,
        &[
            (&attempts("scheduled"), 1.0),
            (&attempts("unschedulable"), 1.0),
            (&sum, 3.0),
            ("scheduler_pod_scheduling_sli_duration_seconds_sum{attempts=\"1\"}", 3.0),
            ("scheduler_pod_scheduling_attempts_sum", 1.0),
            ("scheduler_scheduling_algorithm_duration_seconds_count", 2.0),
            ("scheduler_preemption_attempts_total", 1.0),
            (&point("PreFilter", "Success"), 2.0),
            (&point("Filter", "Success"), 2.0),
            (&point("PostFilter", "Unschedulable"), 1.0),
            (&point("Score", "Success"), 1.0),
            (&point("Bind", "Success"), 1.0),
            // Both pods on both nodes.
            (&asked("Filter", "NodeResourcesFit"), 4.0),
            (&asked("Score", "NodeResourcesFit"), 2.0),
            (&asked("PreFilter", "NodeResourcesFit"), 2.0),
            ("scheduler_goroutines{operation=\"binding\"}", 0.0),
            ("steersman_evaluated_nodes_sum", 4.0),
            ("steersman_feasible_nodes_sum", 2.0),
        ],
    );
}

#[tokio::test(start_paused = true)]
async fn waits_at_permit_are_measured() {
    let mut scene = Scene::new(Options::default());
    scene.see(node("n1"));
    for name in ["a", "b"] {
        scene.see(pod(name).label("hold", "yes"));
    }
    scene.schedule();
    check(&scene.page().await, &[("steersman_waiting_pods", 2.0)]);
    scene.pass(Duration::from_secs(7));
    scene.handle(steersman_core::Event::PermitAllowed {
        pod: "uid-default-a".into(),
        plugin: "Holds",
    });
    scene.pass(Duration::from_secs(53));
    let wait =
        |result| format!("scheduler_permit_wait_duration_seconds_sum{{result=\"{result}\"}}");
    let page = scene.page().await;
    check(&page, &[(&wait("Success"), 7.0), (&wait("Unschedulable"), 60.0)]);
    check(&page, &[("steersman_waiting_pods", 0.0), ("steersman_binding_pods", 1.0)]);
}

#[tokio::test(start_paused = true)]
async fn families_can_be_switched_off_and_values_of_labels_restricted() {
    let mut choice = Choice::default();
    choice.disable("scheduler_pending_pods,process_open_fds").expect("good names");
    let allowed = "scheduler_queue_incoming_pods_total,event=UnscheduledPodAdd";
    choice.allowed = AllowList::parse(allowed).expect("a good list");
    let mut scene = Scene::new(Options { choice, ..Options::default() });
    scene.see(pod("a"));
    scene.see(pod("b"));
    scene.schedule();
    scene.see(node("n1"));
    scene.pass(Duration::from_secs(10));
    let page = scene.page().await;
    assert!(!page.contains("scheduler_pending_pods"));
    let incoming = |queue, event| {
        format!("scheduler_queue_incoming_pods_total{{event=\"{event}\",queue=\"{queue}\"}}")
    };
    check(
        &page,
        &[
            (&incoming("active", "UnscheduledPodAdd"), 2.0),
            (&incoming("active", "unexpected"), 2.0),
            ("disabled_metrics_total", 2.0),
        ],
    );
}

#[tokio::test(start_paused = true)]
async fn a_scheduling_thread_that_hangs_leaves_what_was_known_and_says_so() {
    let mut scene = Scene::new(Options::default());
    scene.see(pod("a"));
    check_pending(&scene.page().await, [1.0, 0.0, 0.0, 0.0]);
    // Nobody answers.
    let page = scene.metrics.render().await;
    check_pending(&page, [1.0, 0.0, 0.0, 0.0]);
    check(&page, &[("steersman_scheduling_thread_answers", 0.0)]);
}

#[tokio::test(start_paused = true)]
async fn counters_go_on_when_a_scheduler_is_set_up_anew() {
    let mut scene = Scene::new(Options::default());
    let came = "scheduler_queue_incoming_pods_total{event=\"UnscheduledPodAdd\",queue=\"active\"}";
    let by_fit = format!("scheduler_unschedulable_pods{{plugin=\"NodeResourcesFit\",{PROFILE}}}");
    let wakes = |result| {
        let labels = "event=\"NodeAdd\",plugin=\"NodeResourcesFit\"";
        format!("steersman_wakes_total{{{labels},result=\"{result}\"}}")
    };
    // A pod that one node has no room for, and another one that comes has.
    let history = |scene: &mut Scene| {
        scene.see(node("small"));
        scene.see(pod("a").cpu("9"));
        scene.schedule();
        scene.see(node("large").allocatable("cpu", "10"));
    };
    history(&mut scene);
    check(&scene.page().await, &[(came, 1.0), (&by_fit, 1.0)]);
    scene.pass(Duration::from_secs(1));
    scene.schedule();
    scene.bind_all();
    scene.see(pod("b"));
    scene.restart();
    // What happened since the last scrape counts, and nothing counts twice.
    check(&scene.page().await, &[(came, 2.0), (&by_fit, 0.0), (&wakes("useful"), 1.0)]);
    history(&mut scene);
    check(&scene.page().await, &[(came, 3.0), (&by_fit, 1.0), (&wakes("useful"), 1.0)]);
}

#[tokio::test(start_paused = true)]
async fn every_scoring_plugin_is_timed_however_many_nodes_there_are() {
    let mut scene = Scene::new(Options::default());
    for n in 0..600 {
        scene.see(node(&format!("n{n}")));
    }
    // One attempt of ten is sampled.
    for n in 0..30 {
        scene.see(pod(&format!("p{n}")).cpu("10m"));
    }
    scene.schedule();
    let page = scene.page().await;
    let timed = |point, plugin| {
        let labels = format!("extension_point=\"{point}\",plugin=\"{plugin}\",status=\"Success\"");
        value(&page, &format!("scheduler_plugin_execution_duration_seconds_count{{{labels}}}"))
    };
    let n_attempts = timed("PreFilter", "NodeResourcesFit").expect("some attempt is sampled");
    for plugin in ["NodeResourcesFit", "NodeResourcesBalancedAllocation", "TaintToleration"] {
        assert_eq!(timed("Score", plugin), Some(50.0 * n_attempts), "{plugin}");
    }
    let filters = timed("Filter", "NodeResourcesFit").expect("filters are timed");
    assert!(filters < 500.0 * n_attempts, "not every call of a filter is timed: {filters}");
}

#[tokio::test(start_paused = true)]
async fn setters_show() {
    let scene = Scene::new(Options::default());
    let metrics = &scene.metrics;
    metrics.leader_election("kube-scheduler", false, 0);
    metrics.feature("A", "BETA", false);
    metrics.config_reloaded(Reload::Success);
    metrics.config_reloaded(Reload::Error);
    let page = metrics.render().await;
    check(
        &page,
        &[
            ("leader_election_master_status{name=\"kube-scheduler\"}", 0.0),
            ("kubernetes_feature_enabled{name=\"A\",stage=\"BETA\"}", 0.0),
            ("steersman_config_generation", 2.0),
            ("steersman_config_last_reload_successful", 0.0),
            ("steersman_config_reloads_total{result=\"error\"}", 1.0),
        ],
    );
}

#[tokio::test(start_paused = true)]
async fn what_pods_request_is_told_with_units() {
    let mut scene = Scene::new(Options::default());
    scene.see(node("n1"));
    scene.see(pod("a").cpu("1500m").memory("1Gi").priority(5).on("n1"));
    scene.see(pod("b").cpu("1"));
    let limited = json!([{"name": "c", "resources": {"limits": {"memory": "1Ki"}}}]);
    scene.see(pod("c").spec(json!({"containers": limited})));
    let page = scene.resources().await;
    let series = |pod, node, priority, resource, unit| {
        format!(
            "kube_pod_resource_request{{namespace=\"default\",node=\"{node}\",pod=\"{pod}\",priority=\"{priority}\",resource=\"{resource}\",scheduler=\"default-scheduler\",unit=\"{unit}\"}}"
        )
    };
    check(
        &page,
        &[
            (&series("a", "n1", 5, "cpu", "cores"), 1.5),
            (&series("a", "n1", 5, "memory", "bytes"), 1_073_741_824.0),
            (&series("b", "", 0, "cpu", "cores"), 1.0),
            (&series("c", "", 0, "memory", "bytes").replace("request", "limit"), 1024.0),
        ],
    );
}

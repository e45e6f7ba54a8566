use k8s_openapi::api::core::v1::Pod;
use serde_json::json;

use super::*;
use crate::cluster::Kind;
use crate::controller::bench::Bench;

fn job(spec: &str, annotations: &str) -> String {
    format!(
        "
apiVersion: batch/v1
kind: Job
metadata: {{name: j}}
spec:
  {spec}
  template:
    metadata: {{annotations: {{{annotations}}}}}
    spec: {{restartPolicy: Never, containers: [{{name: c, image: i}}]}}
"
    )
}

const FAILS: &str = "playground.steersman.dev/exit-code: '1'";

/// Counters and the conditions that are true.
fn shown(bench: &Bench) -> String {
    let status = bench.get::<Job>("j").status.unwrap_or_default();
    let conditions: Vec<String> = status
        .conditions
        .iter()
        .flatten()
        .filter(|c| c.status == "True")
        .map(|c| format!("{}={}", c.type_, c.reason.clone().unwrap_or_default()))
        .collect();
    format!(
        "active {} succeeded {} failed {} {}",
        status.active.unwrap_or_default(),
        status.succeeded.unwrap_or_default(),
        status.failed.unwrap_or_default(),
        conditions.join(" "),
    )
    .trim_end()
    .to_owned()
}

fn n_tracked(bench: &Bench) -> usize {
    let tracked = |pod: &&Arc<Pod>| pod.metadata.finalizers.iter().flatten().any(|f| f == TRACKING);
    bench.world.pods.iter().filter(tracked).count()
}

const COMPLETE: &str = "SuccessCriteriaMet=CompletionsReached Complete=CompletionsReached";

#[test]
fn job_runs_as_many_pods_at_once_as_it_may_until_enough_succeeded() {
    let mut bench = Bench::new(2);
    bench.check = |world| {
        let active = world.pods.iter().filter(|pod| is_active(pod)).count();
        assert!(active <= 2, "{active} pods at once");
    };
    bench.apply(&job("completions: 5\n  parallelism: 2", ""));
    bench.pass(1);
    assert_eq!(shown(&bench), "active 2 succeeded 0 failed 0");
    bench.pass(60);
    assert_eq!(shown(&bench), format!("active 0 succeeded 5 failed 0 {COMPLETE}"));
    assert_eq!((bench.world.pods.len(), n_tracked(&bench)), (5, 0));
    assert!(bench.get::<Job>("j").status.unwrap().completion_time.is_some());
    assert!(bench.events.contains(&"Completed Job completed".to_owned()));
}

#[test]
fn failing_job_tries_again_later_and_later_and_gives_up() {
    let mut bench = Bench::new(2);
    bench.apply(&job("backoffLimit: 2", FAILS));
    bench.pass(6);
    assert_eq!(shown(&bench), "active 0 succeeded 0 failed 1");
    // The second comes 10 seconds after the first ended, the third 20 after
    // the second.
    bench.pass(10);
    assert_eq!(shown(&bench), "active 1 succeeded 0 failed 1");
    bench.pass(5 + 20 + 6);
    assert_eq!(
        shown(&bench),
        "active 0 succeeded 0 failed 3 FailureTarget=BackoffLimitExceeded Failed=BackoffLimitExceeded"
    );
    let event = "BackoffLimitExceeded Job has reached the specified backoff limit".to_owned();
    assert!(bench.events.contains(&event));
    assert_eq!(n_tracked(&bench), 0);
}

#[test]
fn indexed_job_runs_each_number_once() {
    let mut bench = Bench::new(2);
    bench.apply(&job("completions: 4\n  parallelism: 3\n  completionMode: Indexed", ""));
    bench.pass(60);
    assert_eq!(shown(&bench), format!("active 0 succeeded 4 failed 0 {COMPLETE}"));
    assert_eq!(bench.get::<Job>("j").status.unwrap().completed_indexes.as_deref(), Some("0-3"));
    let mut hosts = bench.list::<Pod>(|pod| {
        let spec = pod.spec.as_ref().unwrap();
        let env = spec.containers[0].env.as_ref().unwrap()[0].value.clone().unwrap();
        format!("{} {env}", spec.hostname.clone().unwrap())
    });
    hosts.sort();
    assert_eq!(hosts, ["j-0 0", "j-1 1", "j-2 2", "j-3 3"]);
}

#[test]
fn suspended_job_has_no_pods_until_it_is_resumed() {
    let mut bench = Bench::new(2);
    bench.apply(&job("suspend: true", ""));
    bench.pass(60);
    assert_eq!(shown(&bench), "active 0 succeeded 0 failed 0 Suspended=JobSuspended");
    bench.patch(Kind::Job, "j", json!({"spec": {"suspend": false}}));
    bench.pass(1);
    assert_eq!(shown(&bench), "active 1 succeeded 0 failed 0");
    bench.patch(Kind::Job, "j", json!({"spec": {"suspend": true}}));
    bench.pass(3);
    assert!(shown(&bench).starts_with("active 0 "), "{}", shown(&bench));
    bench.patch(Kind::Job, "j", json!({"spec": {"suspend": false}}));
    bench.pass(100);
    assert!(shown(&bench).ends_with(COMPLETE), "{}", shown(&bench));
}

#[test]
fn job_that_takes_too_long_fails() {
    let mut bench = Bench::new(2);
    let slow = "playground.steersman.dev/run-seconds: '1000'";
    bench.apply(&job("activeDeadlineSeconds: 30", slow));
    bench.pass(29);
    assert_eq!(shown(&bench), "active 1 succeeded 0 failed 0");
    bench.pass(5);
    assert_eq!(
        shown(&bench),
        "active 0 succeeded 0 failed 1 FailureTarget=DeadlineExceeded Failed=DeadlineExceeded"
    );
    assert!(bench.world.pods.is_empty(), "its pod was deleted");
}

#[test]
fn finished_job_goes_when_its_time_is_over() {
    let mut bench = Bench::new(2);
    bench.apply(&job("ttlSecondsAfterFinished: 20", ""));
    bench.pass(24);
    assert!(shown(&bench).ends_with(COMPLETE), "{}", shown(&bench));
    bench.pass(10);
    assert!(bench.world.jobs.is_empty());
}

#[test]
fn pod_that_somebody_deletes_counts_as_failed_and_is_replaced() {
    let mut bench = Bench::new(2);
    bench.apply(&job("backoffLimit: 3", ""));
    bench.pass(1);
    let name = bench.list::<Pod>(|pod| pod.metadata.name.clone().unwrap()).remove(0);
    bench.delete(Kind::Pod, &name);
    bench.pass(60);
    assert_eq!(shown(&bench), format!("active 0 succeeded 1 failed 1 {COMPLETE}"));
}

#[test]
fn pod_that_never_came_to_a_node_does_not_hold_up_the_end() {
    let mut bench = Bench::new(2);
    bench.binds = false;
    bench.apply(&job("activeDeadlineSeconds: 10", ""));
    bench.pass(20);
    assert!(shown(&bench).ends_with("Failed=DeadlineExceeded"), "{}", shown(&bench));
    assert!(bench.world.pods.is_empty());
}

#[test]
fn pods_of_a_job_that_is_gone_are_let_go() {
    let mut bench = Bench::new(2);
    bench.apply(&job("parallelism: 2", ""));
    assert_eq!(n_tracked(&bench), 2);
    bench.delete(Kind::Job, "j");
    assert_eq!(n_tracked(&bench), 0);
}

#[test]
fn job_says_once_which_of_its_fields_are_not_followed() {
    let mut bench = Bench::new(2);
    let fields = "completionMode: Indexed\n  completions: 2\n  backoffLimitPerIndex: 1";
    bench.apply(&job(fields, ""));
    bench.pass(60);
    assert!(shown(&bench).ends_with(COMPLETE), "{}", shown(&bench));
    let warnings: Vec<&String> =
        bench.events.iter().filter(|event| event.starts_with("NotSimulated")).collect();
    assert_eq!(warnings, ["NotSimulated The playground does not follow spec.backoffLimitPerIndex"]);
}

#[test]
fn job_of_another_controller_is_left_alone() {
    let mut bench = Bench::new(2);
    bench.apply(&job("managedBy: example.com/queue", ""));
    bench.pass(60);
    assert!(bench.world.pods.is_empty());
    assert_eq!(bench.get::<Job>("j").status, None);
}

#[test]
fn deadline_beyond_all_time_is_never_reached() {
    let mut bench = Bench::new(1);
    let forever = format!("activeDeadlineSeconds: {}", i64::MAX);
    bench.apply(&job(&forever, "playground.steersman.dev/run-seconds: '50'"));
    bench.pass(10);
    assert_eq!(shown(&bench), "active 1 succeeded 0 failed 0");
    bench.pass(60);
    assert_eq!(shown(&bench), format!("active 0 succeeded 1 failed 0 {COMPLETE}"));
}

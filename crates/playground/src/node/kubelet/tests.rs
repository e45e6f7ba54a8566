use jiff::SignedDuration;
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;

use crate::cluster::Kind;
use crate::controller::Controller;
use crate::controller::bench::Bench;
use crate::workload::{condition, is_ready, phase};

fn pod(restart_policy: &str, annotations: &str) -> String {
    format!(
        "
apiVersion: v1
kind: Pod
metadata: {{name: p, annotations: {{{annotations}}}}}
spec:
  restartPolicy: {restart_policy}
  containers: [{{name: c, image: i}}]
"
    )
}

fn shown(bench: &Bench) -> String {
    let pod: Pod = bench.get("p");
    let statuses = pod.status.as_ref().and_then(|s| s.container_statuses.clone());
    let container = statuses.unwrap_or_default().pop();
    let state = container.as_ref().and_then(|c| c.state.clone()).unwrap_or_default();
    let state = match (state.running, state.waiting, state.terminated) {
        (Some(_), ..) => "running".to_owned(),
        (_, Some(waiting), _) => waiting.reason.unwrap_or_default(),
        (.., Some(ended)) => format!("{} {}", ended.reason.unwrap_or_default(), ended.exit_code),
        _ => "nothing".to_owned(),
    };
    let restarts = container.map(|c| c.restart_count).unwrap_or_default();
    format!("{} {state} restarts {restarts} ready {}", phase(&pod), is_ready(&pod))
}

#[test]
fn bound_pod_runs_after_the_start_delay() {
    let mut bench = Bench::new(1);
    bench.settings.start_delay = SignedDuration::from_secs(2);
    bench.apply(&pod("Always", ""));
    bench.pass(1);
    assert_eq!(shown(&bench), "Pending nothing restarts 0 ready false");
    bench.pass(1);
    assert_eq!(shown(&bench), "Running running restarts 0 ready true");
    let pod: Pod = bench.get("p");
    let status = pod.status.clone().unwrap();
    assert_eq!(status.pod_ip.as_deref(), Some("10.128.0.1"));
    assert_eq!(status.host_ip.as_deref(), Some("172.18.0.2"));
    for kind in ["PodReadyToStartContainers", "Initialized", "ContainersReady", "PodScheduled"] {
        assert_eq!(condition(&pod, kind).map(|c| c.status.as_str()), Some("True"), "{kind}");
    }
    bench.pass(100_000);
    assert_eq!(shown(&bench), "Running running restarts 0 ready true");
}

#[test]
fn containers_end_as_their_policy_and_annotations_say() {
    let run = "playground.steersman.dev/run-seconds: '3'";
    let fail = "playground.steersman.dev/run-seconds: '3', playground.steersman.dev/exit-code: '2'";
    let endless = "playground.steersman.dev/run-seconds: '9e18'";
    let cases = [
        ("Never", "", 4, "Running running restarts 0 ready true"),
        ("Never", "", 5, "Succeeded Completed 0 restarts 0 ready false"),
        ("Never", run, 3, "Succeeded Completed 0 restarts 0 ready false"),
        ("Never", endless, 100, "Running running restarts 0 ready true"),
        ("Never", fail, 3, "Failed Error 2 restarts 0 ready false"),
        ("OnFailure", run, 3, "Succeeded Completed 0 restarts 0 ready false"),
        ("OnFailure", fail, 3, "Running CrashLoopBackOff restarts 0 ready false"),
        ("OnFailure", fail, 13, "Running running restarts 1 ready true"),
        ("Always", run, 3, "Running CrashLoopBackOff restarts 0 ready false"),
        // After 10 seconds, then after 20.
        ("Always", run, 36, "Running running restarts 2 ready true"),
    ];
    for (policy, annotations, seconds, expected) in cases {
        let mut bench = Bench::new(1);
        bench.apply(&pod(policy, annotations));
        bench.pass(seconds);
        assert_eq!(shown(&bench), expected, "{policy} {annotations} after {seconds} s");
    }
}

#[test]
fn deleted_pod_goes_after_the_shorter_of_grace_and_stop_delay() {
    for (grace, stop, gone_after) in [(30, 1, 1), (2, 10, 2), (30, 0, 0), (i64::MAX, 0, 0)] {
        let mut bench = Bench::new(1);
        bench.settings.stop_delay = SignedDuration::from_secs(stop);
        bench.apply(&pod("Always", ""));
        let grace = json!({"spec": {"terminationGracePeriodSeconds": grace}});
        bench.patch(Kind::Pod, "p", grace);
        bench.delete(Kind::Pod, "p");
        if gone_after > 0 {
            bench.pass(gone_after - 1);
            assert!(!bench.world.pods.is_empty(), "too early");
            bench.pass(1);
        }
        assert!(bench.world.pods.is_empty(), "too late: {}", shown(&bench));
        assert!(bench.events.contains(&"Killing Stopping container c".to_owned()));
    }
}

#[test]
fn silent_node_neither_starts_nor_ends_pods() {
    let mut bench = Bench::new(1).without(Controller::TaintEviction);
    bench.apply(&pod("Always", ""));
    let silent =
        json!({"metadata": {"annotations": {"playground.steersman.dev/heartbeat": "stopped"}}});
    bench.patch(Kind::Node, "node-1", silent);
    bench.delete(Kind::Pod, "p");
    bench.pass(1000);
    assert!(bench.get::<Pod>("p").metadata.deletion_timestamp.is_some());
    let again = json!({"metadata": {"annotations": {"playground.steersman.dev/heartbeat": null}}});
    bench.patch(Kind::Node, "node-1", again);
    assert!(bench.world.pods.is_empty());
}

#[test]
fn readiness_gate_keeps_a_pod_from_being_ready() {
    let mut bench = Bench::new(1);
    bench.apply(
        "
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  readinessGates: [{conditionType: example.com/ok}]
  containers: [{name: c, image: i}]
",
    );
    assert_eq!(shown(&bench), "Running running restarts 0 ready false");
    let mut conditions = json!(bench.get::<Pod>("p").status.unwrap().conditions.unwrap());
    let open = json!({"type": "example.com/ok", "status": "True"});
    conditions.as_array_mut().unwrap().push(open);
    bench.patch(Kind::Pod, "p", json!({"status": {"conditions": conditions}}));
    assert_eq!(shown(&bench), "Running running restarts 0 ready true");
}

#[test]
fn pod_starts_when_its_claims_are_bound() {
    let mut bench = Bench::new(1);
    bench.settings.start_delay = SignedDuration::ZERO;
    bench.apply(
        "
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  nodeName: node-1
  containers: [{name: c, image: i}]
  volumes: [{name: v, persistentVolumeClaim: {claimName: c}}]
",
    );
    assert_eq!(phase(&bench.get("p")), "Pending", "there is no claim");
    bench.apply("{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: c}}");
    assert_eq!(phase(&bench.get("p")), "Pending", "the claim is not bound");
    bench.patch(Kind::Claim, "c", json!({"status": {"phase": "Bound"}}));
    assert_eq!(phase(&bench.get("p")), "Running");
}

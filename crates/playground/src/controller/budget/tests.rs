use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use serde_json::json;

use super::*;
use crate::cluster::Kind;
use crate::controller::bench::Bench;

const SET: &str = "
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: s}
spec:
  replicas: 10
  selector: {matchLabels: {app: s}}
  template:
    metadata: {labels: {app: s}}
    spec: {containers: [{name: c, image: i}]}
";

fn budget(spec: &str) -> String {
    format!(
        "{{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {{name: b}}, \
          spec: {{{spec}, selector: {{matchLabels: {{app: s}}}}}}}}"
    )
}

/// Allowed, healthy, desired, expected.
fn counts(bench: &Bench) -> [i32; 4] {
    let status = bench.get::<PodDisruptionBudget>("b").status.unwrap();
    let (allowed, healthy) = (status.disruptions_allowed, status.current_healthy);
    [allowed, healthy, status.desired_healthy, status.expected_pods].map(|n| n.unwrap())
}

#[test]
fn budget_allows_what_its_numbers_leave() {
    let cases = [
        ("minAvailable: 7", [3, 10, 7, 10]),
        ("minAvailable: 85%", [1, 10, 9, 10]),
        ("maxUnavailable: 3", [3, 10, 7, 10]),
        ("maxUnavailable: 25%", [3, 10, 7, 10]),
        ("maxUnavailable: 0", [0, 10, 10, 10]),
        ("minAvailable: 100", [0, 10, 100, 10]),
    ];
    for (spec, expected) in cases {
        let mut bench = Bench::new(2);
        bench.apply(SET);
        bench.apply(&budget(spec));
        bench.pass(1);
        assert_eq!(counts(&bench), expected, "{spec}");
    }
}

#[test]
fn pods_that_are_going_or_not_ready_do_not_count() {
    let mut bench = Bench::new(2).without(crate::controller::Controller::ReplicaSet);
    for name in ["a", "b", "c"] {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "s"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        });
        bench.apply(&pod.to_string());
    }
    bench.apply(&budget("minAvailable: 1"));
    assert_eq!(counts(&bench), [2, 3, 1, 3]);
    bench.settings.stop_delay = SignedDuration::from_secs(5);
    bench.delete(Kind::Pod, "a");
    assert_eq!(counts(&bench), [1, 2, 1, 3]);
    // An eviction that was allowed and has not happened yet.
    let since = bench.now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    bench.patch(Kind::Budget, "b", json!({"status": {"disruptedPods": {"b": since}}}));
    assert_eq!(counts(&bench), [0, 1, 1, 3]);
    bench.pass(200);
    assert_eq!(counts(&bench), [1, 2, 1, 2], "it did not happen, and does not count any more");
}

#[test]
fn budget_of_pods_whose_controller_has_no_size_allows_nothing_and_says_so() {
    let mut bench = Bench::new(2);
    bench.apply(
        "
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: d}
spec:
  selector: {matchLabels: {app: s}}
  template: {metadata: {labels: {app: s}}, spec: {containers: [{name: c, image: i}]}}
",
    );
    bench.apply(&budget("maxUnavailable: 1"));
    bench.pass(60);
    let status = bench.get::<PodDisruptionBudget>("b").status.unwrap();
    let condition = &status.conditions.unwrap()[0];
    assert_eq!(status.disruptions_allowed, Some(0));
    let said = (condition.reason.as_str(), condition.message.as_str());
    assert_eq!(said, ("SyncFailed", "daemonsets.apps does not implement the scale subresource"));
    let n =
        bench.events.iter().filter(|e| e.starts_with("CalculateExpectedPodCountFailed")).count();
    assert_eq!(n, 1, "it says so once: {:?}", bench.events);
    bench.patch(Kind::Budget, "b", json!({"spec": {"maxUnavailable": null, "minAvailable": 1}}));
    assert_eq!(counts(&bench), [1, 2, 1, 2]);
}

#[test]
fn budget_without_a_number_allows_nothing() {
    let mut bench = Bench::new(2);
    bench.apply(SET);
    bench.apply(&budget("unhealthyPodEvictionPolicy: AlwaysAllow"));
    assert_eq!(counts(&bench), [0, 10, 0, 0]);
}

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use serde_json::json;

use super::*;
use crate::cluster::Kind;
use crate::controller::bench::Bench;
use crate::controller::storage;
use crate::engine::plan::to_value;

fn set(more: &str) -> String {
    format!(
        "
apiVersion: apps/v1
kind: StatefulSet
metadata: {{name: s}}
spec:
  replicas: 3
  serviceName: svc
  {more}
  selector: {{matchLabels: {{app: s}}}}
  template:
    metadata: {{labels: {{app: s}}}}
    spec: {{containers: [{{name: c, image: '1'}}]}}
"
    )
}

fn image(version: &str) -> serde_json::Value {
    json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": version}]}}}})
}

fn pods(bench: &Bench) -> Vec<String> {
    bench.list::<Pod>(|pod| {
        let image = pod.spec.as_ref().unwrap().containers[0].image.clone().unwrap();
        format!("{} {image}", pod.metadata.name.as_deref().unwrap())
    })
}

/// What was made and deleted, in its order.
fn story(bench: &Bench) -> Vec<String> {
    let events = bench.events.iter().filter(|event| event.contains("in StatefulSet"));
    events
        .filter_map(|event| {
            let mut words = event.split(' ').skip(1);
            let verb = words.next()?;
            let _pod = words.next()?;
            Some(format!("{verb} {}", words.next()?))
        })
        .collect()
}

#[test]
fn pods_come_in_order_and_go_in_reverse() {
    let mut bench = Bench::new(2);
    bench.settings.start_delay = jiff::SignedDuration::from_secs(3);
    bench.apply(&set(""));
    assert_eq!(pods(&bench), ["s-0 1"], "the next one waits until this one is ready");
    bench.pass(4);
    assert_eq!(pods(&bench), ["s-0 1", "s-1 1"]);
    bench.pass(10);
    assert_eq!(pods(&bench), ["s-0 1", "s-1 1", "s-2 1"]);
    bench.patch(Kind::StatefulSet, "s", json!({"spec": {"replicas": 1}}));
    bench.pass(60);
    let expected = ["create s-0", "create s-1", "create s-2", "delete s-2", "delete s-1"];
    assert_eq!(story(&bench), expected);
    let pod: Pod = bench.get("s-0");
    assert_eq!(pod.spec.as_ref().unwrap().hostname.as_deref(), Some("s-0"));
    assert_eq!(pod.spec.as_ref().unwrap().subdomain.as_deref(), Some("svc"));
    assert_eq!(pod.metadata.labels.unwrap()["apps.kubernetes.io/pod-index"], "0");
}

#[test]
fn parallel_set_waits_for_nobody() {
    let mut bench = Bench::new(2);
    bench.settings.start_delay = jiff::SignedDuration::from_secs(100);
    bench.apply(&set("podManagementPolicy: Parallel"));
    assert_eq!(pods(&bench), ["s-0 1", "s-1 1", "s-2 1"]);
}

#[test]
fn ordinals_may_start_elsewhere() {
    let mut bench = Bench::new(2);
    bench.apply(&set("ordinals: {start: 5}"));
    assert_eq!(pods(&bench), ["s-5 1", "s-6 1", "s-7 1"]);
}

#[test]
fn rollout_goes_from_the_last_pod_down_to_the_partition() {
    let partition = "updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 1}}";
    let mut bench = Bench::new(2);
    bench.apply(&set(partition));
    bench.pass(1);
    bench.events.clear();
    bench.patch(Kind::StatefulSet, "s", image("2"));
    bench.pass(60);
    assert_eq!(pods(&bench), ["s-0 1", "s-1 2", "s-2 2"]);
    assert_eq!(story(&bench), ["delete s-2", "create s-2", "delete s-1", "create s-1"]);
    let status = bench.get::<StatefulSet>("s").status.unwrap();
    assert_ne!(status.current_revision, status.update_revision);
    assert_eq!((status.current_replicas, status.updated_replicas), (Some(1), Some(2)));
    // One below the partition comes back as it was.
    bench.delete(Kind::Pod, "s-0");
    bench.pass(60);
    assert_eq!(pods(&bench), ["s-0 1", "s-1 2", "s-2 2"]);
    let all = json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}});
    bench.patch(Kind::StatefulSet, "s", all);
    bench.pass(60);
    assert_eq!(pods(&bench), ["s-0 2", "s-1 2", "s-2 2"]);
    let status = bench.get::<StatefulSet>("s").status.unwrap();
    assert_eq!(status.current_revision, status.update_revision);
}

const CLAIMS: &str = "volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: \
                      [ReadWriteOnce], storageClassName: immediate, resources: {requests: \
                      {storage: 1Gi}}}}]";

/// Two nodes, and volumes for all who want one.
fn bench_with_volumes() -> Bench {
    let mut bench = Bench::new(2);
    for class in storage::classes::classes(true) {
        bench.apply(&to_value(&class).to_string());
    }
    bench
}

#[test]
fn each_pod_has_claims_that_stay_when_it_goes() {
    let mut bench = bench_with_volumes();
    bench.apply(&set(CLAIMS));
    bench.pass(1);
    let names =
        |bench: &Bench| bench.list::<PersistentVolumeClaim>(|c| c.metadata.name.clone().unwrap());
    assert_eq!(names(&bench), ["data-s-0", "data-s-1", "data-s-2"]);
    let pod: Pod = bench.get("s-1");
    let volume = pod.spec.unwrap().volumes.unwrap().remove(0);
    assert_eq!(volume.persistent_volume_claim.unwrap().claim_name, "data-s-1");
    bench.patch(Kind::StatefulSet, "s", json!({"spec": {"replicas": 0}}));
    bench.pass(60);
    assert_eq!(pods(&bench), Vec::<String>::new());
    assert_eq!(names(&bench).len(), 3);
}

/// The claims and the kinds of what they go with.
fn claims(bench: &Bench) -> Vec<String> {
    bench.list::<PersistentVolumeClaim>(|claim| {
        let owners = claim.metadata.owner_references.iter().flatten();
        let owners: Vec<String> = owners.map(|o| format!("{} {}", o.kind, o.name)).collect();
        format!("{}: {}", claim.metadata.name.as_deref().unwrap(), owners.join(", "))
    })
}

#[test]
fn claims_go_with_whom_the_retention_policy_says() {
    let cases = [
        ("Retain", "Retain", ["data-s-0: ", "data-s-1: "]),
        ("Delete", "Retain", ["data-s-0: StatefulSet s", "data-s-1: StatefulSet s"]),
        ("Retain", "Delete", ["data-s-0: ", "data-s-1: Pod s-1"]),
        ("Delete", "Delete", ["data-s-0: StatefulSet s", "data-s-1: Pod s-1"]),
    ];
    for (deleted, scaled, expected) in cases {
        let policy = format!(
            "{CLAIMS}\n  persistentVolumeClaimRetentionPolicy: {{whenDeleted: {deleted}, \
             whenScaled: {scaled}}}"
        );
        let mut bench = bench_with_volumes();
        bench.apply(&set(&policy).replace("replicas: 3", "replicas: 2"));
        bench.pass(1);
        let with_set = if deleted == "Delete" { "StatefulSet s" } else { "" };
        let before: Vec<String> = (0..2).map(|i| format!("data-s-{i}: {with_set}")).collect();
        assert_eq!(claims(&bench), before, "{deleted}, {scaled}");
        bench.patch(Kind::StatefulSet, "s", json!({"spec": {"replicas": 1}}));
        bench.pass(60);
        assert_eq!(claims(&bench), expected, "{deleted}, {scaled}");
    }
}

#[test]
fn changed_retention_policy_reaches_claims_that_are_there() {
    let mut bench = bench_with_volumes();
    bench.apply(&set(CLAIMS).replace("replicas: 3", "replicas: 1"));
    bench.pass(1);
    assert_eq!(claims(&bench), ["data-s-0: "]);
    for (policy, expected) in [("Delete", "data-s-0: StatefulSet s"), ("Retain", "data-s-0: ")] {
        let patch = json!({"persistentVolumeClaimRetentionPolicy": {"whenDeleted": policy}});
        bench.patch(Kind::StatefulSet, "s", json!({ "spec": patch }));
        assert_eq!(claims(&bench), [expected]);
    }
}

#[test]
fn new_pod_waits_until_the_claim_of_its_predecessor_is_gone() {
    let policy =
        format!("{CLAIMS}\n  persistentVolumeClaimRetentionPolicy: {{whenScaled: Delete}}");
    let mut bench = bench_with_volumes();
    bench.apply(&set(&policy).replace("replicas: 3", "replicas: 2"));
    bench.pass(1);
    bench.patch(Kind::StatefulSet, "s", json!({"spec": {"replicas": 1}}));
    bench.pass(60);
    bench.patch(Kind::StatefulSet, "s", json!({"spec": {"replicas": 2}}));
    bench.pass(60);
    assert_eq!(pods(&bench), ["s-0 1"], "nobody collects garbage here");
    bench.delete(Kind::Claim, "data-s-1");
    bench.pass(60);
    assert_eq!(pods(&bench), ["s-0 1", "s-1 1"]);
    assert_eq!(claims(&bench), ["data-s-0: ", "data-s-1: "]);
}

#[test]
fn names_that_only_look_like_a_pods_are_not_of_the_set() {
    let cases = [
        ("s-0", Some(0)),
        ("s-12", Some(12)),
        ("s-01", None),
        ("s-+1", None),
        ("t-1", None),
        ("s", None),
    ];
    for (name, expected) in cases {
        assert_eq!(identity::number("s", name), expected, "{name}");
    }
}

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::*;
use crate::cluster::Kind;
use crate::controller::Controller;
use crate::controller::bench::Bench;
use crate::workload::{is_active, is_ready};

fn web(replicas: i32, strategy: &str) -> String {
    format!(
        "
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web, annotations: {{team: a}}}}
spec:
  replicas: {replicas}
  progressDeadlineSeconds: 600
  revisionHistoryLimit: 2
  strategy: {strategy}
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec: {{containers: [{{name: c, image: '1'}}]}}
"
    )
}

const ROLLING: &str = "{type: RollingUpdate, rollingUpdate: {maxSurge: 25%, maxUnavailable: 25%}}";

fn image(version: &str) -> Value {
    json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": version}]}}}})
}

/// Revision and size of each replica set, in order of the revisions.
fn sets(bench: &Bench) -> Vec<(i64, i32)> {
    let mut sets: Vec<(i64, i32)> = bench
        .world
        .replica_sets
        .iter()
        .map(|set| (annotations::revision(&set.metadata), size(set)))
        .collect();
    sets.sort_unstable();
    sets
}

fn conditions(bench: &Bench) -> Vec<String> {
    let deployment: Deployment = bench.get("web");
    let conditions = deployment.status.unwrap().conditions.unwrap();
    let shown = conditions
        .into_iter()
        .map(|c| format!("{} {} {}", c.type_, c.status, c.reason.unwrap_or_default()));
    shown.collect()
}

#[test]
fn new_deployment_makes_a_set_and_is_available_when_its_pods_are() {
    let mut bench = Bench::new(2);
    bench.apply(&web(3, ROLLING));
    bench.pass(1);
    assert_eq!(sets(&bench), [(1, 3)]);
    let deployment: Deployment = bench.get("web");
    let status = deployment.status.clone().unwrap();
    assert_eq!(
        (status.replicas, status.updated_replicas, status.available_replicas),
        (Some(3), Some(3), Some(3))
    );
    assert_eq!(status.observed_generation, deployment.metadata.generation);
    assert_eq!(
        conditions(&bench),
        ["Available True MinimumReplicasAvailable", "Progressing True NewReplicaSetAvailable"]
    );
    let set = bench.world.replica_sets.iter().next().unwrap();
    assert_eq!(set.metadata.annotations.as_ref().unwrap()["team"], "a");
    let hash = &set.metadata.labels.as_ref().unwrap()["pod-template-hash"];
    assert_eq!(set.metadata.name.as_deref().unwrap(), format!("web-{hash}"));
    let message = format!("ScalingReplicaSet Scaled up replica set web-{hash} from 0 to 3");
    assert!(bench.events.contains(&message), "{:?}", bench.events);
}

#[test]
fn rollout_keeps_within_surge_and_unavailability_at_every_step() {
    for (replicas, surge, unavailable) in [(10, 3, 2), (4, 1, 0), (4, 0, 1), (1, 1, 0), (7, 7, 7)] {
        let strategy = format!(
            "{{type: RollingUpdate, rollingUpdate: {{maxSurge: {surge}, maxUnavailable: {unavailable}}}}}"
        );
        let mut bench = Bench::new(3);
        bench.apply(&web(replicas, &strategy));
        bench.pass(1);
        bench.check = match (replicas, surge, unavailable) {
            (10, ..) => |world| within(world, 8, 13),
            (4, 1, 0) => |world| within(world, 4, 5),
            (4, ..) => |world| within(world, 3, 4),
            (1, ..) => |world| within(world, 1, 2),
            _ => |world| within(world, 0, 14),
        };
        bench.patch(Kind::Deployment, "web", image("2"));
        bench.pass(60);
        assert_eq!(sets(&bench), [(1, 0), (2, replicas)], "{replicas} {surge} {unavailable}");
    }
}

fn within(world: &World, least: usize, most: usize) {
    let pods: Vec<_> = world.pods.iter().filter(|pod| is_active(pod)).collect();
    let n_ready = pods.iter().filter(|pod| is_ready(pod)).count();
    assert!(n_ready >= least, "{n_ready} pods are ready, {least} must be");
    assert!(pods.len() <= most, "there are {} pods, {most} may be", pods.len());
}

#[test]
fn going_back_to_an_old_template_reuses_its_set_as_the_newest_revision() {
    let mut bench = Bench::new(2);
    bench.apply(&web(2, ROLLING));
    bench.patch(Kind::Deployment, "web", image("2"));
    bench.pass(60);
    bench.patch(Kind::Deployment, "web", image("1"));
    bench.pass(60);
    assert_eq!(sets(&bench), [(2, 0), (3, 2)]);
    let deployment: Deployment = bench.get("web");
    assert_eq!(annotations::revision(&deployment.metadata), 3);
    let current = bench.world.replica_sets.iter().find(|set| size(set) == 2).unwrap();
    let history = "deployment.kubernetes.io/revision-history";
    assert_eq!(current.metadata.annotations.as_ref().unwrap()[history], "1");
}

#[test]
fn history_is_as_long_as_its_limit() {
    let mut bench = Bench::new(2);
    bench.apply(&web(1, ROLLING));
    for version in ["2", "3", "4", "5"] {
        bench.patch(Kind::Deployment, "web", image(version));
        bench.pass(60);
    }
    assert_eq!(sets(&bench), [(3, 0), (4, 0), (5, 1)]);
}

#[test]
fn recreate_waits_until_the_old_pods_are_gone() {
    let mut bench = Bench::new(2);
    bench.apply(&web(3, "{type: Recreate}"));
    bench.pass(1);
    bench.check = |world| {
        let images: std::collections::BTreeSet<_> = world
            .pods
            .iter()
            .map(|pod| pod.spec.as_ref().unwrap().containers[0].image.clone())
            .collect();
        assert!(images.len() < 2, "old and new pods side by side: {images:?}");
    };
    bench.patch(Kind::Deployment, "web", image("2"));
    bench.pass(60);
    assert_eq!(sets(&bench), [(1, 0), (2, 3)]);
}

#[test]
fn paused_deployment_scales_but_does_not_roll() {
    let mut bench = Bench::new(2);
    bench.apply(&web(3, ROLLING));
    bench.pass(1);
    bench.patch(Kind::Deployment, "web", json!({"spec": {"paused": true}}));
    bench.patch(Kind::Deployment, "web", image("2"));
    bench.patch(Kind::Deployment, "web", json!({"spec": {"replicas": 5}}));
    bench.pass(60);
    assert_eq!(sets(&bench), [(1, 5)]);
    assert!(conditions(&bench).contains(&"Progressing Unknown DeploymentPaused".to_owned()));
    bench.patch(Kind::Deployment, "web", json!({"spec": {"paused": null}}));
    bench.pass(60);
    assert_eq!(sets(&bench), [(1, 0), (2, 5)]);
    assert!(conditions(&bench).contains(&"Progressing True NewReplicaSetAvailable".to_owned()));
}

#[test]
fn rollout_that_does_not_come_forward_exceeds_its_deadline() {
    let mut bench = Bench::new(2).without(Controller::Kubelet);
    bench.apply(&web(2, ROLLING));
    bench.pass(590);
    assert!(!conditions(&bench).iter().any(|c| c.contains("Deadline")));
    bench.pass(20);
    assert_eq!(
        conditions(&bench),
        [
            "Available False MinimumReplicasUnavailable",
            "Progressing False ProgressDeadlineExceeded"
        ]
    );
}

#[test]
fn scaling_in_the_middle_of_a_rollout_is_shared_by_the_sets() {
    let mut bench = Bench::new(2);
    bench.apply(&web(10, ROLLING));
    bench.pass(1);
    // New pods do not become ready, so the rollout stands still.
    let mut bench = bench.without(Controller::Kubelet);
    bench.patch(Kind::Deployment, "web", image("2"));
    bench.pass(10);
    assert_eq!(sets(&bench), [(1, 8), (2, 5)]);
    bench.patch(Kind::Deployment, "web", json!({"spec": {"replicas": 20}}));
    bench.pass(10);
    let sets = sets(&bench);
    assert_eq!(sets.iter().map(|(_, size)| size).sum::<i32>(), 25, "{sets:?}");
    assert!(sets[0].1 > 10 && sets[1].1 > 7, "both have grown: {sets:?}");
}

#[test]
fn orphaned_set_is_adopted_and_not_made_again() {
    let mut bench = Bench::new(1);
    bench.apply(&web(2, ROLLING));
    bench.pass(1);
    let name = bench.list::<ReplicaSet>(|set| set.metadata.name.clone().unwrap()).remove(0);
    let pods = bench.list::<Pod>(|pod| pod.metadata.name.clone().unwrap());
    bench.delete(Kind::Deployment, "web");
    bench.patch(Kind::ReplicaSet, &name, json!({"metadata": {"ownerReferences": null}}));
    bench.apply(&web(2, ROLLING));
    bench.pass(1);
    assert_eq!(sets(&bench), [(1, 2)]);
    assert_eq!(bench.list::<Pod>(|pod| pod.metadata.name.clone().unwrap()), pods);
}

#[test]
fn largest_deployment_has_no_room_for_a_surge() {
    let strategy = "{type: RollingUpdate, rollingUpdate: {maxSurge: 100%, maxUnavailable: 0}}";
    let mut bench = Bench::new(1).without(Controller::ReplicaSet);
    bench.apply(&web(i32::MAX, strategy));
    assert_eq!(sets(&bench), [(1, i32::MAX)]);
    let set = bench.world.replica_sets.iter().next().unwrap();
    let most = &set.metadata.annotations.as_ref().unwrap()["deployment.kubernetes.io/max-replicas"];
    assert_eq!(*most, i32::MAX.to_string());
    bench.patch(Kind::Deployment, "web", image("2"));
    bench.pass(1);
    assert_eq!(sets(&bench), [(1, i32::MAX), (2, 0)]);
    bench.patch(Kind::Deployment, "web", json!({"spec": {"replicas": i32::MAX - 1}}));
    bench.pass(1);
    assert_eq!(sets(&bench)[0].1, i32::MAX - 1);
}

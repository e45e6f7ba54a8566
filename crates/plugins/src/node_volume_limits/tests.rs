use expect_test::{Expect, expect};
use serde_json::{Value, json};
use steersman_framework::events::{Change, Hint};
use steersman_testing::bench::Bench;
use steersman_testing::{PodBuilder, node, pod};

use super::*;
use crate::test_volumes::{
    bound_claim, came, changed, claim, csi_node, left, pod_with, pod_with_volume, volume,
    waiting_class, went,
};

const DRIVER: &str = "csi.example.com";
const EBS: &str = "ebs.csi.aws.com";

/// Node n1, where `limit` volumes can be attached, and n2 without a limit.
/// Claims a to d are bound to volumes of their names; `later` waits for a
/// volume of the same driver.
fn bench(limit: i32) -> Bench {
    let names = ["a", "b", "c", "d"];
    Bench::new(&descriptor())
        .nodes([node("n1"), node("n2")])
        .objects([csi_node("n1", &[(DRIVER, limit), (EBS, limit)])])
        .objects(names.map(|name| bound_claim(name, name)))
        .objects(names.map(|name| volume(name, json!({}))))
        .objects([waiting_class("fast"), claim("later", json!({"storageClassName": "fast"}))])
}

fn attachment(name: &str, node: &str, volume: &str) -> Value {
    json!({"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment",
        "metadata": {"name": name},
        "spec": {"attacher": DRIVER, "nodeName": node, "source": {"persistentVolumeName": volume}}})
}

fn ebs(id: &str) -> Value {
    json!({"awsElasticBlockStore": {"volumeID": id}})
}

fn ephemeral() -> Value {
    json!({"ephemeral": {"volumeClaimTemplate": {"spec": {}}}})
}

/// Whether n1 takes the pod.
#[track_caller]
fn check(bench: &Bench, pod: PodBuilder, expected: bool) {
    let verdicts = bench.filter(&pod.build());
    let first = match expected {
        true => "n1: fit",
        false => "n1: Unschedulable: node(s) exceed max volume count",
    };
    assert_eq!(verdicts, format!("{first}\nn2: fit\n"));
}

#[test]
fn volumes_beyond_the_limit_are_rejected() {
    let taken = |limit| bench(limit).pods([pod_with("x", &["a", "b"]).on("n1")]);
    check(&taken(3), pod_with("p", &["c"]), true);
    check(&taken(2), pod_with("p", &["c"]), false);
    check(&taken(3), pod_with("p", &["c", "d"]), false);
    check(&taken(4), pod_with("p", &["c", "d"]), true);
    check(&bench(0), pod_with("p", &["a"]), false);
}

#[test]
fn volume_in_use_already_takes_no_more_room() {
    let shared =
        bench(2).pods([pod_with("x", &["a", "b"]).on("n1"), pod_with("y", &["a"]).on("n1")]);
    check(&shared, pod_with("p", &["a"]), true);
    check(&shared, pod_with("p", &["a", "b"]), true);
    check(&shared, pod_with("p", &["a", "c"]), false);
}

#[test]
fn claim_without_a_volume_counts_once_for_its_driver() {
    let taken = bench(2).pods([pod_with("x", &["a", "later"]).on("n1")]);
    check(&taken, pod_with("p", &["b"]), false);
    check(&taken, pod_with("p", &["later"]), true);
    let taken = bench(1).pods([pod_with("x", &["a"]).on("n1")]);
    check(&taken, pod_with("p", &["later"]), false);
    // Without a class nobody knows of which driver a volume will be.
    let unknown = bench(0).objects([claim("odd", json!({"storageClassName": "none"}))]);
    check(&unknown, pod_with("p", &["odd"]), true);
}

#[test]
fn attached_volumes_count_besides_those_of_pods() {
    let attached = |limit| {
        bench(limit)
            .objects([attachment("1", "n1", "a"), attachment("2", "n1", "b")])
            .objects([attachment("3", "n2", "c"), attachment("4", "n1", "none")])
    };
    check(&attached(3), pod_with("p", &["c"]), true);
    check(&attached(2), pod_with("p", &["c"]), false);
    let used = |limit| attached(limit).pods([pod_with("x", &["a"]).on("n1")]);
    check(&used(3), pod_with("p", &["c"]), true);
    check(&used(2), pod_with("p", &["c"]), false);
    // The reference counts it twice: as attached, and as wanted.
    check(&attached(2), pod_with("p", &["b"]), false);
}

#[test]
fn in_tree_disks_count_for_the_drivers_that_serve_them_now() {
    let in_tree = volume("old", ebs("aws://zone/vol-2"));
    let taken = bench(2)
        .objects([in_tree, bound_claim("old", "old")])
        .pods([pod_with_volume("x", ebs("vol-1")).on("n1"), pod_with("y", &["old"]).on("n1")]);
    check(&taken, pod_with_volume("p", ebs("vol-3")), false);
    check(&taken, pod_with_volume("p", ebs("aws:///vol-2")), true);
    // Other drivers have their own limits.
    check(&taken, pod_with("p", &["a"]), true);
    let mut class = waiting_class("ebs");
    class["provisioner"] = "kubernetes.io/aws-ebs".into();
    let later = taken.objects([class, claim("ebs", json!({"storageClassName": "ebs"}))]);
    check(&later, pod_with("p", &["ebs"]), false);
}

#[test]
fn portworx_volumes_count_where_the_move_is_announced() {
    let portworx = json!({"portworxVolume": {"volumeID": "v"}});
    let mut n1 = csi_node("n1", &[("pxd.portworx.com", 0)]);
    check(&bench(0).objects([n1.clone()]), pod_with_volume("p", portworx.clone()), true);
    n1["metadata"]["annotations"] = json!({"storage.alpha.kubernetes.io/migrated-plugins":
        "kubernetes.io/portworx-volume"});
    check(&bench(0).objects([n1]), pod_with_volume("p", portworx), false);
}

#[test]
fn volumes_of_other_sorts_do_not_count() {
    let local = volume("local", json!({"hostPath": {"path": "/x"}}));
    let bench = bench(0).objects([local, bound_claim("local", "local")]);
    check(&bench, pod_with("p", &["local"]), true);
    assert_eq!(bench.filter(&pod("p").build()), "skip\n");
    assert_eq!(bench.filter(&pod_with_volume("p", json!({"emptyDir": {}})).build()), "skip\n");
}

#[track_caller]
fn check_text(bench: &Bench, pod: PodBuilder, expected: Expect) {
    expected.assert_eq(&bench.filter(&pod.build()));
}

#[test]
fn missing_claim_cannot_be_helped_by_evictions() {
    check_text(
        &bench(1),
        pod_with("p", &["none"]),
        expect![[r#"
            n1: UnschedulableAndUnresolvable: looking up PVC default/none: persistentvolumeclaim "none" not found
            n2: UnschedulableAndUnresolvable: looking up PVC default/none: persistentvolumeclaim "none" not found
        "#]],
    );
    // Pods that run know better.
    check(&bench(1).pods([pod_with("x", &["none"]).on("n1")]), pod_with("p", &["a"]), true);
}

#[test]
fn ephemeral_volume_is_that_of_its_pod() {
    let mut owned = claim("p-v", json!({"storageClassName": "fast"}));
    owned["metadata"]["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "Pod",
        "name": "p", "uid": "uid-default-p", "controller": true}]);
    check(&bench(0).objects([owned.clone()]), pod_with_volume("p", ephemeral()), false);
    check(&bench(1).objects([owned.clone()]), pod_with_volume("p", ephemeral()), true);
    let running = bench(1).objects([owned]).pods([pod_with_volume("p", ephemeral()).on("n1")]);
    check(&running, pod_with("q", &["a"]), false);
    let stranger = bench(1).objects([claim("p-v", json!({}))]);
    let plugin = stranger.plugin.filter.as_ref().expect("Filter");
    let state = steersman_framework::state::CycleState::new();
    let p = pod_with_volume("p", ephemeral()).build();
    let ctx = CycleCtx { pod: &p, cluster: &stranger.cluster, state: &state };
    let n1 = stranger.cluster.nodes().by_name(&"n1".into()).expect("n1");
    let error = "PVC default/p-v was not created for pod default/p (pod is not owner)";
    assert_eq!(plugin.filter(&ctx, n1), Err(PluginError(error.to_owned())));
}

#[track_caller]
fn check_hint(change: &Change, expected: Option<Hint>) {
    let hint = bench(2).hint(&pod_with("p", &["a", "later"]).build(), change);
    assert_eq!(hint, expected, "{change:?}");
}

#[test]
fn departures_and_detachments_of_the_pods_drivers_count() {
    check_hint(&left(pod_with("x", &["c"]).on("n1")), Some(Hint::Queue));
    check_hint(&left(pod_with_volume("x", ebs("vol-1")).on("n1")), Some(Hint::Skip));
    check_hint(&left(pod("x").on("n1")), Some(Hint::Skip));
    // Its claim went with it.
    check_hint(&left(pod_with("x", &["none"]).on("n1")), Some(Hint::Queue));
    check_hint(&went(attachment("1", "n1", "c")), Some(Hint::Queue));
    let mut other = attachment("1", "n1", "c");
    other["spec"]["attacher"] = "x".into();
    check_hint(&went(other), Some(Hint::Skip));
}

#[test]
fn node_counts_when_it_takes_the_volumes() {
    let added = |name: &str| Change::Node { old: None, new: Some(node(name).build()) };
    let hint = |limit, name: &str| bench(limit).hint(&pod_with("p", &["a"]).build(), &added(name));
    assert_eq!(hint(0, "n1"), Some(Hint::Skip));
    assert_eq!(hint(1, "n1"), Some(Hint::Queue));
    assert_eq!(hint(0, "n2"), Some(Hint::Queue));
}

#[test]
fn limits_count_that_grow_or_go() {
    let limit = |n| csi_node("n1", &[(DRIVER, n)]);
    check_hint(&changed(limit(1), limit(2)), Some(Hint::Queue));
    check_hint(&changed(limit(2), limit(1)), Some(Hint::Skip));
    check_hint(&changed(limit(2), csi_node("n1", &[])), Some(Hint::Queue));
    check_hint(&changed(csi_node("n1", &[]), limit(2)), Some(Hint::Skip));
    check_hint(
        &changed(csi_node("n1", &[("x", 1)]), csi_node("n1", &[("x", 2)])),
        Some(Hint::Skip),
    );
    check_hint(&went(limit(1)), Some(Hint::Queue));
    check_hint(&came(limit(1)), None);
}

#[test]
fn claims_volumes_and_classes_of_the_pod_count() {
    check_hint(&came(claim("a", json!({}))), Some(Hint::Queue));
    check_hint(&came(claim("x", json!({}))), Some(Hint::Skip));
    check_hint(&came(volume("a", json!({}))), Some(Hint::Queue));
    check_hint(&came(volume("x", json!({}))), Some(Hint::Skip));
    check_hint(&went(volume("x", json!({}))), Some(Hint::Queue));
    check_hint(&changed(volume("x", json!({})), volume("x", json!({}))), Some(Hint::Skip));
    check_hint(&went(waiting_class("fast")), Some(Hint::Queue));
    check_hint(&went(waiting_class("slow")), Some(Hint::Skip));
}

#[test]
fn hint_is_complete_for_departures_and_limits() {
    let p = pod_with("p", &["c"]).build();
    let x = || pod_with("x", &["a", "b"]).on("n1");
    let alone = |limit| {
        Bench::new(&descriptor())
            .nodes([node("n1")])
            .objects([csi_node("n1", &[(DRIVER, limit)])])
            .objects(["a", "b", "c"].map(|name| bound_claim(name, name)))
            .objects(["a", "b", "c"].map(|name| volume(name, json!({}))))
    };
    alone(2).pods([x()]).check_hint_is_complete(&alone(2), &p, &left(x()));
    let limit = |n| csi_node("n1", &[(DRIVER, n)]);
    let grew = changed(limit(2), limit(3));
    alone(2).pods([x()]).check_hint_is_complete(&alone(3).pods([x()]), &p, &grew);
}

use serde_json::{Value, json};
use steersman_api::node::ZONE_LABEL;
use steersman_framework::events::{Change, Hint};

use super::*;
use crate::test_volumes::{
    bound_claim, came, changed, claim, csi_node, left, local_class, only_where, pod_with, volume,
    waiting_class, went,
};

/// Claim `fast` waits for a volume that is made, `local` for one that is there;
/// `bound` has one in z1.
fn hint_bench() -> Bench {
    bench([
        of_class("fast", "fast"),
        waiting_class("fast"),
        of_class("local", "local"),
        local_class("local"),
        bound_claim("bound", "disk"),
        disk(),
    ])
}

/// A volume in z1 of an in-tree plugin.
fn disk() -> Value {
    let spec = json!({"awsElasticBlockStore": {"volumeID": "vol-1"},
        "nodeAffinity": only_where(ZONE_LABEL, "z1")});
    volume("disk", spec)
}

#[track_caller]
fn check(change: &Change, expected: Option<Hint>) {
    check_for(&["fast", "local", "bound"], change, expected);
}

#[track_caller]
fn check_for(claims: &[&str], change: &Change, expected: Option<Hint>) {
    let hint = hint_bench().hint(&pod_with("p", claims).build(), change);
    assert_eq!(hint, expected, "{claims:?} {change:?}");
}

#[test]
fn claims_of_the_pod_count() {
    check(&came(claim("fast", json!({}))), Some(Hint::Queue));
    check(&came(claim("x", json!({}))), Some(Hint::Skip));
    check(&changed(of_class("fast", "fast"), bound_claim("fast", "pv")), Some(Hint::Queue));
    check(&went(claim("fast", json!({}))), None);
}

#[test]
fn volumes_count_that_the_claims_have_or_could_take() {
    check(&came(local_volume("pv", "z1")), Some(Hint::Queue));
    check(&changed(local_volume("pv", "z1"), local_volume("pv", "z2")), Some(Hint::Queue));
    check(&came(volume("pv", json!({"storageClassName": "other"}))), Some(Hint::Skip));
    check(&came(disk()), Some(Hint::Queue));
    check_for(&["fast"], &came(disk()), Some(Hint::Skip));
    // A volume that is kept for a claim, and out of reach, stands in its way.
    let mut kept = local_volume("pv", "z9");
    kept["spec"]["claimRef"] = json!({"namespace": "default", "name": "local"});
    check(&went(kept), Some(Hint::Queue));
    check(&went(local_volume("pv", "z1")), Some(Hint::Skip));
}

#[test]
fn classes_of_the_claims_count() {
    check(&came(waiting_class("fast")), Some(Hint::Queue));
    check(&came(waiting_class("x")), Some(Hint::Skip));
    let mut topology = waiting_class("fast");
    topology["allowedTopologies"] =
        json!([{"matchLabelExpressions": [{"key": ZONE_LABEL, "values": ["z2"]}]}]);
    check(&changed(waiting_class("fast"), topology), Some(Hint::Queue));
    check(&changed(waiting_class("fast"), waiting_class("fast")), Some(Hint::Skip));
    check_for(&["bound"], &came(waiting_class("fast")), Some(Hint::Skip));
}

fn capacity(amount: &str) -> Value {
    json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSIStorageCapacity",
        "metadata": {"namespace": "ns", "name": "c"}, "storageClassName": "fast",
        "nodeTopology": {}, "capacity": amount})
}

#[test]
fn storage_counts_that_grows() {
    check(&came(capacity("1Gi")), Some(Hint::Queue));
    check(&changed(capacity("1Gi"), capacity("2Gi")), Some(Hint::Queue));
    check(&changed(capacity("2Gi"), capacity("1Gi")), Some(Hint::Skip));
    check_for(&["local"], &came(capacity("1Gi")), Some(Hint::Skip));
}

#[test]
fn driver_counts_that_ceases_to_publish_capacity() {
    let driver = |name: &str, publishes: bool| {
        json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver",
            "metadata": {"name": name}, "spec": {"storageCapacity": publishes}})
    };
    let name = "csi.example.com";
    check(&changed(driver(name, true), driver(name, false)), Some(Hint::Queue));
    check(&changed(driver(name, false), driver(name, true)), Some(Hint::Skip));
    check(&went(driver(name, true)), Some(Hint::Queue));
    check(&changed(driver("x", true), driver("x", false)), Some(Hint::Skip));
    check(&came(driver(name, false)), None);
}

#[test]
fn moved_plugins_count_for_volumes_of_theirs() {
    let moved = |plugins: &str| {
        let mut node = csi_node("a", &[]);
        node["metadata"]["annotations"] =
            json!({"storage.alpha.kubernetes.io/migrated-plugins": plugins});
        node
    };
    check(&came(moved("kubernetes.io/aws-ebs")), Some(Hint::Queue));
    check(&came(moved("")), Some(Hint::Skip));
    check(&changed(moved("x"), moved("x,y")), Some(Hint::Queue));
    check_for(&["local"], &came(moved("x")), Some(Hint::Skip));
}

#[test]
fn node_counts_from_which_the_volumes_can_be_reached() {
    let added = |zone: &str| Change::Node { old: None, new: Some(node("n").zone(zone).build()) };
    check(&added("z1"), Some(Hint::Queue));
    check(&added("z2"), Some(Hint::Skip));
    check_for(&["local"], &added("z2"), Some(Hint::Queue));
    // No node helps a pod whose claim is missing a class that waits.
    let bench = bench([claim("c", json!({}))]);
    assert_eq!(bench.hint(&pod_with("p", &["c"]).build(), &added("z1")), Some(Hint::Skip));
}

#[test]
fn departure_counts_of_pods_whose_binding_may_have_failed() {
    check(&left(pod_with("x", &["fast"]).on("a")), Some(Hint::Queue));
    check(&left(pod_with("x", &["bound"]).on("a")), Some(Hint::Skip));
    check(&left(pod_with("x", &["gone"]).on("a")), Some(Hint::Queue));
    check(&left(pod_with("x", &[]).on("a")), Some(Hint::Skip));
    check_for(&["local"], &left(pod_with("x", &["fast"]).on("a")), Some(Hint::Skip));
    check_for(&["bound"], &left(pod_with("x", &["gone"]).on("a")), Some(Hint::Skip));
}

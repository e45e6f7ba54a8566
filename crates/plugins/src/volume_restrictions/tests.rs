use expect_test::{Expect, expect};
use serde_json::{Value, json};
use steersman_framework::events::Hint;
use steersman_testing::bench::{Bench, WhatIf};
use steersman_testing::{PodBuilder, node, pod};

use super::*;
use crate::test_volumes::{came, changed, claim, left, pod_with, pod_with_volume};

fn one_pod_claim(name: &str) -> Value {
    claim(name, json!({"accessModes": [ONE_POD]}))
}

fn gce(name: &str, read_only: bool) -> Value {
    json!({"gcePersistentDisk": {"pdName": name, "readOnly": read_only}})
}

/// Nodes n1 and n2; pod a on n1 uses the claim `one` that is for one pod, the
/// claim `many` that is not, and the disk `d` for reading.
fn bench() -> Bench {
    Bench::new(&descriptor())
        .nodes([node("n1"), node("n2")])
        .objects([one_pod_claim("one"), one_pod_claim("free"), claim("many", json!({}))])
        .pods([holder()])
}

fn holder() -> PodBuilder {
    let mut disk = gce("d", true);
    disk["name"] = "d".into();
    pod("a").on("n1").spec(json!({"volumes": [
        {"name": "one", "persistentVolumeClaim": {"claimName": "one"}},
        {"name": "many", "persistentVolumeClaim": {"claimName": "many"}},
        disk]}))
}

#[track_caller]
fn check(pod: PodBuilder, expected: Expect) {
    expected.assert_eq(&bench().filter(&pod.build()));
}

#[test]
fn claim_for_one_pod_is_taken_in_the_whole_cluster() {
    check(
        pod_with("p", &["many", "one"]),
        expect![[r"
            n1: Unschedulable: node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod
            n2: Unschedulable: node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod
        "]],
    );
    check(pod_with("p", &["many", "free"]), expect!["skip\n"]);
    check(pod("p"), expect!["skip\n"]);
}

#[test]
fn claim_of_that_name_in_another_namespace_is_another_claim() {
    let bench = bench().pods([pod_with("other/b", &["free"]).on("n2")]);
    assert_eq!(bench.filter(&pod_with("p", &["free"]).build()), "skip\n");
}

#[test]
fn missing_claim_rejects_the_pod() {
    check(
        pod_with("p", &["none"]),
        expect![[r#"
            UnschedulableAndUnresolvable: persistentvolumeclaim "none" not found
        "#]],
    );
    // The claim of an ephemeral volume is not looked for here.
    let ephemeral = json!({"ephemeral": {"volumeClaimTemplate": {"spec": {}}}});
    check(pod_with_volume("p", ephemeral), expect!["skip\n"]);
}

#[test]
fn eviction_of_the_user_frees_a_claim_for_one_pod() {
    let p = pod_with("p", &["one"]).build();
    let evicted = [WhatIf::Remove(holder().build())];
    assert_eq!(bench().filter_after(&p, &evicted), "n1: fit\nn2: fit\n");
    // Somebody else in its place takes it again.
    let replaced =
        [WhatIf::Remove(holder().build()), WhatIf::Add(pod_with("b", &["one"]).on("n2").build())];
    assert!(!bench().filter_after(&p, &replaced).contains("fit"));
    let stranger = [WhatIf::Remove(pod_with("other/a", &["one"]).on("n1").build())];
    assert!(!bench().filter_after(&p, &stranger).contains("fit"));
}

#[test]
fn disk_in_use_rejects_the_node() {
    check(
        pod_with_volume("p", gce("d", false)),
        expect![[r"
            n1: Unschedulable: node(s) had no available disk
            n2: fit
        "]],
    );
    check(pod_with_volume("p", gce("d", true)), expect!["n1: fit\nn2: fit\n"]);
}

#[track_caller]
fn check_hint(pod: &PodBuilder, change: &Change, expected: Option<Hint>) {
    assert_eq!(bench().hint(&pod.clone().build(), change), expected, "{change:?}");
}

#[test]
fn departures_count_that_give_up_a_claim_or_disk() {
    let p = pod_with("p", &["one"]);
    check_hint(&p, &left(pod_with("b", &["one"]).on("n1")), Some(Hint::Queue));
    check_hint(&p, &left(pod_with("b", &["many"]).on("n1")), Some(Hint::Skip));
    check_hint(&p, &left(pod_with("other/b", &["one"]).on("n1")), Some(Hint::Skip));
    let p = pod_with_volume("p", gce("d", false));
    let reader = |name: &str| pod_with_volume(name, gce("d", true)).on("n1");
    check_hint(&p, &left(reader("b")), Some(Hint::Queue));
    check_hint(&p, &left(reader("other/b")), Some(Hint::Queue));
    check_hint(&p, &left(pod_with_volume("b", gce("e", false)).on("n1")), Some(Hint::Skip));
}

#[test]
fn new_node_counts_for_pods_with_disks() {
    let came = Change::Node { old: None, new: Some(node("n3").build()) };
    check_hint(&pod_with("p", &["one"]), &came, Some(Hint::Skip));
    check_hint(&pod_with_volume("p", gce("d", false)), &came, Some(Hint::Queue));
}

#[test]
fn a_claim_whose_user_went_with_its_node_is_free() {
    let gone = Change::Node { old: Some(node("n").build()), new: None };
    check_hint(&pod_with("p", &["one"]), &gone, Some(Hint::Queue));
    check_hint(&pod_with_volume("p", gce("d", false)), &gone, Some(Hint::Skip));
}

#[test]
fn new_claim_counts_for_its_pod() {
    let p = pod_with("p", &["none"]);
    check_hint(&p, &came(claim("none", json!({}))), Some(Hint::Queue));
    check_hint(&p, &came(claim("some", json!({}))), Some(Hint::Skip));
    let same = changed(claim("none", json!({})), claim("none", json!({})));
    check_hint(&p, &same, Some(Hint::Skip));
    let another = changed(one_pod_claim("none"), claim("none", json!({})));
    check_hint(&p, &another, Some(Hint::Queue));
}

#[test]
fn signature_holds_the_volumes() {
    let signature = |pod: PodBuilder| bench().signature(&pod.build());
    assert_eq!(signature(pod_with("a", &["one"])), signature(pod_with("b", &["one"])));
    assert_ne!(signature(pod_with("a", &["one"])), signature(pod_with("a", &["many"])));
    assert_ne!(signature(pod_with("a", &["one"])), signature(pod_with("other/a", &["one"])));
    assert_eq!(signature(pod("a")), signature(pod("other/b")));
    let ephemeral = json!({"ephemeral": {"volumeClaimTemplate": {"spec": {}}}});
    assert_eq!(signature(pod_with_volume("a", ephemeral)), None);
}

use expect_test::{Expect, expect};
use serde_json::{Value, json};
use steersman_testing::bench::Bench;
use steersman_testing::{NodeBuilder, node};

use super::*;
use crate::test_volumes::{
    bound_claim, came, changed, claim, pod_with, pod_with_volume, volume, waiting_class,
};

const OLD_ZONE: &str = "failure-domain.beta.kubernetes.io/zone";

fn labelled(name: &str, labels: Value) -> Value {
    let mut volume = volume(name, json!({}));
    volume["metadata"]["labels"] = labels;
    volume
}

fn nodes() -> [NodeBuilder; 4] {
    [
        node("a").zone("z1"),
        node("b").zone("z2").label(REGION_LABEL, "r1"),
        node("old").label(OLD_ZONE, "z1"),
        node("bare"),
    ]
}

/// The verdict on a pod whose claim is bound to a volume of these labels.
#[track_caller]
fn check(labels: Value, expected: Expect) {
    let bench = Bench::new(&descriptor())
        .nodes(nodes())
        .objects([bound_claim("c", "pv"), labelled("pv", labels)]);
    expected.assert_eq(&bench.filter(&pod_with("p", &["c"]).build()));
}

#[test]
fn node_lies_in_one_of_the_volumes_zones() {
    check(
        json!({ZONE_LABEL: "z1"}),
        expect![[r"
            a: fit
            b: UnschedulableAndUnresolvable: node(s) had no available volume zone
            old: UnschedulableAndUnresolvable: node(s) had no available volume zone
            bare: fit
        "]],
    );
    check(
        json!({ZONE_LABEL: "z1__z2"}),
        expect![[r"
            a: fit
            b: fit
            old: UnschedulableAndUnresolvable: node(s) had no available volume zone
            bare: fit
        "]],
    );
    check(
        json!({REGION_LABEL: "r1"}),
        expect![[r"
            a: UnschedulableAndUnresolvable: node(s) had no available volume zone
            b: fit
            old: UnschedulableAndUnresolvable: node(s) had no available volume zone
            bare: fit
        "]],
    );
}

#[test]
fn label_of_old_is_met_by_todays() {
    check(
        json!({OLD_ZONE: "z1"}),
        expect![[r"
            a: fit
            b: UnschedulableAndUnresolvable: node(s) had no available volume zone
            old: fit
            bare: fit
        "]],
    );
}

#[test]
fn volumes_that_name_no_place_leave_the_plugin_out() {
    check(json!({}), expect!["skip\n"]);
    // A list with a hole in it says nothing.
    check(json!({ZONE_LABEL: "z1__"}), expect!["skip\n"]);
}

#[track_caller]
fn check_claims(objects: &[Value], expected: Expect) {
    let bench = Bench::new(&descriptor()).nodes(nodes()).objects(objects.to_vec());
    expected.assert_eq(&bench.filter(&pod_with("p", &["c"]).build()));
}

#[test]
fn what_is_missing_rejects_the_pod() {
    check_claims(
        &[],
        expect![[r#"
            UnschedulableAndUnresolvable: persistentvolumeclaim "c" not found
        "#]],
    );
    check_claims(
        &[bound_claim("c", "pv")],
        expect![[r#"
            UnschedulableAndUnresolvable: persistentvolume "pv" not found
        "#]],
    );
    check_claims(
        &[claim("c", json!({}))],
        expect![[r"
            UnschedulableAndUnresolvable: PersistentVolumeClaim had no pv name and storageClass name
        "]],
    );
    let of_class = claim("c", json!({"storageClassName": "fast"}));
    check_claims(
        std::slice::from_ref(&of_class),
        expect![[r#"
            UnschedulableAndUnresolvable: storageclass.storage.k8s.io "fast" not found
        "#]],
    );
    let mut immediate = waiting_class("fast");
    immediate["volumeBindingMode"] = "Immediate".into();
    check_claims(
        &[of_class.clone(), immediate],
        expect![[r"
            UnschedulableAndUnresolvable: PersistentVolume had no name
        "]],
    );
    check_claims(&[of_class, waiting_class("fast")], expect!["skip\n"]);
}

#[test]
fn ephemeral_volumes_are_left_to_volume_binding() {
    let bench = Bench::new(&descriptor()).nodes(nodes());
    let ephemeral = json!({"ephemeral": {"volumeClaimTemplate": {"spec": {}}}});
    assert_eq!(bench.filter(&pod_with_volume("p", ephemeral).build()), "skip\n");
}

/// Claim `c` is bound to a volume in z1, claim `d` waits for a pod.
fn hint_bench() -> Bench {
    Bench::new(&descriptor()).objects([
        bound_claim("c", "pv"),
        labelled("pv", json!({ZONE_LABEL: "z1"})),
        claim("d", json!({"storageClassName": "fast"})),
        waiting_class("fast"),
    ])
}

#[track_caller]
fn check_hint(change: &Change, expected: Option<Hint>) {
    let hint = hint_bench().hint(&pod_with("p", &["c", "d"]).build(), change);
    assert_eq!(hint, expected, "{change:?}");
}

#[test]
fn node_in_the_right_zone_brings_the_pod_back() {
    let node = |zone: &str| node("n").zone(zone).build();
    check_hint(&Change::Node { old: None, new: Some(node("z1")) }, Some(Hint::Queue));
    check_hint(&Change::Node { old: None, new: Some(node("z2")) }, Some(Hint::Skip));
    let moved = |from: &str, to: &str| Change::Node { old: Some(node(from)), new: Some(node(to)) };
    check_hint(&moved("z2", "z1"), Some(Hint::Queue));
    check_hint(&moved("z1", "z2"), Some(Hint::Skip));
}

#[test]
fn objects_count_that_the_pod_has_to_do_with() {
    check_hint(&came(claim("c", json!({}))), Some(Hint::Queue));
    check_hint(&came(claim("x", json!({}))), Some(Hint::Skip));
    check_hint(&came(labelled("pv", json!({}))), Some(Hint::Queue));
    check_hint(&came(labelled("other", json!({}))), Some(Hint::Skip));
    let zone = |zone: &str| labelled("pv", json!({ZONE_LABEL: zone}));
    check_hint(&changed(zone("z1"), zone("z2")), Some(Hint::Queue));
    check_hint(&changed(zone("z1"), zone("z1")), Some(Hint::Skip));
    check_hint(&came(waiting_class("fast")), Some(Hint::Queue));
    check_hint(&came(waiting_class("slow")), Some(Hint::Skip));
    check_hint(&changed(waiting_class("fast"), waiting_class("fast")), None);
}

use expect_test::{Expect, expect};
use serde_json::{Value, json};
use steersman_api::node::ZONE_LABEL;
use steersman_framework::state::CycleState;
use steersman_testing::{PodBuilder, pod};

use super::super::score::Shape;
use super::*;
use crate::scoring_args::ShapePoint;
use crate::test_volumes::{
    annotated, bound_claim, claim, local_class, only_where, pod_with, pod_with_volume, volume,
    waiting_class,
};

#[track_caller]
fn check(objects: &[Value], pod: PodBuilder, expected: Expect) {
    expected.assert_eq(&bench(objects.to_vec()).filter(&pod.build()));
}

/// The nodes that a pod with the claim `c` fits, as in `a`, `a b` or the
/// empty text.
#[track_caller]
fn check_fits(objects: &[Value], expected: &str) {
    check_pod_fits(objects, pod_with("p", &["c"]), expected);
}

#[track_caller]
fn check_pod_fits(objects: &[Value], pod: PodBuilder, expected: &str) {
    let verdicts = bench(objects.to_vec()).filter(&pod.build());
    let fits: Vec<&str> = verdicts.lines().filter_map(|line| line.strip_suffix(": fit")).collect();
    assert_eq!(fits.join(" "), expected, "{verdicts}");
}

#[test]
fn claims_that_cannot_be_used_reject_the_pod() {
    let p = || pod_with("p", &["c"]);
    check(&[], pod("p"), expect!["skip\n"]);
    check(
        &[],
        p(),
        expect![[r#"
            UnschedulableAndUnresolvable: persistentvolumeclaim "c" not found
        "#]],
    );
    let mut lost = bound_claim("c", "pv");
    lost["status"]["phase"] = "Lost".into();
    check(
        &[lost],
        p(),
        expect![[r#"
            UnschedulableAndUnresolvable: persistentvolumeclaim "c" bound to non-existent persistentvolume "pv"
        "#]],
    );
    let mut deleted = bound_claim("c", "pv");
    deleted["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    check(
        &[deleted],
        p(),
        expect![[r#"
            UnschedulableAndUnresolvable: persistentvolumeclaim "c" is being deleted
        "#]],
    );
}

#[test]
fn claims_that_do_not_wait_for_a_pod_must_be_bound() {
    let immediate = |objects: &[Value]| {
        check(
            objects,
            pod_with("p", &["c"]),
            expect![[r"
                UnschedulableAndUnresolvable: pod has unbound immediate PersistentVolumeClaims
            "]],
        );
    };
    let mut class = waiting_class("now");
    class["volumeBindingMode"] = "Immediate".into();
    immediate(&[of_class("c", "now"), class]);
    immediate(&[of_class("c", "none")]);
    immediate(&[claim("c", json!({}))]);
    // It names a volume, and the binding is not complete.
    let wish = claim("c", json!({"storageClassName": "fast", "volumeName": "pv"}));
    immediate(&[wish, waiting_class("fast")]);
}

#[test]
fn ephemeral_volumes_need_a_claim_of_their_own() {
    let p = || pod_with_volume("p", json!({"ephemeral": {"volumeClaimTemplate": {"spec": {}}}}));
    check(
        &[],
        p(),
        expect![[r#"
            UnschedulableAndUnresolvable: waiting for ephemeral volume controller to create the persistentvolumeclaim "p-v"
        "#]],
    );
    let mut theirs = of_class("p-v", "fast");
    check(
        std::slice::from_ref(&theirs),
        p(),
        expect![[r"
            UnschedulableAndUnresolvable: PVC default/p-v was not created for pod default/p (pod is not owner)
        "]],
    );
    theirs["metadata"]["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "Pod",
        "name": "p", "uid": "uid-default-p", "controller": true}]);
    check(&[theirs, waiting_class("fast")], p(), expect!["a: fit\nb: fit\n"]);
}

#[test]
fn bound_volume_must_be_within_reach() {
    let in_z1 = volume("pv", json!({"nodeAffinity": only_where(ZONE_LABEL, "z1")}));
    check(
        &[bound_claim("c", "pv"), in_z1],
        pod_with("p", &["c"]),
        expect![[r"
            a: fit
            b: UnschedulableAndUnresolvable: node(s) didn't match PersistentVolume's node affinity
        "]],
    );
    check_fits(&[bound_claim("c", "pv"), volume("pv", json!({}))], "a b");
    check(
        &[bound_claim("c", "pv")],
        pod_with("p", &["c"]),
        expect![[r"
            a: UnschedulableAndUnresolvable: node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)
            b: UnschedulableAndUnresolvable: node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)
        "]],
    );
}

#[test]
fn in_tree_volume_is_reached_as_its_driver_says_where_that_has_taken_over() {
    let disk = json!({"awsElasticBlockStore": {"volumeID": "vol-1"},
        "nodeAffinity": only_where(ZONE_LABEL, "z1")});
    let objects = [bound_claim("c", "pv"), volume("pv", disk)];
    check_fits(&objects, "a");
    let csi_node = json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSINode",
        "metadata": {"name": "a", "annotations":
            {"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/aws-ebs"}},
        "spec": {"drivers": []}});
    let migrated: Vec<Value> = objects.into_iter().chain([csi_node]).collect();
    // The node lacks the driver's label.
    check_fits(&migrated, "");
    let labelled = node("a").zone("z1").label("topology.ebs.csi.aws.com/zone", "z1");
    let verdicts = bench(migrated).nodes([labelled]).filter(&pod_with("p", &["c"]).build());
    assert!(verdicts.starts_with("a: fit\n"), "{verdicts}");
}

#[test]
fn waiting_claim_takes_a_volume_within_reach() {
    check(
        &[of_class("c", "local"), local_class("local"), local_volume("pv", "z1")],
        pod_with("p", &["c"]),
        expect![[r"
            a: fit
            b: UnschedulableAndUnresolvable: node(s) didn't find available persistent volumes to bind
        "]],
    );
}

/// Whether a claim of 5Gi (with `wish` merged in) can take a volume of 10Gi
/// (with `offer` merged in).
#[track_caller]
fn check_suits(wish: Value, offer: Value, expected: bool) {
    let mut c = of_class("c", "local");
    let mut pv = local_volume("pv", "z1");
    for (object, more) in [(&mut c, wish), (&mut pv, offer)] {
        for (part, fields) in more.as_object().expect("parts") {
            let fields = fields.as_object().expect("fields").clone();
            object[part].as_object_mut().expect("a part of the object").extend(fields);
        }
    }
    check_fits(&[c, pv, local_class("local")], if expected { "a" } else { "" });
}

#[test]
fn volume_must_suit_the_claim() {
    let spec = |fields: Value| json!({"spec": fields});
    let none = || json!({});
    let size = |size: &str| spec(json!({"resources": {"requests": {"storage": size}}}));
    check_suits(none(), none(), true);
    check_suits(size("10Gi"), none(), true);
    check_suits(size("11Gi"), none(), false);
    check_suits(none(), spec(json!({"storageClassName": "other"})), false);
    let annotation = json!({"annotations": {"volume.beta.kubernetes.io/storage-class": "local"}});
    let by_annotation = json!({"metadata": annotation, "spec": {"storageClassName": "x"}});
    check_suits(none(), by_annotation, true);
    check_suits(spec(json!({"accessModes": ["ReadWriteMany"]})), none(), false);
    let modes = json!({"accessModes": ["ReadWriteOnce", "ReadWriteMany"]});
    check_suits(spec(json!({"accessModes": ["ReadWriteMany"]})), spec(modes.clone()), true);
    check_suits(spec(modes), none(), false);
    check_suits(spec(json!({"volumeMode": "Block"})), none(), false);
    check_suits(spec(json!({"volumeMode": "Filesystem"})), none(), true);
    let gold = || spec(json!({"volumeAttributesClassName": "gold"}));
    check_suits(gold(), none(), false);
    check_suits(none(), gold(), false);
    check_suits(gold(), gold(), true);
    let selector = || spec(json!({"selector": {"matchLabels": {"disk": "ssd"}}}));
    check_suits(selector(), none(), false);
    check_suits(selector(), json!({"metadata": {"labels": {"disk": "ssd"}}}), true);
    check_suits(none(), json!({"status": {"phase": "Released"}}), false);
    let deleted = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
    check_suits(none(), deleted, false);
}

#[test]
fn volume_that_is_kept_for_a_claim_is_for_it_alone() {
    let kept = |name: &str, uid: &str| {
        let claim_ref = json!({"namespace": "default", "name": name, "uid": uid});
        json!({"spec": {"claimRef": claim_ref}, "status": {"phase": "Bound"}})
    };
    check_suits(json!({}), kept("other", ""), false);
    check_suits(json!({}), kept("c", ""), true);
    check_suits(json!({}), kept("c", "uid-c"), true);
    check_suits(json!({}), kept("c", "uid-of-an-earlier-one"), false);
}

#[test]
fn claim_takes_the_volume_that_is_kept_for_it_or_none() {
    let mut kept = local_volume("kept", "z2");
    kept["spec"]["claimRef"] = json!({"namespace": "default", "name": "c"});
    let objects = [of_class("c", "local"), local_class("local"), local_volume("pv", "z1"), kept];
    check_fits(&objects, "b");
}

#[test]
fn claims_of_one_pod_take_different_volumes_the_small_ones_first() {
    let large = claim(
        "large",
        json!({"storageClassName": "local", "resources": {"requests": {"storage": "20Gi"}}}),
    );
    let large_volume = |name: &str| {
        let mut volume = local_volume(name, "z1");
        volume["spec"]["capacity"]["storage"] = "20Gi".into();
        volume
    };
    let p = || pod_with("p", &["large", "c"]);
    let claims = [of_class("c", "local"), large, local_class("local")];
    let with =
        |volumes: Vec<Value>| -> Vec<Value> { claims.iter().cloned().chain(volumes).collect() };
    check_pod_fits(&with(vec![large_volume("x"), local_volume("y", "z1")]), p(), "a");
    check_pod_fits(&with(vec![large_volume("x"), large_volume("y")]), p(), "a");
    check_pod_fits(&with(vec![large_volume("x")]), p(), "");
    // A claim that is mounted twice needs one volume.
    let mount = json!({"persistentVolumeClaim": {"claimName": "c"}});
    let mut volumes = [mount.clone(), mount];
    for (volume, name) in volumes.iter_mut().zip(["a", "b"]) {
        volume["name"] = name.into();
    }
    let twice = pod("p").spec(json!({"volumes": volumes}));
    check_pod_fits(&with(vec![local_volume("y", "z1")]), twice, "a");
}

#[test]
fn volume_is_made_where_the_class_allows() {
    check_fits(&[of_class("c", "fast"), waiting_class("fast")], "a b");
    let mut class = waiting_class("fast");
    class["allowedTopologies"] =
        json!([{"matchLabelExpressions": [{"key": ZONE_LABEL, "values": ["z2"]}]}]);
    check(
        &[of_class("c", "fast"), class],
        pod_with("p", &["c"]),
        expect![[r"
            a: UnschedulableAndUnresolvable: node(s) didn't find available persistent volumes to bind
            b: fit
        "]],
    );
}

fn driver(publishes: bool) -> Value {
    json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver",
        "metadata": {"name": "csi.example.com"}, "spec": {"storageCapacity": publishes}})
}

fn capacity(zone: &str, fields: Value) -> Value {
    let mut capacity = json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSIStorageCapacity",
        "metadata": {"namespace": "kube-system", "name": zone}, "storageClassName": "fast",
        "nodeTopology": {"matchLabels": {ZONE_LABEL: zone}}});
    capacity
        .as_object_mut()
        .expect("an object")
        .extend(fields.as_object().expect("fields").clone());
    capacity
}

#[test]
fn volume_is_made_where_enough_storage_is_left() {
    let with = |objects: &[Value]| -> Vec<Value> {
        [of_class("c", "fast"), waiting_class("fast")].iter().chain(objects).cloned().collect()
    };
    let room = capacity("z1", json!({"capacity": "5Gi"}));
    check(
        &with(&[driver(true), room.clone(), capacity("z2", json!({"capacity": "4Gi"}))]),
        pod_with("p", &["c"]),
        expect![[r"
            a: fit
            b: UnschedulableAndUnresolvable: node(s) did not have enough free storage
        "]],
    );
    // Nobody counts.
    check_fits(&with(&[driver(false), room.clone()]), "a b");
    check_fits(&with(std::slice::from_ref(&room)), "a b");
    let small = json!({"capacity": "50Gi", "maximumVolumeSize": "4Gi"});
    check_fits(&with(&[driver(true), capacity("z1", small)]), "");
    let mut other_class = room;
    other_class["storageClassName"] = "other".into();
    check_fits(&with(&[driver(true), other_class]), "");
}

#[test]
fn claim_whose_volume_is_being_made_holds_to_the_selected_node() {
    let selected =
        |node: &str| annotated(of_class("c", "fast"), "volume.kubernetes.io/selected-node", node);
    check_fits(&[selected("b"), waiting_class("fast")], "b");
    // A volume that suits it is left alone.
    check(
        &[
            annotated(of_class("c", "local"), "volume.kubernetes.io/selected-node", "a"),
            local_class("local"),
            local_volume("pv", "z1"),
        ],
        pod_with("p", &["c"]),
        expect![[r"
            a: UnschedulableAndUnresolvable: node(s) didn't find available persistent volumes to bind
            b: UnschedulableAndUnresolvable: node(s) didn't find available persistent volumes to bind
        "]],
    );
}

#[test]
fn reasons_add_up() {
    let in_z1 = volume("pv", json!({"nodeAffinity": only_where(ZONE_LABEL, "z1")}));
    let objects = |bound: Value| {
        [bound, in_z1.clone(), of_class("c", "fast"), waiting_class("fast"), driver(true)]
    };
    let p = || pod_with("p", &["c", "bound"]);
    check(
        &objects(bound_claim("bound", "pv")),
        p(),
        expect![[r"
            a: UnschedulableAndUnresolvable: node(s) did not have enough free storage
            b: UnschedulableAndUnresolvable: node(s) didn't match PersistentVolume's node affinity, node(s) did not have enough free storage
        "]],
    );
    check(
        &objects(bound_claim("bound", "gone")),
        p(),
        expect![[r"
            a: UnschedulableAndUnresolvable: node(s) did not have enough free storage, node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)
            b: UnschedulableAndUnresolvable: node(s) did not have enough free storage, node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)
        "]],
    );
}

/// Scores with a shape, from all is used: 0 to nothing is used: 10.
#[track_caller]
fn check_scores(objects: Vec<Value>, claims: &[&str], expected: &str) {
    let point = |utilization, score| ShapePoint { utilization, score };
    let plugin = VolumeBinding {
        shape: Some(Shape::new(&[point(0, 10), point(100, 0)])),
        ..VolumeBinding::new(&VolumeBindingArgs::default(), Arc::default())
    };
    let mut bench = bench(objects);
    bench.plugin = extensions(Arc::new(plugin));
    let p = pod_with("p", claims).build();
    let mut state = CycleState::new();
    let mut ctx = PrepareCtx { pod: &p, cluster: &bench.cluster, state: &mut state };
    let pre_filter = bench.plugin.pre_filter.as_ref().expect("PreFilter");
    let _ = pre_filter.pre_filter(&mut ctx).expect("PreFilter");
    let pre_score = bench.plugin.pre_score.as_ref().expect("PreScore");
    if pre_score.pre_score(&mut ctx, &[]).expect("PreScore")
        == steersman_framework::verdict::PreScoreVerdict::Skip
    {
        assert_eq!("skip", expected);
        return;
    }
    let ctx = CycleCtx { pod: &p, cluster: &bench.cluster, state: &state };
    let score = bench.plugin.score.as_ref().expect("Score");
    let scores: Vec<String> = bench
        .cluster
        .nodes()
        .iter()
        .map(|node| format!("{}={}", node.name(), score.score(&ctx, node).expect("Score")))
        .collect();
    assert_eq!(scores.join(" "), expected);
}

#[test]
fn scores_by_how_much_of_the_volumes_is_asked_for() {
    let mut tight = local_volume("tight", "z2");
    tight["spec"]["capacity"]["storage"] = "5Gi".into();
    let objects =
        vec![of_class("c", "local"), local_class("local"), local_volume("pv", "z1"), tight];
    check_scores(objects, &["c"], "a=50 b=0");
    let objects = vec![
        of_class("c", "fast"),
        waiting_class("fast"),
        driver(true),
        capacity("z1", json!({"capacity": "20Gi"})),
        capacity("z2", json!({"capacity": "5Gi"})),
    ];
    check_scores(objects, &["c"], "a=75 b=0");
    check_scores(vec![bound_claim("c", "pv"), volume("pv", json!({}))], &["c"], "skip");
}

#[test]
fn without_a_shape_nothing_is_scored() {
    let bench = bench([of_class("c", "fast"), waiting_class("fast")]);
    assert_eq!(bench.score(&pod_with("p", &["c"]).build()), "skip");
}

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use serde_json::{Value, json};

use super::*;
use crate::cluster::Kind;
use crate::controller::bench::Bench;

/// Three nodes, in zones a, b and c. Nobody binds pods.
fn bench() -> Bench {
    let mut bench = Bench::new(3);
    bench.binds = false;
    bench.check = no_volume_has_two_claims;
    for class in classes::classes(false) {
        bench.apply(&crate::engine::plan::to_value(&class).to_string());
    }
    bench
}

fn no_volume_has_two_claims(world: &World) {
    let mut taken = BTreeSet::new();
    for claim in world.claims.iter().filter(|claim| !is_unbound(claim)) {
        assert!(taken.insert(volume_name(claim).to_owned()), "{} twice", volume_name(claim));
        if let Some(volume) = world.volumes.get(&Key::new("", volume_name(claim))) {
            assert!(is_for(volume, claim), "the claim relies on what its volume does not say");
        }
    }
}

fn claim(name: &str, size: &str, spec: Value) -> String {
    let mut claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "finalizers": ["kubernetes.io/pvc-protection"]},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}},
        "status": {"phase": "Pending"},
    });
    for (key, value) in spec.as_object().unwrap() {
        claim["spec"][key] = value.clone();
    }
    claim.to_string()
}

fn volume(name: &str, size: &str, spec: Value) -> String {
    let mut volume = json!({
        "apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": {"name": name, "labels": {"name": name}},
        "spec": {
            "accessModes": ["ReadWriteOnce", "ReadOnlyMany"], "capacity": {"storage": size},
            "storageClassName": "manual", "persistentVolumeReclaimPolicy": "Retain",
            "hostPath": {"path": "/data"},
        },
        "status": {"phase": "Pending"},
    });
    for (key, value) in spec.as_object().unwrap() {
        volume["spec"][key] = value.clone();
    }
    volume.to_string()
}

fn manual() -> Value {
    json!({"storageClassName": "manual"})
}

fn class(name: &str, mode: &str, rest: Value) -> String {
    let mut class = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
        "provisioner": classes::DISK, "volumeBindingMode": mode, "reclaimPolicy": "Delete",
    });
    for (key, value) in rest.as_object().unwrap() {
        class[key] = value.clone();
    }
    class.to_string()
}

fn pod(name: &str, volume: Value) -> String {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "i"}], "volumes": [volume]},
    })
    .to_string()
}

fn claims(bench: &Bench) -> Vec<String> {
    bench.list(|claim: &PersistentVolumeClaim| {
        let name = claim.metadata.name.as_deref().unwrap();
        let phase = claim.status.as_ref().unwrap().phase.as_deref().unwrap();
        // Uids are numbers that say nothing.
        let volume = volume_name(claim);
        let volume = if volume.starts_with("pvc-") { "made" } else { volume };
        format!("{name} {phase} {volume}").trim_end().to_owned()
    })
}

fn volumes(bench: &Bench) -> Vec<String> {
    bench.list(|volume: &PersistentVolume| {
        let name = volume.metadata.name.as_deref().unwrap();
        let name = if name.starts_with("pvc-") { "made" } else { name };
        let claim = claim_ref(volume).and_then(|claim| claim.name.clone()).unwrap_or_default();
        format!("{name} {} {claim}", phase(volume)).trim_end().to_owned()
    })
}

/// The zone of each volume that was made, by claim.
fn zones(bench: &Bench) -> BTreeSet<String> {
    let shown = bench.list(|volume: &PersistentVolume| {
        let claim = claim_ref(volume).unwrap().name.clone().unwrap();
        let volume = serde_json::to_value(volume).unwrap();
        let zone = "/spec/nodeAffinity/required/nodeSelectorTerms/0/matchExpressions/0/values/0";
        let zone = volume.pointer(zone).and_then(Value::as_str).unwrap_or("anywhere");
        format!("{claim} {}", zone.trim_start_matches("playground-"))
    });
    shown.into_iter().collect()
}

fn uid_of(bench: &Bench, name: &str) -> String {
    bench.get::<PersistentVolumeClaim>(name).metadata.uid.unwrap()
}

fn told(bench: &mut Bench) -> Vec<String> {
    std::mem::take(&mut bench.events)
}

#[test]
fn claim_gets_the_smallest_volume_that_suits_it() {
    let cases = [
        (json!({}), "2Gi"),
        (json!({"accessModes": ["ReadOnlyMany"]}), "2Gi"),
        (json!({"accessModes": ["ReadWriteMany"]}), ""),
        (json!({"volumeMode": "Block"}), "block"),
        (json!({"volumeAttributesClassName": "fast"}), ""),
        (json!({"selector": {"matchLabels": {"name": "3Gi"}}}), "3Gi"),
        (json!({"selector": {"matchLabels": {"name": "1Gi"}}}), ""),
        (json!({"resources": {"requests": {"storage": "2049Mi"}}}), "3Gi"),
        (json!({"resources": {"requests": {"storage": "1Ti"}}}), ""),
        (json!({"storageClassName": "other"}), "other"),
        (json!({"storageClassName": ""}), "without"),
    ];
    for (spec, expected) in cases {
        let mut bench = bench();
        for size in ["3Gi", "1Gi", "2Gi", "10Gi"] {
            bench.apply(&volume(size, size, json!({})));
        }
        bench.apply(&volume("block", "9Gi", json!({"volumeMode": "Block"})));
        bench.apply(&volume("other", "9Gi", json!({"storageClassName": "other"})));
        bench.apply(&volume("without", "9Gi", json!({"storageClassName": null})));
        let mut wanted = manual();
        wanted.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        bench.apply(&claim("c", "1500Mi", wanted));
        let phase = if expected.is_empty() { "c Pending" } else { "c Bound" };
        assert_eq!(claims(&bench), [format!("{phase} {expected}").trim_end()], "{spec}");
    }
}

#[test]
fn bound_claim_says_what_it_has_got() {
    let mut bench = bench();
    bench.apply(&claim("c", "1Gi", manual()));
    assert_eq!(claims(&bench), ["c Pending"]);
    bench.apply(&volume("v", "2Gi", json!({})));
    let claim: PersistentVolumeClaim = bench.get("c");
    let annotations = claim.metadata.annotations.unwrap();
    assert_eq!((&*annotations[BIND_COMPLETED], &*annotations[BOUND_BY_CONTROLLER]), ("yes", "yes"));
    let status = serde_json::to_value(claim.status).unwrap();
    let expected = json!({
        "phase": "Bound", "capacity": {"storage": "2Gi"},
        "accessModes": ["ReadWriteOnce", "ReadOnlyMany"],
    });
    assert_eq!(status, expected);
    assert_eq!(volumes(&bench), ["v Bound c"]);
    let reference = bench.get::<PersistentVolume>("v").spec.unwrap().claim_ref.unwrap();
    assert_eq!(reference.uid, Some(uid_of(&bench, "c")));
}

#[test]
fn one_volume_goes_to_one_claim_and_the_next_one_waits() {
    let mut bench = bench();
    for name in ["a", "b", "c"] {
        bench.apply(&claim(name, "1Gi", manual()));
    }
    bench.apply(&volume("v", "1Gi", json!({})));
    assert_eq!(claims(&bench), ["a Bound v", "b Pending", "c Pending"]);
    bench.apply(&volume("w", "1Gi", json!({})));
    assert_eq!(claims(&bench), ["a Bound v", "b Bound w", "c Pending"]);
}

#[test]
fn volume_that_is_kept_for_a_claim_is_for_no_other() {
    let mut bench = bench();
    let kept = json!({"claimRef": {"namespace": "default", "name": "b"}});
    bench.apply(&volume("kept", "9Gi", kept));
    bench.apply(&volume("small", "1Gi", json!({})));
    assert_eq!(volumes(&bench), ["kept Available b", "small Available"]);
    bench.apply(&claim("b", "1Gi", manual()));
    assert_eq!(claims(&bench), ["b Bound kept"]);
    bench.apply(&claim("a", "1Gi", manual()));
    assert_eq!(claims(&bench), ["a Bound small", "b Bound kept"]);
    let annotations = bench.get::<PersistentVolume>("kept").metadata.annotations;
    assert!(annotations.is_none_or(|a| !a.contains_key(BOUND_BY_CONTROLLER)), "it was kept before");
}

#[test]
fn claim_that_names_a_volume_gets_it_or_hears_why_not() {
    let cases = [
        (json!({}), "c Bound v", ""),
        (json!({"accessModes": ["ReadWriteMany"]}), "c Pending v", "incompatible accessMode"),
        (json!({"storageClassName": "x"}), "c Pending v", "storageClassName does not match"),
        (json!({"volumeMode": "Block"}), "c Pending v", "incompatible volumeMode"),
        (
            json!({"resources": {"requests": {"storage": "3Gi"}}}),
            "c Pending v",
            "requested PV is too small",
        ),
    ];
    for (spec, expected, why) in cases {
        let mut bench = bench();
        let mut wanted = json!({"storageClassName": "manual", "volumeName": "v"});
        wanted.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        bench.apply(&claim("c", "1Gi", wanted));
        assert_eq!(claims(&bench), ["c Pending v"], "there is none yet");
        bench.apply(&volume("v", "2Gi", json!({})));
        assert_eq!(claims(&bench), [expected], "{spec}");
        let events = told(&mut bench);
        let told = format!("VolumeMismatch Cannot bind to requested volume \"v\": {why}");
        assert_eq!(events.contains(&told), !why.is_empty(), "{events:?}");
    }
}

#[test]
fn delayed_claim_waits_for_the_scheduler_and_gets_a_volume_in_the_zone_of_its_node() {
    let mut bench = bench();
    bench.apply(&volume("v", "2Gi", json!({"storageClassName": "standard"})));
    bench.apply(&claim("c", "1Gi", json!({"storageClassName": "standard"})));
    assert_eq!(claims(&bench), ["c Pending"], "though there is a volume");
    assert_eq!(
        told(&mut bench),
        ["WaitForFirstConsumer waiting for first consumer to be created before binding"]
    );
    let chosen = json!({"metadata": {"annotations": {SELECTED_NODE: "node-2"}}});
    // The scheduler had it made because the volume is out of the node's reach.
    bench.patch(Kind::Volume, "v", json!({"spec": {"claimRef": {"name": "x", "namespace": "y"}}}));
    bench.patch(Kind::Claim, "c", chosen);
    assert_eq!(claims(&bench), ["c Bound made"]);
    bench.delete(Kind::Volume, "v");
    assert_eq!(zones(&bench), BTreeSet::from(["c b".to_owned()]));
    let name = format!("pvc-{}", uid_of(&bench, "c"));
    assert_eq!(
        told(&mut bench),
        [
            "ExternalProvisioning Waiting for a volume to be created either by the external \
             provisioner 'playground.steersman.dev/disk' or manually by the system administrator. \
             If volume creation is delayed, please verify that the provisioner is running and \
             correctly registered.",
            "Provisioning External provisioner is provisioning volume for claim \"default/c\"",
            &format!("ProvisioningSucceeded Successfully provisioned volume {name}"),
        ]
    );
}

#[test]
fn binding_that_the_scheduler_began_is_finished() {
    let mut bench = bench();
    bench.apply(&volume("v", "2Gi", json!({"storageClassName": "standard"})));
    bench.apply(&claim("c", "1Gi", json!({"storageClassName": "standard"})));
    let reference = json!({"namespace": "default", "name": "c", "uid": uid_of(&bench, "c")});
    let annotations = json!({BOUND_BY_CONTROLLER: "yes"});
    let patch = json!({"metadata": {"annotations": annotations}, "spec": {"claimRef": reference}});
    bench.patch(Kind::Volume, "v", patch);
    assert_eq!(
        (claims(&bench), volumes(&bench)),
        (vec!["c Bound v".to_owned()], vec!["v Bound c".to_owned()])
    );
}

#[test]
fn waiting_claim_says_which_pods_it_waits_for() {
    let mut bench = bench();
    for name in ["p", "q"] {
        bench.apply(&pod(name, json!({"name": "v", "persistentVolumeClaim": {"claimName": "c"}})));
    }
    bench.apply(&claim("c", "1Gi", json!({"storageClassName": "standard"})));
    assert_eq!(told(&mut bench), ["WaitForPodScheduled waiting for pods p,q to be scheduled"]);
}

#[test]
fn immediate_claims_go_round_the_places_that_their_class_allows() {
    let zones_allowed = |zones: &[&str]| {
        json!({"allowedTopologies": [{"matchLabelExpressions": [
            {"key": "topology.kubernetes.io/zone", "values": zones},
        ]}]})
    };
    let cases = [
        (json!({}), ["a", "b", "c"].as_slice()),
        (zones_allowed(&["playground-b", "playground-x"]), &["b"]),
        (zones_allowed(&["playground-c", "playground-a"]), &["a", "c"]),
        (zones_allowed(&["playground-x"]), &[]),
        (json!({"allowedTopologies": [{"matchLabelExpressions": []}]}), &[]),
    ];
    for (rest, expected) in cases {
        let mut bench = bench();
        bench.apply(&class("there", "Immediate", rest.clone()));
        for name in ["data-0", "data-1", "data-2"] {
            bench.apply(&claim(name, "1Gi", json!({"storageClassName": "there"})));
        }
        let found: BTreeSet<String> =
            zones(&bench).iter().map(|zone| zone.split_once(' ').unwrap().1.to_owned()).collect();
        assert_eq!(found.into_iter().collect::<Vec<_>>(), expected, "{rest}");
        let failed = "ProvisioningFailed failed to provision volume with StorageClass \"there\": \
                      error generating accessibility requirements: no available topology found";
        let said = told(&mut bench).iter().any(|event| event == failed);
        assert_eq!(said, expected.is_empty(), "{rest}");
    }
}

#[test]
fn node_for_which_no_volume_can_be_made_is_given_back_to_the_scheduler() {
    let only_a = json!({"allowedTopologies": [{"matchLabelExpressions": [
        {"key": "topology.kubernetes.io/zone", "values": ["playground-a"]},
    ]}]});
    let cases = [
        (
            "node-2",
            "error generating accessibility requirements: topology of selected node \
                    'node-2' is not in allowed topologies",
        ),
        ("gone", "failed to get target node: node \"gone\" not found"),
    ];
    for (node, why) in cases {
        let mut bench = bench();
        bench.apply(&class("a", "WaitForFirstConsumer", only_a.clone()));
        bench.apply(&claim("c", "1Gi", json!({"storageClassName": "a"})));
        let annotations = |node| json!({"metadata": {"annotations": {SELECTED_NODE: node}}});
        bench.patch(Kind::Claim, "c", annotations(node));
        let known = bench.get::<PersistentVolumeClaim>("c").metadata.annotations.unwrap();
        assert!(!known.contains_key(SELECTED_NODE));
        let told = told(&mut bench);
        let failed = told.iter().find_map(|event| event.strip_prefix("ProvisioningFailed "));
        let expected = format!("failed to provision volume with StorageClass \"a\": {why}");
        assert_eq!(failed, Some(&*expected));
        bench.patch(Kind::Claim, "c", annotations("node-1"));
        assert_eq!(zones(&bench), BTreeSet::from(["c a".to_owned()]));
    }
}

#[test]
fn claim_without_its_class_says_so_until_the_class_is_there() {
    let mut bench = bench();
    bench.apply(&claim("c", "1Gi", json!({"storageClassName": "gold"})));
    assert_eq!(
        told(&mut bench),
        ["ProvisioningFailed storageclass.storage.k8s.io \"gold\" not found"]
    );
    bench.apply(&class("gold", "Immediate", json!({})));
    assert_eq!(claims(&bench), ["c Bound made"]);
}

#[test]
fn claim_that_says_nothing_of_a_class_gets_the_default_as_soon_as_there_is_one() {
    let mut bench = bench();
    bench.delete(Kind::StorageClass, "standard");
    bench.apply(&claim("c", "1Gi", json!({})));
    bench.apply(&claim("none", "1Gi", json!({"storageClassName": ""})));
    let none = "FailedBinding no persistent volumes available for this claim and no storage class \
                is set";
    assert_eq!(told(&mut bench), [none, none]);
    let annotations = json!({"storageclass.kubernetes.io/is-default-class": "true"});
    let patch = json!({"metadata": {"annotations": annotations}});
    bench.patch(Kind::StorageClass, "immediate", patch);
    assert_eq!(claims(&bench), ["c Bound made", "none Pending"]);
}

#[test]
fn classes_of_others_are_left_to_them() {
    let cases = [
        ("kubernetes.io/no-provisioner", "ProvisioningFailed no volume plugin matched name: "),
        ("disk.example.com", "ExternalProvisioning Waiting for a volume to be created "),
    ];
    for (provisioner, told_first) in cases {
        let mut bench = bench();
        bench.apply(&class("x", "Immediate", json!({"provisioner": provisioner})));
        bench.apply(&claim("c", "1Gi", json!({"storageClassName": "x"})));
        let told = told(&mut bench);
        assert!(told.len() == 1 && told[0].starts_with(told_first), "{told:?}");
        assert_eq!(claims(&bench), ["c Pending"]);
    }
}

#[test]
fn what_becomes_of_a_volume_is_as_its_policy_says() {
    let cases = [
        ("Retain", json!({}), vec!["v Released c"]),
        ("Recycle", json!({}), vec!["v Available"]),
        ("Delete", json!({}), vec!["v Failed c"]),
        (
            "Delete",
            json!({"hostPath": null, "csi": {"driver": "d", "volumeHandle": "h"}}),
            vec!["v Released c"],
        ),
    ];
    for (policy, spec, expected) in cases {
        let mut bench = bench();
        let mut spec = spec;
        spec["persistentVolumeReclaimPolicy"] = json!(policy);
        bench.apply(&volume("v", "1Gi", spec));
        bench.apply(&claim("c", "1Gi", manual()));
        bench.delete(Kind::Claim, "c");
        assert_eq!(
            (claims(&bench), volumes(&bench)),
            (vec![], expected.iter().map(|v| (*v).to_owned()).collect()),
            "{policy}"
        );
    }
}

#[test]
fn volume_that_was_made_goes_with_its_claim_but_not_before_a_moment() {
    let mut bench = bench();
    bench.apply(&claim("c", "1Gi", json!({"storageClassName": "immediate"})));
    bench.delete(Kind::Claim, "c");
    assert_eq!(volumes(&bench), ["made Released c"]);
    bench.pass(2);
    assert_eq!(volumes(&bench), Vec::<String>::new());
}

#[test]
fn volume_for_a_claim_that_got_another_one_is_given_back() {
    let cases = [
        (json!({BOUND_BY_CONTROLLER: "yes"}), "v Available"),
        (json!({}), "v Available c"),
        (json!({BOUND_BY_CONTROLLER: "yes", PROVISIONED_BY: classes::DISK}), ""),
    ];
    for (annotations, expected) in cases {
        let mut bench = bench();
        bench.apply(&volume("w", "1Gi", json!({})));
        bench.apply(&claim("c", "1Gi", manual()));
        let reference = json!({"namespace": "default", "name": "c", "uid": uid_of(&bench, "c")});
        let spec = json!({"claimRef": reference, "persistentVolumeReclaimPolicy": "Delete"});
        let mut second: Value = serde_json::from_str(&volume("v", "1Gi", spec)).unwrap();
        second["metadata"]["annotations"] = annotations;
        bench.apply(&second.to_string());
        bench.pass(2);
        let mut rest = volumes(&bench);
        rest.retain(|volume| volume != "w Bound c");
        assert_eq!(rest.concat(), expected);
    }
}

#[test]
fn claim_is_lost_without_its_volume_and_found_with_it() {
    let mut bench = bench();
    bench.apply(&volume("v", "1Gi", json!({})));
    bench.apply(&claim("c", "1Gi", manual()));
    told(&mut bench);
    bench.delete(Kind::Volume, "v");
    assert_eq!(claims(&bench), ["c Bound v"], "it is protected");
    bench.patch(Kind::Volume, "v", json!({"metadata": {"finalizers": null}}));
    assert_eq!(claims(&bench), ["c Lost v"]);
    assert_eq!(
        told(&mut bench),
        ["ClaimLost Bound claim has lost its PersistentVolume. Data on the volume is lost!"]
    );
    let reference = json!({"namespace": "default", "name": "c", "uid": uid_of(&bench, "c")});
    bench.apply(&volume("v", "1Gi", json!({"claimRef": reference})));
    assert_eq!(
        (claims(&bench), volumes(&bench)),
        (vec!["c Bound v".to_owned()], vec!["v Bound c".to_owned()])
    );
}

#[test]
fn claim_that_a_pod_uses_is_deleted_with_the_pod() {
    let mut bench = bench();
    bench.apply(&claim("c", "1Gi", json!({"storageClassName": "immediate"})));
    for name in ["runs", "waits"] {
        bench.apply(&pod(name, json!({"name": "v", "persistentVolumeClaim": {"claimName": "c"}})));
    }
    bench.patch(Kind::Pod, "runs", json!({"spec": {"nodeName": "node-1"}}));
    bench.delete(Kind::Claim, "c");
    bench.pass(10);
    assert_eq!(claims(&bench), ["c Bound made"]);
    bench.delete(Kind::Pod, "runs");
    bench.pass(10);
    assert_eq!(claims(&bench), Vec::<String>::new(), "pods without a node do not count");
    assert_eq!(volumes(&bench), Vec::<String>::new());
}

#[test]
fn ephemeral_volume_gets_a_claim_of_the_pods_own() {
    let mut bench = bench();
    let template = json!({
        "metadata": {"labels": {"app": "x"}},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "standard",
                 "resources": {"requests": {"storage": "1Gi"}}},
    });
    let volume = json!({"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}});
    // The name is taken by a claim of somebody else.
    bench.apply(&claim("p-scratch", "1Gi", json!({"storageClassName": "standard"})));
    told(&mut bench);
    bench.apply(&pod("p", volume));
    assert_eq!(
        told(&mut bench),
        ["FailedBinding ephemeral volume scratch: PVC default/p-scratch was not created for pod \
          default/p (pod is not owner)"]
    );
    bench.delete(Kind::Claim, "p-scratch");
    let claim: PersistentVolumeClaim = bench.get("p-scratch");
    let owner = &claim.metadata.owner_references.unwrap()[0];
    assert_eq!((&*owner.kind, &*owner.name, owner.controller), ("Pod", "p", Some(true)));
    assert_eq!(claim.metadata.labels.unwrap()["app"], "x");
}

use expect_test::{Expect, expect};
use serde_json::{Value, json};
use steersman_apimachinery::rules::{Part, Rules};

use super::{PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, STORAGE_CLASS};
use crate::cluster::{Cluster, lines, now};

fn claim() -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "c", "namespace": "ns"},
        "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
        },
    })
}

fn class(name: &str, created: &str) -> Value {
    json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
        "metadata": {
            "name": name, "creationTimestamp": created,
            "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
        },
        "provisioner": "example.com/disk",
    })
}

#[test]
fn claims_get_the_newest_default_class() {
    let admit = |cluster: &Cluster, mut claim: Value| {
        PERSISTENT_VOLUME_CLAIM.default(&mut claim);
        let request = cluster.request("", "persistentvolumeclaims");
        PERSISTENT_VOLUME_CLAIM.prepare_create(&mut claim, &request).expect("admitted");
        assert_eq!(PERSISTENT_VOLUME_CLAIM.validate(&claim, None, Part::Main), []);
        assert_eq!(claim["status"], json!({"phase": "Pending"}));
        claim["spec"]["storageClassName"].clone()
    };
    let cluster = Cluster::default()
        .with(class("old", "2025-01-01T00:00:00Z"))
        .with(class("new", "2026-01-01T00:00:00Z"));
    assert_eq!(admit(&Cluster::default(), claim()), Value::Null);
    assert_eq!(admit(&cluster, claim()), "new");
    let mut without = claim();
    without["spec"]["storageClassName"] = "".into();
    assert_eq!(admit(&cluster, without), "");
}

#[track_caller]
fn check_change(pointer: &str, value: Value, bound: bool, expected: Expect) {
    let mut old = claim();
    old["spec"]["storageClassName"] = "s".into();
    old["status"] = json!({"phase": if bound { "Bound" } else { "Pending" }});
    let mut new = old.clone();
    let (parent, field) = pointer.rsplit_once('/').expect("a pointer");
    new.pointer_mut(parent).expect("a parent")[field] = value;
    let errors = PERSISTENT_VOLUME_CLAIM.validate(&new, Some(&old), Part::Main);
    expected.assert_eq(&lines(&errors));
}

#[test]
fn claims_are_bound_once_and_may_grow() {
    check_change("/spec/volumeName", json!("v"), false, expect![[""]]);
    check_change(
        "/spec/storageClassName",
        json!("t"),
        false,
        expect![
            "spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
        ],
    );
    check_change("/spec/resources/requests/storage", json!("2Gi"), true, expect![[""]]);
    check_change(
        "/spec/resources/requests/storage",
        json!("2Gi"),
        false,
        expect![
            "spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
        ],
    );
    check_change(
        "/spec/resources/requests/storage",
        json!("1Mi"),
        true,
        expect![
            "spec.resources.requests.storage: Forbidden: field can not be less than status.capacity"
        ],
    );
}

#[test]
fn claims_and_volumes_say_how_much_and_how() {
    let bad = json!({"spec": {"accessModes": ["Sometimes"], "volumeMode": "Tape"}});
    expect![[r#"
        spec.accessModes: Unsupported value: "Sometimes": supported values: "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"
        spec.volumeMode: Unsupported value: "Tape": supported values: "Block", "Filesystem"
        spec.resources[storage]: Required value"#]].assert_eq(&lines(&PERSISTENT_VOLUME_CLAIM.validate(&bad, None, Part::Main)));
    let mut local = json!({"spec": {
        "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "0"}, "local": {"path": "/d"},
    }});
    PERSISTENT_VOLUME.default(&mut local);
    expect![[r#"
        spec.capacity[storage]: Invalid value: "0": must be greater than zero
        spec.nodeAffinity: Required value: Local volume requires node affinity"#]]
    .assert_eq(&lines(&PERSISTENT_VOLUME.validate(&local, None, Part::Main)));
}

#[test]
fn rows_are_those_of_kubectl() {
    let mut bound = claim();
    bound["spec"]["volumeName"] = "v".into();
    bound["status"] = json!({
        "phase": "Bound", "capacity": {"storage": "2Gi"},
        "accessModes": ["ReadWriteMany", "ReadWriteOnce"],
    });
    let row =
        |rules: &dyn Rules, object: &Value| Value::from(rules.cells(object, now())).to_string();
    expect![[r#"["c","","","","","","<unset>","<unknown>","<unset>"]"#]]
        .assert_eq(&row(&PERSISTENT_VOLUME_CLAIM, &claim()));
    expect![[r#"["c","Bound","v","2Gi","RWO,RWX","","<unset>","<unknown>","<unset>"]"#]]
        .assert_eq(&row(&PERSISTENT_VOLUME_CLAIM, &bound));
    let volume = json!({
        "metadata": {"name": "v"},
        "spec": {
            "capacity": {"storage": "2Gi"}, "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain", "volumeMode": "Block",
            "claimRef": {"namespace": "ns", "name": "c"}, "storageClassName": "s",
        },
        "status": {"phase": "Bound"},
    });
    expect![[r#"["v","2Gi","RWO","Retain","Bound","ns/c","s","<unset>","","<unknown>","Block"]"#]]
        .assert_eq(&row(&PERSISTENT_VOLUME, &volume));
    let mut class = class("s", "2026-01-01T00:00:00Z");
    STORAGE_CLASS.default(&mut class);
    expect![[r#"["s (default)","example.com/disk","Delete","Immediate",false,"60s"]"#]]
        .assert_eq(&row(&STORAGE_CLASS, &class));
}

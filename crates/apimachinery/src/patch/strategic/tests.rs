use proptest::prelude::*;
use serde_json::{Value, json};

use super::apply;
use crate::error::ApiError;
use crate::schema::Schema;
use crate::testing::any_json;

const POD: &str = "io.k8s.api.core.v1.Pod";
const DEPLOYMENT: &str = "io.k8s.api.apps.v1.Deployment";
const NODE: &str = "io.k8s.api.core.v1.Node";
const SERVICE: &str = "io.k8s.api.core.v1.Service";

fn patched(name: &str, document: &Value, patch: &Value) -> Result<Value, ApiError> {
    apply(Schema::kubernetes(), name, document, patch)
}

#[track_caller]
fn check(name: &str, document: Value, patch: Value, expected: Value) {
    assert_eq!(patched(name, &document, &patch), Ok(expected), "{document} {patch}");
}

/// A pod with these fields in its spec.
fn spec(fields: Value) -> Value {
    json!({ "spec": fields })
}

#[test]
fn plain_fields_merge_replace_and_go() {
    check(
        POD,
        json!({ "metadata": { "labels": { "a": "1", "b": "2" } }, "spec": { "priority": 1 } }),
        json!({ "metadata": { "labels": { "b": null, "c": "3" } }, "spec": { "nodeName": "n" } }),
        json!({
            "metadata": { "labels": { "a": "1", "c": "3" } },
            "spec": { "priority": 1, "nodeName": "n" },
        }),
    );
    check(
        POD,
        json!({}),
        json!({ "metadata": { "labels": { "a": null, "b": "1" } } }),
        json!({ "metadata": { "labels": { "b": "1" } } }),
    );
}

#[test]
fn containers_merge_by_name() {
    check(
        POD,
        spec(
            json!({ "containers": [{ "name": "a", "image": "1" }, { "name": "b", "image": "1" }] }),
        ),
        spec(
            json!({ "containers": [{ "name": "b", "image": "2" }, { "name": "c", "image": "3" }] }),
        ),
        spec(json!({ "containers": [
            { "name": "a", "image": "1" }, { "name": "b", "image": "2" }, { "name": "c", "image": "3" },
        ] })),
    );
    check(
        POD,
        spec(json!({ "containers": [
            { "name": "a", "env": [{ "name": "X", "value": "1" }], "command": ["x", "y"] },
        ] })),
        spec(json!({ "containers": [
            { "name": "a", "env": [{ "name": "Y", "value": "2" }], "command": ["z"] },
        ] })),
        // Without an order, what the patch names comes first unless it was behind.
        spec(json!({ "containers": [{
            "name": "a",
            "env": [{ "name": "Y", "value": "2" }, { "name": "X", "value": "1" }],
            "command": ["z"],
        }] })),
    );
}

#[test]
fn list_entries_are_deleted_and_lists_replaced_by_directive() {
    check(
        POD,
        spec(json!({ "containers": [{ "name": "a" }, { "name": "b" }] })),
        spec(json!({ "containers": [{ "name": "a", "$patch": "delete" }] })),
        spec(json!({ "containers": [{ "name": "b" }] })),
    );
    check(
        POD,
        spec(json!({ "containers": [{ "name": "a" }, { "name": "b" }] })),
        spec(json!({ "containers": [{ "$patch": "replace" }, { "name": "c" }] })),
        spec(json!({ "containers": [{ "name": "c" }] })),
    );
    check(
        POD,
        spec(json!({})),
        spec(json!({ "containers": [{ "name": "a", "$patch": "delete" }, { "name": "b" }] })),
        spec(json!({ "containers": [{ "name": "b" }] })),
    );
    check(
        POD,
        spec(json!({ "securityContext": { "runAsUser": 1 }, "affinity": { "podAffinity": {} } })),
        spec(json!({
            "securityContext": { "$patch": "replace", "runAsGroup": 2 },
            "affinity": { "$patch": "delete" },
        })),
        spec(json!({ "securityContext": { "runAsGroup": 2 }, "affinity": {} })),
    );
}

#[test]
fn ports_merge_by_their_patch_key() {
    check(
        POD,
        spec(json!({ "containers": [
            { "name": "a", "ports": [{ "containerPort": 80 }, { "containerPort": 443 }] },
        ] })),
        spec(json!({ "containers": [
            { "name": "a", "ports": [{ "containerPort": 443, "name": "tls" }] },
        ] })),
        spec(json!({ "containers": [{ "name": "a", "ports": [
            { "containerPort": 80 }, { "containerPort": 443, "name": "tls" },
        ] }] })),
    );
    check(
        SERVICE,
        spec(json!({ "ports": [{ "port": 80, "protocol": "TCP", "targetPort": 80 }] })),
        spec(json!({ "ports": [{ "port": 80, "targetPort": 8080 }] })),
        spec(json!({ "ports": [{ "port": 80, "protocol": "TCP", "targetPort": 8080 }] })),
    );
}

#[test]
fn lists_without_strategy_are_replaced() {
    check(
        POD,
        spec(json!({ "tolerations": [{ "key": "a" }, { "key": "b" }] })),
        spec(json!({ "tolerations": [{ "key": "c" }] })),
        spec(json!({ "tolerations": [{ "key": "c" }] })),
    );
    check(
        NODE,
        spec(json!({ "taints": [{ "key": "a", "effect": "NoSchedule" }] })),
        spec(json!({ "taints": null })),
        spec(json!({})),
    );
}

#[test]
fn retained_keys_drop_the_others() {
    // What `kubectl apply` sends when a volume changes its source.
    check(
        POD,
        spec(
            json!({ "volumes": [{ "name": "v", "emptyDir": {} }, { "name": "w", "emptyDir": {} }] }),
        ),
        spec(json!({ "volumes": [
            { "$retainKeys": ["name", "configMap"], "name": "v", "configMap": { "name": "c" } },
        ] })),
        spec(json!({ "volumes": [
            { "name": "v", "configMap": { "name": "c" } }, { "name": "w", "emptyDir": {} },
        ] })),
    );
    check(
        DEPLOYMENT,
        spec(
            json!({ "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 1 } } }),
        ),
        spec(json!({ "strategy": { "$retainKeys": ["type"], "type": "Recreate" } })),
        spec(json!({ "strategy": { "type": "Recreate" } })),
    );
}

#[test]
fn values_are_deleted_from_lists_of_values() {
    let meta = |finalizers: Value| json!({ "metadata": { "finalizers": finalizers } });
    check(
        POD,
        meta(json!(["a", "b", "c"])),
        json!({ "metadata": { "$deleteFromPrimitiveList/finalizers": ["b"] } }),
        meta(json!(["a", "c"])),
    );
    check(POD, meta(json!(["a", "b"])), meta(json!(["c", "b"])), meta(json!(["c", "a", "b"])));
    check(
        POD,
        meta(json!(["a", "b"])),
        json!({ "metadata": {
            "$deleteFromPrimitiveList/finalizers": ["a"],
            "$setElementOrder/finalizers": ["c", "b"],
            "finalizers": ["c"],
        } }),
        meta(json!(["c", "b"])),
    );
}

#[test]
fn element_order_is_kept_as_asked() {
    // What `kubectl apply` sends when a container is added in front.
    check(
        POD,
        spec(json!({ "containers": [{ "name": "a", "image": "1" }, { "name": "side" }] })),
        spec(json!({
            "$setElementOrder/containers": [{ "name": "new" }, { "name": "a" }],
            "containers": [{ "name": "new", "image": "2" }],
        })),
        spec(json!({ "containers": [
            { "name": "new", "image": "2" }, { "name": "a", "image": "1" }, { "name": "side" },
        ] })),
    );
    check(
        POD,
        spec(json!({ "containers": [{ "name": "a" }, { "name": "b" }] })),
        spec(json!({ "$setElementOrder/containers": [{ "name": "b" }, { "name": "a" }] })),
        spec(json!({ "containers": [{ "name": "b" }, { "name": "a" }] })),
    );
    check(
        POD,
        spec(json!({ "containers": [{ "name": "server" }, { "name": "a" }, { "name": "b" }] })),
        spec(json!({
            "$setElementOrder/containers": [{ "name": "b" }],
            "containers": [{ "name": "a", "$patch": "delete" }, { "name": "b", "image": "2" }],
        })),
        spec(json!({ "containers": [{ "name": "server" }, { "name": "b", "image": "2" }] })),
    );
    check(
        POD,
        spec(json!({})),
        spec(json!({
            "$setElementOrder/containers": [{ "name": "a" }],
            "containers": [{ "name": "a", "env": null }],
        })),
        spec(json!({ "containers": [{ "name": "a" }] })),
    );
}

#[test]
fn conditions_merge_by_type() {
    let status = |conditions: Value| json!({ "status": { "conditions": conditions } });
    check(
        NODE,
        status(json!([
            { "type": "Ready", "status": "True", "reason": "x" },
            { "type": "DiskPressure", "status": "False" },
        ])),
        status(json!([{ "type": "Ready", "status": "False" }])),
        status(json!([
            { "type": "Ready", "status": "False", "reason": "x" },
            { "type": "DiskPressure", "status": "False" },
        ])),
    );
    // The patch of a scheduler about a pod that does not fit.
    check(
        POD,
        json!({ "status": { "phase": "Pending" } }),
        status(json!([{ "type": "PodScheduled", "status": "False" }])),
        json!({ "status": {
            "phase": "Pending", "conditions": [{ "type": "PodScheduled", "status": "False" }],
        } }),
    );
}

#[test]
fn a_field_that_is_replaced_does_not_merge() {
    check(
        "io.k8s.api.policy.v1.PodDisruptionBudget",
        spec(json!({ "selector": { "matchLabels": { "a": "1" } } })),
        spec(json!({ "selector": { "matchLabels": { "b": "2" } } })),
        spec(json!({ "selector": { "matchLabels": { "b": "2" } } })),
    );
}

#[test]
fn wrong_patches_are_refused() {
    let document = spec(json!({ "containers": [{ "name": "a" }], "volumes": [{ "name": "v" }] }));
    let cases = [
        (json!([]), 400),
        (json!({ "$patch": "paint" }), 500),
        (spec(json!({ "containers": [{ "image": "x" }] })), 500),
        (spec(json!({ "containers": ["a"] })), 500),
        (spec(json!({ "containers": [{ "name": "a", "$patch": "merge" }] })), 500),
        (spec(json!({ "containers": [{ "$patch": "delete" }] })), 500),
        (spec(json!({ "$setElementOrder/containers": "a" })), 400),
        (spec(json!({ "$retainKeys": ["volumes"], "containers": [] })), 400),
        (spec(json!({ "$deleteFromPrimitiveList/containers": 3 })), 400),
        (
            spec(json!({
                "$setElementOrder/containers": [{ "name": "a" }, { "name": "b" }],
                "containers": [{ "name": "b" }, { "name": "a" }],
            })),
            500,
        ),
    ];
    for (patch, code) in cases {
        let error = patched(POD, &document, &patch).expect_err("refused");
        assert_eq!(error.code, code, "{patch}: {error}");
    }
}

#[test]
fn long_lists_take_no_ages() {
    let list = |from: i32, to: i32, image: &str| {
        spec(json!({ "containers": Value::from_iter(
            (from..to).map(|at| json!({ "name": at.to_string(), "image": image })),
        ) }))
    };
    let merged = patched(POD, &list(0, 20_000, "a"), &list(10_000, 30_000, "b")).expect("merges");
    let containers = merged["spec"]["containers"].as_array().expect("a list");
    assert_eq!(containers.len(), 30_000);
    assert_eq!(containers[10_000], json!({ "name": "10000", "image": "b" }));
}

#[test]
fn without_a_type_lists_are_replaced() {
    check(
        "no.such.Type",
        json!({ "a": { "b": [1, 2], "c": 1 } }),
        json!({ "a": { "b": [3] } }),
        json!({ "a": { "b": [3], "c": 1 } }),
    );
}

proptest! {
    #[test]
    fn a_patch_of_what_is_there_changes_nothing(fields in any_json()) {
        let given = json!({ "metadata": { "annotations": fields } });
        let document = patched(POD, &json!({}), &given).expect("an object");
        prop_assert_eq!(patched(POD, &document, &document), Ok(document.clone()));
    }

    #[test]
    fn patching_twice_changes_nothing_more(
        old in prop::collection::btree_map("[a-d]", "[x-z]", 0..4),
        new in prop::collection::vec(("[a-f]", "[x-z]"), 0..4),
    ) {
        let list = |entries: Vec<(String, String)>| {
            let entries: Vec<Value> = entries
                .into_iter()
                .map(|(name, image)| json!({ "name": name, "image": image }))
                .collect();
            spec(json!({ "containers": entries }))
        };
        let document = list(old.into_iter().collect());
        let patch = list(new);
        let once = patched(POD, &document, &patch).expect("merges");
        prop_assert_eq!(patched(POD, &once, &patch), Ok(once));
    }

    #[test]
    fn whatever_is_patched_is_answered(old in any_json(), patch in any_json(), name in directive()) {
        let document = json!({ "spec": old });
        let patch = json!({ "spec": { "containers": patch.clone(), name: patch } });
        if let Ok(merged) = patched(POD, &document, &patch) {
            prop_assert!(merged.is_object());
        }
    }
}

fn directive() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "$patch",
        "$retainKeys",
        "$setElementOrder/containers",
        "$deleteFromPrimitiveList/containers",
        "volumes",
    ])
}

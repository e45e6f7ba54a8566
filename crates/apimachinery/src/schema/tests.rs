use serde_json::{Value, json};

use super::{Kind, ListMerge, Scalar, Schema};

const POD: &str = "io.k8s.api.core.v1.Pod";
const DEPLOYMENT: &str = "io.k8s.api.apps.v1.Deployment";

#[test]
fn places_know_types_and_merge_rules() {
    let schema = Schema::kubernetes();
    let pod = schema.get(POD).expect("a pod");
    let spec = pod.field("spec").expect("a spec");
    assert_eq!(spec.kind(), Kind::Struct);
    let containers = spec.field("containers").expect("containers");
    assert_eq!(*containers.list_merge(), ListMerge::Map(["name".into()].into()));
    assert_eq!(containers.patch_strategy().key.as_deref(), Some("name"));
    let port = containers.item().and_then(|at| at.field("ports")).expect("ports");
    assert_eq!(
        *port.list_merge(),
        ListMerge::Map(["containerPort".into(), "protocol".into()].into())
    );
    let protocol = port.item().and_then(|at| at.field("protocol")).expect("a protocol");
    assert_eq!(protocol.default_value(), Some(&json!("TCP")));
    assert!(spec.field("nodeSelector").expect("a selector").is_atomic());
    assert!(spec.field("affinity").is_some_and(|at| !at.is_atomic()));
    assert!(spec.requires("containers") && !spec.requires("volumes"));
    assert!(spec.field("containerz").is_none());
    let selector = schema.get(DEPLOYMENT).and_then(|at| at.field("spec")?.field("selector"));
    assert!(selector.expect("a selector").is_atomic(), "by its type");
    let quantity = schema
        .get("io.k8s.api.core.v1.Node")
        .and_then(|at| at.field("status")?.field("capacity")?.field("cpu"));
    assert_eq!(quantity.map(super::At::kind), Some(Kind::Scalar(Scalar::Quantity)));
}

#[test]
fn every_served_kind_has_a_type() {
    let schema = Schema::kubernetes();
    for name in [
        "core.v1.Node",
        "core.v1.Event",
        "core.v1.Binding",
        "core.v1.ServiceAccount",
        "apps.v1.StatefulSet",
        "batch.v1.Job",
        "batch.v1.CronJob",
        "events.v1.Event",
        "coordination.v1.Lease",
        "scheduling.v1.PriorityClass",
        "storage.v1.CSINode",
        "policy.v1.Eviction",
        "policy.v1.PodDisruptionBudget",
        "resource.v1.ResourceSlice",
        "rbac.v1.ClusterRole",
        "authentication.v1.TokenReview",
        "discovery.v1.EndpointSlice",
        "authorization.v1.SelfSubjectAccessReview",
        "autoscaling.v1.Scale",
        "admissionregistration.v1.ValidatingWebhookConfiguration",
        "node.v1.RuntimeClass",
    ] {
        assert!(schema.get(&format!("io.k8s.api.{name}")).is_some(), "{name}");
    }
}

#[test]
fn unknown_fields_are_named_with_their_path() {
    let pod = json!({
        "kind": "Pod",
        "metadata": { "labels": { "anything": "x" }, "annotation": {} },
        "spec": {
            "foo": 1,
            "containers": [
                { "name": "a" },
                { "name": "b", "imagePullpolicy": "x", "env": [{ "name": "x", "val": "y" }] },
            ],
        },
    });
    assert_eq!(
        Schema::kubernetes().check_fields(POD, &pod),
        [
            "metadata.annotation",
            "spec.containers[1].env[0].val",
            "spec.containers[1].imagePullpolicy",
            "spec.foo"
        ]
    );
    assert!(Schema::kubernetes().check_fields("no.such.Type", &pod).is_empty());
}

#[test]
fn wrong_types_are_worded_as_by_the_decoder() {
    let cases = [
        (
            DEPLOYMENT,
            json!({ "spec": { "replicas": "3" } }),
            "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of \
             type int32",
        ),
        (
            DEPLOYMENT,
            json!({ "spec": { "replicas": 1.5 } }),
            "json: cannot unmarshal number 1.5 into Go struct field DeploymentSpec.spec.replicas \
             of type int32",
        ),
        (
            POD,
            json!({ "metadata": { "labels": { "a": 1 } } }),
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of \
             type string",
        ),
        (
            POD,
            json!({ "spec": { "containers": { "name": "x" } } }),
            "json: cannot unmarshal object into Go struct field PodSpec.spec.containers of type \
             []v1.Container",
        ),
        (
            POD,
            json!({ "spec": { "containers": [{ "env": [{ "name": true }] }] } }),
            "json: cannot unmarshal bool into Go struct field EnvVar.spec.containers.env.name of \
             type string",
        ),
        (POD, json!([]), "json: cannot unmarshal array into Go value of type v1.Pod"),
        (
            POD,
            json!({ "spec": { "containers": [{ "resources": { "limits": { "cpu": "1 core" } } }] } }),
            "quantities must match the regular expression \
             '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        (
            POD,
            json!({ "metadata": { "creationTimestamp": "yesterday" } }),
            "parsing time \"yesterday\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \
             \"yesterday\" as \"2006\"",
        ),
    ];
    for (name, object, expected) in cases {
        assert_eq!(Schema::kubernetes().check_types(name, &object), [expected], "{object}");
    }
}

#[test]
fn right_types_pass() {
    let pod = json!({
        "metadata": { "creationTimestamp": null, "generation": 9_007_199_254_740_993_i64 },
        "spec": {
            "priority": -5,
            "containers": [{
                "name": "a",
                "ports": [{ "containerPort": 80 }],
                "livenessProbe": { "httpGet": { "port": "http" }, "periodSeconds": 3 },
                "readinessProbe": { "httpGet": { "port": 80 } },
                "resources": {
                    "limits": { "cpu": 1, "a": "1.5Gi", "b": "1e3", "c": "-1E-2", "d": ".5", "e": "12E" }
                },
            }],
        },
    });
    assert_eq!(Schema::kubernetes().check_types(POD, &pod), Vec::<String>::new());
}

#[test]
fn pruning_leaves_what_decoding_would() {
    let mut pod = json!({
        "metadata": { "creationTimestamp": null, "labels": {}, "annotations": { "a": null } },
        "spec": {
            "unknown": 1,
            "containers": [{
                "name": "a", "resources": {}, "env": [], "bogus": { "x": 1 },
                "livenessProbe": null,
            }],
            "volumes": [{ "name": "v", "emptyDir": {} }],
            "nodeSelector": {},
            "tolerations": [],
        },
        "status": {},
    });
    Schema::kubernetes().prune(POD, &mut pod);
    let expected = json!({
        "metadata": { "annotations": { "a": "" } },
        "spec": {
            "containers": [{ "name": "a", "resources": {} }],
            "volumes": [{ "name": "v", "emptyDir": {} }],
        },
        "status": {},
    });
    assert_eq!(pod, expected);
    let mut empty = json!({ "spec": { "containers": [] } });
    Schema::kubernetes().prune(POD, &mut empty);
    assert_eq!(empty, json!({ "spec": { "containers": [] } }), "required lists stay");
}

#[test]
fn free_form_values_are_left_alone() {
    let name = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
    let meta = json!({ "managedFields": [{ "fieldsV1": { "f:a": {}, "k:{}": { ".": {} } } }] });
    let mut pruned = meta.clone();
    Schema::kubernetes().prune(name, &mut pruned);
    assert_eq!(pruned, meta);
    assert!(Schema::kubernetes().check_fields(name, &meta).is_empty());
    assert_eq!(Schema::kubernetes().check_types(name, &Value::Null), Vec::<String>::new());
}

use expect_test::{Expect, expect};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use serde_json::{Value, json};

use super::*;

fn pod(spec: Value) -> core_v1::Pod {
    let pod =
        json!({"metadata": {"name": "p", "labels": {"app": "web", "hash": "x"}}, "spec": spec});
    serde_json::from_value(pod).expect("a pod")
}

#[track_caller]
fn admitted(spec: Value) -> Value {
    let mut pod = pod(spec);
    let mut problems = Vec::new();
    admit_pod(&mut pod, &PriorityClasses::default(), &mut problems);
    assert_eq!(problems, []);
    serde_json::to_value(pod).expect("JSON")["spec"].take()
}

#[track_caller]
fn check(spec: Value, pointer: &str, expected: Expect) {
    let spec = admitted(spec);
    expected.assert_eq(&spec.pointer(pointer).unwrap_or(&Value::Null).to_string());
}

#[test]
fn missing_requests_are_the_limits() {
    let named = |name: &str| {
        json!({"name": name, "resources": {
            "requests": {"cpu": "1"}, "limits": {"cpu": "2", "memory": "1Gi"}}})
    };
    for container in ["/containers/0", "/initContainers/0"] {
        check(
            json!({"containers": [named("c")], "initContainers": [named("i")]}),
            &format!("{container}/resources/requests"),
            expect![[r#"{"cpu":"1","memory":"1Gi"}"#]],
        );
    }
}

#[test]
fn missing_pod_level_requests_are_the_containers_or_the_limits() {
    let with = |requests: Value| {
        json!({
            "containers": [
                {"name": "a", "resources": {"requests": requests}},
                {"name": "b", "resources": {"requests": {"cpu": "250m"}}},
            ],
            "resources": {"limits": {"cpu": "4", "memory": "4Gi"}},
        })
    };
    let at = "/resources/requests";
    check(with(json!({"cpu": "1"})), at, expect![[r#"{"cpu":"1250m","memory":"4Gi"}"#]]);
    check(with(json!({"memory": "1Gi"})), at, expect![[r#"{"cpu":"250m","memory":"1073741824"}"#]]);
}

#[test]
fn label_keys_become_part_of_the_selector_once() {
    let spec = json!({
        "containers": [{"name": "c"}],
        "topologySpreadConstraints": [{
            "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "web"}},
            "matchLabelKeys": ["hash", "absent"],
        }],
        "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{
            "weight": 1,
            "podAffinityTerm": {
                "topologyKey": "zone",
                "labelSelector": {},
                "matchLabelKeys": ["app"],
                "mismatchLabelKeys": ["hash"],
            },
        }]}},
    });
    let once = admitted(spec);
    // What an API server has stored goes through again without a change.
    let twice = admitted(once.clone());
    assert_eq!(once, twice);
    let spread = once.pointer("/topologySpreadConstraints/0/labelSelector").expect("selector");
    expect![[r#"{"matchExpressions":[{"key":"hash","operator":"In","values":["x"]}],"matchLabels":{"app":"web"}}"#]]
        .assert_eq(&spread.to_string());
    let anti = once
        .pointer("/affinity/podAntiAffinity/preferredDuringSchedulingIgnoredDuringExecution/0")
        .and_then(|term| term.pointer("/podAffinityTerm/labelSelector/matchExpressions"))
        .expect("requirements");
    expect![[r#"[{"key":"app","operator":"In","values":["web"]},{"key":"hash","operator":"NotIn","values":["x"]}]"#]]
        .assert_eq(&anti.to_string());
}

#[test]
fn ports_on_the_host_network_are_the_hosts() {
    let containers = json!([{"name": "c", "ports": [{"containerPort": 80}]}]);
    let at = "/containers/0/ports/0";
    check(
        json!({"hostNetwork": true, "containers": containers}),
        at,
        expect![[r#"{"containerPort":80,"hostPort":80,"protocol":"TCP"}"#]],
    );
    check(
        json!({"containers": containers}),
        at,
        expect![[r#"{"containerPort":80,"protocol":"TCP"}"#]],
    );
}

#[test]
fn pod_leaves_a_failed_node_after_five_minutes_unless_it_says_else() {
    let with =
        |tolerations: Value| json!({"containers": [{"name": "c"}], "tolerations": tolerations});
    check(
        with(json!([])),
        "/tolerations",
        expect![[
            r#"[{"effect":"NoExecute","key":"node.kubernetes.io/not-ready","operator":"Exists","tolerationSeconds":300},{"effect":"NoExecute","key":"node.kubernetes.io/unreachable","operator":"Exists","tolerationSeconds":300}]"#
        ]],
    );
    check(
        with(json!([{"operator": "Exists"}])),
        "/tolerations",
        expect![[r#"[{"operator":"Exists"}]"#]],
    );
    check(
        with(json!([{"operator": "Exists", "effect": "NoSchedule"}])),
        "/tolerations/2/key",
        expect![[r#""node.kubernetes.io/unreachable""#]],
    );
}

#[test]
fn lowest_of_several_global_defaults_counts() {
    let mut classes = PriorityClasses::default();
    let mut problems = Vec::new();
    for (name, value) in [("b", 20), ("a", 10), ("c", 30)] {
        let class = json!({"metadata": {"name": name}, "value": value, "globalDefault": true});
        let class: PriorityClass = serde_json::from_value(class).expect("a class");
        classes.add(&class, &mut problems);
    }
    let mut pod = pod(json!({"containers": [{"name": "c"}]}));
    admit_pod(&mut pod, &classes, &mut problems);
    assert_eq!(problems, []);
    let spec = pod.spec.expect("a spec");
    assert_eq!((spec.priority, spec.priority_class_name.as_deref()), (Some(10), Some("a")));
}

#[test]
fn stored_pod_keeps_the_priority_that_was_resolved_for_it() {
    let mut stored = pod(json!({"containers": [{"name": "c"}], "priority": 7}));
    stored.metadata.uid = Some("u".to_owned());
    let mut problems = Vec::new();
    admit_pod(&mut stored, &PriorityClasses::default(), &mut problems);
    assert_eq!(problems, []);
    assert_eq!(stored.spec.and_then(|spec| spec.priority), Some(7));

    let mut new = pod(json!({"containers": [{"name": "c"}], "priority": 7}));
    admit_pod(&mut new, &PriorityClasses::default(), &mut problems);
    assert_eq!(
        problems[0].to_string(),
        "spec.priority: found 7, allowed: nothing, or 0, its value without a class"
    );
}

#[test]
fn node_gives_away_what_it_has() {
    let node = json!({"metadata": {"name": "n"}, "status": {"capacity": {"cpu": "4"}}});
    let mut node: core_v1::Node = serde_json::from_value(node).expect("a node");
    admit_node(&mut node, &mut Vec::new());
    let status = node.status.expect("a status");
    assert_eq!(status.allocatable, status.capacity);
}

#[test]
fn namespace_carries_its_name_as_a_label() {
    let namespace = json!({"metadata": {"name": "shop", "labels": {"team": "a"}}});
    let mut namespace: core_v1::Namespace = serde_json::from_value(namespace).expect("a namespace");
    admit_namespace(&mut namespace);
    let labels = namespace.metadata.labels.expect("labels");
    assert_eq!(labels.get(NAMESPACE_NAME_LABEL).map(String::as_str), Some("shop"));
    assert_eq!(labels.len(), 2);
}

use expect_test::{Expect, expect};
use serde_json::{Value, json};
use steersman_apimachinery::rules::{Part, Rules};

use crate::cluster::lines;
use crate::fields::set;
use crate::pod::Pods;

/// A valid pod's spec, defaulted, with some fields of its own.
fn spec(more: Value) -> Value {
    let mut spec = json!({"containers": [{"name": "c", "image": "i:1"}]});
    for (key, value) in more.as_object().expect("an object") {
        set(&mut spec, key, value.clone());
    }
    let mut pod = json!({"metadata": {"name": "a"}, "spec": spec});
    Pods.default(&mut pod);
    pod["spec"].take()
}

#[track_caller]
fn check(more: Value, expected: Expect) {
    let pod = json!({"metadata": {"name": "a"}, "spec": spec(more)});
    expected.assert_eq(&lines(&Pods.validate(&pod, None, Part::Main)));
}

#[test]
fn containers_have_names_and_images() {
    check(json!({}), expect![[""]]);
    check(json!({"containers": []}), expect!["spec.containers: Required value"]);
    check(
        json!({
            "initContainers": [{"name": "a", "image": " i "}],
            "containers": [{"name": "a", "image": "i:1"}, {"name": "B"}, {"image": "i:1"}],
        }),
        expect![[r#"
            spec.initContainers[0].image: Invalid value: " i ": must not have leading or trailing whitespace
            spec.containers[0].name: Duplicate value: "a"
            spec.containers[1].name: Invalid value: "B": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')
            spec.containers[1].image: Required value
            spec.containers[2].name: Required value"#]],
    );
    check(
        json!({"restartPolicy": "Sometimes", "priorityClassName": "A"}),
        expect![[r#"
        spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"
        spec.priorityClassName: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"#]],
    );
}

#[test]
fn requests_stay_within_limits() {
    let with = |resources: Value| json!({"containers": [{"name": "c", "image": "i:1", "resources": resources}]});
    check(
        with(
            json!({"requests": {"cpu": "2", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}}),
        ),
        expect![[
            r#"spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1"#
        ]],
    );
    check(
        with(json!({
            "requests": {"example.com/gpu": "1", "example.com/fpga": "1", "cpu": "-1"},
            "limits": {"example.com/gpu": "2"},
        })),
        expect![[r#"
            spec.containers[0].resources.requests[cpu]: Invalid value: "-1": must be greater than or equal to 0
            spec.containers[0].resources.limits: Required value: Limit must be set for non overcommitable resources
            spec.containers[0].resources.requests: Invalid value: "1": must be equal to example.com/gpu limit of 2"#]],
    );
    check(
        with(json!({"limits": {"example.com/gpu": "500m", "gpu": "1"}})),
        expect![[r#"
        spec.containers[0].resources.limits[example.com/gpu]: Invalid value: "500m": must be an integer
        spec.containers[0].resources.limits[gpu]: Invalid value: "gpu": must be a standard resource for containers
        spec.containers[0].resources.requests[example.com/gpu]: Invalid value: "500m": must be an integer
        spec.containers[0].resources.requests[gpu]: Invalid value: "gpu": must be a standard resource for containers"#]],
    );
    check(
        with(json!({"limits": {"hugepages-2Mi": "2Mi"}})),
        expect!["spec.containers[0].resources: Forbidden: HugePages require cpu or memory"],
    );
    check(
        with(json!({"limits": {"cpu": "lots"}})),
        expect![[r#"
        spec.containers[0].resources.limits[cpu]: Invalid value: "lots": must be a quantity
        spec.containers[0].resources.requests[cpu]: Invalid value: "lots": must be a quantity"#]],
    );
    check(
        json!({"overhead": {"cpu": "-1"}}),
        expect![[r#"spec.overhead[cpu]: Invalid value: "-1": must be greater than or equal to 0"#]],
    );
}

#[test]
fn ports_are_ports_and_do_not_clash() {
    let with =
        |ports: Value| json!({"containers": [{"name": "c", "image": "i:1", "ports": ports}]});
    check(
        with(
            json!([{"containerPort": 0}, {"containerPort": 70000, "hostPort": -1, "protocol": "ICMP"}]),
        ),
        expect![[r#"
            spec.containers[0].ports[0].containerPort: Required value
            spec.containers[0].ports[1].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive
            spec.containers[0].ports[1].hostPort: Invalid value: -1: must be between 1 and 65535, inclusive
            spec.containers[0].ports[1].protocol: Unsupported value: "ICMP": supported values: "SCTP", "TCP", "UDP""#]],
    );
    check(
        with(json!([
            {"containerPort": 80, "hostPort": 8080, "name": "a"},
            {"containerPort": 81, "hostPort": 8080, "name": "a"},
            {"containerPort": 81, "hostPort": 8080, "protocol": "UDP", "name": "not--good"},
        ])),
        expect![[r#"
            spec.containers[0].ports[1].name: Duplicate value: "a"
            spec.containers[0].ports[2].name: Invalid value: "not--good": must not contain consecutive hyphens
            spec.containers[0].ports[1].hostPort: Duplicate value: "TCP//8080""#]],
    );
    let mut on_host = with(json!([{"containerPort": 80, "hostPort": 8080}]));
    on_host["hostNetwork"] = true.into();
    check(
        on_host,
        expect![
            "spec.containers[0].ports[0].containerPort: Invalid value: 80: must match `hostPort` when `hostNetwork` is true"
        ],
    );
}

#[test]
fn node_affinity_is_well_formed() {
    check(
        json!({
            "nodeSelector": {"-a": "b c"},
            "affinity": {"nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{
                    "matchExpressions": [
                        {"key": "a", "operator": "In"},
                        {"key": "a", "operator": "Exists", "values": ["x"]},
                        {"key": "a", "operator": "Gt", "values": ["1", "2"]},
                        {"key": "a", "operator": "Near", "values": ["x"]},
                    ],
                    "matchFields": [{"key": "metadata.uid", "operator": "In", "values": ["x", "y"]}],
                }]},
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 0, "preference": {"matchExpressions": []}},
                ],
            }},
        }),
        expect![[r#"
            spec.nodeSelector: Invalid value: "-a": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
            spec.nodeSelector: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')
            spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'
            spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[1].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'
            spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[2].values: Required value: must be specified single value when `operator` is 'Lt' or 'Gt'
            spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[3].operator: Invalid value: "Near": not a valid selector operator
            spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields[0].values: Required value: must be only one value when `operator` is 'In' or 'NotIn' for node field selector
            spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields[0].key: Invalid value: "metadata.uid": not a valid field selector key
            spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: 0: must be in the range 1-100"#]],
    );
    let none = json!({"nodeSelectorTerms": []});
    check(
        json!({"affinity": {"nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": none,
        }}}),
        expect![
            "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: Required value: must have at least one node selector term"
        ],
    );
}

#[test]
fn pod_affinity_is_well_formed() {
    check(
        json!({"affinity": {
            "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "", "matchLabelKeys": ["a"]},
                {
                    "topologyKey": "z", "matchLabelKeys": ["a"], "mismatchLabelKeys": ["a"],
                    "labelSelector": {"matchLabels": {"a": "b"}, "matchExpressions": [
                        {"key": "a", "operator": "In", "values": ["c"]},
                    ]},
                },
            ]},
            "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 101, "podAffinityTerm": {
                    "topologyKey": "z", "namespaces": ["N"],
                    "labelSelector": {"matchExpressions": [{"key": "a", "operator": "in"}]},
                }},
            ]},
        }}),
        expect![[r#"
            spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].matchLabelKeys: Forbidden: must not be specified when labelSelector is not set
            spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: Required value: can not be empty
            spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[1].matchLabelKeys[0]: Invalid value: "a": exists in both matchLabelKeys and labelSelector
            spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[1].matchLabelKeys[0]: Invalid value: "a": exists in both matchLabelKeys and mismatchLabelKeys
            spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: 101: must be in the range 1-100
            spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.labelSelector.matchExpressions[0].operator: Invalid value: "in": not a valid selector operator
            spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.namespace: Invalid value: "N": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"#]],
    );
}

#[test]
fn tolerations_are_well_formed() {
    check(
        json!({"tolerations": [
            {"operator": "Equal", "value": "x"},
            {"key": "a", "operator": "Exists", "value": "x"},
            {"key": "a", "operator": "Equal", "value": "x y"},
            {"key": "a", "operator": "Like", "effect": "Never"},
            {"key": "a", "tolerationSeconds": 5, "effect": "NoSchedule"},
            {"operator": "Exists"},
        ]}),
        expect![[r#"
            spec.tolerations[0].operator: Invalid value: "Equal": operator must be Exists when `key` is empty, which means "match all values and all keys"
            spec.tolerations[1].operator: Invalid value: {"key":"a","operator":"Exists","value":"x"}: value must be empty when `operator` is 'Exists'
            spec.tolerations[2].operator: Invalid value: "x y": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')
            spec.tolerations[3].operator: Unsupported value: "Like": supported values: "Equal", "Exists"
            spec.tolerations[3].effect: Unsupported value: "Never": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"
            spec.tolerations[4].effect: Invalid value: "NoSchedule": effect must be 'NoExecute' when `tolerationSeconds` is set"#]],
    );
}

#[test]
fn spread_constraints_are_well_formed() {
    check(
        json!({"topologySpreadConstraints": [
            {"maxSkew": 0, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule", "minDomains": 0},
            {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"},
            {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "ScheduleAnyway", "minDomains": 2},
            {
                "maxSkew": 1, "whenUnsatisfiable": "Maybe", "nodeTaintsPolicy": "Obey",
                "matchLabelKeys": ["app"],
            },
        ]}),
        expect![[r#"
            spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero
            spec.topologySpreadConstraints[0].minDomains: Invalid value: 0: must be greater than zero
            spec.topologySpreadConstraints[1].{topologyKey, whenUnsatisfiable}: Duplicate value: "{z, DoNotSchedule}"
            spec.topologySpreadConstraints[2].minDomains: Invalid value: 2: can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway
            spec.topologySpreadConstraints[3].topologyKey: Required value: can not be empty
            spec.topologySpreadConstraints[3].whenUnsatisfiable: Unsupported value: "Maybe": supported values: "DoNotSchedule", "ScheduleAnyway"
            spec.topologySpreadConstraints[3].nodeTaintsPolicy: Unsupported value: "Obey": supported values: "Honor", "Ignore"
            spec.topologySpreadConstraints[3].matchLabelKeys: Forbidden: must not be specified when labelSelector is not set"#]],
    );
}

#[test]
fn gates_are_unique_and_hold_a_pod_back() {
    check(
        json!({"nodeName": "n", "schedulingGates": [{"name": "a"}, {"name": "a"}, {"name": ""}]}),
        expect![[r#"
            spec.schedulingGates[1]: Duplicate value: "a"
            spec.schedulingGates[2].name: Invalid value: "": name part must be non-empty
            spec.schedulingGates[2].name: Invalid value: "": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
            spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared"#]],
    );
}

#[test]
fn volumes_and_claims_are_found_by_their_names() {
    check(
        json!({
            "volumes": [
                {"name": "a"},
                {"name": "a", "persistentVolumeClaim": {}},
                {"name": "b", "emptyDir": {}, "hostPath": {"path": "/"}},
            ],
            "resourceClaims": [
                {"name": "gpu"},
                {"name": "gpu", "resourceClaimName": "x", "resourceClaimTemplateName": "y"},
            ],
            "containers": [{
                "name": "c", "image": "i:1",
                "volumeMounts": [
                    {"name": "a", "mountPath": "/a"},
                    {"name": "other", "mountPath": "/a"},
                    {"name": "b"},
                ],
                "resources": {"claims": [{"name": "gpu"}, {"name": "other"}]},
            }],
        }),
        expect![[r#"
            spec.volumes[1].name: Duplicate value: "a"
            spec.volumes[1].persistentVolumeClaim.claimName: Required value
            spec.volumes[2].hostPath: Forbidden: may not specify more than 1 volume type
            spec.resourceClaims[1].name: Duplicate value: "gpu"
            spec.resourceClaims[0]: Invalid value: {"name":"gpu"}: must specify one of: `resourceClaimName`, `resourceClaimTemplateName`
            spec.resourceClaims[1]: Invalid value: {"name":"gpu","resourceClaimName":"x","resourceClaimTemplateName":"y"}: at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified
            spec.containers[0].volumeMounts[1].name: Not found: "other"
            spec.containers[0].volumeMounts[1].mountPath: Invalid value: "/a": must be unique
            spec.containers[0].volumeMounts[2].mountPath: Required value
            spec.containers[0].resources.claims[1].name: Not found: "other""#]],
    );
}

#[track_caller]
fn check_change(before: Value, after: Value, expected: Expect) {
    let pod = |more: Value| json!({"metadata": {"name": "a"}, "spec": spec(more)});
    let (old, new) = (pod(before), pod(after));
    expected.assert_eq(&lines(&Pods.validate(&new, Some(&old), Part::Main)));
}

#[test]
fn a_few_things_may_change() {
    check_change(
        json!({"tolerations": [{"key": "a", "operator": "Exists", "effect": "NoExecute"}]}),
        json!({
            "containers": [{"name": "c", "image": "i:2", "imagePullPolicy": "IfNotPresent"}],
            "activeDeadlineSeconds": 5,
            "tolerations": [
                {"key": "b", "operator": "Exists"},
                {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3},
            ],
        }),
        expect![[""]],
    );
    check_change(
        json!({"terminationGracePeriodSeconds": -1}),
        json!({"terminationGracePeriodSeconds": 1}),
        expect![[""]],
    );
}

#[test]
fn other_things_may_not() {
    check_change(
        json!({"nodeName": "n1"}),
        json!({"schedulerName": "other"}),
        expect![[r#"
        spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)
          spec.nodeName: was "n1", is unset
          spec.schedulerName: was "default-scheduler", is "other""#]],
    );
    check_change(
        json!({}),
        json!({"nodeName": "n1"}),
        expect![[r#"
        spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)
          spec.nodeName: was unset, is "n1""#]],
    );
    check_change(
        json!({"tolerations": [{"key": "a", "operator": "Exists"}], "activeDeadlineSeconds": 5}),
        json!({"activeDeadlineSeconds": 6}),
        expect![[r#"
            spec.activeDeadlineSeconds: Invalid value: 6: must be less than or equal to previous value
            spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"#]],
    );
    check_change(
        json!({}),
        json!({"containers": [{"name": "c", "image": "i:1"}, {"name": "d", "image": "i:1"}]}),
        expect!["spec.containers: Forbidden: pod updates may not add or remove containers"],
    );
    check_change(
        json!({}),
        json!({"nodeSelector": {"a": "b"}}),
        expect![[r#"
        spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)
          spec.nodeSelector: was unset, is {"a":"b"}"#]],
    );
}

#[test]
fn gates_go_one_by_one_and_nodes_become_fewer() {
    let gates =
        |names: &[&str]| -> Value { names.iter().map(|name| json!({"name": name})).collect() };
    let terms = |expressions: Value| {
        json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": expressions}],
        }}})
    };
    let exists = |key: &str| json!({"key": key, "operator": "Exists"});
    check_change(
        json!({"schedulingGates": gates(&["a", "b"]), "affinity": terms(json!([exists("x")]))}),
        json!({
            "schedulingGates": gates(&["b"]),
            "nodeSelector": {"a": "b"},
            "affinity": terms(json!([exists("x"), exists("y")])),
        }),
        expect![[""]],
    );
    check_change(
        json!({"schedulingGates": gates(&["a"])}),
        json!({"affinity": terms(json!([exists("x")]))}),
        expect![[""]],
    );
    check_change(
        json!({
            "schedulingGates": gates(&["a"]),
            "nodeSelector": {"a": "b"},
            "affinity": terms(json!([exists("x")])),
        }),
        json!({
            "schedulingGates": gates(&["a", "new"]),
            "nodeSelector": {"a": "c"},
            "affinity": terms(json!([exists("y")])),
        }),
        expect![[r#"
            spec.schedulingGates[1].name: Forbidden: only deletion is allowed, but found new scheduling gate 'new'
            spec.nodeSelector: Invalid value: {"a":"c"}: only additions to spec.nodeSelector are allowed (no mutations or deletions)
            spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]: Invalid value: {"matchExpressions":[{"key":"y","operator":"Exists"}]}: only additions are allowed (no mutations or deletions)"#]],
    );
    check_change(
        json!({}),
        json!({"schedulingGates": gates(&["a"])}),
        expect![
            "spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'a'"
        ],
    );
}

use expect_test::{Expect, expect};
use serde_json::{Value, json};
use steersman_apimachinery::rules::{Part, Rules};

use super::Pods;
use crate::cluster::{Cluster, now};
use crate::fields::set;
use crate::resources;

fn pod(spec: Value) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "namespace": "ns", "labels": {"app": "web"}},
        "spec": spec,
    })
}

fn one_container(more: Value) -> Value {
    let mut spec = json!({"containers": [{"name": "c", "image": "i:1"}]});
    for (key, value) in more.as_object().expect("an object") {
        set(&mut spec, key, value.clone());
    }
    spec
}

/// Defaults and admits a new pod.
#[track_caller]
fn admit(cluster: &Cluster, spec: Value) -> Result<Value, String> {
    let mut pod = pod(spec);
    Pods.default(&mut pod);
    Pods.prepare_create(&mut pod, &cluster.request("", "pods")).map_err(|error| error.message)?;
    let admitted = pod.clone();
    Pods.default(&mut pod);
    assert_eq!(pod, admitted, "defaults are not idempotent");
    assert_eq!(Pods.validate(&pod, None, Part::Main), []);
    Ok(pod)
}

#[track_caller]
fn check_defaults(spec: Value, expected: Expect) {
    let mut pod = pod(spec);
    Pods.default(&mut pod);
    expected.assert_eq(&serde_json::to_string_pretty(&pod["spec"]).expect("JSON"));
}

#[test]
fn a_minimal_pod_is_filled_in() {
    check_defaults(
        json!({"containers": [{"name": "c", "image": "nginx", "ports": [{"containerPort": 80}]}]}),
        expect![[r#"
            {
              "containers": [
                {
                  "image": "nginx",
                  "imagePullPolicy": "Always",
                  "name": "c",
                  "ports": [
                    {
                      "containerPort": 80,
                      "protocol": "TCP"
                    }
                  ],
                  "resources": {},
                  "terminationMessagePath": "/dev/termination-log",
                  "terminationMessagePolicy": "File"
                }
              ],
              "dnsPolicy": "ClusterFirst",
              "enableServiceLinks": true,
              "restartPolicy": "Always",
              "schedulerName": "default-scheduler",
              "securityContext": {},
              "terminationGracePeriodSeconds": 30
            }"#]],
    );
}

#[test]
fn images_without_a_fixed_version_are_pulled_always() {
    let cases = [
        ("nginx", "Always"),
        ("nginx:latest", "Always"),
        ("nginx:1.27", "IfNotPresent"),
        ("localhost:5000/nginx", "Always"),
        ("localhost:5000/nginx:1", "IfNotPresent"),
        ("nginx@sha256:0123", "IfNotPresent"),
    ];
    for (image, policy) in cases {
        let mut pod = pod(json!({"containers": [{"name": "c", "image": image}]}));
        Pods.default(&mut pod);
        assert_eq!(pod["spec"]["containers"][0]["imagePullPolicy"], policy, "{image}");
    }
}

/// The parts of a defaulted spec that lie at some pointers.
#[track_caller]
fn check_parts(spec: Value, pointers: &[&str], expected: Expect) {
    let mut pod = pod(spec);
    Pods.default(&mut pod);
    let part = |pointer: &&str| pod["spec"].pointer(pointer).unwrap_or(&Value::Null).to_string();
    expected.assert_eq(&pointers.iter().map(part).collect::<Vec<_>>().join("\n"));
}

#[test]
fn limits_are_requests() {
    check_parts(
        json!({
            "resources": {"limits": {"cpu": 4, "memory": "1Gi", "hugepages-2Mi": "2Mi"}},
            "initContainers": [{
                "name": "i", "image": "i:1", "resources": {"requests": {"cpu": "2500m"}},
            }],
            "containers": [{
                "name": "c", "image": "i:1",
                "resources": {"limits": {"cpu": 1}, "requests": {"example.com/a": 1}},
            }],
        }),
        &["/containers/0/resources", "/initContainers/0/resources", "/resources/requests"],
        expect![[r#"
            {"limits":{"cpu":"1"},"requests":{"cpu":"1","example.com/a":"1"}}
            {"requests":{"cpu":"2500m"}}
            {"cpu":"2500m","hugepages-2Mi":"2Mi","memory":"1Gi"}"#]],
    );
}

#[test]
fn ports_are_the_hosts_on_its_network() {
    let ports = json!([{"containerPort": 80}, {"containerPort": 81, "hostPort": 82}]);
    check_parts(
        json!({
            "hostNetwork": true,
            "containers": [{"name": "c", "image": "i:1", "ports": ports}],
            "initContainers": [{"name": "c", "image": "i:1", "ports": ports}],
        }),
        &["/containers/0/ports", "/initContainers/0/ports"],
        expect![[r#"
            [{"containerPort":80,"hostPort":80,"protocol":"TCP"},{"containerPort":81,"hostPort":82,"protocol":"TCP"}]
            [{"containerPort":80,"hostPort":80,"protocol":"TCP"},{"containerPort":81,"hostPort":82,"protocol":"TCP"}]"#]],
    );
}

#[test]
fn probes_variables_and_volumes_are_filled_in() {
    check_parts(
        json!({
            "containers": [{
                "name": "c", "image": "i:1",
                "livenessProbe": {"httpGet": {"port": 80}},
                "readinessProbe": {"grpc": {"port": 80}, "periodSeconds": 3},
                "lifecycle": {"preStop": {"httpGet": {"port": 80}}},
                "env": [{"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
            }],
            "volumes": [
                {"name": "a"},
                {"name": "b", "configMap": {"name": "x"}},
                {"name": "c", "projected": {"sources": [
                    {"serviceAccountToken": {"path": "t"}},
                    {"downwardAPI": {"items": [{"path": "p", "fieldRef": {"fieldPath": "f"}}]}},
                ]}},
                {"name": "d", "hostPath": {"path": "/d"}},
                {"name": "e", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
            ],
        }),
        &[
            "/containers/0/livenessProbe",
            "/containers/0/readinessProbe",
            "/containers/0/lifecycle",
            "/containers/0/env",
            "/volumes/0",
            "/volumes/1",
            "/volumes/2",
            "/volumes/3",
            "/volumes/4",
        ],
        expect![[r#"
            {"failureThreshold":3,"httpGet":{"path":"/","port":80,"scheme":"HTTP"},"periodSeconds":10,"successThreshold":1,"timeoutSeconds":1}
            {"failureThreshold":3,"grpc":{"port":80,"service":""},"periodSeconds":3,"successThreshold":1,"timeoutSeconds":1}
            {"preStop":{"httpGet":{"path":"/","port":80,"scheme":"HTTP"}}}
            [{"name":"N","valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"spec.nodeName"}}}]
            {"emptyDir":{},"name":"a"}
            {"configMap":{"defaultMode":420,"name":"x"},"name":"b"}
            {"name":"c","projected":{"defaultMode":420,"sources":[{"serviceAccountToken":{"expirationSeconds":3600,"path":"t"}},{"downwardAPI":{"items":[{"fieldRef":{"apiVersion":"v1","fieldPath":"f"},"path":"p"}]}}]}}
            {"hostPath":{"path":"/d","type":""},"name":"d"}
            {"ephemeral":{"volumeClaimTemplate":{"spec":{"volumeMode":"Filesystem"}}},"name":"e"}"#]],
    );
}

#[test]
fn templates_leave_to_pods_what_depends_on_the_pod() {
    let mut template = json!({"spec": {
        "hostNetwork": true,
        "containers": [{
            "name": "c", "image": "i:1", "ports": [{"containerPort": 80}],
            "resources": {"limits": {"cpu": "1"}},
        }],
    }});
    super::defaults::template(&mut template);
    let container = &template["spec"]["containers"][0];
    assert_eq!(container["ports"], json!([{"containerPort": 80, "protocol": "TCP"}]));
    assert_eq!(container["resources"], json!({"limits": {"cpu": "1"}}));
    assert_eq!(template["spec"]["schedulerName"], "default-scheduler");
    assert_eq!(template["spec"].get("enableServiceLinks"), None);
}

#[test]
fn new_pods_wait_and_leave_failing_nodes() {
    let pod = admit(
        &Cluster::default(),
        one_container(json!({
            "schedulingGates": [{"name": "example.com/a"}],
            "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}],
        })),
    )
    .expect("admitted");
    expect![[r#"{"conditions":[{"message":"Scheduling is blocked due to non-empty scheduling gates","reason":"SchedulingGated","status":"False","type":"PodScheduled"}],"phase":"Pending","qosClass":"BestEffort"}"#]].assert_eq(&pod["status"].to_string());
    expect![[r#"[{"key":"node.kubernetes.io/not-ready","operator":"Exists"},{"effect":"NoExecute","key":"node.kubernetes.io/unreachable","operator":"Exists","tolerationSeconds":300}]"#]].assert_eq(&pod["spec"]["tolerations"].to_string());
    assert_eq!(pod["spec"]["serviceAccountName"], "default");
    assert_eq!(pod["spec"]["priority"], 0);
    assert_eq!(pod["spec"]["preemptionPolicy"], "PreemptLowerPriority");
}

fn class(name: &str, value: i64, more: Value) -> Value {
    let mut class = json!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
        "metadata": {"name": name}, "value": value,
    });
    for (key, value) in more.as_object().expect("an object") {
        set(&mut class, key, value.clone());
    }
    class
}

#[test]
fn priority_is_that_of_the_class() {
    let cluster = Cluster::default()
        .with(class("high", 1000, json!({"preemptionPolicy": "Never"})))
        .with(class("usual", 7, json!({"globalDefault": true})))
        .with(class("usual-too", 9, json!({"globalDefault": true})));
    let cases = [
        (json!({}), expect![[r#"["usual",7,"PreemptLowerPriority"]"#]]),
        (json!({"priorityClassName": "high"}), expect![[r#"["high",1000,"Never"]"#]]),
        (
            json!({"priorityClassName": "high", "priority": 1000}),
            expect![[r#"["high",1000,"Never"]"#]],
        ),
        (
            json!({"priorityClassName": "high", "priority": 5}),
            expect![[
                r#"pods "a" is forbidden: the integer value of priority (5) must not be provided in pod spec; priority admission controller computed 1000 from the given PriorityClass name"#
            ]],
        ),
        (
            json!({"priorityClassName": "high", "preemptionPolicy": "PreemptLowerPriority"}),
            expect![[
                r#"pods "a" is forbidden: the string value of PreemptionPolicy (PreemptLowerPriority) must not be provided in pod spec; priority admission controller computed Never from the given PriorityClass name"#
            ]],
        ),
        (
            json!({"priorityClassName": "none"}),
            expect![[r#"pods "a" is forbidden: no PriorityClass with name none was found"#]],
        ),
    ];
    for (more, expected) in cases {
        let answer = match admit(&cluster, one_container(more)) {
            Ok(pod) => {
                let part = |name: &str| pod["spec"][name].clone();
                let parts = ["priorityClassName", "priority", "preemptionPolicy"].map(part);
                Value::from(parts.to_vec()).to_string()
            }
            Err(message) => message,
        };
        expected.assert_eq(&answer);
    }
}

fn runtime_class() -> Value {
    json!({
        "apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "vm"},
        "handler": "vm",
        "overhead": {"podFixed": {"cpu": "250m"}},
        "scheduling": {
            "nodeSelector": {"vm": "yes"},
            "tolerations": [{"key": "vm", "operator": "Exists"}],
        },
    })
}

#[test]
fn runtime_classes_bring_overhead_and_nodes() {
    let cluster = Cluster::default().with(runtime_class());
    let cases = [
        (
            json!({"runtimeClassName": "vm", "nodeSelector": {"a": "b"}}),
            expect![[
                r#"[{"cpu":"250m"},{"a":"b","vm":"yes"},[{"effect":"NoExecute","key":"node.kubernetes.io/not-ready","operator":"Exists","tolerationSeconds":300},{"effect":"NoExecute","key":"node.kubernetes.io/unreachable","operator":"Exists","tolerationSeconds":300},{"key":"vm","operator":"Exists"}]]"#
            ]],
        ),
        (
            json!({"runtimeClassName": "vm", "nodeSelector": {"vm": "no"}}),
            expect![[
                r#"pods "a" is forbidden: pod rejected: conflict: runtimeClass.scheduling.nodeSelector[vm] = yes; pod.spec.nodeSelector[vm] = no"#
            ]],
        ),
        (
            json!({"runtimeClassName": "vm", "overhead": {"cpu": "1"}}),
            expect![[
                r#"pods "a" is forbidden: pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"#
            ]],
        ),
        (
            json!({"overhead": {"cpu": "1"}}),
            expect![[
                r#"pods "a" is forbidden: pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"#
            ]],
        ),
        (
            json!({"runtimeClassName": "none"}),
            expect![[r#"pods "a" is forbidden: pod rejected: RuntimeClass "none" not found"#]],
        ),
    ];
    for (more, expected) in cases {
        let answer = match admit(&cluster, one_container(more)) {
            Ok(pod) => {
                let part = |name: &str| pod["spec"][name].clone();
                let parts = ["overhead", "nodeSelector", "tolerations"].map(part);
                Value::from(parts.to_vec()).to_string()
            }
            Err(message) => message,
        };
        expected.assert_eq(&answer);
    }
}

#[test]
fn limit_ranges_give_and_refuse() {
    let range = |limits: Value| {
        let mut range = json!({
            "apiVersion": "v1", "kind": "LimitRange",
            "metadata": {"name": "l", "namespace": "ns"}, "spec": {"limits": [limits]},
        });
        super::super::limit_range::LIMIT_RANGE.default(&mut range);
        Cluster::default().with(range)
    };
    let given = range(json!({
        "type": "Container", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "500m"},
    }));
    let pod = admit(&given, one_container(json!({}))).expect("admitted");
    expect![[r#"{"limits":{"cpu":"1"},"requests":{"cpu":"500m"}}"#]]
        .assert_eq(&pod["spec"]["containers"][0]["resources"].to_string());
    expect![[r#"{"kubernetes.io/limit-ranger":"LimitRanger plugin set: cpu request for container c; cpu limit for container c"}"#]].assert_eq(&pod["metadata"]["annotations"].to_string());
    let container = |requests: Value| json!({"containers": [{"name": "c", "image": "i:1", "resources": {"requests": requests}}]});
    let cases = [
        (
            json!({"type": "Container", "min": {"cpu": "1"}}),
            json!({"cpu": "500m"}),
            expect![[
                r#"pods "a" is forbidden: minimum cpu usage per Container is 1, but request is 500m"#
            ]],
        ),
        (
            json!({"type": "Container", "max": {"cpu": "1"}}),
            json!({"cpu": "2"}),
            expect![[
                r#"pods "a" is forbidden: maximum cpu usage per Container is 1, but request is 2"#
            ]],
        ),
        (
            json!({"type": "Pod", "max": {"memory": "1Gi"}}),
            json!({"cpu": "2"}),
            expect![[
                r#"pods "a" is forbidden: maximum memory usage per Pod is 1Gi.  No limit is specified"#
            ]],
        ),
    ];
    for (limits, requests, expected) in cases {
        let refused = admit(&range(limits), container(requests)).expect_err("too little or much");
        expected.assert_eq(&refused);
    }
}

#[test]
fn label_keys_become_part_of_selectors_once() {
    let term = json!({
        "topologyKey": "zone", "labelSelector": {"matchLabels": {"x": "y"}},
        "matchLabelKeys": ["app", "absent"],
    });
    let mut unlike = term.clone();
    unlike["matchLabelKeys"] = json!([]);
    unlike["mismatchLabelKeys"] = json!(["app"]);
    let spec = one_container(json!({
        "topologySpreadConstraints": [{
            "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {}, "matchLabelKeys": ["app"],
        }],
        "affinity": {
            "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]},
            "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1, "podAffinityTerm": unlike},
            ]},
        },
    }));
    let pod = admit(&Cluster::default(), spec).expect("admitted");
    let at = |pointer: &str| pod["spec"].pointer(pointer).expect("a selector").to_string();
    expect![[r#"{"matchExpressions":[{"key":"app","operator":"In","values":["web"]}]}"#]]
        .assert_eq(&at("/topologySpreadConstraints/0/labelSelector"));
    expect![[r#"{"matchExpressions":[{"key":"app","operator":"In","values":["web"]}],"matchLabels":{"x":"y"}}"#]].assert_eq(&at(
        "/affinity/podAffinity/requiredDuringSchedulingIgnoredDuringExecution/0/labelSelector",
    ));
    expect![[r#"{"matchExpressions":[{"key":"app","operator":"NotIn","values":["web"]}],"matchLabels":{"x":"y"}}"#]].assert_eq(&at(
        "/affinity/podAntiAffinity/preferredDuringSchedulingIgnoredDuringExecution/0\
         /podAffinityTerm/labelSelector",
    ));
    let again = admit(&Cluster::default(), pod["spec"].clone()).expect("admitted");
    assert_eq!(again["spec"], pod["spec"]);
}

fn bind(mut pod: Value, binding: Value) -> Result<Value, String> {
    let node = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": "n1", "labels": {"topology.kubernetes.io/zone": "z1"}},
    });
    let cluster = Cluster::default().with(node);
    let resource = resources().iter().find(|resource| resource.plural == "pods").expect("pods");
    let subresource = resource.subresource("binding").expect("binding");
    let request = cluster.request("", "pods");
    let answer = Pods.perform(&mut pod, &binding, subresource, &request);
    match answer {
        Ok(status) => {
            assert_eq!(status["status"], "Success");
            Ok(pod)
        }
        Err(error) => Err(format!("{} {}: {}", error.code, error.reason, error.message)),
    }
}

#[test]
fn a_pod_is_bound_once() {
    let pending = || {
        let mut pod = pod(json!({}));
        pod["metadata"]["uid"] = "u1".into();
        pod["metadata"]["resourceVersion"] = "5".into();
        pod["status"] = json!({
            "nominatedNodeName": "n2",
            "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
        });
        pod
    };
    let to =
        |metadata: Value| json!({"metadata": metadata, "target": {"kind": "Node", "name": "n1"}});
    let bound =
        bind(pending(), to(json!({"uid": "u1", "annotations": {"k": "v"}}))).expect("bound");
    expect![[r#"{"apiVersion":"v1","kind":"Pod","metadata":{"annotations":{"k":"v"},"labels":{"app":"web","topology.kubernetes.io/zone":"z1"},"name":"a","namespace":"ns","resourceVersion":"5","uid":"u1"},"spec":{"nodeName":"n1"},"status":{"conditions":[{"lastTransitionTime":"2026-01-01T00:01:00Z","status":"True","type":"PodScheduled"}]}}"#]].assert_eq(&bound.to_string());

    let mut gated = pending();
    gated["spec"]["schedulingGates"] = json!([{"name": "g"}]);
    let mut deleted = pending();
    deleted["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    let cases = [
        (
            bound,
            to(json!({})),
            expect![[
                r#"409 Conflict: Operation cannot be fulfilled on pods/binding "a": pod a is already assigned to node "n1""#
            ]],
        ),
        (
            deleted,
            to(json!({})),
            expect![[
                r#"409 Conflict: Operation cannot be fulfilled on pods/binding "a": pod a is being deleted, cannot be assigned to a host"#
            ]],
        ),
        (
            gated,
            to(json!({})),
            expect![[
                r#"409 Conflict: Operation cannot be fulfilled on pods/binding "a": pod a has non-empty .spec.schedulingGates"#
            ]],
        ),
        (
            pending(),
            to(json!({"uid": "u2"})),
            expect![[
                r#"409 Conflict: Operation cannot be fulfilled on pods/binding "a": Precondition failed: UID in precondition: u2, UID in object meta: u1"#
            ]],
        ),
        (
            pending(),
            to(json!({"resourceVersion": "4"})),
            expect![[
                r#"409 Conflict: Operation cannot be fulfilled on pods/binding "a": Precondition failed: ResourceVersion in precondition: 4, ResourceVersion in object meta: 5"#
            ]],
        ),
        (
            pending(),
            json!({"target": {"kind": "Shelf"}}),
            expect![[
                r#"422 Invalid: Pod "a" is invalid: [target.kind: Unsupported value: "Shelf": supported values: "Node", "<empty>", target.name: Required value]"#
            ]],
        ),
    ];
    for (pod, binding, expected) in cases {
        expected.assert_eq(&bind(pod, binding).expect_err("refused"));
    }
}

#[test]
fn pods_that_nobody_runs_go_at_once() {
    let running = json!({"nodeName": "n", "terminationGracePeriodSeconds": 20});
    let cases = [
        (json!({}), "", None, 0),
        (json!({}), "", Some(5), 0),
        (running.clone(), "Running", None, 20),
        (running.clone(), "Running", Some(5), 5),
        (running.clone(), "Running", Some(0), 0),
        (running.clone(), "Running", Some(-3), 1),
        (running, "Succeeded", None, 0),
    ];
    for (spec, phase, requested, expected) in cases {
        let mut pod = pod(spec);
        pod["status"] = json!({"phase": phase});
        assert_eq!(Pods.grace_period(&pod, requested), expected, "{pod} {requested:?}");
    }
}

#[test]
fn what_admission_found_stays_when_a_manifest_is_sent_again() {
    let cluster = Cluster::default().with(class("high", 1000, json!({})));
    let spec = one_container(json!({"priorityClassName": "high"}));
    let old = admit(&cluster, spec.clone()).expect("admitted");
    let mut new = pod(spec);
    new["spec"]["serviceAccountName"] = "default".into();
    Pods.default(&mut new);
    let request = cluster.request("", "pods");
    Pods.prepare_update(&mut new, &old, Part::Main, &request).expect("admitted");
    assert_eq!(new["spec"], old["spec"]);
    assert_eq!(Pods.validate(&new, Some(&old), Part::Main), []);
}

#[test]
fn fields_select() {
    let mut pod = pod(json!({"nodeName": "n", "schedulerName": "s"}));
    pod["status"] = json!({"phase": "Running", "podIPs": [{"ip": "10.0.0.1"}]});
    let cases = [
        ("spec.nodeName", Some("n")),
        ("spec.hostNetwork", Some("false")),
        ("spec.serviceAccountName", Some("")),
        ("status.podIP", Some("10.0.0.1")),
        ("status.phase", Some("Running")),
        ("spec.containers", None),
    ];
    for (path, expected) in cases {
        assert_eq!(Pods.selectable_field(&pod, path).as_deref(), expected, "{path}");
    }
}

#[track_caller]
fn check_row(spec: Value, status: Value, expected: &str) {
    let mut pod = pod(spec);
    pod["status"] = status;
    pod["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z".into();
    let cells = Pods.cells(&pod, now());
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let cells: Vec<String> = cells.iter().map(text).collect();
    assert_eq!(cells[1..4].join(" | "), expected, "{pod}");
}

#[test]
fn rows_say_what_pods_do() {
    let two = || json!({"containers": [{"name": "a"}, {"name": "b"}]});
    let ready = |name: &str| json!({"name": name, "ready": true, "state": {"running": {}}});
    check_row(two(), json!({"phase": "Pending"}), "0/2 | Pending | 0");
    let status = json!({"phase": "Running", "containerStatuses": [ready("a"), ready("b")]});
    check_row(two(), status, "2/2 | Running | 0");
    let gated = json!({"phase": "Pending", "conditions": [
        {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"},
    ]});
    check_row(two(), gated, "0/2 | SchedulingGated | 0");
    let crashing = json!({"phase": "Running", "containerStatuses": [ready("a"), {
        "name": "b", "restartCount": 3,
        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": {"finishedAt": "2026-01-01T00:00:30Z"}},
    }]});
    check_row(two(), crashing, "1/2 | CrashLoopBackOff | 3 (30s ago)");
    let done =
        json!({"name": "a", "state": {"terminated": {"reason": "Completed", "exitCode": 0}}});
    let over = json!({"phase": "Succeeded", "containerStatuses": [done]});
    check_row(json!({"containers": [{"name": "a"}]}), over, "0/1 | Completed | 0");
    let half = json!({"phase": "Running", "containerStatuses": [done, ready("b")]});
    check_row(two(), half.clone(), "1/2 | NotReady | 0");
    let mut half_ready = half;
    half_ready["conditions"] = json!([{"type": "Ready", "status": "True"}]);
    check_row(two(), half_ready, "1/2 | Running | 0");
    let killed = json!({"phase": "Failed", "containerStatuses": [
        {"name": "a", "state": {"terminated": {"signal": 9}}},
    ]});
    check_row(two(), killed, "0/2 | Signal:9 | 0");
    let evicted = json!({"phase": "Failed", "reason": "Evicted"});
    check_row(two(), evicted, "0/2 | Evicted | 0");
}

#[test]
fn rows_say_what_init_containers_do() {
    let spec = || {
        json!({
            "initContainers": [{"name": "i"}, {"name": "s", "restartPolicy": "Always"}],
            "containers": [{"name": "a"}],
        })
    };
    let status = |first: Value, second: Value| {
        json!({"phase": "Pending", "initContainerStatuses": [
            {"name": "i", "state": first}, {"name": "s", "state": second},
        ]})
    };
    let done = || json!({"terminated": {"exitCode": 0}});
    check_row(spec(), status(json!({"running": {}}), json!({})), "0/2 | Init:0/2 | 0");
    check_row(spec(), status(done(), json!({})), "0/2 | Init:1/2 | 0");
    let failed = json!({"terminated": {"exitCode": 2}});
    check_row(spec(), status(failed, json!({})), "0/2 | Init:ExitCode:2 | 0");
    let waiting = json!({"waiting": {"reason": "ImagePullBackOff"}});
    check_row(spec(), status(waiting, json!({})), "0/2 | Init:ImagePullBackOff | 0");
    let mut running = status(done(), json!({"running": {}}));
    running["phase"] = "Running".into();
    running["initContainerStatuses"][1]["started"] = true.into();
    running["initContainerStatuses"][1]["ready"] = true.into();
    running["initContainerStatuses"][0]["restartCount"] = 4.into();
    running["initContainerStatuses"][1]["restartCount"] = 1.into();
    running["containerStatuses"] = json!([{"name": "a", "ready": true, "state": {"running": {}}}]);
    check_row(spec(), running, "2/2 | Running | 1");
}

#[test]
fn rows_say_that_a_pod_is_going() {
    let mut pod = pod(json!({"containers": [{"name": "a"}], "nodeName": "n1"}));
    pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:50Z".into();
    pod["status"] = json!({"phase": "Running", "podIP": "10.0.0.1", "nominatedNodeName": "n2"});
    let row = |pod: &Value| Value::from(Pods.cells(pod, now())).to_string();
    expect![[r#"["a","0/1","Terminating","0","<unknown>","10.0.0.1","n1","n2","<none>"]"#]]
        .assert_eq(&row(&pod));
    pod["status"]["reason"] = "NodeLost".into();
    expect![[r#"["a","0/1","Unknown","0","<unknown>","10.0.0.1","n1","n2","<none>"]"#]]
        .assert_eq(&row(&pod));
    pod["status"] = json!({"phase": "Succeeded"});
    pod["spec"]["readinessGates"] = json!([{"conditionType": "x"}]);
    expect![[r#"["a","0/1","Succeeded","0","<unknown>","<none>","n1","<none>","0/1"]"#]]
        .assert_eq(&row(&pod));
}

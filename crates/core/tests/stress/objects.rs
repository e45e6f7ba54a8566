//! Random objects, as the API server would hold them. They come from small
//! sets of values, so that pods compete, match each other and are copies.

use serde_json::{Value, json};

use crate::rng::Rng;
use crate::storage::mount;

pub(crate) const NAMESPACES: [&str; 3] = ["default", "red", "blue"];
pub(crate) const NODES: [&str; 12] =
    ["n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8", "n9", "n10", "n11"];
pub(crate) const GPU: &str = "example.com/gpu";
pub(crate) const ZONE: &str = "topology.kubernetes.io/zone";
pub(crate) const HOSTNAME: &str = "kubernetes.io/hostname";
pub(crate) const ZONES: [&str; 3] = ["a", "b", "c"];
const APPS: [&str; 3] = ["web", "db", "job"];

/// A pod without name and UID.
fn pod_template(rng: &mut Rng) -> Value {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"namespace": *rng.pick(&NAMESPACES), "labels": {"app": *rng.pick(&APPS)}},
        "spec": {
            "containers": [{"name": "c", "image": format!("image-{}", rng.below(3))}],
            "priority": *rng.pick(&[0, 0, 0, 10, 100]),
            "schedulerName": *rng.pick(&["default-scheduler", "default-scheduler",
                "default-scheduler", "default-scheduler", "default-scheduler", "default-scheduler",
                "default-scheduler", "second", "second", "foreign"]),
        },
        "status": {"phase": "Pending"},
    });
    if rng.chance(30) {
        pod["metadata"]["labels"]["tier"] = (*rng.pick(&["front", "back"])).into();
    }
    if rng.chance(15) {
        pod["spec"]["preemptionPolicy"] = "Never".into();
    }
    pod["spec"]["containers"][0]["resources"]["requests"] = requests(rng);
    place_constraints(rng, &mut pod["spec"]);
    pod_constraints(rng, &mut pod["spec"]);
    oddities(rng, &mut pod);
    if rng.chance(20) {
        mount(rng, &mut pod);
    }
    pod
}

/// A pod without name and UID that is choosy about nothing and outranks most
/// others.
pub(crate) fn urgent_pod(rng: &mut Rng) -> Value {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"namespace": *rng.pick(&NAMESPACES), "labels": {"app": *rng.pick(&APPS)}},
        "spec": {
            "containers": [{"name": "c", "image": "image-0", "resources": {"requests": {
                "cpu": *rng.pick(&["250m", "500m", "1000m", "2000m"])}}}],
            "priority": 100 + rng.below(900),
            "schedulerName": *rng.pick(&["default-scheduler", "second"]),
        },
        "status": {"phase": "Pending"},
    });
    if rng.chance(20) {
        pod["metadata"]["labels"]["permit"] = "wait".into();
    }
    pod
}

/// A pod without name and UID that cares for its volumes only.
pub(crate) fn claimant(rng: &mut Rng) -> Value {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"namespace": *rng.pick(&NAMESPACES), "labels": {"app": *rng.pick(&APPS)}},
        "spec": {
            "containers": [{"name": "c", "image": "image-0", "resources": {"requests": {
                "cpu": *rng.pick(&["50m", "100m"])}}}],
            "tolerations": [{"operator": "Exists"}],
            "priority": *rng.pick(&[0, 10]),
            "schedulerName": *rng.pick(&["default-scheduler", "second"]),
        },
        "status": {"phase": "Pending"},
    });
    mount(rng, &mut pod);
    pod
}

/// Pods of several kinds, among them some that differ in one respect only.
pub(crate) fn pod_templates(rng: &mut Rng, n: usize) -> Vec<Value> {
    let mut templates: Vec<Value> = Vec::with_capacity(n);
    while templates.len() < n {
        let template = match templates.last() {
            Some(last) if rng.chance(50) => {
                let mut variant = last.clone();
                vary(rng, &mut variant["spec"]);
                variant
            }
            _ => pod_template(rng),
        };
        templates.push(template);
    }
    templates
}

fn vary(rng: &mut Rng, spec: &mut Value) {
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    match rng.below(5) {
        0 => spec["containers"][0]["resources"]["requests"] = requests(rng),
        1 => spec["tolerations"] = json!([toleration(rng)]),
        2 => {
            let terms = json!({"nodeSelectorTerms": [node_term(rng)]});
            spec["affinity"]["nodeAffinity"][required] = terms;
        }
        3 => spec["affinity"]["podAntiAffinity"][required] = json!([affinity_term(rng)]),
        _ => spec["topologySpreadConstraints"] = json!([spread_constraint(rng)]),
    }
}

/// Amounts are written in one unit each, so that the test can add them up
/// without the library's help.
fn requests(rng: &mut Rng) -> Value {
    let mut requests = json!({});
    match *rng.pick(&[0, 0, 100, 250, 500, 1000, 2000, 3500]) {
        0 => {}
        milli => requests["cpu"] = format!("{milli}m").into(),
    }
    match *rng.pick(&[0, 0, 128, 256, 1024, 3000]) {
        0 => {}
        mebi => requests["memory"] = format!("{mebi}Mi").into(),
    }
    if rng.chance(10) {
        requests[GPU] = (1 + rng.below(2)).to_string().into();
    }
    requests
}

fn place_constraints(rng: &mut Rng, spec: &mut Value) {
    if rng.chance(12) {
        spec["nodeSelector"] = match rng.below(3) {
            0 => json!({"disk": "ssd"}),
            1 => json!({ZONE: *rng.pick(&ZONES)}),
            _ => json!({HOSTNAME: *rng.pick(&NODES)}),
        };
    }
    if rng.chance(15) {
        let term = node_term(rng);
        spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] = json!({"nodeSelectorTerms": if rng.chance(30) { vec![term, node_term(rng)] } else { vec![term] }});
    }
    if rng.chance(15) {
        spec["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] = json!([{"weight": 1 + rng.below(100), "preference": {"matchExpressions": [label_rule(rng)]}}]);
    }
    if rng.chance(20) {
        spec["tolerations"] = json!([toleration(rng)]);
    }
}

fn node_term(rng: &mut Rng) -> Value {
    if rng.chance(15) {
        let rule = json!({"key": "metadata.name", "operator": "In", "values": [*rng.pick(&NODES)]});
        return json!({"matchFields": [rule]});
    }
    json!({"matchExpressions": [label_rule(rng)]})
}

fn label_rule(rng: &mut Rng) -> Value {
    match rng.below(5) {
        0 => json!({"key": "disk", "operator": "In", "values": ["ssd"]}),
        1 => json!({"key": "disk", "operator": "Exists"}),
        2 => json!({"key": ZONE, "operator": "NotIn", "values": [*rng.pick(&ZONES)]}),
        3 => json!({"key": "generation", "operator": "Gt", "values": ["1"]}),
        _ => json!({"key": "disk", "operator": "DoesNotExist"}),
    }
}

pub(crate) fn toleration(rng: &mut Rng) -> Value {
    match rng.below(4) {
        0 => json!({"operator": "Exists"}),
        1 => json!({"key": "dedicated", "operator": "Exists"}),
        2 => json!({"key": "dedicated", "value": "team-a", "effect": "NoSchedule"}),
        _ => json!({"key": "node.kubernetes.io/unschedulable", "operator": "Exists",
            "effect": "NoSchedule"}),
    }
}

fn pod_constraints(rng: &mut Rng, spec: &mut Value) {
    if rng.chance(25) {
        let n = 1 + rng.below(2);
        // An API server refuses two constraints of one key and kind.
        let mut constraints: Vec<Value> = (0..n).map(|_| spread_constraint(rng)).collect();
        constraints.dedup_by_key(|c| (c["topologyKey"].clone(), c["whenUnsatisfiable"].clone()));
        spec["topologySpreadConstraints"] = constraints.into();
    }
    let affinity = &mut spec["affinity"];
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
    if rng.chance(12) {
        affinity["podAffinity"][required] = json!([affinity_term(rng)]);
    }
    if rng.chance(15) {
        affinity["podAntiAffinity"][required] = json!([affinity_term(rng)]);
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        if rng.chance(10) {
            let term = affinity_term(rng);
            affinity[kind][preferred] = json!([{"weight": 10, "podAffinityTerm": term}]);
        }
    }
    if affinity.is_null() {
        spec.as_object_mut().expect("a spec").remove("affinity");
    }
}

fn spread_constraint(rng: &mut Rng) -> Value {
    let mut constraint = json!({
        "maxSkew": 1 + rng.below(2),
        "topologyKey": *rng.pick(&[ZONE, HOSTNAME]),
        "whenUnsatisfiable": *rng.pick(&["DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"]),
        // Not an empty one: as in the reference, it counts nominated pods and
        // no others, so that a pod may fit once a nominated one has arrived.
        "labelSelector": some_selector(rng),
    });
    if constraint["whenUnsatisfiable"] == "DoNotSchedule" && rng.chance(20) {
        constraint["minDomains"] = 2.into();
    }
    if rng.chance(20) {
        constraint["nodeAffinityPolicy"] = "Ignore".into();
    }
    if rng.chance(30) {
        constraint["nodeTaintsPolicy"] = "Honor".into();
    }
    constraint
}

fn affinity_term(rng: &mut Rng) -> Value {
    let mut term = json!({
        "topologyKey": *rng.pick(&[ZONE, HOSTNAME, HOSTNAME]),
        "labelSelector": selector(rng),
    });
    match rng.below(5) {
        0 => term["namespaces"] = json!([*rng.pick(&NAMESPACES)]),
        1 => term["namespaceSelector"] = json!({"matchLabels": {"team": *rng.pick(&["x", "y"])}}),
        2 => term["namespaceSelector"] = json!({}),
        _ => {}
    }
    term
}

fn selector(rng: &mut Rng) -> Value {
    if rng.chance(25) { json!({}) } else { some_selector(rng) }
}

/// A selector that does not mean everything.
fn some_selector(rng: &mut Rng) -> Value {
    if rng.chance(30) {
        json!({"matchExpressions": [{"key": "tier", "operator": "Exists"}]})
    } else {
        json!({"matchLabels": {"app": *rng.pick(&APPS)}})
    }
}

/// Ports, gates, and the labels that the test's own plugins look at.
fn oddities(rng: &mut Rng, pod: &mut Value) {
    if rng.chance(8) {
        let port = 8000 + rng.below(2);
        pod["spec"]["containers"][0]["ports"] =
            json!([{"containerPort": port, "hostPort": port, "protocol": "TCP"}]);
    }
    if rng.chance(8) {
        let gates = &["first", "second"][..1 + rng.below(2)];
        let gates: Vec<Value> = gates.iter().map(|name| json!({"name": name})).collect();
        pod["spec"]["schedulingGates"] = gates.into();
    }
    for (percent, label, value) in [
        (8, "permit", "wait"),
        (4, "reserve", "reject"),
        (4, "prebind", "reject"),
        (4, "prebind", "fail"),
        (4, "filter", "panic"),
    ] {
        if rng.chance(percent) {
            pod["metadata"]["labels"][label] = value.into();
        }
    }
}

/// A node.
pub(crate) fn node(rng: &mut Rng, name: &str) -> Value {
    let mut node = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {HOSTNAME: name}},
        "spec": {},
        "status": {"allocatable": {
            "cpu": format!("{}m", *rng.pick(&[1000, 2000, 4000])),
            "memory": format!("{}Mi", *rng.pick(&[1024, 4096, 8192])),
            "pods": (2 + rng.below(6)).to_string(),
        }},
    });
    if rng.chance(50) {
        let name = format!("image-{}:latest", rng.below(3));
        node["status"]["images"] = json!([{"names": [name], "sizeBytes": 500_000_000}]);
    }
    for _ in 0..4 {
        change_node(rng, &mut node);
    }
    node
}

/// Changes one thing about a node.
pub(crate) fn change_node(rng: &mut Rng, node: &mut Value) {
    let labels = &mut node["metadata"]["labels"];
    match rng.below(12) {
        0 => toggle(rng, labels, ZONE, &ZONES),
        1 => toggle(rng, labels, "disk", &["ssd", "hdd"]),
        2 => toggle(rng, labels, "generation", &["1", "2"]),
        3 | 4 => {
            node["status"]["allocatable"]["cpu"] =
                format!("{}m", *rng.pick(&[500, 1000, 2000, 4000, 6000])).into();
        }
        5 | 6 => {
            let mebi = *rng.pick(&[512, 1024, 4096, 8192]);
            node["status"]["allocatable"]["memory"] = format!("{mebi}Mi").into();
        }
        7 | 8 => node["status"]["allocatable"]["pods"] = (1 + rng.below(8)).to_string().into(),
        9 => toggle(rng, &mut node["status"]["allocatable"], GPU, &["1", "2", "4"]),
        10 => {
            node["spec"]["taints"] = match rng.below(4) {
                0 => json!([{"key": "dedicated", "value": "team-a", "effect": "NoSchedule"}]),
                1 => json!([{"key": "dedicated", "value": "team-b", "effect": "PreferNoSchedule"}]),
                _ => json!([]),
            };
        }
        _ => node["spec"]["unschedulable"] = rng.chance(25).into(),
    }
}

fn toggle(rng: &mut Rng, map: &mut Value, key: &str, values: &[&str]) {
    if rng.chance(25) {
        map.as_object_mut().expect("a map").remove(key);
    } else {
        map[key] = (*rng.pick(values)).into();
    }
}

/// Changes what an API server lets clients change of a pod.
pub(crate) fn change_pod(rng: &mut Rng, pod: &mut Value) {
    match rng.below(6) {
        0 | 1 => {
            // Gates can only be removed.
            if let Some(gates) = pod["spec"]["schedulingGates"].as_array_mut() {
                gates.pop();
            }
        }
        2 => toggle(rng, &mut pod["metadata"]["labels"], "app", &APPS),
        3 => toggle(rng, &mut pod["metadata"]["labels"], "tier", &["front", "back"]),
        4 => {
            let added = toleration(rng);
            match &mut pod["spec"]["tolerations"] {
                Value::Array(tolerations) => tolerations.push(added),
                absent => *absent = json!([added]),
            }
        }
        _ => {
            let requests = &mut pod["spec"]["containers"][0]["resources"]["requests"];
            let milli = *rng.pick(&[100, 100, 500, 2000]);
            requests["cpu"] = format!("{milli}m").into();
        }
    }
}

/// A namespace with or without a label.
pub(crate) fn namespace(rng: &mut Rng, name: &str) -> Value {
    let mut namespace = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {}},
    });
    toggle(rng, &mut namespace["metadata"]["labels"], "team", &["x", "y"]);
    namespace
}

/// A service.
pub(crate) fn service(rng: &mut Rng, namespace: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"namespace": namespace, "name": "service"},
        "spec": {"selector": {"app": *rng.pick(&APPS)}},
    })
}

/// A budget for the pods of an application.
pub(crate) fn budget(rng: &mut Rng, namespace: &str) -> Value {
    json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"namespace": namespace, "name": "budget"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": *rng.pick(&APPS)}}},
        "status": {"disruptionsAllowed": rng.below(3), "currentHealthy": 1, "desiredHealthy": 1,
            "expectedPods": 1},
    })
}

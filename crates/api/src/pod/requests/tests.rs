use serde_json::{Value, json};

use super::{PodResources, pod_limits, pod_resources};
use crate::problem::Problem;

fn read(pod: Value) -> (PodResources, Vec<Problem>) {
    let pod = serde_json::from_value(pod).expect("a pod");
    let mut problems = Vec::new();
    (pod_resources(&pod, &mut problems), problems)
}

/// What a pod of that spec and status needs room for.
#[track_caller]
fn check_requests(spec: Value, status: Value, expected: &str) {
    let (resources, problems) = read(json!({"spec": spec, "status": status}));
    assert_eq!(problems, []);
    assert_eq!(resources.requests.to_string(), expected);
}

/// CPU and memory that a pod of that spec counts as, on a node and while it is
/// ranked.
#[track_caller]
fn check_scored(spec: Value, on_node: &str, ranked: &str) {
    let (resources, problems) = read(json!({"spec": spec}));
    assert_eq!(problems, []);
    let non_zero = resources.non_zero;
    let found = format!("cpu={}m memory={}", non_zero.milli_cpu, non_zero.memory);
    assert_eq!(found, on_node, "on its node");
    assert_eq!(resources.ranked.to_string(), ranked, "while it is ranked");
}

fn container(name: &str, requests: Value) -> Value {
    json!({"name": name, "resources": {"requests": requests}})
}

fn sidecar(name: &str, requests: Value) -> Value {
    json!({"name": name, "restartPolicy": "Always", "resources": {"requests": requests}})
}

fn cpu(amount: &str) -> Value {
    json!({"cpu": amount})
}

const NONE: Value = Value::Null;

#[test]
fn containers_run_together() {
    let containers = json!([
        container("a", json!({"cpu": "100m", "memory": "1Ki", "example.com/gpu": "1"})),
        container("b", json!({"cpu": "1", "ephemeral-storage": "5", "example.com/gpu": "2"})),
        container("c", NONE),
    ]);
    let expected = "cpu=1100m memory=1024 ephemeral-storage=5 example.com/gpu=3";
    check_requests(json!({"containers": containers}), NONE, expected);
}

#[test]
fn sums_are_exact_and_rounded_up_at_the_end() {
    let part = || container("a", json!({"cpu": "100u", "memory": "0.3"}));
    let containers = json!([part(), part(), part(), part()]);
    check_requests(json!({"containers": containers}), NONE, "cpu=1m memory=2");
}

#[test]
fn amounts_that_are_not_counted_are_left_out() {
    let requests = json!({"storage": "1", "pods": "1", "requests.example.com/gpu": "1"});
    let containers = json!([container("a", requests)]);
    check_requests(json!({"containers": containers}), NONE, "cpu=0m memory=0");
}

#[test]
fn init_containers_run_one_at_a_time() {
    for (main, init, expected) in
        [("1", vec!["2", "3"], 3000), ("4", vec!["2", "3"], 4000), ("4", vec![], 4000)]
    {
        let init: Vec<Value> = init.into_iter().map(|c| container("i", cpu(c))).collect();
        let spec = json!({"containers": [container("a", cpu(main))], "initContainers": init});
        check_requests(spec, NONE, &format!("cpu={expected}m memory=0"));
    }
}

#[test]
fn sidecars_run_beside_what_starts_after_them() {
    let side = |c: &str| sidecar("s", cpu(c));
    let init = |c: &str| container("i", cpu(c));
    for (main, init, expected) in [
        // Beside the containers.
        ("1", vec![side("2")], 3000),
        // Beside a later init container, which does not run with the containers.
        ("1", vec![side("2"), init("5")], 7000),
        ("5", vec![side("2"), init("1")], 7000),
        // Not beside an earlier one.
        ("1", vec![init("5"), side("2")], 5000),
        ("4", vec![init("5"), side("2")], 6000),
        // Between two.
        ("1", vec![side("1"), init("3"), side("2"), init("3")], 6000),
        ("1", vec![side("1"), init("5"), side("2"), init("2")], 6000),
    ] {
        let case = format!("{main} {init:?}");
        let spec = json!({"containers": [container("a", cpu(main))], "initContainers": init});
        let (resources, _) = read(json!({"spec": spec}));
        assert_eq!(resources.requests.milli_cpu, expected, "{case}");
    }
}

#[test]
fn overhead_comes_on_top() {
    let spec = json!({
        "containers": [container("a", cpu("1"))],
        "initContainers": [container("i", cpu("3"))],
        "overhead": {"cpu": "250m", "memory": "10", "example.com/gpu": "1"},
    });
    check_requests(spec.clone(), NONE, "cpu=3250m memory=10 example.com/gpu=1");
    check_scored(
        spec,
        "cpu=3250m memory=209715210",
        "cpu=3250m memory=209715210 example.com/gpu=1",
    );
}

#[test]
fn pod_level_requests_take_the_place_of_the_containers() {
    let spec = json!({
        "containers": [
            container("a", json!({"cpu": "3", "memory": "7", "hugepages-2Mi": "2Mi"})),
            container("b", json!({"example.com/gpu": "1"})),
        ],
        "resources": {"requests": {"cpu": "1", "hugepages-2Mi": "4Mi"}},
        "overhead": {"cpu": "250m"},
    });
    check_requests(spec, NONE, "cpu=1250m memory=7 example.com/gpu=1 hugepages-2Mi=4194304");
}

#[test]
fn only_cpu_memory_and_huge_pages_can_be_set_for_a_pod() {
    let spec = json!({
        "containers": [container("a", json!({"example.com/gpu": "1"}))],
        "resources": {"requests": {"example.com/gpu": "4", "ephemeral-storage": "9"}},
    });
    check_requests(spec, NONE, "cpu=0m memory=0 example.com/gpu=1");
}

#[test]
fn containers_without_a_request_count_as_small_ones_when_scored() {
    let unset = "cpu=100m memory=209715200";
    check_scored(json!({"containers": [{"name": "a"}]}), unset, unset);
    let two = "cpu=1100m memory=209715210";
    let containers = json!([container("a", cpu("1")), container("b", json!({"memory": "10"}))]);
    check_scored(json!({"containers": containers}), two, two);
    let zero = "cpu=0m memory=0";
    let containers = json!([container("a", json!({"cpu": "0", "memory": "0"}))]);
    check_scored(json!({"containers": containers}), zero, zero);
    let init = "cpu=200m memory=419430400";
    let spec = json!({
        "containers": [{"name": "a"}],
        "initContainers": [sidecar("s", NONE), container("i", NONE)],
    });
    check_scored(spec, init, init);
}

#[test]
fn pod_level_requests_leave_defaults_to_what_nothing_states() {
    let containers = json!([container("a", cpu("3")), {"name": "b"}]);
    for (pod_level, on_node) in [
        (json!({"cpu": "1", "memory": "7"}), "cpu=1000m memory=7"),
        (json!({"cpu": "1"}), "cpu=1000m memory=419430400"),
        (json!({"memory": "7"}), "cpu=3000m memory=7"),
        (json!({"hugepages-2Mi": "2Mi"}), "cpu=3000m memory=419430400"),
    ] {
        let spec = json!({"containers": containers, "resources": {"requests": pod_level}});
        check_scored(spec, on_node, "cpu=3100m memory=419430400");
    }
}

/// A pod with one container that asks for 2 CPUs, and what its status says.
#[track_caller]
fn check_resize(container_status: Value, pod_status: Value, infeasible: bool, expected: i64) {
    let mut status = json!({"containerStatuses": [container_status]});
    if let (Value::Object(status), Value::Object(more)) = (&mut status, pod_status) {
        status.extend(more);
    }
    if infeasible {
        let condition =
            json!({"type": "PodResizePending", "status": "True", "reason": "Infeasible"});
        status["conditions"] = json!([condition]);
    }
    let spec = json!({"containers": [container("a", cpu("2"))]});
    check_requests(spec, status, &format!("cpu={expected}m memory=0"));
}

fn reported(allocated: Value, actuated: Value) -> Value {
    let mut status = json!({"name": "a"});
    if !allocated.is_null() {
        status["allocatedResources"] = allocated;
    }
    if !actuated.is_null() {
        status["resources"] = json!({"requests": actuated});
    }
    status
}

#[test]
fn resize_under_way_counts_as_the_largest_of_asked_allocated_and_actuated() {
    for (allocated, actuated, expected) in [
        (NONE, NONE, 2000),
        (cpu("1"), NONE, 2000),
        (cpu("3"), NONE, 3000),
        (NONE, cpu("4"), 4000),
        (cpu("3"), cpu("4"), 4000),
        (cpu("3"), cpu("1"), 3000),
        (cpu("1"), cpu("1"), 2000),
    ] {
        check_resize(reported(allocated, actuated), NONE, false, expected);
    }
}

#[test]
fn infeasible_resize_does_not_count_what_is_asked() {
    for (allocated, actuated, expected) in [
        (NONE, NONE, 0),
        (cpu("1"), NONE, 1000),
        (cpu("1"), cpu("500m"), 1000),
        (NONE, cpu("500m"), 500),
        (cpu("3"), cpu("4"), 4000),
    ] {
        check_resize(reported(allocated, actuated), NONE, true, expected);
    }
}

#[test]
fn other_reasons_of_a_pending_resize_do_not_matter() {
    let spec = json!({"containers": [container("a", cpu("2"))]});
    let deferred = json!({"type": "PodResizePending", "status": "True", "reason": "Deferred"});
    let infeasible = json!({"type": "PodResizePending", "status": "True", "reason": "Infeasible"});
    for conditions in [json!([deferred]), json!([deferred, infeasible]), json!([])] {
        let status = json!({
            "containerStatuses": [reported(cpu("1"), NONE)],
            "conditions": conditions,
        });
        check_requests(spec.clone(), status, "cpu=2000m memory=0");
    }
}

#[test]
fn sums_that_the_kubelet_reports_stand_for_those_of_container_statuses() {
    let whole = json!({"allocatedResources": cpu("5"), "resources": {"requests": cpu("6")}});
    check_resize(reported(cpu("9"), cpu("9")), whole.clone(), false, 6000);
    check_resize(reported(cpu("9"), cpu("9")), whole, true, 6000);
    // Half of them does not do.
    let half = json!({"allocatedResources": cpu("5")});
    check_resize(reported(cpu("9"), cpu("9")), half, false, 9000);
}

#[test]
fn resize_of_a_sidecar_is_found_among_the_init_container_statuses() {
    let spec = json!({
        "containers": [container("a", cpu("2"))],
        "initContainers": [sidecar("s", cpu("1"))],
    });
    let status = json!({
        "initContainerStatuses": [
            {"name": "x", "allocatedResources": cpu("9")},
            {"name": "s", "allocatedResources": cpu("3")},
        ],
    });
    check_requests(spec, status, "cpu=5000m memory=0");
}

#[test]
fn resize_of_pod_level_requests_counts_as_the_largest_without_overhead() {
    let spec = json!({
        "containers": [container("a", cpu("9"))],
        "resources": {"requests": cpu("2")},
        "overhead": cpu("1"),
    });
    let infeasible =
        json!([{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]);
    for (status, expected) in [
        (json!({}), 3000),
        (json!({"allocatedResources": cpu("5")}), 5000),
        (json!({"allocatedResources": cpu("5"), "resources": {"requests": cpu("7")}}), 7000),
        (json!({"allocatedResources": cpu("2"), "resources": {"requests": cpu("2")}}), 3000),
        (json!({"allocatedResources": cpu("500m"), "conditions": infeasible}), 1000),
        (json!({"allocatedResources": cpu("2500m"), "conditions": infeasible}), 2500),
        // Nothing is left of the pod-level requests: the containers count.
        (json!({"resources": {}, "conditions": infeasible}), 1000),
    ] {
        let case = status.to_string();
        let (resources, _) = read(json!({"spec": spec, "status": status}));
        assert_eq!(resources.requests.milli_cpu, expected, "{case}");
    }
}

#[test]
fn amounts_that_cannot_be_read_are_reported_with_their_place() {
    let (resources, problems) = read(json!({
        "spec": {
            "containers": [container("a", cpu("much"))],
            "initContainers": [container("i", cpu("-1"))],
            "resources": {"requests": cpu("1.2.3")},
            "overhead": cpu(""),
        },
        "status": {
            "initContainerStatuses": [{
                "name": "i",
                "allocatedResources": cpu("x"),
                "resources": {"requests": cpu("y")},
            }],
            "allocatedResources": cpu("z"),
        },
    }));
    assert_eq!(resources.requests.to_string(), "cpu=0m memory=0");
    let places: Vec<&str> = problems.iter().map(|p| p.path.as_str()).collect();
    assert_eq!(
        places,
        [
            r#"spec.containers[0].resources.requests["cpu"]"#,
            r#"spec.initContainers[0].resources.requests["cpu"]"#,
            r#"status.initContainerStatuses[0].allocatedResources["cpu"]"#,
            r#"status.initContainerStatuses[0].resources.requests["cpu"]"#,
            r#"spec.resources.requests["cpu"]"#,
            r#"status.allocatedResources["cpu"]"#,
            r#"spec.overhead["cpu"]"#,
        ]
    );
}

/// What a pod of that spec may use.
#[track_caller]
fn check_limits(spec: Value, expected: &str) {
    let spec = serde_json::from_value(spec).expect("a spec");
    let mut problems = Vec::new();
    let limits = pod_limits(&spec, &mut problems);
    assert_eq!(problems, []);
    assert_eq!(limits.to_string(), expected);
}

fn limited(name: &str, limits: Value, policy: Value) -> Value {
    json!({"name": name, "restartPolicy": policy, "resources": {"limits": limits}})
}

#[test]
fn limits_add_up_as_requests_do() {
    let main = json!([limited("a", cpu("1"), NONE), limited("b", cpu("2"), NONE)]);
    check_limits(json!({"containers": main}), "cpu=3000m memory=0");
    // A container without a limit adds nothing.
    let some = json!([limited("a", json!({"memory": "5"}), NONE), limited("b", cpu("2"), NONE)]);
    check_limits(json!({"containers": some}), "cpu=2000m memory=5");
    let init = json!([limited("i", cpu("4"), NONE)]);
    check_limits(json!({"containers": main, "initContainers": init}), "cpu=4000m memory=0");
    let sidecar_first =
        json!([limited("s", cpu("1"), json!("Always")), limited("i", cpu("4"), NONE)]);
    check_limits(
        json!({"containers": main, "initContainers": sidecar_first}),
        "cpu=5000m memory=0",
    );
    let sidecar = json!([limited("s", cpu("1"), json!("Always"))]);
    check_limits(json!({"containers": main, "initContainers": sidecar}), "cpu=4000m memory=0");
    // Requests are none.
    check_limits(json!({"containers": [container("a", cpu("1"))]}), "cpu=0m memory=0");
}

#[test]
fn limits_of_the_whole_pod_take_the_place_of_sums_and_overhead_adds_to_limits_only() {
    let spec = json!({
        "containers": [limited("a", json!({"cpu": "1", "memory": "7", "example.com/gpu": "2"}), NONE)],
        "resources": {"limits": {"cpu": "3", "hugepages-2Mi": "4", "example.com/gpu": "9"}},
        "overhead": {"cpu": "500m", "ephemeral-storage": "1"},
    });
    check_limits(spec, "cpu=3500m memory=7 example.com/gpu=2 hugepages-2Mi=4");
    let none = json!({"containers": [limited("a", cpu("0"), NONE)], "overhead": cpu("1")});
    check_limits(none, "cpu=0m memory=0");
}

#[test]
fn limits_that_cannot_be_read_are_reported_with_their_place() {
    let spec = json!({
        "containers": [limited("a", cpu("much"), NONE)],
        "initContainers": [limited("i", cpu("-1"), NONE)],
        "resources": {"limits": cpu("x")},
        "overhead": cpu("y"),
    });
    let mut problems = Vec::new();
    pod_limits(&serde_json::from_value(spec).expect("a spec"), &mut problems);
    let places: Vec<&str> = problems.iter().map(|p| p.path.as_str()).collect();
    assert_eq!(
        places,
        [
            r#"spec.containers[0].resources.limits["cpu"]"#,
            r#"spec.initContainers[0].resources.limits["cpu"]"#,
            r#"spec.resources.limits["cpu"]"#,
        ]
    );
}

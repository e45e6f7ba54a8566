use serde_json::{Value, json};

use crate::harness::{Harness, MERGE, PODS, pod};

fn binding(node: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Binding", "metadata": { "name": "p" },
        "target": { "kind": "Node", "name": node },
    })
}

#[tokio::test]
async fn a_pod_is_bound_once() {
    let harness = Harness::new();
    harness.post(PODS, &pod("p")).await.ok();
    let uri = format!("{PODS}/p/binding");
    let bound = harness.post(&uri, &binding("n1")).await;
    assert_eq!(bound.code, 201);
    assert_eq!(bound.ok()["status"], "Success");
    let now = harness.get(&format!("{PODS}/p")).await.ok();
    assert_eq!(now["spec"]["nodeName"], "n1");
    assert!(harness.post(&uri, &binding("n2")).await.refusal().starts_with("409 Conflict"));
    let mut none = binding("n1");
    none["metadata"]["name"] = json!("none");
    assert_eq!(harness.post(&format!("{PODS}/none/binding"), &none).await.code, 404);
    assert!(harness.get(&uri).await.refusal().starts_with("405 MethodNotAllowed"));
}

/// A running pod and a budget that covers it.
async fn covered(status: Value) -> Harness {
    let harness = Harness::new();
    let mut running = pod("p");
    running["spec"]["nodeName"] = json!("n1");
    harness.post(PODS, &running).await.ok();
    let ready = json!({ "status": {
        "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }],
    } });
    harness.patch(&format!("{PODS}/p/status"), MERGE, &ready).await.ok();
    let budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
    let budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": { "name": "b" },
        "spec": { "minAvailable": 1, "selector": { "matchLabels": { "app": "web" } } },
    });
    harness.post(budgets, &budget).await.ok();
    let status = json!({ "status": status });
    harness.patch(&format!("{budgets}/b/status"), MERGE, &status).await.ok();
    harness
}

fn eviction(api_version: &str) -> Value {
    json!({ "apiVersion": api_version, "kind": "Eviction", "metadata": { "name": "p" } })
}

#[tokio::test]
async fn an_eviction_is_charged_to_the_budget() {
    let status = json!({
        "observedGeneration": 1, "disruptionsAllowed": 1, "currentHealthy": 2,
        "desiredHealthy": 1, "expectedPods": 2,
    });
    let harness = covered(status).await;
    let uri = format!("{PODS}/p/eviction");
    let evicted = harness.post(&uri, &eviction("policy/v1")).await;
    assert_eq!(evicted.code, 201, "{:?}", evicted.body);
    let now = harness.get(&format!("{PODS}/p")).await.ok();
    assert_eq!(now["metadata"]["deletionGracePeriodSeconds"], 30);
    let budget = "/apis/policy/v1/namespaces/default/poddisruptionbudgets/b";
    let budget = harness.get(budget).await.ok();
    assert_eq!(budget["status"]["disruptionsAllowed"], 0);
    assert_eq!(budget["status"]["disruptedPods"]["p"], "2024-01-01T00:00:00Z");
    // It is going already: evicting it again costs nothing.
    assert_eq!(harness.post(&uri, &eviction("policy/v1beta1")).await.code, 201);
}

#[tokio::test]
async fn an_eviction_that_the_budget_does_not_allow_is_too_many() {
    let exhausted = json!({
        "observedGeneration": 1, "disruptionsAllowed": 0, "currentHealthy": 1,
        "desiredHealthy": 1, "expectedPods": 1,
    });
    let unseen = json!({
        "observedGeneration": 0, "disruptionsAllowed": 1, "currentHealthy": 1,
        "desiredHealthy": 1, "expectedPods": 1,
    });
    for (status, cause) in [
        (exhausted, "The disruption budget b needs 1 healthy pods and has 1 currently"),
        (unseen, "The disruption budget b is still being processed by the server."),
    ] {
        let harness = covered(status).await;
        let refused = harness.post(&format!("{PODS}/p/eviction"), &eviction("policy/v1")).await;
        assert_eq!(refused.code, 429);
        assert_eq!(refused.json()["details"]["causes"][0]["reason"], "DisruptionBudget");
        assert_eq!(refused.json()["details"]["causes"][0]["message"], cause);
        let now = harness.get(&format!("{PODS}/p")).await.ok();
        assert!(now["metadata"].get("deletionTimestamp").is_none());
    }
}

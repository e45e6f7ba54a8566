//! Evictions at a scripted API server. The core makes them, so that they are
//! what it asks for.

use steersman_api::decode::kind_row;
use steersman_api::object::ClusterObject;
use steersman_api::time::Time;
use steersman_core::{Effect, Scheduler, Setup};
use steersman_framework::observer::Unobserved;

use super::*;
use crate::scenario::{Answer, Scenario, Step, refusal, step};

const MARK: &str = "PATCH /api/v1/namespaces/ns/pods/victim/status";
const DELETE: &str = "DELETE /api/v1/namespaces/ns/pods/victim";

fn object(kind: &str, json: serde_json::Value) -> ClusterObject {
    kind_row("v1", kind).unwrap().decode(&json).unwrap().object
}

fn pod(name: &str, priority: i32, node: Option<&str>) -> ClusterObject {
    let container = json!({"name": "c", "resources": {"requests": {"cpu": "1"}}});
    let json = json!({
        "metadata": {"namespace": "ns", "name": name, "uid": format!("uid-{name}")},
        "spec": {"containers": [container], "priority": priority, "nodeName": node,
                 "schedulerName": "default-scheduler"},
    });
    object("Pod", json)
}

/// A pod fits nowhere, and a less important one is in its way.
fn scheduler() -> Scheduler {
    let registry = steersman_plugins::table::in_tree();
    let config = steersman_config::Config::default_for(&registry).unwrap();
    let setup = Setup::new(&config, &registry);
    let mut scheduler = Scheduler::new(setup).unwrap().0;
    let node = json!({"metadata": {"name": "n"},
                      "status": {"allocatable": {"cpu": "1", "memory": "1Gi", "pods": "10"}}});
    for object in [object("Node", node), pod("victim", 0, Some("n")), pod("vip", 10, None)] {
        scheduler.handle(Event::Upsert(object), Time::ZERO);
    }
    scheduler
}

/// The report's words and the number of requests.
async fn evict(steps: Vec<Step>) -> (String, Vec<crate::scenario::Seen>) {
    let (_, effects) = scheduler().schedule_next(Time::ZERO, &mut Unobserved).expect("a pod waits");
    let eviction = effects.into_iter().find_map(|effect| match effect {
        Effect::Evict(eviction) => Some(eviction),
        _ => None,
    });
    let eviction = eviction.expect("an eviction");
    let scenario = Scenario::new(steps);
    let wall = || Timestamp::UNIX_EPOCH;
    let api = scenario.api();
    let recorder = Recorder::new(api.clone(), Arc::default(), "host".to_owned(), 1, wall);
    let evictor = Evictor { api, recorder: Arc::new(recorder), seed: 1, wall };
    let report = evictor.evict(&eviction).await;
    (format!("{report:?}"), scenario.requests())
}

fn ok() -> Answer {
    Answer::Json(200, json!({}))
}

#[tokio::test(start_paused = true)]
async fn a_victim_is_marked_and_then_deleted() {
    let (report, requests) =
        evict(vec![step(MARK, Answer::Break), step(MARK, ok()), step(DELETE, ok())]).await;
    assert!(report.contains("failed: None"), "{report}");
    assert_eq!(
        requests[1].body,
        json!({"metadata": {"uid": "uid-victim"}, "status": {"conditions": [{
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": "default-scheduler: preempting to accommodate a higher priority pod",
            "lastProbeTime": null,
            "lastTransitionTime": "1970-01-01T00:00:00Z",
        }]}})
    );
    assert_eq!(requests[2].body["preconditions"], json!({"uid": "uid-victim"}));
}

#[tokio::test(start_paused = true)]
async fn a_victim_that_is_gone_is_no_failure() {
    let replaced = json!({"kind": "Status", "code": 409, "reason": "Conflict",
                          "message": "Operation cannot be fulfilled on pods \"victim\": Precondition failed: \
                                     UID in precondition: uid-victim, UID in object meta: other"});
    let gone = || refusal(404, "NotFound");
    for steps in [
        vec![step(MARK, gone())],
        vec![step(MARK, ok()), step(DELETE, gone())],
        vec![step(MARK, ok()), step(DELETE, Answer::Json(409, replaced))],
    ] {
        let (report, _) = evict(steps).await;
        assert!(report.contains("failed: None"), "{report}");
    }
}

/// The server's message names the pod: that its name has "uid" in it does not
/// mean that it was replaced.
#[tokio::test(start_paused = true)]
async fn a_conflict_about_a_squid_is_tried_again() {
    let conflict = json!({"kind": "Status", "code": 409, "reason": "Conflict",
                          "message": "Operation cannot be fulfilled on pods \"squid-0\": \
                                      the object has been modified"});
    let conflict = || Answer::Json(409, conflict.clone());
    let steps = vec![
        step(MARK, conflict()),
        step(MARK, ok()),
        step(DELETE, conflict()),
        step(DELETE, ok()),
    ];
    let (report, requests) = evict(steps).await;
    assert!(report.contains("failed: None"), "{report}");
    let deletions = requests.iter().filter(|request| request.body["preconditions"].is_object());
    assert_eq!(deletions.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_reported() {
    let (report, _) = evict(vec![step(MARK, ok()), step(DELETE, refusal(403, "Forbidden"))]).await;
    assert!(report.contains("deleting pod ns/victim: refused: Forbidden"), "{report}");
}

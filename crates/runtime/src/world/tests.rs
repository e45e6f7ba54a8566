//! Bindings against a scripted API server, in virtual time.

use tokio::time::timeout;

use super::*;
use crate::scenario::{Answer, Scenario, Seen, Step, refusal, step};

const BIND: &str = "POST /api/v1/namespaces/ns/pods/p/binding";
const READ: &str = "GET /api/v1/namespaces/ns/pods/p";

/// Binds pod `ns/p` to node `n`.
async fn bind(steps: Vec<Step>) -> (Result<(), WriteError>, Vec<Seen>) {
    let scenario = Scenario::new(steps);
    let (counters, view) = (Arc::default(), Arc::default());
    let cluster = LiveCluster::new(scenario.api(), counters, view, 1);
    let (pod, uid) = (ObjectKey::namespaced("ns", "p"), PodUid::from("u"));
    let node = "n".into();
    // A request that nobody expects is never answered: then it goes on forever.
    let bound = timeout(Duration::from_secs(36_000), cluster.bind(&pod, &uid, &node)).await;
    let requests = scenario.requests();
    (bound.expect("it ends"), requests)
}

fn pod(uid: &str, node: Option<&str>) -> Answer {
    let pod = json!({"metadata": {"uid": uid}, "spec": {"nodeName": node}});
    Answer::Json(200, pod)
}

fn done() -> Answer {
    Answer::Json(201, json!({"kind": "Status", "status": "Success"}))
}

fn bound_by_another(node: &str) -> WriteError {
    WriteError::Conflict(format!(
        "pod ns/p is already assigned to node {node:?}: another client bound it, for instance a \
         second scheduler with the same schedulerName under another lock"
    ))
}

#[tokio::test(start_paused = true)]
async fn writes_the_binding_with_the_uid() {
    let (bound, requests) = bind(vec![step(BIND, done())]).await;
    assert_eq!(bound, Ok(()));
    let expected = json!({
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"namespace": "ns", "name": "p", "uid": "u"},
        "target": {"kind": "Node", "name": "n"},
    });
    assert_eq!(
        (&requests[0].body, requests[0].content_type.as_str()),
        (&expected, "application/json")
    );
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_looked_up_before_the_binding_is_sent_again() {
    for lost in [|| Answer::Break, || Answer::Silence, || refusal(504, "Timeout")] {
        let there = bind(vec![step(BIND, lost()), step(READ, pod("u", Some("n")))]).await.0;
        assert_eq!(there, Ok(()), "it went through");
        let elsewhere = bind(vec![step(BIND, lost()), step(READ, pod("u", Some("m")))]).await.0;
        assert_eq!(elsewhere, Err(bound_by_another("m")));
        let replaced = bind(vec![step(BIND, lost()), step(READ, pod("v", None))]).await.0;
        assert_eq!(replaced, Err(WriteError::NotFound("pod ns/p is gone".into())));
        let gone = bind(vec![step(BIND, lost()), step(READ, refusal(404, "NotFound"))]).await.0;
        assert_eq!(gone, Err(WriteError::NotFound("pod ns/p is gone".into())));
        let again = vec![step(BIND, lost()), step(READ, pod("u", None)), step(BIND, done())];
        assert_eq!(bind(again).await.0, Ok(()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_conflict_after_a_lost_answer_may_be_our_own_binding() {
    let steps = vec![
        step(BIND, Answer::Break),
        step(READ, pod("u", None)),
        step(BIND, refusal(409, "Conflict")),
        step(READ, pod("u", Some("n"))),
    ];
    assert_eq!(bind(steps).await.0, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn while_the_pod_may_be_bound_its_fate_is_looked_for() {
    let mut steps = vec![];
    for _ in 0..20 {
        steps.push(step(BIND, Answer::Break));
        steps.push(step(READ, Answer::Break));
    }
    steps.push(step(BIND, refusal(409, "Conflict")));
    steps.push(step(READ, pod("u", Some("n"))));
    assert_eq!(bind(steps).await.0, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn who_may_not_read_pods_does_not_ask_forever() {
    let mut steps = vec![step(BIND, Answer::Break), step(READ, refusal(403, "Forbidden"))];
    for _ in 2..=TRIES {
        steps.push(step(BIND, refusal(409, "Conflict")));
        steps.push(step(READ, refusal(403, "Forbidden")));
    }
    let bound = bind(steps).await.0;
    let unclear = WriteError::Other("refused: Conflict".into());
    assert_eq!(bound, Err(unclear), "the binding may be our own");
}

#[tokio::test(start_paused = true)]
async fn a_conflict_as_the_first_answer_is_the_binding_of_another_client() {
    let conflict = || step(BIND, refusal(409, "Conflict"));
    for node in ["n", "m"] {
        let bound = bind(vec![conflict(), step(READ, pod("u", Some(node)))]).await.0;
        assert_eq!(bound, Err(bound_by_another(node)), "even where it was to go");
    }
    // The server was not able to do anything before.
    let busy = step(BIND, Answer::RetryAfter(429, 1));
    let bound = bind(vec![busy, conflict(), step(READ, pod("u", Some("n")))]).await.0;
    assert_eq!(bound, Err(bound_by_another("n")));
    let no = WriteError::Conflict("refused: Conflict".into());
    for unclear in [pod("u", None), refusal(403, "Forbidden"), Answer::Break] {
        let bound = bind(vec![conflict(), step(READ, unclear)]).await.0;
        assert_eq!(bound, Err(no.clone()), "for instance because it is being deleted");
    }
    let gone = bind(vec![conflict(), step(READ, pod("v", None))]).await.0;
    assert_eq!(gone, Err(WriteError::NotFound("pod ns/p is gone".into())));
}

#[tokio::test(start_paused = true)]
async fn refusals_that_pass_are_tried_again_and_others_are_not() {
    let (bound, requests) =
        bind(vec![step(BIND, Answer::RetryAfter(429, 3)), step(BIND, done())]).await;
    assert_eq!(bound, Ok(()));
    assert_eq!(requests[1].at.as_secs(), 3);

    let gone = WriteError::NotFound("refused: NotFound".into());
    assert_eq!(bind(vec![step(BIND, refusal(404, "NotFound"))]).await.0, Err(gone));
    let forbidden = WriteError::Other("refused: Forbidden".into());
    assert_eq!(bind(vec![step(BIND, refusal(403, "Forbidden"))]).await.0, Err(forbidden));
}

#[tokio::test(start_paused = true)]
async fn an_overloaded_server_is_given_up_in_the_end() {
    let steps = (0..TRIES).map(|_| step(BIND, Answer::RetryAfter(429, 1))).collect();
    let (bound, requests) = bind(steps).await;
    assert_eq!(bound, Err(WriteError::Other("status 429".into())));
    assert_eq!(requests.len(), 5);
}

#[tokio::test(start_paused = true)]
async fn patches_objects_where_they_are() {
    let path = "PATCH /api/v1/nodes/n1";
    let scenario = Scenario::new(vec![step(path, Answer::Break), step(path, done())]);
    let (counters, view) = (Arc::default(), Arc::default());
    let cluster = LiveCluster::new(scenario.api(), counters, view, 1);
    let (key, patch) = (ObjectKey::cluster("n1"), json!({"metadata": {"labels": {"a": "b"}}}));
    assert_eq!(cluster.patch("Node", &key, &patch).await, Ok(()));
    let requests = scenario.requests();
    assert_eq!(requests[1].content_type, "application/merge-patch+json");
    assert_eq!(requests[1].body, patch);
    assert!(cluster.patch("Nonsense", &key, &patch).await.is_err());
}

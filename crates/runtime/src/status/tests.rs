//! Writing pods' status to a scripted API server, in virtual time.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;
use steersman_api::decode::kind_row;
use steersman_api::object::ClusterObject;
use tokio::time::{sleep, timeout};

use super::*;
use crate::scenario::{Answer, Scenario, Step, refusal, step};

const PATCH: &str = "PATCH /api/v1/namespaces/ns/pods/p/status";
const NO_FIT: FailureReason = FailureReason::Unschedulable;

struct Bench {
    scenario: Arc<Scenario>,
    board: Arc<StatusBoard>,
    uid: PodUid,
}

impl Bench {
    /// A board that knows pod `p` with that status, and a writer.
    fn new(status: Value, steps: Vec<Step>) -> Self {
        let scenario = Scenario::new(steps);
        let board = Arc::new(StatusBoard::default());
        let writer = StatusWriter {
            api: scenario.api(),
            board: board.clone(),
            counters: Arc::default(),
            seed: 1,
            wall: || Timestamp::UNIX_EPOCH,
        };
        tokio::spawn(writer.run());
        let bench = Self { scenario, board, uid: PodUid::from("u") };
        bench.saw(None, status);
        bench
    }

    fn saw(&self, node: Option<&str>, status: Value) {
        let json = json!({
            "metadata": {"namespace": "ns", "name": "p", "uid": "u", "generation": 3},
            "spec": {"containers": [{"name": "c"}], "nodeName": node},
            "status": status,
        });
        let decoded = kind_row("v1", "Pod").unwrap().decode(&json).unwrap();
        let ClusterObject::Pod(pod) = decoded.object else { panic!("not a pod") };
        self.board.saw(&pod, &json);
    }

    fn failed(&self, message: &str) {
        self.board.failed(&self.uid, NO_FIT, message);
    }
}

fn ok() -> Answer {
    Answer::Json(200, json!({}))
}

fn shown(message: &str) -> Value {
    json!({"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                           "message": message}]})
}

#[tokio::test(start_paused = true)]
async fn condition_and_nomination_are_written_together() {
    let bench = Bench::new(json!({}), vec![step(PATCH, ok())]);
    bench.failed("0/1 nodes");
    bench.board.nominate(&bench.uid, Some("n".into()));
    bench.scenario.finished().await;
    sleep(Duration::from_secs(60)).await;
    let requests = bench.scenario.requests();
    let expected = json!({
        "metadata": {"uid": "u"},
        "status": {
            "conditions": [{
                "type": "PodScheduled",
                "status": "False",
                "reason": "Unschedulable",
                "message": "0/1 nodes",
                "lastProbeTime": null,
                "lastTransitionTime": "1970-01-01T00:00:00Z",
                "observedGeneration": 3,
            }],
            "nominatedNodeName": "n",
        },
    });
    assert_eq!(requests[0].body, expected);
    assert_eq!(requests[0].content_type, "application/strategic-merge-patch+json");
}

#[tokio::test(start_paused = true)]
async fn only_what_differs_is_written_and_the_transition_keeps_its_time() {
    let bench = Bench::new(shown("a"), vec![step(PATCH, ok())]);
    bench.failed("a");
    bench.board.nominate(&bench.uid, None);
    sleep(Duration::from_secs(1)).await;
    bench.failed("b");
    sleep(Duration::from_secs(1)).await;
    bench.failed("b");
    sleep(Duration::from_secs(1)).await;
    let requests = bench.scenario.requests();
    let condition = &requests[0].body["status"]["conditions"][0];
    assert_eq!(condition["message"], "b");
    assert!(condition.get("lastTransitionTime").is_none(), "{condition}");
    assert!(requests[0].body["status"].get("nominatedNodeName").is_none());
}

#[tokio::test(start_paused = true)]
async fn the_newest_state_wins_over_what_is_being_written() {
    let bench = Bench::new(
        json!({"nominatedNodeName": "n"}),
        vec![step(PATCH, Answer::RetryAfter(429, 5)), step(PATCH, ok())],
    );
    bench.failed("a");
    sleep(Duration::from_secs(1)).await;
    bench.failed("b");
    bench.failed("c");
    bench.board.nominate(&bench.uid, None);
    bench.scenario.finished().await;
    let requests = bench.scenario.requests();
    assert_eq!(requests[0].body["status"]["conditions"][0]["message"], "a");
    assert_eq!(requests[1].body["status"]["conditions"][0]["message"], "c");
    assert_eq!(requests[1].body["status"]["nominatedNodeName"], Value::Null);
    assert_eq!(requests[1].at.as_secs(), 5);
}

#[tokio::test(start_paused = true)]
async fn what_was_wanted_before_is_written_again_if_something_else_got_in_between() {
    let bench = Bench::new(shown("a"), vec![step(PATCH, ok()), step(PATCH, ok())]);
    bench.failed("b");
    // The write of b is under way when a is wanted again.
    tokio::task::yield_now().await;
    bench.failed("a");
    sleep(Duration::from_secs(1)).await;
    let messages: Vec<Value> = bench
        .scenario
        .requests()
        .iter()
        .map(|r| r.body["status"]["conditions"][0]["message"].clone())
        .collect();
    assert_eq!(messages, ["b", "a"]);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_gone_or_refused_is_left_alone_and_others_go_on() {
    let steps = vec![step(PATCH, refusal(422, "Invalid")), step(PATCH, refusal(404, "NotFound"))];
    let bench = Bench::new(json!({}), steps);
    bench.failed("a");
    sleep(Duration::from_secs(1)).await;
    bench.failed("b");
    sleep(Duration::from_secs(1)).await;
    bench.failed("c");
    sleep(Duration::from_secs(1)).await;
    assert_eq!(bench.scenario.requests().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_binding_withdraws_the_condition_and_waits_for_what_is_being_written() {
    let steps = vec![step(PATCH, Answer::RetryAfter(503, 2)), step(PATCH, ok())];
    let bench = Bench::new(json!({}), steps);
    bench.failed("a");
    bench.board.nominate(&bench.uid, Some("n".into()));
    tokio::task::yield_now().await;
    let start = Instant::now();
    bench.board.settle(&bench.uid).await;
    assert_eq!(start.elapsed().as_secs(), 2);
    let requests = bench.scenario.requests();
    let expected = json!({"metadata": {"uid": "u"}, "status": {"nominatedNodeName": "n"}});
    assert_eq!(requests[1].body, expected, "the condition is not written any more");
}

#[tokio::test(start_paused = true)]
async fn a_binding_waits_no_longer_than_it_must() {
    let bench = Bench::new(json!({}), vec![step(PATCH, Answer::Silence)]);
    let at_once = Duration::from_millis(1);
    timeout(at_once, bench.board.settle(&bench.uid)).await.expect("nothing is written");
    timeout(at_once, bench.board.settle(&PodUid::from("x"))).await.expect("nobody knows it");
    bench.failed("a");
    tokio::task::yield_now().await;
    let start = Instant::now();
    bench.board.settle(&bench.uid).await;
    assert_eq!(start.elapsed(), SETTLING);
}

#[tokio::test(start_paused = true)]
async fn a_pod_with_a_node_is_of_no_interest() {
    let bench = Bench::new(json!({}), vec![]);
    bench.saw(Some("n"), json!({}));
    bench.failed("a");
    sleep(Duration::from_secs(1)).await;
    assert!(bench.scenario.requests().is_empty());
}

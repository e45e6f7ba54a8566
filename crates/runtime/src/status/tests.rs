//! Writing pods' status to a scripted API server, in virtual time.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;
use steersman_api::decode::kind_row;
use steersman_api::object::ClusterObject;
use tokio::time::{sleep, timeout};

use super::*;
use crate::logged::Logged;
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
        self.saw_pod("p", "u", node, status);
    }

    fn saw_pod(&self, name: &str, uid: &str, node: Option<&str>, status: Value) {
        let json = json!({
            "metadata": {"namespace": "ns", "name": name, "uid": uid, "generation": 3},
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

#[tokio::test(start_paused = true)]
async fn the_last_failure_is_what_the_status_says_until_there_is_a_later_one() {
    let with = |status: &str, reason: &str| {
        json!({"conditions": [{"type": "PodScheduled", "status": status, "reason": reason,
                               "message": "of the status"}]})
    };
    let cases = [
        (json!({}), None),
        (with("False", "Unschedulable"), Some("of the status")),
        (with("False", "SchedulerError"), Some("of the status")),
        (with("False", "SchedulingGated"), None),
        (with("True", ""), None),
    ];
    for (status, expected) in cases {
        let bench = Bench::new(status.clone(), vec![step(PATCH, ok())]);
        let last = || bench.board.last_failure(&bench.uid);
        assert_eq!(last().as_deref(), expected, "{status}");
        bench.board.nominate(&bench.uid, None);
        assert_eq!(last().as_deref(), expected, "{status}");
        bench.board.failed(&bench.uid, FailureReason::SchedulerError, "later");
        assert_eq!(last().as_deref(), Some("later"), "at once: {status}");
        bench.scenario.finished().await;
        sleep(Duration::from_secs(1)).await;
        assert_eq!(last().as_deref(), Some("later"), "when it is written: {status}");
        bench.saw(Some("n"), with("False", "Unschedulable"));
        assert_eq!(last(), None, "it has a node: {status}");
    }
    assert_eq!(StatusBoard::default().last_failure(&PodUid::from("x")), None);
}

#[tokio::test(start_paused = true)]
async fn the_last_failure_is_known_although_its_write_was_refused() {
    let steps = vec![step(PATCH, refusal(403, "Forbidden")), step(PATCH, refusal(422, "Invalid"))];
    let bench = Bench::new(shown("a"), steps);
    bench.failed("b");
    sleep(Duration::from_secs(1)).await;
    bench.board.nominate(&bench.uid, Some("n".into()));
    bench.scenario.finished().await;
    sleep(Duration::from_secs(1)).await;
    assert_eq!(bench.board.last_failure(&bench.uid).as_deref(), Some("b"));
    // This is what the status says anyway.
    bench.failed("a");
    assert_eq!(bench.board.last_failure(&bench.uid).as_deref(), Some("a"));
    sleep(Duration::from_secs(1)).await;
    assert_eq!(bench.board.last_failure(&bench.uid).as_deref(), Some("a"));
    assert_eq!(bench.scenario.requests().len(), 2);
}

/// The answers after which the same write may succeed.
fn passing(n: usize) -> Answer {
    match n % 7 {
        0 => refusal(500, "InternalError"),
        1 => refusal(429, "TooManyRequests"),
        2 => refusal(503, "ServiceUnavailable"),
        3 => Answer::Break,
        4 => refusal(409, "Conflict"),
        5 => refusal(410, "Gone"),
        _ => Answer::Silence,
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_that_fails_is_repeated_without_another_attempt_until_it_succeeds() {
    let n_failures = 30;
    let mut steps: Vec<Step> = (0..n_failures).map(|n| step(PATCH, passing(n))).collect();
    steps.push(step(PATCH, ok()));
    let (log, _guard) = Logged::start();
    let bench = Bench::new(json!({}), steps);
    bench.failed("a");
    bench.board.nominate(&bench.uid, Some("n".into()));
    bench.scenario.finished().await;
    sleep(Duration::from_secs(3600)).await;
    let requests = bench.scenario.requests();
    let waits = requests.windows(2).map(|pair| pair[1].at - pair[0].at);
    let waits: Vec<Duration> = waits.collect();
    assert!(waits[0] < Duration::from_millis(500), "soon at first: {waits:?}");
    // The time that a request may take, and the longest wait with its chance.
    let longest = Duration::from_secs(30 + 2 * 30);
    assert!(waits.iter().all(|wait| *wait <= longest), "{waits:?}");
    assert!(waits[20..].iter().all(|wait| *wait >= Duration::from_secs(30)), "{waits:?}");
    let last = &requests[n_failures].body["status"];
    assert_eq!(last["conditions"][0]["message"], "a");
    assert_eq!(last["nominatedNodeName"], "n");
    let lines = log.take();
    assert_eq!(lines.len(), 1, "it is said once: {lines:?}");
    assert!(lines[0].contains("cannot be written yet") && lines[0].contains("ns/p"), "{lines:?}");
}

#[tokio::test(start_paused = true)]
async fn a_write_that_is_put_off_does_not_hold_up_other_pods() {
    const OTHER: &str = "PATCH /api/v1/namespaces/ns/pods/q/status";
    let steps = vec![
        step(PATCH, Answer::RetryAfter(503, 100)),
        step(OTHER, Answer::RetryAfter(503, 10)),
        step(OTHER, ok()),
        step(PATCH, ok()),
    ];
    // There is one writer only.
    let bench = Bench::new(json!({}), steps);
    bench.saw_pod("q", "v", None, json!({}));
    bench.failed("a");
    bench.board.failed(&PodUid::from("v"), NO_FIT, "b");
    bench.scenario.finished().await;
    let at: Vec<u64> = bench.scenario.requests().iter().map(|r| r.at.as_secs()).collect();
    assert_eq!(at, [0, 0, 10, 100]);
}

#[tokio::test(start_paused = true)]
async fn what_is_put_off_ends_with_its_pod_and_takes_no_memory() {
    for node in [Some("n"), None] {
        let bench = Bench::new(json!({}), vec![step(PATCH, Answer::RetryAfter(503, 10))]);
        bench.failed("a");
        sleep(Duration::from_secs(1)).await;
        assert_eq!(bench.board.pods.lock().put_off.len(), 1);
        bench.failed("b");
        bench.failed("c");
        assert_eq!(bench.board.pods.lock().put_off.len(), 1, "one write a pod");
        match node {
            Some(_) => bench.saw(node, json!({})),
            None => bench.board.forget(&bench.uid),
        }
        {
            let pods = bench.board.pods.lock();
            assert_eq!((pods.entries.len(), pods.put_off.len()), (0, 0));
        }
        sleep(Duration::from_secs(3600)).await;
        assert_eq!(bench.scenario.requests().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_put_off_is_dropped_when_the_pod_shows_it_or_it_is_wanted_no_more() {
    let bench = Bench::new(json!({}), vec![step(PATCH, Answer::RetryAfter(503, 10))]);
    bench.failed("a");
    sleep(Duration::from_secs(1)).await;
    // The write had gone through after all.
    bench.saw(None, shown("a"));
    sleep(Duration::from_secs(3600)).await;
    assert_eq!(bench.scenario.requests().len(), 1);

    let bench = Bench::new(json!({}), vec![step(PATCH, Answer::RetryAfter(503, 10))]);
    bench.failed("a");
    sleep(Duration::from_secs(1)).await;
    let at_once = Duration::from_millis(1);
    timeout(at_once, bench.board.settle(&bench.uid)).await.expect("nothing is left to write");
    sleep(Duration::from_secs(3600)).await;
    assert_eq!(bench.scenario.requests().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_writer_that_is_stopped_writes_nothing_more() {
    let scenario = Scenario::new(vec![step(PATCH, Answer::RetryAfter(503, 10))]);
    let (api, board) = (scenario.api(), Arc::new(StatusBoard::default()));
    let (counters, wall) = (Arc::default(), (|| Timestamp::UNIX_EPOCH) as fn() -> Timestamp);
    let writer = StatusWriter { api, board: board.clone(), counters, seed: 1, wall };
    let writer = tokio::spawn(writer.run());
    let bench = Bench { scenario, board, uid: PodUid::from("u") };
    bench.saw(None, json!({}));
    bench.failed("a");
    sleep(Duration::from_secs(1)).await;
    writer.abort();
    sleep(Duration::from_secs(3600)).await;
    assert_eq!(bench.scenario.requests().len(), 1);
}

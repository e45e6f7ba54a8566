//! Recording events at a scripted API server, in virtual time.

use serde_json::Value;
use steersman_api::decode::kind_row;
use steersman_api::object::ClusterObject;

use super::*;
use crate::scenario::{Answer, Scenario, Step, refusal, step};

const CREATE: &str = "POST /apis/events.k8s.io/v1/namespaces/ns/events";
const SERIES: &str = "PATCH /apis/events.k8s.io/v1/namespaces/ns/events/p.f4240";
const MINUTE: Duration = Duration::from_secs(60);

struct Bench {
    scenario: Arc<Scenario>,
    recorder: Arc<Recorder>,
}

impl Bench {
    fn new(steps: Vec<Step>) -> Self {
        let scenario = Scenario::new(steps);
        let wall = || Timestamp::from_millisecond(1).unwrap();
        let recorder = Recorder::new(scenario.api(), Arc::default(), "host".to_owned(), 1, wall);
        let recorder = Arc::new(recorder);
        tokio::spawn(recorder.clone().run());
        Self { scenario, recorder }
    }

    fn failed(&self, note: &str) {
        self.recorder.record(What::FailedScheduling, &pod("p"), note.to_owned());
    }

    fn dropped(&self) -> u64 {
        self.recorder.counters.events_dropped.get()
    }
}

fn pod(name: &str) -> PodInfo {
    let json = json!({
        "metadata": {"namespace": "ns", "name": name, "uid": format!("uid-{name}")},
        "spec": {"containers": [{"name": "c"}], "schedulerName": "mine"},
    });
    let decoded = kind_row("v1", "Pod").unwrap().decode(&json).unwrap();
    let ClusterObject::Pod(pod) = decoded.object else { panic!("not a pod") };
    PodInfo::clone(&pod)
}

fn ok() -> Answer {
    Answer::Json(201, json!({}))
}

#[tokio::test(start_paused = true)]
async fn events_have_the_fields_that_the_reference_sets() {
    let bench = Bench::new(vec![step(CREATE, ok()), step(CREATE, ok())]);
    let note = "Successfully assigned ns/p to n".to_owned();
    bench.recorder.record(What::Scheduled, &pod("p"), note);
    sleep(Duration::from_millis(1)).await;
    bench.recorder.preempted(&pod("v"), &pod("p"), "Preempted by pod uid-p on node n".into());
    bench.scenario.finished().await;
    let requests = bench.scenario.requests();
    let regarding = |name: &str| {
        json!({"apiVersion": "v1", "kind": "Pod", "namespace": "ns", "name": name,
               "uid": format!("uid-{name}")})
    };
    assert_eq!(
        requests[0].body,
        json!({
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"namespace": "ns", "name": "p.f4240"},
            "eventTime": "1970-01-01T00:00:00.001000Z",
            "reportingController": "mine",
            "reportingInstance": "mine-host",
            "action": "Binding",
            "reason": "Scheduled",
            "regarding": regarding("p"),
            "note": "Successfully assigned ns/p to n",
            "type": "Normal",
        })
    );
    let preempted = &requests[1].body;
    assert_eq!(
        (&preempted["regarding"], &preempted["related"]),
        (&regarding("v"), &regarding("p"))
    );
    assert_eq!(
        (&preempted["action"], &preempted["type"]),
        (&json!("Preempting"), &json!("Normal"))
    );
}

#[tokio::test(start_paused = true)]
async fn repetitions_become_a_series_that_ends_when_it_is_quiet() {
    let bench = Bench::new(vec![
        step(CREATE, ok()),
        step(SERIES, ok()),
        step(SERIES, ok()),
        step(CREATE, ok()),
    ]);
    for minute in 0..5 {
        bench.failed(&format!("at minute {minute}"));
        sleep(MINUTE).await;
    }
    sleep(MINUTE * 12).await;
    bench.failed("after the series");
    bench.scenario.finished().await;
    let requests = bench.scenario.requests();
    let count = |i: usize| requests[i].body["series"]["count"].clone();
    assert_eq!(requests[0].body["type"], "Warning");
    assert_eq!(requests[0].body["reason"], "FailedScheduling");
    assert_eq!(requests[0].body["action"], "Scheduling");
    assert_eq!(
        (count(0), count(1), count(2), count(3)),
        (Value::Null, 2.into(), 5.into(), Value::Null)
    );
    assert_eq!(
        requests[1].body,
        json!({"series": {"count": 2, "lastObservedTime": "1970-01-01T00:00:00.001000Z"}})
    );
    assert_eq!(requests[2].at.as_secs() / 60, 12, "at the first look six minutes after the last");
}

#[tokio::test(start_paused = true)]
async fn a_single_event_is_forgotten_after_a_while() {
    let bench = Bench::new(vec![step(CREATE, ok()), step(CREATE, ok())]);
    bench.failed("a");
    sleep(MINUTE * 13).await;
    bench.failed("b");
    bench.scenario.finished().await;
    assert_eq!(bench.scenario.requests()[1].body["note"], "b");
}

#[tokio::test(start_paused = true)]
async fn a_series_whose_event_is_gone_becomes_a_new_event() {
    let bench = Bench::new(vec![
        step(CREATE, ok()),
        step(SERIES, refusal(404, "NotFound")),
        step(CREATE, ok()),
    ]);
    bench.failed("a");
    sleep(Duration::from_secs(1)).await;
    bench.failed("a");
    bench.scenario.finished().await;
    assert_eq!(bench.scenario.requests()[2].body["series"]["count"], 2);
}

#[tokio::test(start_paused = true)]
async fn failures_are_tried_again_and_refusals_are_not() {
    let bench = Bench::new(vec![
        step(CREATE, Answer::Break),
        step(CREATE, Answer::RetryAfter(429, 4)),
        step(CREATE, refusal(409, "AlreadyExists")),
    ]);
    bench.recorder.record(What::Scheduled, &pod("p"), "a".into());
    bench.scenario.finished().await;
    bench.recorder.flush(Instant::now() + MINUTE).await;
    assert_eq!(bench.dropped(), 0, "the first try went through");

    let bench = Bench::new(vec![step(CREATE, refusal(403, "Forbidden"))]);
    bench.recorder.record(What::Scheduled, &pod("p"), "a".into());
    bench.scenario.finished().await;
    bench.recorder.flush(Instant::now() + MINUTE).await;
    assert_eq!(bench.dropped(), 1);
    bench.scenario.requests();
}

#[tokio::test(start_paused = true)]
async fn the_oldest_events_are_lost_when_there_are_too_many() {
    let bench = Bench::new(vec![]);
    // Nobody has taken any yet: the writers get no turn in between.
    for i in 0..LONGEST_QUEUE + 3 {
        bench.recorder.record(What::Scheduled, &pod("p"), format!("{i}"));
    }
    assert_eq!(bench.dropped(), 3);
    let queue = bench.recorder.queue.lock();
    assert_eq!(queue.len(), LONGEST_QUEUE);
    let note = |event: Option<&PodEvent>| event.map(|event| event.note.clone());
    assert_eq!(note(queue.front()).as_deref(), Some("3"));
    assert_eq!(note(queue.back()), Some((LONGEST_QUEUE + 2).to_string()));
}

#[tokio::test(start_paused = true)]
async fn flushing_ends_in_time_even_if_the_server_does_not_answer() {
    let bench = Bench::new(vec![step(CREATE, Answer::Silence)]);
    bench.failed("a");
    let start = Instant::now();
    bench.recorder.flush(start + MINUTE / 6).await;
    assert_eq!(start.elapsed().as_secs(), 10);
}

//! Following one kind against a scripted API server, in virtual time.

use serde_json::{Value, json};
use steersman_api::decode::kind_row;
use steersman_api::object::ClusterObject;
use tokio::task::JoinHandle;

use super::*;
use crate::scenario::{Answer, Piece, Scenario, Seen, Step, event, refusal, step};

const EVERYTHING: &str =
    "GET /api/v1/nodes?watch=true sendInitialEvents=true resourceVersionMatch=NotOlderThan";
const SECOND: Duration = Duration::from_secs(1);

/// A reflector of nodes that follows `steps`.
struct Following {
    scenario: Arc<Scenario>,
    batches: mpsc::Receiver<Batch>,
    counters: Arc<Counters>,
    task: JoinHandle<()>,
}

impl Following {
    fn kind(kind: &str, steps: Vec<Step>) -> Self {
        let scenario = Scenario::new(steps);
        let counters = Arc::new(Counters::default());
        let (sink, batches) = mpsc::channel(1000);
        let around = Surroundings {
            api: scenario.api(),
            sink,
            counters: counters.clone(),
            board: Arc::default(),
            view: Arc::default(),
            limits: Limits::default(),
            outage: Arc::default(),
            wants: Wants::default(),
            seed: 1,
        };
        let version = if kind == "StatefulSet" { "apps/v1" } else { "v1" };
        let reflector = Reflector::new(kind_row(version, kind).unwrap(), around);
        Self { scenario, batches, counters, task: tokio::spawn(reflector.run()) }
    }

    /// Waits for the end of the script; what the core was told, and the
    /// requests.
    async fn end(mut self) -> (String, Vec<Seen>, Arc<Counters>) {
        self.scenario.finished().await;
        // What the last answer brings is told within a moment.
        sleep(Duration::from_millis(1)).await;
        self.task.abort();
        let mut told = Vec::new();
        while let Ok(batch) = self.batches.try_recv() {
            told.extend(batch.events.iter().map(word));
            told.extend(batch.synced.then(|| "synced".to_owned()));
        }
        (told.join(" "), self.scenario.requests(), self.counters)
    }
}

fn word(event: &Event) -> String {
    match event {
        Event::Upsert(ClusterObject::Node(node)) => format!("+{}", node.name),
        Event::Upsert(ClusterObject::Pod(pod)) => format!("+{}", pod.key.name),
        Event::NodeDeleted(name) => format!("-{name}"),
        Event::PodDeleted(uid) => format!("-{uid}"),
        other => format!("{other:?}"),
    }
}

fn node(name: &str, version: &str) -> Value {
    json!({"kind": "Node", "apiVersion": "v1",
           "metadata": {"name": name, "uid": format!("uid-{name}"), "resourceVersion": version}})
}

fn bookmark(version: &str) -> Piece {
    event("BOOKMARK", json!({"kind": "Node", "metadata": {"resourceVersion": version}}))
}

fn initial_end(version: &str) -> Piece {
    let annotations = json!({"k8s.io/initial-events-end": "true"});
    let meta = json!({"resourceVersion": version, "annotations": annotations});
    event("BOOKMARK", json!({"kind": "Node", "metadata": meta}))
}

fn list(version: &str, next: &str, items: &[Value]) -> Answer {
    let meta = json!({"resourceVersion": version, "continue": next});
    Answer::Json(200, json!({"kind": "NodeList", "metadata": meta, "items": items}))
}

/// The last thing of a script: a watch that stays open.
fn rest(expected: &'static str) -> Step {
    step(expected, Answer::Stream(vec![Piece::Silence]))
}

#[tokio::test(start_paused = true)]
async fn a_lost_connection_is_resumed_after_the_last_event_without_a_list() {
    let (told, requests, counters) = Following::kind(
        "Node",
        vec![
            step(
                EVERYTHING,
                Answer::Stream(vec![
                    event("ADDED", node("a", "7")),
                    event("ADDED", node("b", "3")),
                    initial_end("10"),
                    event("MODIFIED", node("a", "11")),
                    Piece::Break,
                ]),
            ),
            step(
                "GET watch=true resourceVersion=11& allowWatchBookmarks=true timeoutSeconds=",
                Answer::Stream(vec![
                    event("DELETED", node("b", "12")),
                    bookmark("20"),
                    Piece::Break,
                ]),
            ),
            rest("GET watch=true resourceVersion=20&"),
        ],
    )
    .end()
    .await;
    assert_eq!(told, "+a +b synced +a -b");
    assert_eq!(counters.lists.get(), 1);
    assert!(requests[2].at < SECOND, "resumed after {:?}", requests[2].at);
}

#[tokio::test(start_paused = true)]
async fn a_forgotten_version_is_made_up_for_by_a_list_that_tells_only_differences() {
    let gone = json!({"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"});
    let (told, requests, counters) = Following::kind(
        "Node",
        vec![
            step(
                EVERYTHING,
                Answer::Stream(vec![
                    event("ADDED", node("a", "1")),
                    event("ADDED", node("b", "2")),
                    event("ADDED", node("c", "3")),
                    initial_end("10"),
                    event("ERROR", gone),
                ]),
            ),
            step(
                EVERYTHING,
                Answer::Stream(vec![
                    event("ADDED", node("a", "1")),
                    event("ADDED", node("c", "30")),
                    event("ADDED", node("d", "31")),
                    initial_end("40"),
                    Piece::Wait(SECOND * 2),
                ]),
            ),
            step("GET resourceVersion=40&", refusal(410, "Gone")),
            step(EVERYTHING, Answer::Stream(vec![initial_end("50"), Piece::Silence])),
        ],
    )
    .end()
    .await;
    assert_eq!(told, "+a +b +c synced +c +d -b -a -c -d");
    assert_eq!(counters.lists.get(), 3);
    assert!(requests[1].at < SECOND, "the first time at once");
    let pause = requests[3].at - requests[2].at;
    assert!(
        pause >= Duration::from_millis(800),
        "the next time soon after, not at once: {pause:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_without_initial_events_is_listed_in_pages() {
    let (told, requests, _) = Following::kind(
        "Node",
        vec![
            step(EVERYTHING, refusal(422, "Invalid")),
            step(
                "GET /api/v1/nodes?limit=500",
                list("9", "t/1", &[node("a", "1"), node("b", "2")]),
            ),
            step("GET limit=500 continue=t%2F1", refusal(410, "Expired")),
            step("GET /api/v1/nodes", list("12", "", &[node("a", "1"), node("c", "2")])),
            rest("GET watch=true resourceVersion=12&"),
        ],
    )
    .end()
    .await;
    assert_eq!(told, "+a +b +c -b synced");
    assert_eq!(requests[3].path, "/api/v1/nodes");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ignores_the_wish_for_initial_events_is_listed() {
    let (told, requests, _) = Following::kind(
        "Node",
        vec![
            step(EVERYTHING, Answer::Stream(vec![event("ADDED", node("a", "1")), Piece::Silence])),
            step("GET /api/v1/nodes?limit=500", list("9", "", &[node("a", "1")])),
            rest("GET watch=true resourceVersion=9&"),
        ],
    )
    .end()
    .await;
    assert_eq!(told, "+a synced");
    assert_eq!(requests[1].at.as_secs(), 30);
}

#[tokio::test(start_paused = true)]
async fn initial_events_that_always_break_off_are_listed_instead_and_pages_are_asked_for_again() {
    let cut =
        || step(EVERYTHING, Answer::Stream(vec![event("ADDED", node("a", "1")), Piece::Break]));
    let (told, _, counters) = Following::kind(
        "Node",
        vec![
            cut(),
            cut(),
            cut(),
            step("GET /api/v1/nodes?limit=500", list("9", "t", &[node("a", "1")])),
            step("GET limit=500 continue=t", Answer::Break),
            step("GET limit=500 continue=t", Answer::RetryAfter(429, 2)),
            step("GET limit=500 continue=t", list("9", "", &[node("b", "2")])),
            rest("GET watch=true resourceVersion=9&"),
        ],
    )
    .end()
    .await;
    assert_eq!(told, "+a +b synced");
    assert_eq!(counters.lists.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_object_is_skipped_and_stalls_nothing() {
    let bad = json!({"kind": "Pod", "metadata": {"namespace": "ns", "name": "bad", "uid": "u",
                     "resourceVersion": "5"}, "spec": 3});
    let good = |name: &str, version: &str| {
        json!({"kind": "Pod", "metadata": {"namespace": "ns", "name": name, "uid": name,
               "resourceVersion": version}, "spec": {"containers": [{"name": "c"}]}})
    };
    let (told, requests, counters) = Following::kind(
        "Pod",
        vec![
            step(
                "GET sendInitialEvents=true fieldSelector=status.phase!%3DSucceeded%2Cstatus.phase!%3DFailed",
                Answer::Stream(vec![
                    event("ADDED", json!([1])),
                    event("ADDED", json!({"metadata": {"name": "x"}})),
                    Piece::Text("{\"type\":\"ADDED\",\"object\":tru}\n"),
                    event("ADDED", bad.clone()),
                    event("ADDED", good("a", "6")),
                    initial_end("9"),
                    event("NEWS", json!({})),
                    event("DELETED", good("a", "10")),
                    Piece::Text("{\"type\":\"ADD"),
                ]),
            ),
            rest("GET watch=true resourceVersion=10&"),
        ],
    )
    .end()
    .await;
    assert_eq!(told, "+a synced -a");
    assert_eq!(counters.bad_objects.get(), 4);
    assert_eq!(requests.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn failures_are_waited_out_longer_and_longer_and_retry_after_is_obeyed() {
    let (told, requests, _) = Following::kind(
        "Node",
        vec![
            step(EVERYTHING, Answer::Break),
            step(EVERYTHING, refusal(500, "InternalError")),
            step(EVERYTHING, refusal(403, "Forbidden")),
            step(EVERYTHING, Answer::RetryAfter(429, 17)),
            step(EVERYTHING, Answer::Silence),
            step(EVERYTHING, Answer::Stream(vec![initial_end("5"), Piece::Break])),
            step("GET resourceVersion=5&", Answer::Break),
            rest("GET resourceVersion=5&"),
        ],
    )
    .end()
    .await;
    assert_eq!(told, "synced");
    let waits: Vec<f64> =
        requests.windows(2).map(|pair| (pair[1].at - pair[0].at).as_secs_f64()).collect();
    assert!((0.8..1.6).contains(&waits[0]), "{waits:?}");
    assert!((1.6..3.2).contains(&waits[1]), "{waits:?}");
    assert!((3.2..6.4).contains(&waits[2]), "{waits:?}");
    assert!((17.0..17.1).contains(&waits[3]), "{waits:?}");
    assert!((36.4..42.9).contains(&waits[4]), "30 s without an answer: {waits:?}");
    assert!(waits[5] < 0.1, "a watch that had begun well is resumed at once: {waits:?}");
    assert!((0.8..1.6).contains(&waits[6]), "success starts the waits anew: {waits:?}");
}

#[tokio::test(start_paused = true)]
async fn a_silent_watch_is_opened_anew_at_the_same_place() {
    let (told, requests, counters) = Following::kind(
        "Node",
        vec![
            step(EVERYTHING, Answer::Stream(vec![initial_end("5"), Piece::Silence])),
            step("GET resourceVersion=5&", Answer::Stream(vec![bookmark("8"), Piece::Silence])),
            rest("GET resourceVersion=8&"),
        ],
    )
    .end()
    .await;
    assert_eq!(told, "synced");
    assert_eq!(counters.lists.get(), 1);
    assert_eq!(requests[1].at.as_secs(), 90);
    assert_eq!(requests[2].at.as_secs(), 180);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_quietly_after_its_time_is_no_failure() {
    let quiet = || Answer::Stream(vec![Piece::Wait(SECOND * 60)]);
    let (_, requests, _) = Following::kind(
        "Node",
        vec![
            step(EVERYTHING, Answer::Stream(vec![initial_end("5"), Piece::Wait(SECOND)])),
            step("GET resourceVersion=5&", quiet()),
            step("GET resourceVersion=5&", quiet()),
            step("GET resourceVersion=5&", quiet()),
            // A watch that ends at once is one, lest the client runs hot.
            step("GET resourceVersion=5&", Answer::Stream(vec![])),
            rest("GET resourceVersion=5&"),
        ],
    )
    .end()
    .await;
    assert_eq!(requests[4].at.as_secs(), 181);
    assert!(requests[5].at - requests[4].at >= Duration::from_millis(800));
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_the_server_does_not_have_is_as_good_as_empty() {
    let path = "GET /apis/apps/v1/statefulsets?watch=true sendInitialEvents=true";
    let (told, _, _) =
        Following::kind("StatefulSet", vec![step(path, refusal(404, "NotFound")), rest(path)])
            .end()
            .await;
    assert_eq!(told, "synced");
}

/// A server that knows lists only.
fn unstreaming() -> Step {
    step(EVERYTHING, refusal(400, "BadRequest"))
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_no_list_deletes_nothing() {
    let expired = || step("GET watch=true resourceVersion=5&", refusal(410, "Expired"));
    let no_list = |answer| step("GET /api/v1/nodes?limit=", Answer::Json(200, answer));
    let (told, _, counters) = Following::kind(
        "Node",
        vec![
            unstreaming(),
            step("GET /api/v1/nodes?limit=", list("5", "", &[node("a", "1")])),
            expired(),
            no_list(json!({})),
            no_list(json!({"kind": "Status", "status": "Success", "metadata": {}})),
            no_list(json!({"kind": "NodeList", "metadata": {}, "items": null})),
            no_list(json!("<html>down for maintenance</html>")),
            step("GET /api/v1/nodes?limit=", list("5", "", &[node("a", "1")])),
            rest("GET watch=true resourceVersion=5&"),
        ],
    )
    .end()
    .await;
    assert_eq!(told, "+a synced");
    assert_eq!(counters.lists.get(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_web_page_in_place_of_a_watch_is_a_failure_and_not_bad_objects() {
    let page = || Answer::Stream(vec![Piece::Text("<html>\n<body>login</body>\n</html>\n")]);
    let (told, requests, counters) = Following::kind(
        "Node",
        vec![
            step(EVERYTHING, page()),
            step(EVERYTHING, Answer::Stream(vec![initial_end("5"), Piece::Wait(SECOND * 2)])),
            step("GET watch=true resourceVersion=5&", page()),
            rest("GET watch=true resourceVersion=5&"),
        ],
    )
    .end()
    .await;
    assert_eq!((told.as_str(), counters.bad_objects.get()), ("synced", 0));
    for pair in [0, 2] {
        assert!(requests[pair + 1].at - requests[pair].at >= Duration::from_millis(800));
    }
}

#[tokio::test(start_paused = true)]
async fn a_busy_server_that_knows_no_initial_events_is_listed_in_the_end() {
    let busy = (0..60)
        .flat_map(|n| [event("MODIFIED", node("a", &n.to_string())), Piece::Wait(SECOND * 10)]);
    let (told, requests, _) = Following::kind(
        "Node",
        vec![
            step(EVERYTHING, Answer::Stream(busy.collect())),
            step("GET /api/v1/nodes?limit=", list("70", "", &[node("a", "69")])),
            rest("GET watch=true resourceVersion=70&"),
        ],
    )
    .end()
    .await;
    assert!(told.ends_with("+a synced"), "{told}");
    assert!(requests[1].at <= SECOND * 130, "{:?}", requests[1].at);
}

#[tokio::test(start_paused = true)]
async fn watches_that_end_at_once_are_not_opened_without_a_pause() {
    let short = |piece| Answer::Stream(vec![piece]);
    let (_, requests, counters) = Following::kind(
        "Node",
        vec![
            step(EVERYTHING, short(initial_end("5"))),
            step("GET resourceVersion=5&", short(event("ADDED", node("a", "6")))),
            step(
                "GET resourceVersion=6&",
                Answer::Stream(vec![event("ADDED", node("a", "7")), Piece::Break]),
            ),
            // Nothing new: as good as nothing.
            step("GET resourceVersion=7&", short(bookmark("8"))),
            rest("GET resourceVersion=8&"),
        ],
    )
    .end()
    .await;
    let waits: Vec<Duration> = requests.windows(2).map(|pair| pair[1].at - pair[0].at).collect();
    assert!(waits[..3].iter().all(|wait| *wait >= PAUSE && *wait < SECOND), "{waits:?}");
    assert!(waits[3] >= Duration::from_millis(800), "{waits:?}");
    assert_eq!(counters.lists.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_went_back_or_does_not_know_our_place_is_listed_again() {
    let begin = |version| {
        Answer::Stream(vec![
            event("ADDED", node("a", "3")),
            initial_end(version),
            Piece::Wait(SECOND * 2),
        ])
    };
    let (told, _, counters) = Following::kind(
        "Node",
        vec![
            step(EVERYTHING, begin("50")),
            step(
                "GET resourceVersion=50&",
                Answer::Stream(vec![event("ADDED", node("b", "20")), Piece::Silence]),
            ),
            step(EVERYTHING, begin("x/1&")),
            step("GET resourceVersion=x%2F1%26&", refusal(400, "BadRequest")),
            step(EVERYTHING, begin("21")),
            rest("GET resourceVersion=21&"),
        ],
    )
    .end()
    .await;
    assert_eq!(told, "+a synced");
    assert_eq!(counters.lists.get(), 3);
}

#[tokio::test(start_paused = true)]
async fn what_was_there_does_not_vanish_with_its_kind() {
    let path = "GET /apis/apps/v1/statefulsets?watch=true sendInitialEvents=true";
    let set = json!({"metadata": {"name": "s", "namespace": "ns", "uid": "u",
                     "resourceVersion": "3"}, "spec": {}});
    let begin = || Answer::Stream(vec![event("ADDED", set.clone()), initial_end("5")]);
    let (told, _, _) = Following::kind(
        "StatefulSet",
        vec![
            step(path, begin()),
            step("GET resourceVersion=5&", refusal(404, "NotFound")),
            step(path, refusal(404, "NotFound")),
            step(path, begin()),
            rest("GET resourceVersion=5&"),
        ],
    )
    .end()
    .await;
    assert!(told.ends_with(" synced") && !told.contains("Deleted"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_followed_when_nobody_listens() {
    let scenario = vec![step(EVERYTHING, Answer::Stream(vec![initial_end("5"), Piece::Silence]))];
    let Following { batches, task, .. } = Following::kind("Node", scenario);
    drop(batches);
    tokio::time::timeout(SECOND * 600, task).await.expect("it ends").unwrap();
}

//! The views of a scheduler that a test drives.

use std::collections::BTreeSet;
use std::sync::Arc;

use expect_test::expect;
use serde_json::{Value, json};
use steersman_api::decode::kind_row;
use steersman_api::object::ClusterObject;
use steersman_api::time::Time;
use steersman_core::{Event, FailureReason, Scheduler, Setup};
use steersman_framework::observer::Unobserved;

use super::*;
use crate::inspect::Moment;
use crate::status::StatusBoard;

fn scheduler(objects: &[(&str, Value)]) -> Scheduler {
    let registry = steersman_plugins::table::in_tree();
    let config = steersman_config::Config::default_for(&registry).expect("good defaults");
    let mut scheduler = Scheduler::new(Setup::new(&config, &registry)).expect("a scheduler").0;
    for (kind, json) in objects {
        let row = kind_row("v1", kind).expect("a kind");
        let object = row.decode(json).expect("a good object").object;
        scheduler.handle(Event::Upsert(object), Time::ZERO);
    }
    scheduler
}

fn node(name: &str) -> (&'static str, Value) {
    let allocatable = json!({"cpu": "2", "memory": "1Gi", "pods": "10"});
    ("Node", json!({"metadata": {"name": name}, "status": {"allocatable": allocatable}}))
}

fn pod(name: &str, cpu: &str, more: &Value) -> (&'static str, Value) {
    let container = json!({"name": "c", "resources": {"requests": {"cpu": cpu}}});
    let mut spec = json!({"containers": [container], "schedulerName": "default-scheduler"});
    for (key, value) in more.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    let metadata = json!({"namespace": "ns", "name": name, "uid": format!("uid-{name}")});
    ("Pod", json!({"metadata": metadata, "spec": spec}))
}

/// One pod on its way, one that fits nowhere, one gated, one not tried.
fn busy() -> Scheduler {
    let mut scheduler = scheduler(&[
        node("n1"),
        pod("placed", "500m", &json!({"nodeName": "n1"})),
        pod("a", "100m", &json!({"priority": 3})),
        pod("big", "64", &json!({"priority": 2})),
        pod("later", "100m", &json!({})),
        pod("gated", "100m", &json!({"schedulingGates": [{"name": "wait"}]})),
    ]);
    for _ in 0..2 {
        scheduler.schedule_next(Time::ZERO, &mut Unobserved).expect("a pod to try");
    }
    scheduler
}

#[test]
fn the_queue_says_where_each_pod_stands_and_why() {
    let scheduler = busy();
    let now = Time::from_start(Duration::from_millis(250));
    let moment = Moment { scheduler: &scheduler, now };
    let view = QueueView::of(moment, Limit::default());
    expect![[r#"
        active: 1
          POD       UID        PRIORITY  ATTEMPTS  KNOWN  BACKOFF  NOMINATED  WOKEN  WHY  LAST FAILURE
          ns/later  uid-later  0         0         0.2s   -        -          -      -    -
        backoff: 0
        unschedulable: 1
          POD     UID      PRIORITY  ATTEMPTS  KNOWN  BACKOFF  NOMINATED  WOKEN  WHY               LAST FAILURE
          ns/big  uid-big  2         1         0.2s   0.8s     -          -      NodeResourcesFit  -
        gated: 1
          POD       UID        PRIORITY  ATTEMPTS  KNOWN  BACKOFF  NOMINATED  WOKEN  WHY                                   LAST FAILURE
          ns/gated  uid-gated  0         0         0.2s   -        -          -      waiting for scheduling gates: [wait]  -
        in flight: 1
          POD   UID    PRIORITY  ATTEMPTS  KNOWN  BACKOFF  NOMINATED  WOKEN  WHY  LAST FAILURE
          ns/a  uid-a  3         1         0.2s   -        -          -      -    -
    "#]]
    .assert_eq(&view.text());
    let json = serde_json::to_value(&view).expect("it is plain data");
    assert_eq!(json["unschedulable"]["total"], 1);
    assert_eq!(json["unschedulable"]["items"][0]["rejectedBy"], json!(["NodeResourcesFit"]));
    assert_eq!(json["gated"]["items"][0]["pod"], "ns/gated");
}

/// A board that knows a pod of [`busy`] and why it failed.
fn knows(board: &StatusBoard, name: &str, message: &str) {
    let (kind, json) = pod(name, "1", &json!({}));
    let object = kind_row("v1", kind).expect("a kind").decode(&json).expect("a good pod").object;
    let ClusterObject::Pod(pod) = object else { panic!("not a pod") };
    board.saw(&pod, &json);
    board.failed(&pod.uid, FailureReason::SchedulerError, message);
}

#[tokio::test(start_paused = true)]
async fn the_queue_and_the_dump_tell_why_each_pod_failed_in_one_line() {
    let scheduler = busy();
    let board = Arc::new(StatusBoard::default());
    let long = format!("{}\u{1F980}|", "\u{E9}".repeat(999));
    knows(&board, "big", "0/1 nodes are available: 1 Insufficient cpu.");
    knows(&board, "later", "running Bind plugin \"B\": it says\r\nns/x  \u{1b}[2J");
    knows(&board, "a", &long);
    let inspector = Inspector::default();
    let mut desk = inspector.desk();
    desk.begin(BTreeSet::new(), &board);
    let answering = async {
        for _ in 0..2 {
            // Whoever asks is polled first.
            desk.answer(Moment { scheduler: &scheduler, now: Time::ZERO });
            tokio::task::yield_now().await;
        }
        std::future::pending::<()>().await;
    };
    let asking = async {
        let view = inspector.queue(PATIENCE, Limit::default()).await;
        (view, inspector.dump(PATIENCE, Limit::default()).await)
    };
    let (view, dump) = tokio::select! {
        biased;
        answers = asking => answers,
        () = answering => unreachable!("it never ends"),
    };
    let (view, dump) = (view.expect("an answer"), dump.expect("an answer"));
    let text = view.text();
    assert!(dump.contains(&text), "{dump}");
    let (most, in_flight) = text.split_once("in flight").expect("the last part");
    expect![[r#"
        active: 1
          POD       UID        PRIORITY  ATTEMPTS  KNOWN  BACKOFF  NOMINATED  WOKEN  WHY  LAST FAILURE
          ns/later  uid-later  0         0         0.0s   -        -          -      -    running Bind plugin "B": it says  ns/x   [2J
        backoff: 0
        unschedulable: 1
          POD     UID      PRIORITY  ATTEMPTS  KNOWN  BACKOFF  NOMINATED  WOKEN  WHY               LAST FAILURE
          ns/big  uid-big  2         1         0.0s   1.0s     -          -      NodeResourcesFit  0/1 nodes are available: 1 Insufficient cpu.
        gated: 1
          POD       UID        PRIORITY  ATTEMPTS  KNOWN  BACKOFF  NOMINATED  WOKEN  WHY                                   LAST FAILURE
          ns/gated  uid-gated  0         0         0.0s   -        -          -      waiting for scheduling gates: [wait]  -
    "#]]
    .assert_eq(most);
    let cut = format!("-      -    {}\u{1F980}\u{2026}\n", "\u{E9}".repeat(999));
    assert!(in_flight.ends_with(&cut), "{in_flight}");

    let json = serde_json::to_value(&view).expect("it is plain data");
    let first = |part: &str| json[part]["items"][0].get("lastFailure").cloned();
    assert_eq!(first("inFlight"), Some(json!(long)), "the whole of it");
    assert_eq!(first("gated"), None);
}

#[test]
fn the_cluster_says_what_is_requested_and_what_is_assumed() {
    let scheduler = busy();
    let moment = Moment { scheduler: &scheduler, now: Time::ZERO };
    let view = ClusterView::of(moment, Limit::default());
    expect![[r"
        nodes: 1
          NODE  PODS  REQUESTED  ALLOCATABLE                          TAINTS  UNSCHEDULABLE
          n1    2     cpu=600m   cpu=2000m,memory=1073741824,pods=10  0       false
        pods on nodes: 2
        assumed: 1
          POD   UID    NODE
          ns/a  uid-a  n1
    "]]
    .assert_eq(&view.text());
    let detail = NodeDetail::of(moment, &"n1".into(), Limit::default()).expect("it is known");
    let pods: Vec<&str> = detail.pod_list.items.iter().map(|pod| pod.pod.as_str()).collect();
    assert_eq!(pods, ["ns/a", "ns/placed"]);
    assert!(NodeDetail::of(moment, &"n2".into(), Limit::default()).is_none());
    let bindings = BindingsView::of(moment, Limit::default());
    assert_eq!(bindings.bindings.items[0].pod, "ns/a");
    assert_eq!(NominationsView::of(moment, Limit::default()).nominated.total, 0);
}

#[test]
fn an_answer_is_bounded_and_says_so() {
    let pods: Vec<_> = (0..7).map(|n| pod(&format!("p{n}"), "1m", &json!({}))).collect();
    let scheduler = scheduler(&pods);
    let moment = Moment { scheduler: &scheduler, now: Time::ZERO };
    let active = QueueView::of(moment, Limit::new(3)).active;
    assert_eq!((active.total, active.truncated, active.items.len()), (7, true, 3));
    let all = QueueView::of(moment, Limit::new(7)).active;
    assert_eq!((all.total, all.truncated, all.items.len()), (7, false, 7));
    assert_eq!((Limit::new(0).get(), Limit::new(usize::MAX).get()), (1, Limit::MAX));
}

#[test]
fn a_comparison_finds_what_either_side_lacks() {
    let scheduler = busy();
    let moment = Moment { scheduler: &scheduler, now: Time::ZERO };
    let pod = |name: &str, node: Option<&str>| {
        (format!("uid-{name}"), (format!("ns/{name}"), node.map(str::to_owned)))
    };
    let mut listed = Listed {
        nodes: ["n1".to_owned()].into(),
        pods: [
            pod("placed", Some("n1")),
            // Bound, or not bound yet: both are possible now.
            pod("a", None),
            pod("big", None),
            pod("later", None),
            pod("gated", None),
        ]
        .into(),
    };
    assert!(compare(moment, &listed).is_empty(), "{}", compare(moment, &listed));
    listed.nodes = ["n2".to_owned()].into();
    listed.pods.remove("uid-placed");
    listed.pods.extend([pod("lost", None), pod("stray", Some("n1"))]);
    let difference = compare(moment, &listed);
    assert_eq!(
        difference.to_string(),
        "nodes that the scheduler does not know: n2; nodes that only the scheduler knows: n1; pods \
         that the scheduler does not know, or not there: ns/lost, ns/stray; pods that only the \
         scheduler knows on a node: ns/placed"
    );
}

#[tokio::test(start_paused = true)]
async fn whoever_asks_gets_an_answer_or_is_told_why_not() {
    let inspector = Inspector::default();
    let patience = Duration::from_secs(2);
    let count = |moment: Moment<'_>| moment.scheduler.placed_count();
    assert_eq!(inspector.answer(patience, count).await, Err(AskError::NotRunning));
    assert_eq!(Watchdog::new(inspector.clone(), patience).check().await, Ok(()));

    let mut desk = inspector.desk();
    assert_eq!(inspector.answer(patience, count).await, Err(AskError::Busy(patience)));
    let busy_for = Watchdog::new(inspector.clone(), patience).check().await;
    assert_eq!(busy_for, Err(AskError::Busy(patience)));
    let scheduler = busy();
    let moment = Moment { scheduler: &scheduler, now: Time::ZERO };
    let answering = async {
        tokio::task::yield_now().await;
        desk.answer(moment);
    };
    let (answer, ()) = tokio::join!(inspector.answer(patience, count), answering);
    assert_eq!(answer, Ok(2));
    drop(desk);
    assert_eq!(inspector.answer(patience, count).await, Err(AskError::NotRunning));
}

#[test]
fn readiness_names_what_is_missing() {
    let inspector = Inspector::default();
    let sync = Sync::new(inspector.clone());
    assert_eq!(sync.check(), Err(Unsynced::NotStarted));
    assert_eq!(sync.clone().ready_on_standby().check(), Ok(()));
    let desk = inspector.desk();
    desk.begin(["pods", "nodes"].into(), &Arc::default());
    let error = sync.check().expect_err("nothing is known");
    assert_eq!(error.to_string(), "not known completely yet: nodes, pods");
    assert_eq!(desk.synced("nodes"), 1);
    assert_eq!(sync.check(), Err(Unsynced::Missing(vec!["pods"])));
    assert_eq!(sync.clone().ready_on_standby().check(), Err(Unsynced::Missing(vec!["pods"])));
    assert_eq!(desk.synced("pods"), 0);
    assert_eq!(desk.synced("pods"), 0, "it is synced anew after an outage");
    assert_eq!(sync.check(), Ok(()));
    drop(desk);
    assert_eq!(sync.check(), Err(Unsynced::NotStarted));
}

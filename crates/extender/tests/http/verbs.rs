//! What each verb sends, and what becomes of the answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::{Value, json};
use steersman_api::pod::PodInfo;
use steersman_config::config::{ExtenderConfig, ManagedResource};
use steersman_extender::{Options, Permission, Proxies};
use steersman_framework::extender::{Filtered, NodeVictims, Priority, Roles, Wants};
use steersman_framework::verdict::Preemption;
use steersman_testing::pod;

use crate::lab::{Lab, a_pod, config, nodes, whole_pod};
use crate::logged::Logged;
use crate::server::{Does, Server};

/// The body of the only request so far.
#[track_caller]
fn body(server: &Server) -> Value {
    let asked = server.asked();
    assert_eq!(asked.len(), 1);
    serde_json::from_str(&asked[0].body).expect("JSON")
}

fn says(answer: Value) -> Does {
    Does::Says(answer.to_string())
}

#[test]
fn filter_sends_whole_nodes_and_reads_nodes() {
    let lab = Lab::new();
    let (extender, server) = lab.facing(says(json!({
        "nodes": {"items": [{"metadata": {"name": "n2", "labels": {"a": "b"}}}]},
        "nodeNames": ["n1"],
        "failedNodes": {"n1": "too small"},
        "FailedAndUnresolvableNodes": {"n3": "too old"},
        "Error": "",
    })));
    let three = nodes(&["n1", "n2", "n3"]);
    let answer = extender.filter(&a_pod(), &three.iter().collect::<Vec<_>>());
    let expected = Filtered {
        passed: vec!["n2".into()],
        failed: [("n1".into(), "too small".to_owned())].into(),
        failed_for_good: [("n3".into(), "too old".to_owned())].into(),
    };
    assert_eq!(answer, Ok(expected), "names count only where names were sent");

    let sent = body(&server);
    assert_eq!(sent["NodeNames"], Value::Null);
    assert_eq!(sent["Pod"]["metadata"]["name"], "p");
    assert_eq!(sent["Pod"]["spec"]["containers"][0]["name"], "c");
    let items = sent["Nodes"]["items"].as_array().expect("nodes");
    assert_eq!(items.len(), 3);
    assert_eq!(items[2]["status"]["allocatable"]["memory"], "8Gi");
    let head = server.asked()[0].head.clone();
    assert!(head.starts_with("post /sample/filter http/1.1\r\n"), "{head}");
    assert!(head.contains("content-type: application/json\r\n"), "{head}");
    assert!(!head.contains("traceparent"), "{head}");
}

#[test]
fn filter_sends_names_to_those_who_know_the_nodes() {
    let lab = Lab::new();
    let server = lab.server(says(json!({"NodeNames": ["n1", "n1"]})));
    let knowing = ExtenderConfig { node_cache_capable: true, ..config(server.port) };
    let extender = lab.connect(&knowing).expect("an extender");
    let two = nodes(&["n1", "n2"]);
    let answer = extender.filter(&a_pod(), &two.iter().collect::<Vec<_>>()).expect("an answer");
    assert_eq!(answer.passed, ["n1", "n1"]);
    let sent = body(&server);
    assert_eq!((&sent["Nodes"], &sent["NodeNames"]), (&Value::Null, &json!(["n1", "n2"])));

    // Those may answer with nodes nevertheless.
    let server = lab.server(says(json!({"Nodes": {"items": [{"metadata": {"name": "n2"}}]}})));
    let knowing = ExtenderConfig { node_cache_capable: true, ..config(server.port) };
    let extender = lab.connect(&knowing).expect("an extender");
    let answer = extender.filter(&a_pod(), &two.iter().collect::<Vec<_>>()).expect("an answer");
    assert_eq!(answer.passed, ["n2"]);
}

#[test]
fn answer_without_nodes_leaves_none() {
    let lab = Lab::new();
    for answer in ["{}", "null", r#"{"NodeNames":["n1"]}"#] {
        let (extender, _server) = lab.facing(Does::Says(answer.to_owned()));
        let one = nodes(&["n1"]);
        let answer = extender.filter(&a_pod(), &one.iter().collect::<Vec<_>>());
        assert_eq!(answer, Ok(Filtered::default()));
    }
}

#[test]
fn error_in_an_answer_is_told_as_it_is() {
    let lab = Lab::new();
    let (extender, _server) = lab.facing(says(json!({"Error": "the database is down"})));
    let one = nodes(&["n1"]);
    let answer = extender.filter(&a_pod(), &one.iter().collect::<Vec<_>>());
    assert_eq!(answer.unwrap_err().to_string(), "the database is down");
    let (pod, node) = (a_pod(), "n1".into());
    let bound = lab.block_on(extender.bind(&pod, &node));
    assert_eq!(bound.unwrap_err().to_string(), "the database is down");
}

#[test]
fn prioritize_reads_a_list_of_hosts() {
    let lab = Lab::new();
    let answer = json!([{"Host": "n1", "Score": 7}, {"host": "stranger", "score": -3}]);
    let (extender, server) = lab.facing(says(answer));
    assert_eq!(extender.weight(), 2);
    let two = nodes(&["n1", "n2"]);
    let (pod, two): (_, Vec<_>) = (a_pod(), two.iter().collect());
    let answer = extender.prioritize(&pod, &two).wait().expect("an answer");
    let priority = |node: &str, priority| Priority { node: node.into(), priority };
    assert_eq!(answer, [priority("n1", 7), priority("stranger", -3)]);
    assert!(server.asked()[0].head.starts_with("post /sample/prioritize"));
    assert_eq!(body(&server)["Nodes"]["items"].as_array().map(Vec::len), Some(2));
}

#[test]
fn all_prioritizers_are_asked_before_one_answers() {
    let lab = Lab::new();
    let (slow, slow_server) = lab.facing(Does::Waits);
    let (quick, quick_server) = lab.facing(says(json!([{"Host": "n1", "Score": 1}])));
    let one = nodes(&["n1"]);
    let (pod, one): (_, Vec<_>) = (a_pod(), one.iter().collect());
    let _slow = slow.prioritize(&pod, &one);
    assert_eq!(quick.prioritize(&pod, &one).wait().map(|it| it.len()), Ok(1));
    assert_eq!((slow_server.connections() <= 1, quick_server.connections()), (true, 1));
}

fn candidate(node: &str, victims: &[Arc<PodInfo>], budgets_violated: usize) -> Preemption {
    Preemption { node: node.into(), victims: victims.to_vec(), budgets_violated }
}

#[test]
fn preempt_sends_whole_victims_and_reads_uids() {
    let lab = Lab::new();
    let (extender, server) = lab.facing(says(json!({"NodeNameToMetaVictims": {
        "n1": {"Pods": [{"UID": "uid-default-b"}], "NumPDBViolations": 1}, "n2": null,
    }})));
    let victims = ["a", "b"].map(|name| whole_pod(&pod(name).on("n1").json()));
    let answer = extender.preempt(&a_pod(), &[candidate("n1", &victims, 2)]);
    let said = |node: &str, victims: &[&str], budgets_violated| NodeVictims {
        node: node.into(),
        victims: victims.iter().map(|uid| (*uid).into()).collect(),
        budgets_violated,
    };
    assert_eq!(answer, Ok(vec![said("n1", &["uid-default-b"], 1), said("n2", &[], 0)]));
    let sent = body(&server);
    assert_eq!(sent["NodeNameToMetaVictims"], Value::Null);
    let sent = &sent["NodeNameToVictims"]["n1"];
    assert_eq!(sent["NumPDBViolations"], 2);
    assert_eq!(sent["Pods"][1]["metadata"]["name"], "b");
    assert_eq!(sent["Pods"][1]["spec"]["nodeName"], "n1");
}

#[test]
fn preempt_sends_uids_to_those_who_know_the_pods() {
    let lab = Lab::new();
    let server = lab.server(says(json!({"nodenametometavictims": {}})));
    let knowing = ExtenderConfig { node_cache_capable: true, ..config(server.port) };
    let extender = lab.connect(&knowing).expect("an extender");
    // Nobody keeps the whole of pods on nodes for these.
    let victims = [pod("a").on("n1").build()];
    let answer = extender.preempt(&a_pod(), &[candidate("n1", &victims, 0)]);
    assert_eq!(answer, Ok(vec![]));
    let sent = body(&server);
    assert_eq!(sent["NodeNameToVictims"], Value::Null);
    assert_eq!(
        sent["NodeNameToMetaVictims"],
        json!({"n1": {"Pods": [{"UID": "uid-default-a"}], "NumPDBViolations": 0}})
    );
}

#[test]
fn errors_of_preempt_are_left_to_the_core_to_log_and_name_the_extender_unless_ignorable() {
    let lab = Lab::new();
    for ignorable in [false, true] {
        let (logged, server) = (Logged::default(), lab.server(says(json!([]))));
        let config = ExtenderConfig { ignorable, ..config(server.port) };
        let extender = lab.connect(&config).expect("an extender");
        let answer = tracing::subscriber::with_default(logged.clone(), || {
            extender.preempt(&a_pod(), &[candidate("n1", &[], 0)])
        });
        let error = answer.expect_err("a list is no answer").0;
        assert_eq!(*logged.0.lock(), [""; 0], "it would be there twice");
        assert_eq!(error.contains(extender.name()), !ignorable, "{error}");
    }
}

#[test]
fn bind_sends_who_goes_where() {
    let lab = Lab::new();
    for answer in ["{}", r#"{"Error":""}"#, "null"] {
        let (extender, server) = lab.facing(Does::Says(answer.to_owned()));
        let (pod, node) = (a_pod(), "n1".into());
        assert_eq!(lab.block_on(extender.bind(&pod, &node)), Ok(()));
        assert_eq!(
            body(&server),
            json!({"PodName": "p", "PodNamespace": "default", "PodUID": "uid-default-p", "Node": "n1"})
        );
    }
}

#[test]
fn nothing_is_bound_by_who_must_not_any_more() {
    let lab = Lab::new();
    let server = lab.server(says(json!({})));
    let may = Arc::new(AtomicBool::new(true));
    let asked = may.clone();
    let permission = Permission::new(move || asked.load(Ordering::SeqCst));
    let options = Options { may_bind: Some(permission), ..options() };
    let extender = lab.connect_with(&config(server.port), &options).expect("an extender");
    let (pod, node) = (a_pod(), "n1".into());
    assert_eq!(lab.block_on(extender.bind(&pod, &node)), Ok(()));
    // Permission goes between the decision and the request.
    let binding = extender.bind(&pod, &node);
    may.store(false, Ordering::SeqCst);
    let error = lab.block_on(binding).expect_err("it must not");
    assert!(error.0.ends_with("not sent: this process must not write any more"), "{error}");
    // Questions are none of it.
    let one = nodes(&["n1"]);
    extender.filter(&pod, &one.iter().collect::<Vec<_>>()).expect("an answer");
    let binds = server.asked().iter().filter(|asked| asked.head.contains("/bind")).count();
    assert_eq!(binds, 1);
}

#[test]
fn a_binding_that_waits_to_be_sent_is_given_up_when_it_must_not_be_sent_any_more() {
    let lab = Lab::new();
    let server = lab.server(says(json!({})));
    // Yes when it begins, and no when there is a connection.
    let n_asked = Arc::new(AtomicUsize::new(0));
    let count = n_asked.clone();
    let permission = Permission::new(move || count.fetch_add(1, Ordering::SeqCst) < 2);
    let options = Options { may_bind: Some(permission), ..options() };
    let extender = lab.connect_with(&config(server.port), &options).expect("an extender");
    let error = lab.block_on(extender.bind(&a_pod(), &"n1".into())).expect_err("it must not");
    assert!(error.0.contains("given up before an answer"), "{error}");
    assert_eq!(server.asked().len(), 0, "it was not sent");
}

fn options() -> Options {
    Options { proxies: Proxies::None, ..Options::default() }
}

#[test]
fn connections_are_kept() {
    let lab = Lab::new();
    let (extender, server) = lab.facing(says(json!({})));
    let one = nodes(&["n1"]);
    for _ in 0..5 {
        extender.filter(&a_pod(), &one.iter().collect::<Vec<_>>()).expect("an answer");
    }
    // A connection may take a moment until it is free again.
    assert_eq!(server.asked().len(), 5);
    assert!(server.connections() <= 3, "{}", server.connections());
}

#[test]
fn trace_context_is_sent_along_when_there_is_one() {
    let lab = Lab::new();
    let server = lab.server(says(json!({})));
    let one = nodes(&["n1"]);
    type Trace = fn() -> Option<String>;
    let traces: [(Trace, bool); 3] = [
        (|| Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".to_owned()), true),
        (|| None, false),
        (|| Some("no\nheader".to_owned()), false),
    ];
    for (trace, expected) in traces {
        let options = Options { traceparent: Some(trace), ..Options::default() };
        let extender = lab.connect_with(&config(server.port), &options).expect("an extender");
        extender.filter(&a_pod(), &one.iter().collect::<Vec<_>>()).expect("an answer");
        let head = server.asked().pop().expect("a request").head;
        assert_eq!(head.contains("traceparent: 00-0af7651916cd43dd"), expected, "{head}");
    }
}

#[test]
fn whole_objects_are_wanted_only_where_they_are_sent() {
    let lab = Lab::new();
    let verbs = |filter: bool, preempt: bool, node_cache_capable: bool| {
        let verb = |there: bool| there.then(|| "verb".to_owned());
        let config = ExtenderConfig {
            filter_verb: verb(filter),
            prioritize_verb: None,
            preempt_verb: verb(preempt),
            node_cache_capable,
            ..config(1)
        };
        lab.connect(&config).expect("an extender").wants()
    };
    let wants = |placed_pods, nodes| Wants { pending_pods: true, placed_pods, nodes };
    assert_eq!(verbs(true, true, false), wants(true, true));
    assert_eq!(verbs(true, true, true), wants(false, false));
    assert_eq!(verbs(true, false, false), wants(false, true));
    assert_eq!(verbs(false, true, false), wants(true, false));
    assert_eq!(verbs(false, false, false), wants(false, false));
}

#[test]
fn what_is_not_kept_whole_is_said() {
    let lab = Lab::new();
    let (extender, server) = lab.facing(says(json!({})));
    let error = extender.filter(&pod("p").build(), &[]).unwrap_err().to_string();
    assert!(error.ends_with("/sample/\": the whole of pod default/p is not known"), "{error}");
    assert!(server.asked().is_empty());
}

#[test]
fn roles_interest_and_the_rest_come_from_the_configuration() {
    let lab = Lab::new();
    let gpu = ManagedResource { name: "example.com/gpu".to_owned(), ignored_by_scheduler: true };
    let config = ExtenderConfig {
        bind_verb: None,
        preempt_verb: None,
        ignorable: true,
        managed_resources: vec![gpu],
        ..config(1)
    };
    let extender = lab.connect(&config).expect("an extender");
    assert_eq!(extender.roles(), Roles::FILTER | Roles::PRIORITIZE);
    assert!(extender.is_ignorable());
    assert!(!extender.is_interested(&a_pod()));
    let wants_gpu = whole_pod(&pod("p").request("example.com/gpu", "1").json());
    assert!(extender.is_interested(&wants_gpu));
    assert_eq!(extender.name(), "http://127.0.0.1:1/sample/");
}

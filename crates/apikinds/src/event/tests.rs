use expect_test::expect;
use jiff::Timestamp;
use serde_json::{Value, json};
use steersman_apimachinery::rules::{Part, Rules};

use super::{CoreEvents, Events};
use crate::cluster::{Cluster, lines};

fn event() -> Value {
    json!({
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "a.1", "namespace": "ns"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "series": {"count": 3, "lastObservedTime": "2026-01-01T00:00:50.000000Z"},
        "regarding": {"kind": "Pod", "namespace": "ns", "name": "a", "uid": "u"},
        "reason": "FailedScheduling",
        "action": "Scheduling",
        "type": "Warning",
        "note": "0/1 nodes are available",
        "reportingController": "default-scheduler",
        "reportingInstance": "default-scheduler-host",
        "deprecatedSource": {"component": "x"},
        "deprecatedCount": 2,
    })
}

#[test]
fn both_forms_hold_the_same() {
    let stored = Events.to_storage(event());
    expect![[r#"{"action":"Scheduling","apiVersion":"v1","count":2,"eventTime":"2026-01-01T00:00:00.000000Z","involvedObject":{"kind":"Pod","name":"a","namespace":"ns","uid":"u"},"kind":"Event","message":"0/1 nodes are available","metadata":{"name":"a.1","namespace":"ns"},"reason":"FailedScheduling","reportingComponent":"default-scheduler","reportingInstance":"default-scheduler-host","series":{"count":3,"lastObservedTime":"2026-01-01T00:00:50.000000Z"},"source":{"component":"x"},"type":"Warning"}"#]]
        .assert_eq(&stored.to_string());
    assert_eq!(Events.from_storage(&stored), event());
}

#[test]
fn fields_are_selected_by_the_names_of_either_group() {
    let stored = Events.to_storage(event());
    let cases = [
        ("involvedObject.name", "regarding.name", "a"),
        ("involvedObject.fieldPath", "regarding.fieldPath", ""),
        ("reportingComponent", "reportingController", "default-scheduler"),
        ("reason", "reason", "FailedScheduling"),
    ];
    for (core, newer, value) in cases {
        assert_eq!(CoreEvents.selectable_field(&stored, core).as_deref(), Some(value), "{core}");
        assert_eq!(Events.selectable_field(&stored, newer).as_deref(), Some(value), "{newer}");
        assert_eq!(Events.selectable_field(&event(), newer).as_deref(), Some(value), "{newer}");
    }
    assert_eq!(CoreEvents.selectable_field(&stored, "source").as_deref(), Some("x"));
    assert_eq!(CoreEvents.selectable_field(&stored, "message"), None);
    assert_eq!(Events.selectable_field(&stored, "involvedObject.name"), None);
}

#[test]
fn rows_are_those_of_kubectl() {
    let now: Timestamp = "2026-01-01T00:01:00Z".parse().expect("a time");
    let row = |rules: &dyn Rules, event: &Value| Value::from(rules.cells(event, now)).to_string();
    let expected = expect![[
        r#"["10s","Warning","FailedScheduling","pod/a","","x, default-scheduler-host","0/1 nodes are available","60s",3,"a.1"]"#
    ]];
    expected.assert_eq(&row(&CoreEvents, &Events.to_storage(event())));
    expected.assert_eq(&row(&Events, &event()));
    let old = json!({
        "metadata": {"name": "b"}, "involvedObject": {"kind": "Node"}, "count": 7,
        "source": {"component": "kubelet", "host": "n1"}, "message": " text \n",
        "lastTimestamp": "2026-01-01T00:00:58Z",
    });
    expect![[r#"["2s","","","node","","kubelet, n1","text","<unknown>",7,"b"]"#]]
        .assert_eq(&row(&CoreEvents, &old));
}

#[test]
fn new_events_say_who_and_what_and_when() {
    let cluster = Cluster::default();
    let problems = |event: Value| -> String {
        let mut stored = Events.to_storage(event);
        match CoreEvents.prepare_create(&mut stored, &cluster.request("events.k8s.io", "events")) {
            Ok(()) => lines(&CoreEvents.validate(&stored, None, Part::Main)),
            Err(error) => error.message,
        }
    };
    assert!(problems(event()).is_empty());
    let mut bad = event();
    for field in ["eventTime", "action", "reportingController"] {
        bad[field] = Value::Null;
    }
    expect![[r#"Event.events.k8s.io "a.1" is invalid: [eventTime: Required value, reportingController: Required value, action: Required value]"#]].assert_eq(&problems(bad));
    let mut elsewhere = event();
    elsewhere["regarding"]["namespace"] = "other".into();
    expect![[
        r#"involvedObject.namespace: Invalid value: "other": does not match event.namespace"#
    ]]
    .assert_eq(&problems(elsewhere));
    let of_node = json!({
        "metadata": {"namespace": "default"}, "involvedObject": {"kind": "Node", "name": "n"},
    });
    assert!(CoreEvents.validate(&of_node, None, Part::Main).is_empty());
}

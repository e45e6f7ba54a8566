use expect_test::{Expect, expect};
use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{apply, update};
use crate::error::ApiError;
use crate::schema::Schema;
use crate::testing::{any_json, drop_empty};

const DEPLOYMENT: &str = "io.k8s.api.apps.v1.Deployment";
const POD: &str = "io.k8s.api.core.v1.Pod";
const CONFIG_MAP: &str = "io.k8s.api.core.v1.ConfigMap";
const SERVICE: &str = "io.k8s.api.core.v1.Service";

/// One object, and requests to it one second after the other.
struct Bench {
    kind: &'static str,
    api_version: &'static str,
    live: Option<Value>,
    second: i64,
}

impl Bench {
    fn new(kind: &'static str, api_version: &'static str) -> Self {
        Self { kind, api_version, live: None, second: 0 }
    }

    fn now(&mut self) -> Timestamp {
        self.second += 1;
        Timestamp::from_second(self.second).expect("a time")
    }

    fn write(&mut self, manager: &str, subresource: &str, object: Value) -> &mut Self {
        let now = self.now();
        let mut new = object;
        Schema::kubernetes().prune(self.kind, &mut new);
        update(
            Schema::kubernetes(),
            self.kind,
            self.api_version,
            self.live.as_ref(),
            &mut new,
            manager,
            subresource,
            now,
        );
        self.live = Some(new);
        self
    }

    /// A write of the stored object with one field set.
    fn set(&mut self, manager: &str, subresource: &str, at: &str, to: Value) -> &mut Self {
        let mut object = self.live.clone().expect("an object");
        let (parent, name) = at.rsplit_once('/').expect("a pointer");
        object.pointer_mut(parent).expect("a parent")[name] = to;
        self.write(manager, subresource, object)
    }

    fn try_apply(&mut self, manager: &str, config: &Value, force: bool) -> Result<(), ApiError> {
        let now = self.now();
        let live = self.live.as_ref();
        let schema = Schema::kubernetes();
        let new = apply(schema, self.kind, live, config, manager, force, "", now)?;
        self.live = Some(new);
        Ok(())
    }

    #[track_caller]
    fn apply(&mut self, manager: &str, config: Value) -> &mut Self {
        self.try_apply(manager, &config, false).expect("applies");
        self
    }

    #[track_caller]
    fn refused(&mut self, manager: &str, config: Value) -> ApiError {
        self.try_apply(manager, &config, false).expect_err("refused")
    }

    /// The object without what identifies it.
    fn content(&self) -> Value {
        let mut object = self.live.clone().expect("an object");
        if let Some(fields) = object.as_object_mut() {
            fields.retain(|name, _| !matches!(name.as_str(), "kind" | "apiVersion"));
        }
        if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
            metadata
                .retain(|name, _| !matches!(name.as_str(), "name" | "namespace" | "managedFields"));
        }
        object
    }

    /// One line per entry: operation, manager, subresource, time, fields.
    fn managers(&self) -> String {
        let live = self.live.as_ref().expect("an object");
        let entries = live.pointer("/metadata/managedFields").and_then(Value::as_array);
        let text = |entry: &Value, name: &str| entry[name].as_str().unwrap_or_default().to_owned();
        let mut lines = String::new();
        for entry in entries.into_iter().flatten() {
            let time = text(entry, "time").replace("1970-01-01T00:00:", "").replace('Z', "");
            lines.push_str(&format!(
                "{} {} {} {} {}\n{}\n",
                text(entry, "operation"),
                text(entry, "manager"),
                text(entry, "apiVersion"),
                text(entry, "subresource"),
                time,
                entry["fieldsV1"],
            ));
        }
        lines
    }

    #[track_caller]
    fn check_managers(&self, expected: Expect) {
        expected.assert_eq(&self.managers());
    }
}

fn deployment(spec: Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": "web", "namespace": "default" }, "spec": spec,
    })
}

fn config_map(data: Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "c", "namespace": "default" }, "data": data,
    })
}

fn containers(list: Value) -> Value {
    deployment(json!({ "template": { "spec": { "containers": list } } }))
}

#[test]
fn creating_owns_what_is_given() {
    let mut bench = Bench::new(DEPLOYMENT, "apps/v1");
    let mut object = deployment(json!({
        "replicas": 1,
        "selector": { "matchLabels": { "app": "web" } },
        "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxSurge": "25%" } },
        "template": {
            "metadata": { "labels": { "app": "web" } },
            "spec": {
                "containers": [{
                    "name": "web", "image": "nginx", "resources": {},
                    "ports": [{ "containerPort": 80 }],
                    "env": [{ "name": "A", "value": "1" }],
                }],
                "tolerations": [{ "key": "a" }],
                "nodeSelector": { "zone": "a" },
            },
        },
    }));
    object["metadata"]["labels"] = json!({ "app": "web" });
    object["metadata"]["finalizers"] = json!(["x.io/y"]);
    object["metadata"]["uid"] = json!("u");
    object["status"] = json!({ "replicas": 1 });
    bench.write("kubectl-create", "", object);
    bench.check_managers(expect![[r#"
        Update kubectl-create apps/v1  01
        {"f:metadata":{"f:finalizers":{".":{},"v:\"x.io/y\"":{}},"f:labels":{".":{},"f:app":{}}},"f:spec":{"f:replicas":{},"f:selector":{},"f:strategy":{"f:rollingUpdate":{".":{},"f:maxSurge":{}},"f:type":{}},"f:template":{"f:metadata":{"f:labels":{".":{},"f:app":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:env":{".":{},"k:{\"name\":\"A\"}":{".":{},"f:name":{},"f:value":{}}},"f:image":{},"f:name":{},"f:ports":{".":{},"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}}},"f:resources":{}}},"f:nodeSelector":{},"f:tolerations":{}}}}}
    "#]]);
}

#[test]
fn a_write_takes_what_it_changes_and_nothing_else() {
    let mut bench = Bench::new(DEPLOYMENT, "apps/v1");
    bench
        .write("a", "", deployment(json!({ "replicas": 1, "paused": true, "minReadySeconds": 1 })))
        .set("b", "", "/spec/replicas", json!(2))
        .set("b", "", "/metadata/labels", json!({ "x": "y" }))
        .set("status-writer", "status", "/status", json!({ "replicas": 2 }));
    bench.check_managers(expect![[r#"
        Update a apps/v1  01
        {"f:spec":{"f:minReadySeconds":{},"f:paused":{}}}
        Update b apps/v1  03
        {"f:metadata":{"f:labels":{".":{},"f:x":{}}},"f:spec":{"f:replicas":{}}}
        Update status-writer apps/v1 status 04
        {"f:status":{"f:replicas":{}}}
    "#]]);
    // What is gone has no owner.
    let mut object = bench.live.clone().expect("an object");
    object["metadata"].as_object_mut().expect("metadata").remove("labels");
    object["spec"].as_object_mut().expect("a spec").remove("paused");
    bench.write("c", "", object);
    bench.check_managers(expect![[r#"
        Update a apps/v1  01
        {"f:spec":{"f:minReadySeconds":{}}}
        Update b apps/v1  03
        {"f:spec":{"f:replicas":{}}}
        Update status-writer apps/v1 status 04
        {"f:status":{"f:replicas":{}}}
    "#]]);
}

#[test]
fn a_write_without_changes_leaves_the_entries_alone() {
    let mut bench = Bench::new(CONFIG_MAP, "v1");
    bench.write("a", "", config_map(json!({ "x": "1" })));
    let before = bench.live.clone();
    bench.write("b", "", before.clone().expect("an object"));
    assert_eq!(bench.live, before);
}

#[test]
fn clients_may_leave_the_entries_out_replace_or_delete_them() {
    let mut bench = Bench::new(CONFIG_MAP, "v1");
    bench.write("a", "", config_map(json!({ "x": "1" })));
    let before = bench.managers();
    bench.write("a", "", config_map(json!({ "x": "1" })));
    assert_eq!(bench.managers(), before, "left out");
    bench.set("a", "", "/metadata/managedFields", json!([{ "operation": "Paint" }]));
    assert_eq!(bench.managers(), before, "not valid");
    bench.set(
        "a",
        "",
        "/metadata/managedFields",
        json!([{
            "manager": "z", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1",
            "fieldsV1": { "f:data": { "f:x": {} } },
        }]),
    );
    bench.check_managers(expect![[r#"
        Apply z v1  
        {"f:data":{"f:x":{}}}
    "#]]);
    bench.set("a", "", "/metadata/managedFields", json!([{}]));
    assert_eq!(bench.managers(), "", "deleted");
    bench.set("a", "", "/data/x", json!("2"));
    assert_eq!(bench.managers(), "", "and not taken up again");
}

#[test]
fn many_writers_end_up_in_one_entry() {
    let mut bench = Bench::new(CONFIG_MAP, "v1");
    bench.write("w0", "", config_map(json!({ "k0": "" })));
    for writer in 1..14 {
        bench.set(&format!("w{writer}"), "", &format!("/data/k{writer}"), json!(""));
    }
    let managers = bench.managers();
    assert_eq!(managers.lines().count(), 20, "{managers}");
    assert!(managers.starts_with("Update ancient-changes v1  05\n"), "{managers}");
    assert!(
        managers
            .contains(r#"{"f:data":{".":{},"f:k0":{},"f:k1":{},"f:k2":{},"f:k3":{},"f:k4":{}}}"#),
        "{managers}"
    );
}

#[test]
fn applying_creates_and_owns_what_is_listed() {
    let mut bench = Bench::new(DEPLOYMENT, "apps/v1");
    let mut config = containers(json!([{ "name": "a", "image": "1", "resources": {} }]));
    config["metadata"]["labels"] = json!({ "x": "y" });
    bench.apply("me", config);
    bench.check_managers(expect![[r#"
        Apply me apps/v1  01
        {"f:metadata":{"f:labels":{"f:x":{}}},"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"a\"}":{".":{},"f:image":{},"f:name":{},"f:resources":{}}}}}}}
    "#]]);
}

#[test]
fn applying_again_removes_what_is_not_listed_any_more() {
    let mut bench = Bench::new(CONFIG_MAP, "v1");
    bench
        .apply("me", config_map(json!({ "a": "1", "b": "2" })))
        .set("other", "", "/data/c", json!("3"))
        .apply("me", config_map(json!({ "a": "1" })));
    assert_eq!(bench.content(), json!({ "data": { "a": "1", "c": "3" }, "metadata": {} }));
    bench.apply("me", json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "c", "namespace": "default" },
    }));
    assert_eq!(bench.content(), json!({ "data": { "c": "3" }, "metadata": {} }));
    bench.check_managers(expect![[r#"
        Update other v1  02
        {"f:data":{"f:c":{}}}
    "#]]);
}

#[test]
fn applied_list_entries_go_unless_somebody_else_owns_them() {
    let mut bench = Bench::new(DEPLOYMENT, "apps/v1");
    bench
        .apply(
            "me",
            containers(json!([{ "name": "a", "image": "1" }, { "name": "b", "image": "1" }])),
        )
        .apply("you", containers(json!([{ "name": "b", "env": [{ "name": "X", "value": "1" }] }])))
        .apply("me", containers(json!([{ "name": "c", "image": "1" }])));
    assert_eq!(
        bench.content()["spec"]["template"]["spec"]["containers"],
        json!([{ "name": "b", "env": [{ "name": "X", "value": "1" }] }, { "name": "c", "image": "1" }])
    );
    bench.apply("you", containers(json!([])));
    assert_eq!(
        bench.content()["spec"]["template"]["spec"]["containers"],
        json!([{ "name": "c", "image": "1" }])
    );
}

#[test]
fn a_field_given_up_stays_while_another_owns_it() {
    let mut bench = Bench::new(DEPLOYMENT, "apps/v1");
    bench
        .apply("me", deployment(json!({ "replicas": 3, "paused": true })))
        .apply("hpa", deployment(json!({ "replicas": 3 })))
        .apply("me", deployment(json!({ "paused": true })));
    assert_eq!(bench.content()["spec"], json!({ "replicas": 3, "paused": true }));
    bench.apply("hpa", deployment(json!({ "minReadySeconds": 1 })));
    assert_eq!(bench.content()["spec"], json!({ "minReadySeconds": 1, "paused": true }));
}

#[test]
fn other_values_than_their_owners_set_are_conflicts() {
    let mut bench = Bench::new(DEPLOYMENT, "apps/v1");
    bench
        .apply("me", deployment(json!({ "replicas": 3, "paused": true })))
        .set("kubectl-scale", "scale", "/spec/replicas", json!(5))
        .set("kubectl-edit", "", "/spec/minReadySeconds", json!(7));
    let error = bench.refused("you", deployment(json!({ "replicas": 3 })));
    assert_eq!((error.code, error.reason), (409, "Conflict"));
    assert_eq!(
        error.message,
        "Apply failed with 1 conflict: conflict with \"kubectl-scale\" with subresource \"scale\" \
         using apps/v1: .spec.replicas"
    );
    let error = bench.refused(
        "you",
        deployment(json!({ "replicas": 3, "paused": false, "minReadySeconds": 1 })),
    );
    assert_eq!(
        error.message,
        "Apply failed with 3 conflicts: conflicts with \"kubectl-edit\" using apps/v1:\n\
         - .spec.minReadySeconds\n\
         conflicts with \"kubectl-scale\" with subresource \"scale\" using apps/v1:\n\
         - .spec.replicas\n\
         conflicts with \"me\":\n\
         - .spec.paused"
    );
    assert_eq!(
        error.details.expect("details")["causes"][0],
        json!({
            "reason": "FieldManagerConflict",
            "message": "conflict with \"kubectl-edit\" using apps/v1",
            "field": ".spec.minReadySeconds",
        })
    );
    // The same value is none, and force takes over.
    bench.apply("you", deployment(json!({ "replicas": 5 })));
    bench.try_apply("me", &deployment(json!({ "replicas": 1 })), true).expect("forced");
    bench.check_managers(expect![[r#"
        Apply me apps/v1  07
        {"f:spec":{"f:replicas":{}}}
        Update kubectl-edit apps/v1  03
        {"f:spec":{"f:minReadySeconds":{}}}
    "#]]);
}

#[test]
fn conflicts_in_lists_name_the_entry() {
    let mut bench = Bench::new(SERVICE, "v1");
    let service = |ports: Value| {
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": { "name": "s" },
            "spec": { "ports": ports },
        })
    };
    bench.apply("me", service(json!([{ "port": 80, "targetPort": 80 }])));
    let error = bench.refused("you", service(json!([{ "port": 80, "targetPort": 81 }])));
    assert_eq!(
        error.message,
        "Apply failed with 1 conflict: conflict with \"me\": \
         .spec.ports[port=80,protocol=\"TCP\"].targetPort"
    );
    bench.apply("you", service(json!([{ "port": 80, "protocol": "UDP" }])));
    assert_eq!(bench.content()["spec"]["ports"].as_array().map(Vec::len), Some(2));
}

#[test]
fn atomic_parts_are_replaced_as_a_whole() {
    let selector = |labels: Value| deployment(json!({ "selector": { "matchLabels": labels } }));
    let mut bench = Bench::new(DEPLOYMENT, "apps/v1");
    bench.apply("me", selector(json!({ "a": "1", "b": "2" })));
    bench.apply("me", selector(json!({ "a": "1" })));
    assert_eq!(bench.content()["spec"], json!({ "selector": { "matchLabels": { "a": "1" } } }));
    let error = bench.refused("you", selector(json!({ "a": "1", "c": "3" })));
    assert!(error.message.ends_with(": .spec.selector"), "{error}");
    let pod = |tolerations: Value| {
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "p" },
            "spec": { "tolerations": tolerations },
        })
    };
    let mut bench = Bench::new(POD, "v1");
    bench.apply("me", pod(json!([{ "key": "a" }, { "key": "b" }])));
    bench.apply("me", pod(json!([{ "key": "c" }])));
    assert_eq!(bench.content()["spec"], json!({ "tolerations": [{ "key": "c" }] }));
}

#[test]
fn sets_merge_by_value() {
    let object = |finalizers: Value| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": "c", "finalizers": finalizers },
        })
    };
    let mut bench = Bench::new(CONFIG_MAP, "v1");
    bench.apply("me", object(json!(["a", "b"]))).apply("you", object(json!(["b", "c"])));
    assert_eq!(bench.content()["metadata"]["finalizers"], json!(["a", "b", "c"]));
    bench.apply("me", object(json!(["a"])));
    assert_eq!(bench.content()["metadata"]["finalizers"], json!(["a", "b", "c"]));
    bench.apply("you", object(json!([])));
    assert_eq!(bench.content()["metadata"]["finalizers"], json!(["a"]));
}

#[test]
fn list_entries_come_in_the_order_of_the_configuration() {
    let names = |bench: &Bench| -> Vec<String> {
        let list = bench.content()["spec"]["template"]["spec"]["containers"].clone();
        let list = list.as_array().expect("a list").clone();
        list.iter().map(|entry| entry["name"].as_str().expect("a name").to_owned()).collect()
    };
    let cases = [
        (["a", "b"].as_slice(), ["b", "a"].as_slice(), ["b", "a"].as_slice()),
        (&["a", "b", "c"], &["c", "x", "b"], &["a", "c", "x", "b"]),
        (&["a"], &["b"], &["a", "b"]),
        (&["a", "b", "x"], &["b", "a", "r"], &["b", "x", "a", "r"]),
    ];
    let list = |names: &[&str]| {
        containers(Value::from_iter(names.iter().map(|name| json!({ "name": name }))))
    };
    for (live, config, expected) in cases {
        let mut bench = Bench::new(DEPLOYMENT, "apps/v1");
        bench.write("other", "", list(live)).apply("me", list(config));
        assert_eq!(names(&bench), expected, "{live:?} {config:?}");
    }
}

#[test]
fn applying_the_same_again_changes_nothing_at_all() {
    let mut bench = Bench::new(CONFIG_MAP, "v1");
    bench.apply("me", config_map(json!({ "a": "1" })));
    let before = bench.live.clone();
    bench.apply("me", config_map(json!({ "a": "1" })));
    assert_eq!(bench.live, before, "not even the time");
}

#[test]
fn what_nobody_recorded_belongs_to_a_manager_of_its_own() {
    let mut bench = Bench::new(CONFIG_MAP, "v1");
    bench.live = Some(config_map(json!({ "a": "1", "b": "1" })));
    let error = bench.refused("me", config_map(json!({ "a": "2" })));
    assert!(error.message.contains("\"before-first-apply\" using v1: .data.a"), "{error}");
    bench.try_apply("me", &config_map(json!({ "a": "2" })), true).expect("forced");
    bench.check_managers(expect![[r#"
        Apply me v1  02
        {"f:data":{"f:a":{}}}
        Update before-first-apply v1  02
        {"f:data":{".":{},"f:b":{}}}
    "#]]);
}

#[test]
fn kubectl_may_change_from_client_side_to_server_side_apply() {
    const LAST: &str = "kubectl.kubernetes.io/last-applied-configuration";
    let mut bench = Bench::new(CONFIG_MAP, "v1");
    let mut object = config_map(json!({ "a": "1", "b": "1" }));
    object["metadata"]["annotations"] = json!({ LAST: object.to_string() });
    bench.write("kubectl-client-side-apply", "", object).set("ed", "", "/data/b", json!("2"));
    let error = bench.refused("kubectl", config_map(json!({ "a": "9", "b": "1" })));
    assert_eq!(
        error.message,
        "Apply failed with 1 conflict: conflict with \"ed\" using v1: .data.b"
    );
    bench.refused("somebody", config_map(json!({ "a": "9" })));
    bench.apply("kubectl", config_map(json!({ "a": "9" })));
    let content = bench.content();
    assert_eq!(content["data"], json!({ "a": "9", "b": "2" }));
    assert_eq!(
        content["metadata"]["annotations"][LAST],
        json!(format!("{}\n", config_map(json!({ "a": "9" }))))
    );
}

#[test]
fn configurations_that_do_not_fit_are_refused() {
    let cases = [
        (
            deployment(json!({ "foo": 1 })),
            500,
            "failed to create typed patch object (default/web; apps/v1, Kind=Deployment): \
             .spec.foo: field not declared in schema",
        ),
        (
            containers(json!([{ "name": "a" }, { "name": "a" }])),
            500,
            "failed to create typed patch object (default/web; apps/v1, Kind=Deployment): \
             .spec.template.spec.containers: duplicate entries for key [name=\"a\"]",
        ),
        (
            containers(json!([{ "name": "a", "tty": "yes" }, { "image": "x" }])),
            500,
            "failed to create typed patch object (default/web; apps/v1, Kind=Deployment): \
             errors:\n  .spec.template.spec.containers[name=\"a\"].tty: expected boolean, got \
             \"yes\"\n  .spec.template.spec.containers: element 1: associative list with keys has \
             an element that omits all key fields [\"name\"] (and doesn't have default values for \
             any key fields)",
        ),
        (json!({ "metadata": { "managedFields": [] } }), 400, "metadata.managedFields must be nil"),
    ];
    for (config, code, message) in cases {
        let error = Bench::new(DEPLOYMENT, "apps/v1").refused("me", config);
        assert_eq!((error.code, error.message.as_str()), (code, message));
    }
}

#[test]
fn the_status_is_not_owned_through_the_main_resource() {
    let mut bench = Bench::new(POD, "v1");
    bench.apply(
        "me",
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "p", "labels": { "a": "b" } },
            "status": { "phase": "Running" },
        }),
    );
    bench.check_managers(expect![[r#"
        Apply me v1  01
        {"f:metadata":{"f:labels":{"f:a":{}}}}
    "#]]);
}

#[test]
fn stored_duplicates_are_tolerated() {
    let pod = |name: &str| {
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "p" },
            "spec": { "containers": [{ "name": "a", "ports": [
                { "containerPort": 80, "protocol": "TCP", "name": name },
                { "containerPort": 80, "protocol": "TCP" },
            ] }] },
        })
    };
    let mut bench = Bench::new(POD, "v1");
    bench.write("a", "", pod("x")).write("b", "", pod("y"));
    bench.check_managers(expect![[r#"
        Update a v1  01
        {"f:spec":{"f:containers":{"k:{\"name\":\"a\"}":{".":{},"f:name":{},"f:ports":{}}}}}
        Update b v1  02
        {"f:spec":{"f:containers":{"k:{\"name\":\"a\"}":{"f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{}}}}}}
    "#]]);
}

fn any_configuration() -> impl Strategy<Value = Value> {
    let entries = prop::collection::btree_map("[a-d]", "[x-z]", 0..4);
    let data = prop::collection::btree_map("[a-d]", "[x-z]", 0..4);
    (entries, data, prop::option::of(0..4)).prop_map(|(entries, labels, replicas)| {
        let list = entries.iter().map(|(name, image)| json!({ "name": name, "image": image }));
        let mut config = containers(Value::from_iter(list));
        config["metadata"]["labels"] = json!(labels);
        if let Some(replicas) = replicas {
            config["spec"]["replicas"] = json!(replicas);
        }
        config
    })
}

proptest! {
    #[test]
    fn applying_twice_is_applying_once(first in any_configuration(), second in any_configuration()) {
        let mut bench = Bench::new(DEPLOYMENT, "apps/v1");
        bench.write("other", "", first);
        bench.try_apply("me", &second, true).expect("applies");
        let once = bench.live.clone();
        bench.try_apply("me", &second, false).expect("applies");
        prop_assert_eq!(bench.live, once);
    }

    #[test]
    fn an_applier_alone_gets_just_its_last_configuration(
        first in any_configuration(),
        second in any_configuration(),
    ) {
        let mut changed = Bench::new(DEPLOYMENT, "apps/v1");
        changed.apply("me", first).apply("me", second.clone());
        let mut fresh = Bench::new(DEPLOYMENT, "apps/v1");
        fresh.apply("me", second);
        let strip = |bench: &Bench| {
            let mut content = bench.content();
            // Of structs that lead nowhere, nobody knows whether they are there.
            drop_empty(&mut content);
            content
        };
        let mut both = [strip(&changed), strip(&fresh)];
        for content in &mut both {
            if let Some(Value::Array(list)) = content.pointer_mut("/spec/template/spec/containers") {
                list.sort_by_key(|entry| entry["name"].to_string());
            }
        }
        prop_assert_eq!(&both[0], &both[1]);
        prop_assert_eq!(
            changed.managers().lines().nth(1).map(str::to_owned),
            fresh.managers().lines().nth(1).map(str::to_owned)
        );
    }

    #[test]
    fn plain_writers_never_share_a_field(
        writes in prop::collection::vec((0..3, any_configuration()), 1..6),
    ) {
        let mut bench = Bench::new(DEPLOYMENT, "apps/v1");
        for (writer, object) in writes {
            bench.write(&format!("w{writer}"), "", object);
        }
        let entries = super::entries::Entries::of(bench.live.as_ref().expect("an object"));
        let each: usize = entries.all.iter().map(|entry| entry.fields.paths().len()).sum();
        prop_assert_eq!(each, entries.owned().paths().len());
    }

    #[test]
    fn whatever_is_applied_is_answered(config in any_json(), live in any_json(), fields in any_json()) {
        let config = json!({ "metadata": config, "spec": live });
        let mut live = json!({ "metadata": { "managedFields": fields }, "spec": live });
        let schema = Schema::kubernetes();
        let now = Timestamp::UNIX_EPOCH;
        if let Ok(applied) = apply(schema, DEPLOYMENT, Some(&live), &config, "me", true, "", now) {
            prop_assert!(schema.check_fields(DEPLOYMENT, &applied).is_empty());
        }
        update(schema, DEPLOYMENT, "apps/v1", Some(&config), &mut live, "me", "", now);
        prop_assert!(live.is_object());
    }

    #[test]
    fn what_others_own_survives(first in any_configuration(), second in any_configuration()) {
        let mut bench = Bench::new(DEPLOYMENT, "apps/v1");
        bench.apply("you", first.clone());
        bench.try_apply("me", &second, true).expect("applies");
        bench.try_apply("me", &deployment(json!({})), false).expect("applies");
        let before = Bench { live: Some(first), ..Bench::new(DEPLOYMENT, "apps/v1") }.content();
        for name in before["metadata"]["labels"].as_object().into_iter().flatten().map(|(n, _)| n) {
            let taken = second["metadata"]["labels"].get(name).is_some_and(|v| *v != before["metadata"]["labels"][name]);
            let kept = bench.content()["metadata"]["labels"].get(name).is_some();
            prop_assert_eq!(kept, !taken, "{}", name);
        }
    }
}

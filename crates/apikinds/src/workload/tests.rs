use expect_test::{Expect, expect};
use serde_json::{Value, json};
use steersman_apimachinery::rules::{Part, Rules};

use super::{
    CRON_JOB, DAEMON_SET, DEPLOYMENT, JOB, REPLICA_SET, REPLICATION_CONTROLLER, STATEFUL_SET,
};
use crate::cluster::{Cluster, lines, now};
use crate::fields::set;
use crate::resources;

fn template() -> Value {
    json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "i:1"}]},
    })
}

fn workload(kind: &str, more: Value) -> Value {
    let mut spec = json!({"selector": {"matchLabels": {"app": "web"}}, "template": template()});
    for (key, value) in more.as_object().expect("an object") {
        set(&mut spec, key, value.clone());
    }
    json!({
        "kind": kind,
        "metadata": {
            "name": "w", "namespace": "ns", "uid": "u1", "resourceVersion": "7",
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": spec,
    })
}

/// Defaults and creates an object.
fn created(rules: &dyn Rules, mut object: Value) -> Value {
    rules.default(&mut object);
    let cluster = Cluster::default();
    rules.prepare_create(&mut object, &cluster.request("apps", "deployments")).expect("admitted");
    let before = object.clone();
    rules.default(&mut object);
    assert_eq!(object, before, "defaults are not idempotent");
    object
}

/// What was filled in, without the template.
#[track_caller]
fn check_defaults(rules: &dyn Rules, object: Value, expected: Expect) {
    let mut object = created(rules, object);
    assert_eq!(rules.validate(&object, None, Part::Main), []);
    if let Some(template) = object.pointer_mut("/spec/template") {
        assert_eq!(template["spec"]["schedulerName"], "default-scheduler");
        template.take();
    }
    if let Some(spec) = object["spec"].as_object_mut() {
        spec.remove("template");
    }
    expected.assert_eq(&object["spec"].to_string());
}

#[test]
fn workloads_are_filled_in() {
    check_defaults(
        &DEPLOYMENT,
        workload("Deployment", json!({})),
        expect![[
            r#"{"progressDeadlineSeconds":600,"replicas":1,"revisionHistoryLimit":10,"selector":{"matchLabels":{"app":"web"}},"strategy":{"rollingUpdate":{"maxSurge":"25%","maxUnavailable":"25%"},"type":"RollingUpdate"}}"#
        ]],
    );
    check_defaults(
        &DEPLOYMENT,
        workload("Deployment", json!({"strategy": {"type": "Recreate"}, "replicas": 0})),
        expect![[
            r#"{"progressDeadlineSeconds":600,"replicas":0,"revisionHistoryLimit":10,"selector":{"matchLabels":{"app":"web"}},"strategy":{"type":"Recreate"}}"#
        ]],
    );
    check_defaults(
        &REPLICA_SET,
        workload("ReplicaSet", json!({})),
        expect![[r#"{"replicas":1,"selector":{"matchLabels":{"app":"web"}}}"#]],
    );
    check_defaults(
        &DAEMON_SET,
        workload("DaemonSet", json!({})),
        expect![[
            r#"{"revisionHistoryLimit":10,"selector":{"matchLabels":{"app":"web"}},"updateStrategy":{"rollingUpdate":{"maxSurge":0,"maxUnavailable":1},"type":"RollingUpdate"}}"#
        ]],
    );
    check_defaults(
        &STATEFUL_SET,
        workload(
            "StatefulSet",
            json!({"volumeClaimTemplates": [{"metadata": {"name": "d"}, "spec": {}}]}),
        ),
        expect![[
            r#"{"persistentVolumeClaimRetentionPolicy":{"whenDeleted":"Retain","whenScaled":"Retain"},"podManagementPolicy":"OrderedReady","replicas":1,"revisionHistoryLimit":10,"selector":{"matchLabels":{"app":"web"}},"updateStrategy":{"rollingUpdate":{"maxUnavailable":1,"partition":0},"type":"RollingUpdate"},"volumeClaimTemplates":[{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"d"},"spec":{"volumeMode":"Filesystem"},"status":{"phase":"Pending"}}]}"#
        ]],
    );
    check_defaults(
        &REPLICATION_CONTROLLER,
        workload("ReplicationController", json!({"selector": null})),
        expect![[r#"{"replicas":1,"selector":{"app":"web"}}"#]],
    );
}

#[track_caller]
fn check_errors(rules: &dyn Rules, object: Value, expected: Expect) {
    let object = created(rules, object);
    expected.assert_eq(&lines(&rules.validate(&object, None, Part::Main)));
}

#[test]
fn selectors_match_their_templates() {
    let other = json!({"selector": {"matchLabels": {"app": "other"}}});
    check_errors(
        &DEPLOYMENT,
        workload("Deployment", other),
        expect![[
            r#"spec.template.metadata.labels: Invalid value: {"app":"web"}: `selector` does not match template `labels`"#
        ]],
    );
    check_errors(
        &REPLICA_SET,
        workload("ReplicaSet", json!({"selector": null})),
        expect!["spec.selector: Required value"],
    );
    check_errors(
        &STATEFUL_SET,
        workload("StatefulSet", json!({"selector": {}})),
        expect!["spec.selector: Invalid value: {}: empty selector is invalid for statefulset"],
    );
    check_errors(
        &REPLICATION_CONTROLLER,
        workload("ReplicationController", json!({"selector": {"app": "other"}})),
        expect![[
            r#"spec.template.metadata.labels: Invalid value: {"app":"web"}: `selector` does not match template `labels`"#
        ]],
    );
}

#[test]
fn rollouts_make_progress() {
    let rolling = |unavailable: Value, surge: Value| {
        json!({"replicas": -1, "strategy": {"rollingUpdate": {
            "maxUnavailable": unavailable, "maxSurge": surge,
        }}})
    };
    check_errors(
        &DEPLOYMENT,
        workload("Deployment", rolling(json!(0), json!("0%"))),
        expect![[r#"
            spec.replicas: Invalid value: -1: must be greater than or equal to 0
            spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0"#]],
    );
    check_errors(
        &DEPLOYMENT,
        workload("Deployment", rolling(json!("101%"), json!("many"))),
        expect![[r#"
            spec.replicas: Invalid value: -1: must be greater than or equal to 0
            spec.strategy.rollingUpdate.maxSurge: Invalid value: "many": a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')
            spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "101%": must not be greater than 100%"#]],
    );
    let recreate = json!({"strategy": {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}});
    check_errors(
        &DEPLOYMENT,
        workload("Deployment", recreate),
        expect![
            "spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'"
        ],
    );
    let both = json!({"updateStrategy": {"rollingUpdate": {"maxUnavailable": 1, "maxSurge": 1}}});
    check_errors(
        &DAEMON_SET,
        workload("DaemonSet", both),
        expect![
            "spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: 1: may not be set when maxUnavailable is non-zero"
        ],
    );
}

#[test]
fn templates_are_checked_where_they_stand() {
    let mut bad = template();
    bad["spec"]["restartPolicy"] = "Never".into();
    bad["metadata"]["labels"]["release"] = "-1".into();
    bad["spec"]["containers"][0]["image"] = "".into();
    let mut mounts = template();
    mounts["spec"]["containers"][0]["volumeMounts"] = json!([{"name": "d", "mountPath": "/d"}]);
    let claims = json!([{"metadata": {"name": "d"}, "spec": {}}]);
    check_errors(
        &STATEFUL_SET,
        workload("StatefulSet", json!({"template": mounts, "volumeClaimTemplates": claims})),
        expect![[""]],
    );
    check_errors(
        &STATEFUL_SET,
        workload("StatefulSet", json!({"template": mounts})),
        expect![[r#"spec.template.spec.containers[0].volumeMounts[0].name: Not found: "d""#]],
    );
    check_errors(
        &DEPLOYMENT,
        workload("Deployment", json!({"template": bad})),
        expect![[r#"
            spec.template.metadata.labels: Invalid value: "-1": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')
            spec.template.spec.containers[0].image: Required value
            spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always""#]],
    );
}

#[track_caller]
fn check_change(rules: &dyn Rules, old: Value, pointer: &str, value: Value, expected: Expect) {
    let old = created(rules, old);
    let mut new = old.clone();
    let (parent, field) = pointer.rsplit_once('/').expect("a pointer");
    new.pointer_mut(parent).expect("a parent")[field] = value;
    expected.assert_eq(&lines(&rules.validate(&new, Some(&old), Part::Main)));
}

#[test]
fn selectors_stay() {
    let selector = json!({"matchExpressions": [{"key": "app", "operator": "Exists"}]});
    check_change(
        &DEPLOYMENT,
        workload("Deployment", json!({})),
        "/spec/selector",
        selector.clone(),
        expect![[
            r#"spec.selector: Invalid value: {"matchExpressions":[{"key":"app","operator":"Exists"}]}: field is immutable"#
        ]],
    );
    check_change(
        &STATEFUL_SET,
        workload("StatefulSet", json!({})),
        "/spec/selector",
        selector,
        expect![
            "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
        ],
    );
    check_change(
        &STATEFUL_SET,
        workload("StatefulSet", json!({})),
        "/spec/replicas",
        json!(3),
        expect![[""]],
    );
}

fn job(more: Value) -> Value {
    let mut job = workload("Job", more);
    job["spec"]["template"]["spec"]["restartPolicy"] = "Never".into();
    if let Some(spec) = job["spec"].as_object_mut() {
        spec.remove("selector");
    }
    job
}

#[test]
fn jobs_find_their_pods_by_uid() {
    let job = created(&JOB, job(json!({})));
    assert_eq!(JOB.validate(&job, None, Part::Main), []);
    expect![[r#"{"labels":{"app":"web","batch.kubernetes.io/controller-uid":"u1","batch.kubernetes.io/job-name":"w","controller-uid":"u1","job-name":"w"}}"#]].assert_eq(&job["spec"]["template"]["metadata"].to_string());
    expect![[r#"{"matchLabels":{"batch.kubernetes.io/controller-uid":"u1"}}"#]]
        .assert_eq(&job["spec"]["selector"].to_string());
    let mut rest = job["spec"].clone();
    set(&mut rest, "template", Value::Null);
    expect![[r#"{"backoffLimit":6,"completionMode":"NonIndexed","completions":1,"manualSelector":false,"parallelism":1,"podReplacementPolicy":"TerminatingOrFailed","selector":{"matchLabels":{"batch.kubernetes.io/controller-uid":"u1"}},"suspend":false,"template":null}"#]].assert_eq(&rest.to_string());
}

#[test]
fn jobs_have_pods_that_end() {
    let forever = {
        let mut forever = job(json!({"completionMode": "Indexed", "parallelism": 2}));
        forever["spec"]["template"]["spec"]["restartPolicy"] = "Always".into();
        forever
    };
    check_errors(
        &JOB,
        forever,
        expect![[r#"
        spec.completions: Required value: when completion mode is Indexed
        spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never""#]],
    );
    check_change(
        &JOB,
        job(json!({})),
        "/spec/completions",
        json!(5),
        expect!["spec.completions: Invalid value: 5: field is immutable"],
    );
    check_change(
        &JOB,
        job(json!({"suspend": true})),
        "/spec/template/spec/nodeSelector",
        json!({"a": "b"}),
        expect![[""]],
    );
    check_change(&JOB, job(json!({})), "/spec/parallelism", json!(5), expect![[""]]);
}

#[test]
fn cron_jobs_have_a_schedule() {
    let cron = |schedule: &str| {
        json!({"metadata": {"name": "c"}, "spec": {
            "schedule": schedule,
            "jobTemplate": {"spec": {"template": job(json!({}))["spec"]["template"]}},
        }})
    };
    check_errors(&CRON_JOB, cron("*/5 * * * *"), expect![[""]]);
    check_errors(
        &CRON_JOB,
        cron("* * *"),
        expect![[
            r#"spec.schedule: Invalid value: "* * *": expected exactly 5 fields, found 3: [* * *]"#
        ]],
    );
}

#[test]
fn scales_are_read_and_written() {
    let mut found = resources().iter();
    let deployments = found.find(|resource| resource.plural == "deployments").expect("a row");
    let scale = deployments.subresource("scale").expect("a subresource");
    let mut deployment = workload("Deployment", json!({"replicas": 3}));
    deployment["status"] = json!({"replicas": 2});
    let view = DEPLOYMENT.read_view(&deployment, scale).expect("a scale");
    expect![[r#"{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"creationTimestamp":"2026-01-01T00:00:00Z","name":"w","namespace":"ns","resourceVersion":"7","uid":"u1"},"spec":{"replicas":3},"status":{"replicas":2,"selector":"app=web"}}"#]].assert_eq(&view.to_string());
    DEPLOYMENT.write_view(&mut deployment, &json!({"spec": {"replicas": 5}}), scale).expect("ok");
    assert_eq!(deployment["spec"]["replicas"], 5);
    let refused = DEPLOYMENT
        .write_view(&mut deployment, &json!({"spec": {"replicas": -1}}), scale)
        .expect_err("too few");
    expect![[r#"Scale.autoscaling "w" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0"#]].assert_eq(&refused.message);
}

#[test]
fn rows_are_those_of_kubectl() {
    let row = |rules: &dyn Rules, mut object: Value, status: Value| {
        rules.default(&mut object);
        object["status"] = status;
        Value::from(rules.cells(&object, now())).to_string()
    };
    expect![[r#"["w","1/3",2,1,"60s","c","i:1","app=web"]"#]].assert_eq(&row(
        &DEPLOYMENT,
        workload("Deployment", json!({"replicas": 3})),
        json!({"readyReplicas": 1, "updatedReplicas": 2, "availableReplicas": 1}),
    ));
    expect![[r#"["w",1,1,0,"60s","c","i:1","app=web"]"#]].assert_eq(&row(
        &REPLICA_SET,
        workload("ReplicaSet", json!({})),
        json!({"replicas": 1}),
    ));
    expect![[r#"["w",2,0,1,0,0,"<none>","60s","c","i:1","app=web"]"#]].assert_eq(&row(
        &DAEMON_SET,
        workload("DaemonSet", json!({})),
        json!({"desiredNumberScheduled": 2, "numberReady": 1}),
    ));
    expect![[r#"["w","0/1","60s","c","i:1"]"#]].assert_eq(&row(
        &STATEFUL_SET,
        workload("StatefulSet", json!({})),
        json!({}),
    ));
    let ended = json!({
        "succeeded": 1, "startTime": "2026-01-01T00:00:10Z",
        "completionTime": "2026-01-01T00:00:30Z",
        "conditions": [{"type": "Complete", "status": "True"}],
    });
    expect![[r#"["w","Complete","1/1","20s","60s","c","i:1","<none>"]"#]].assert_eq(&row(
        &JOB,
        job(json!({})),
        ended,
    ));
    let running = json!({"startTime": "2026-01-01T00:00:10Z"});
    expect![[r#"["w","Running","0/1 of 3","50s","60s","c","i:1","<none>"]"#]].assert_eq(&row(
        &JOB,
        job(json!({"parallelism": 3})),
        running,
    ));
}

//! Questions about what one may do.

use expect_test::expect;
use serde_json::{Value, json};

use crate::access::Authorization;
use crate::auth::User;
use crate::harness::{Harness, JSON};

const GROUP: &str = "/apis/authorization.k8s.io/v1";

fn with_roles() -> Harness {
    let harness = Harness::with(|config| config.authorization = Authorization::Rbac);
    let mut objects = steersman_apikinds::rbac_policy(harness.server.inner.now());
    objects.push(json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": {"name": "r", "namespace": "default"},
        "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"],
            "resourceNames": ["p"]}]}));
    objects.push(json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": "b", "namespace": "default"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
        "subjects": [{"kind": "ServiceAccount", "name": "sa"}, {"kind": "User", "name": "jane"}]}));
    for answer in harness.server.load(objects) {
        answer.unwrap();
    }
    harness
}

/// The status of a review, or the refusal.
async fn ask(harness: &Harness, user: &User, plural: &str, spec: Value) -> String {
    let (namespace, kind) = match plural {
        "selfsubjectaccessreviews" => ("", "SelfSubjectAccessReview"),
        "subjectaccessreviews" => ("", "SubjectAccessReview"),
        "localsubjectaccessreviews" => ("/namespaces/default", "LocalSubjectAccessReview"),
        _ => ("", "SelfSubjectRulesReview"),
    };
    let body = json!({"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec});
    let uri = format!("{GROUP}{namespace}/{plural}");
    let answer = harness.ask_as(user, "POST", &uri, JSON, body.to_string(), &[]).await;
    if answer.code < 300 { answer.ok()["status"].to_string() } else { answer.refusal() }
}

fn get_pod(namespace: &str, name: &str) -> Value {
    json!({"resourceAttributes": {"verb": "get", "resource": "pods", "namespace": namespace,
        "name": name}})
}

#[tokio::test]
async fn reviews_tell_what_requests_would_be_told() {
    let harness = with_roles();
    let jane = User::new("jane", [""; 0]);
    let of = |mut spec: Value, user: &str, groups: &[&str]| {
        spec["user"] = json!(user);
        spec["groups"] = json!(groups);
        spec
    };
    let path = |path: &str| json!({"nonResourceAttributes": {"verb": "get", "path": path}});
    let both = json!({"nonResourceAttributes": {"verb": "get", "path": "/"},
        "resourceAttributes": {"verb": "get", "resource": "pods"}});
    let me = "selfsubjectaccessreviews";
    let they = "subjectaccessreviews";
    let here = "localsubjectaccessreviews";
    let admin = User::admin();
    let account = "system:serviceaccount:default:sa";
    let mut lines = Vec::new();
    for (user, plural, spec) in [
        (&jane, me, get_pod("default", "p")),
        (&jane, me, get_pod("default", "q")),
        (&jane, me, get_pod("", "p")),
        (&jane, me, path("/healthz")),
        (&jane, me, path("/metrics")),
        (&jane, me, both),
        (&jane, me, json!({})),
        (&jane, they, of(get_pod("default", "p"), "x", &[])),
        (&admin, me, get_pod("", "")),
        (&admin, they, of(get_pod("default", "p"), account, &[])),
        (&admin, they, of(get_pod("default", "p"), "x", &["system:masters"])),
        (&admin, they, of(get_pod("default", "p"), "", &[])),
        (&admin, they, of(path("/version"), "", &["system:unauthenticated"])),
        (&admin, here, of(get_pod("default", "p"), "jane", &[])),
        (&admin, here, of(get_pod("other", "p"), "jane", &[])),
    ] {
        lines.push(ask(&harness, user, plural, spec).await);
    }
    expect![[r#"
        {"allowed":true,"reason":"RBAC: allowed by RoleBinding \"b/default\" of Role \"r\" to User \"jane\""}
        {"allowed":false}
        {"allowed":false}
        {"allowed":true,"reason":"RBAC: allowed by ClusterRoleBinding \"system:discovery\" of ClusterRole \"system:discovery\" to Group \"system:authenticated\""}
        {"allowed":false}
        422 Invalid: SelfSubjectAccessReview.authorization.k8s.io "" is invalid: spec.nonResourceAttributes: Invalid value: "": cannot be specified in combination with resourceAttributes
        422 Invalid: SelfSubjectAccessReview.authorization.k8s.io "" is invalid: spec.resourceAttributes: Invalid value: "": exactly one of nonResourceAttributes or resourceAttributes must be specified
        403 Forbidden: subjectaccessreviews.authorization.k8s.io is forbidden: User "jane" cannot create resource "subjectaccessreviews" in API group "authorization.k8s.io" at the cluster scope
        {"allowed":true}
        {"allowed":true,"reason":"RBAC: allowed by RoleBinding \"b/default\" of Role \"r\" to ServiceAccount \"sa/default\""}
        {"allowed":true}
        422 Invalid: SubjectAccessReview.authorization.k8s.io "" is invalid: spec.user: Invalid value: "": at least one of user or group must be specified
        {"allowed":true,"reason":"RBAC: allowed by ClusterRoleBinding \"system:public-info-viewer\" of ClusterRole \"system:public-info-viewer\" to Group \"system:unauthenticated\""}
        {"allowed":true,"reason":"RBAC: allowed by RoleBinding \"b/default\" of Role \"r\" to User \"jane\""}
        422 Invalid: LocalSubjectAccessReview.authorization.k8s.io "" is invalid: spec.resourceAttributes.namespace: Invalid value: "other": must match metadata.namespace"#]].assert_eq(&lines.join("\n"));
}

#[tokio::test]
async fn all_rules_that_one_has_are_listed() {
    let harness = with_roles();
    let jane = User::new("jane", [""; 0]);
    let plural = "selfsubjectrulesreviews";
    let rules = ask(&harness, &jane, plural, json!({"namespace": "default"})).await;
    expect![[r#"{"incomplete":false,"nonResourceRules":[{"nonResourceURLs":["/api","/api/*","/apis","/apis/*","/healthz","/livez","/openapi","/openapi/*","/readyz","/version","/version/"],"verbs":["get"]},{"nonResourceURLs":["/healthz","/livez","/readyz","/version","/version/"],"verbs":["get"]}],"resourceRules":[{"apiGroups":["authorization.k8s.io"],"resources":["selfsubjectaccessreviews","selfsubjectrulesreviews"],"verbs":["create"]},{"apiGroups":["authentication.k8s.io"],"resources":["selfsubjectreviews"],"verbs":["create"]},{"apiGroups":[""],"resourceNames":["p"],"resources":["pods"],"verbs":["get"]}]}"#]].assert_eq(&rules);
    let elsewhere = ask(&harness, &jane, plural, json!({"namespace": "kube-system"})).await;
    assert!(!elsewhere.contains(r#""resources":["pods"]"#), "{elsewhere}");
    let admin = ask(&harness, &User::admin(), plural, json!({"namespace": "default"})).await;
    assert!(admin.contains(r#"{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}"#), "{admin}");
    let nowhere = ask(&harness, &jane, plural, json!({})).await;
    assert_eq!(nowhere, "400 BadRequest: no namespace on request");
}

#[tokio::test]
async fn a_server_that_denies_nothing_says_so() {
    let harness = Harness::new();
    let jane = User::new("jane", [""; 0]);
    let answer = ask(&harness, &jane, "selfsubjectaccessreviews", get_pod("default", "p")).await;
    assert_eq!(answer, r#"{"allowed":true}"#);
    let spec = json!({"namespace": "default"});
    let rules = ask(&harness, &jane, "selfsubjectrulesreviews", spec).await;
    expect![[r#"{"incomplete":false,"nonResourceRules":[{"nonResourceURLs":["*"],"verbs":["*"]}],"resourceRules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]}"#]].assert_eq(&rules);
}

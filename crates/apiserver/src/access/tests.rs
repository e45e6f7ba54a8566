//! Decisions over whole requests: what is stored decides at once.

use std::sync::Arc;

use expect_test::expect;
use serde_json::{Value, json};
use steersman_apimachinery::rules::View;

use super::*;
use crate::harness::{APPLY, CONFIG_MAPS, Harness, JSON, MERGE, PODS, config_map, pod};

const CLUSTER_ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
const CLUSTER_BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";

struct Cluster {
    harness: Harness,
    log: Arc<AuditLog>,
}

impl Cluster {
    fn new() -> Self {
        let log = Arc::new(AuditLog::default());
        let audit: Arc<dyn Audit> = log.clone();
        let harness = Harness::with(|config| {
            config.authorization = Authorization::Rbac;
            config.audit = Some(audit);
        });
        Self { harness, log }
    }

    /// With the roles that every cluster has.
    fn bootstrapped() -> Self {
        let cluster = Self::new();
        let now = cluster.harness.server.inner.now();
        for answer in cluster.harness.server.load(steersman_apikinds::rbac_policy(now)) {
            answer.unwrap();
        }
        cluster
    }

    async fn cluster_role(&self, name: &str, rules: Value) {
        let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": name}, "rules": rules});
        self.harness.post(CLUSTER_ROLES, &role).await.ok();
    }

    async fn role(&self, name: &str, rules: Value) {
        self.harness.post(ROLES, &role(name, rules)).await.ok();
    }

    /// Binds a cluster role, everywhere or in the default namespace, to `jane`.
    async fn bind(&self, uri: &str, kind: &str, role: &str) {
        let subject = json!({"kind": "User", "name": "jane"});
        self.harness.post(uri, &binding(uri, role, kind, &subject)).await.ok();
    }

    /// `code`, or `code message`.
    async fn ask(&self, user: &User, method: &str, uri: &str, body: &Value) -> String {
        self.ask_with(user, method, uri, body, &[]).await
    }

    async fn ask_with(
        &self,
        user: &User,
        method: &str,
        uri: &str,
        body: &Value,
        headers: &[(&str, &str)],
    ) -> String {
        let content_type = match method {
            "PATCH" => MERGE,
            "APPLY" => APPLY,
            _ => JSON,
        };
        let method = if method == "APPLY" { "PATCH" } else { method };
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let answer = self.harness.ask_as(user, method, uri, content_type, body, headers).await;
        match answer.code {
            ..300 => answer.code.to_string(),
            code => format!("{code} {}", answer.json()["message"].as_str().unwrap_or("")),
        }
    }
}

fn role(name: &str, rules: Value) -> Value {
    json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": {"name": name}, "rules": rules})
}

fn binding(uri: &str, role: &str, kind: &str, subject: &Value) -> Value {
    let own = if uri == BINDINGS { "RoleBinding" } else { "ClusterRoleBinding" };
    json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": own,
        "metadata": {"name": role},
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": role},
        "subjects": [subject]})
}

fn jane() -> User {
    User::new("jane", ["dev"])
}

#[tokio::test]
async fn users_may_do_what_their_rules_say() {
    let cluster = Cluster::new();
    cluster
        .cluster_role(
            "reader",
            json!([
                {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods", "nodes"]},
                {"verbs": ["get"], "nonResourceURLs": ["/healthz"]},
            ]),
        )
        .await;
    cluster
        .role(
            "writer",
            json!([
                {"verbs": ["create", "patch"], "apiGroups": [""], "resources": ["configmaps"]},
                {"verbs": ["update"], "apiGroups": [""], "resources": ["configmaps"],
                    "resourceNames": ["mine"]},
                {"verbs": ["create"], "apiGroups": [""], "resources": ["pods/binding"]},
            ]),
        )
        .await;
    cluster.harness.post(PODS, &pod("p")).await.ok();
    let user = jane();
    assert_eq!(
        cluster.ask(&user, "GET", "/api/v1/pods", &Value::Null).await,
        r#"403 pods is forbidden: User "jane" cannot list resource "pods" in API group "" at the cluster scope"#
    );
    cluster.bind(CLUSTER_BINDINGS, "ClusterRole", "reader").await;
    cluster.bind(BINDINGS, "Role", "writer").await;
    let none = Value::Null;
    let to_node = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"},
        "target": {"kind": "Node", "name": "n"}});
    let mine = config_map("mine");
    let mut lines = Vec::new();
    for (method, uri, body) in [
        ("GET", "/api/v1/pods", &none),
        ("GET", "/api/v1/pods?watch=1", &none),
        ("GET", "/api/v1/namespaces/default/pods/p", &none),
        ("GET", "/api/v1/namespaces/default/pods/p/status", &none),
        ("DELETE", PODS, &none),
        ("GET", "/healthz", &none),
        ("GET", "/livez", &none),
        ("GET", "/apis", &none),
        ("GET", "/apis/none/v1/things", &none),
        ("POST", CONFIG_MAPS, &mine),
        ("POST", "/api/v1/namespaces/kube-system/configmaps", &mine),
        ("GET", CONFIG_MAPS, &none),
        ("PUT", &format!("{CONFIG_MAPS}/mine"), &mine),
        ("PUT", &format!("{CONFIG_MAPS}/theirs"), &config_map("theirs")),
        ("PATCH", &format!("{CONFIG_MAPS}/mine"), &json!({"data": {"a": "b"}})),
        ("POST", &format!("{PODS}/p/eviction"), &none),
        ("POST", &format!("{PODS}/p/binding"), &to_node),
        ("POST", "/api/v1/namespaces/default/bindings", &to_node),
        ("GET", "/api/v1/namespaces/default", &none),
    ] {
        let answer = cluster.ask(&user, method, uri, body).await;
        lines.push(format!("{method} {uri}: {answer}"));
    }
    expect![[r#"
        GET /api/v1/pods: 200
        GET /api/v1/pods?watch=1: 403 pods is forbidden: User "jane" cannot watch resource "pods" in API group "" at the cluster scope
        GET /api/v1/namespaces/default/pods/p: 200
        GET /api/v1/namespaces/default/pods/p/status: 403 pods "p" is forbidden: User "jane" cannot get resource "pods/status" in API group "" in the namespace "default"
        DELETE /api/v1/namespaces/default/pods: 403 pods is forbidden: User "jane" cannot deletecollection resource "pods" in API group "" in the namespace "default"
        GET /healthz: 200
        GET /livez: 403 forbidden: User "jane" cannot get path "/livez"
        GET /apis: 403 forbidden: User "jane" cannot get path "/apis"
        GET /apis/none/v1/things: 403 things.none is forbidden: User "jane" cannot list resource "things" in API group "none" at the cluster scope
        POST /api/v1/namespaces/default/configmaps: 201
        POST /api/v1/namespaces/kube-system/configmaps: 403 configmaps is forbidden: User "jane" cannot create resource "configmaps" in API group "" in the namespace "kube-system"
        GET /api/v1/namespaces/default/configmaps: 403 configmaps is forbidden: User "jane" cannot list resource "configmaps" in API group "" in the namespace "default"
        PUT /api/v1/namespaces/default/configmaps/mine: 200
        PUT /api/v1/namespaces/default/configmaps/theirs: 403 configmaps "theirs" is forbidden: User "jane" cannot update resource "configmaps" in API group "" in the namespace "default"
        PATCH /api/v1/namespaces/default/configmaps/mine: 200
        POST /api/v1/namespaces/default/pods/p/eviction: 403 pods "p" is forbidden: User "jane" cannot create resource "pods/eviction" in API group "" in the namespace "default"
        POST /api/v1/namespaces/default/pods/p/binding: 201
        POST /api/v1/namespaces/default/bindings: 403 bindings is forbidden: User "jane" cannot create resource "bindings" in API group "" in the namespace "default"
        GET /api/v1/namespaces/default: 403 namespaces "default" is forbidden: User "jane" cannot get resource "namespaces" in API group "" in the namespace "default""#]].assert_eq(&lines.join("\n"));
}

#[tokio::test]
async fn no_spelling_of_a_request_leads_around_the_rules() {
    let cluster = Cluster::new();
    let rules = json!([
        {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]},
        {"verbs": ["get", "list", "watch"], "apiGroups": [""], "resources": ["configmaps"],
            "resourceNames": ["mine"]},
        {"verbs": ["get"], "nonResourceURLs": ["/healthz", "/api/*"]},
    ]);
    cluster.cluster_role("reader", rules).await;
    cluster.bind(CLUSTER_BINDINGS, "ClusterRole", "reader").await;
    let nodes = json!([{"verbs": ["get", "list"], "apiGroups": [""], "resources": ["nodes"]}]);
    cluster.cluster_role("local", nodes).await;
    cluster.bind(BINDINGS, "ClusterRole", "local").await;
    cluster.harness.post(PODS, &pod("p")).await.ok();
    let (user, none, new) = (jane(), Value::Null, config_map("mine"));
    for (code, method, uri, body) in [
        // Watches, by any name.
        ("403", "GET", "/api/v1/pods?watch", &none),
        ("403", "GET", "/api/v1/pods?watch=%31", &none),
        ("403", "GET", "/api/v1/pods?%77atch=true", &none),
        ("403", "GET", "/api/v1/pods?watch=true&watch=false", &none),
        ("200", "GET", "/api/v1/pods?watch=false&watch=true", &none),
        ("403", "GET", "/api/v1/watch/pods", &none),
        ("403", "HEAD", "/api/v1/watch/namespaces/default/pods/p", &none),
        ("403", "GET", "/api/v1/namespaces/default/pods/p?watch=1", &none),
        // Names that a rule is about.
        ("403", "GET", "/api/v1/configmaps", &none),
        ("200", "GET", "/api/v1/configmaps?fieldSelector=metadata.name=mine", &none),
        ("403", "GET", "/api/v1/configmaps?fieldSelector=metadata.name!=mine", &none),
        ("403", "GET", "/api/v1/configmaps?labelSelector=metadata.name=mine", &none),
        ("403", "GET", "/api/v1/configmaps?limit=1&fieldSelector=metadata.name=theirs", &none),
        ("403", "DELETE", &format!("{CONFIG_MAPS}?fieldSelector=metadata.name=mine"), &none),
        ("403", "GET", &format!("{CONFIG_MAPS}/mine%2Ftheirs"), &none),
        ("403", "GET", &format!("{CONFIG_MAPS}/theirs/mine"), &none),
        // Writes that store nothing.
        ("403", "POST", &format!("{CONFIG_MAPS}?dryRun=All"), &new),
        ("403", "POST", &format!("{PODS}/p/binding?dryRun=All"), &none),
        // Namespaces that nothing of the kind is in.
        ("403", "GET", "/api/v1/nodes/n", &none),
        ("404", "GET", "/api/v1/namespaces/default/nodes/n", &none),
        ("404", "GET", "/api/v1/namespaces/default/nodes", &none),
        // Paths.
        ("200", "GET", "/%61pi//v1/pods/", &none),
        ("403", "GET", "/%61pi/v1/%6eodes", &none),
        ("403", "GET", "/healthz/../metrics", &none),
        ("403", "GET", "/healthz/ping", &none),
        ("403", "POST", "/healthz", &none),
        ("403", "GET", "/api", &none),
        ("403", "GET", "/apis", &none),
        ("403", "GET", "/api/../apis", &none),
        ("404", "GET", "/api/%2e%2e%2fapis", &none),
        ("403", "BREW", "/api/v1/pods", &none),
    ] {
        let answer = cluster.ask(&user, method, uri, body).await;
        assert!(answer.starts_with(code), "{method} {uri}: {answer}");
    }
}

#[tokio::test]
async fn who_is_only_known_may_do_nothing_and_masters_everything() {
    let (cluster, none) = (Cluster::new(), Value::Null);
    for uri in ["/healthz", "/api", "/api/v1/nodes", PODS] {
        let answer = cluster.ask(&User::new("other", ["dev"]), "GET", uri, &none).await;
        assert!(answer.starts_with("403"), "{uri}: {answer}");
        assert_eq!(cluster.ask(&User::admin(), "GET", uri, &none).await, "200", "{uri}");
    }
}

#[tokio::test]
async fn changes_of_roles_and_bindings_hold_at_once() {
    let cluster = Cluster::new();
    let (user, none) = (jane(), Value::Null);
    let may_list = async || cluster.ask(&user, "GET", PODS, &none).await == "200";
    cluster.bind(BINDINGS, "ClusterRole", "late").await;
    assert!(!may_list().await, "the role is not there yet");
    let list = json!([{"verbs": ["list"], "apiGroups": [""], "resources": ["pods"]}]);
    cluster.cluster_role("late", list.clone()).await;
    assert!(may_list().await);
    // Only in the namespace of the binding.
    assert!(cluster.ask(&user, "GET", "/api/v1/pods", &none).await.starts_with("403"));
    let uri = format!("{CLUSTER_ROLES}/late");
    cluster.harness.patch(&uri, MERGE, &json!({"rules": []})).await.ok();
    assert!(!may_list().await);
    cluster.harness.patch(&uri, MERGE, &json!({"rules": list})).await.ok();
    assert!(may_list().await);
    let uri = format!("{BINDINGS}/late");
    let group = json!({"subjects": [{"kind": "Group", "name": "dev", "apiGroup": GROUP}]});
    cluster.harness.patch(&uri, MERGE, &group).await.ok();
    assert!(may_list().await);
    let other = json!({"subjects": [{"kind": "Group", "name": "ops", "apiGroup": GROUP}]});
    cluster.harness.patch(&uri, MERGE, &other).await.ok();
    assert!(!may_list().await);
    let account = json!({"subjects": [{"kind": "ServiceAccount", "name": "sa", "namespace": "x"}]});
    cluster.harness.patch(&uri, MERGE, &account).await.ok();
    assert_eq!(cluster.ask(&User::service_account("x", "sa"), "GET", PODS, &none).await, "200");
    cluster.harness.delete(&uri).await.ok();
    let answer = cluster.ask(&User::service_account("x", "sa"), "GET", PODS, &none).await;
    assert!(answer.starts_with("403"), "{answer}");
}

#[tokio::test]
async fn who_missed_a_part_of_the_log_learns_everything_anew() {
    let cluster = Cluster {
        harness: Harness::with(|config| {
            config.authorization = Authorization::Rbac;
            config.watch_window = 2;
        }),
        log: Arc::default(),
    };
    let (user, none) = (jane(), Value::Null);
    let list = json!([{"verbs": ["list"], "apiGroups": [""], "resources": ["pods"]}]);
    for name in ["a", "b", "c", "d"] {
        cluster.cluster_role(name, list.clone()).await;
        cluster.bind(CLUSTER_BINDINGS, "ClusterRole", name).await;
    }
    assert_eq!(cluster.ask(&user, "GET", PODS, &none).await, "200");
    for name in ["a", "b", "c", "d"] {
        cluster.harness.delete(&format!("{CLUSTER_BINDINGS}/{name}")).await.ok();
    }
    assert!(cluster.ask(&user, "GET", PODS, &none).await.starts_with("403"));
}

#[tokio::test]
async fn aggregated_roles_allow_what_their_parts_allow() {
    let cluster = Cluster::bootstrapped();
    let none = Value::Null;
    for role in ["view", "edit", "admin"] {
        let subject = json!({"kind": "User", "name": format!("{role}er")});
        cluster
            .harness
            .post(BINDINGS, &binding(BINDINGS, role, "ClusterRole", &subject))
            .await
            .ok();
    }
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    let things = "/apis/example.dev/v1/namespaces/default/things";
    for (user, method, uri, allowed) in [
        ("viewer", "GET", PODS, true),
        ("viewer", "GET", "/api/v1/namespaces/kube-system/pods", false),
        ("viewer", "GET", "/api/v1/namespaces/default/secrets", false),
        ("viewer", "DELETE", deployments, false),
        ("editer", "GET", PODS, true),
        ("editer", "GET", "/api/v1/namespaces/default/secrets", true),
        ("editer", "DELETE", deployments, true),
        ("editer", "GET", ROLES, false),
        ("adminer", "GET", ROLES, true),
        ("adminer", "DELETE", deployments, true),
        ("adminer", "GET", things, false),
    ] {
        let answer = cluster.ask(&User::new(user, [""; 0]), method, uri, &none).await;
        assert_eq!(!answer.starts_with("403"), allowed, "{user} {method} {uri}: {answer}");
    }
    // A new part counts at once, for all that it is a part of.
    let part = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "things", "labels":
            {"rbac.authorization.k8s.io/aggregate-to-view": "true"}},
        "rules": [{"verbs": ["list"], "apiGroups": ["example.dev"], "resources": ["things"]}]});
    cluster.harness.post(CLUSTER_ROLES, &part).await.ok();
    for user in ["viewer", "editer", "adminer"] {
        let answer = cluster.ask(&User::new(user, [""; 0]), "GET", things, &none).await;
        assert!(answer.starts_with("404"), "{user}: {answer}");
    }
}

#[tokio::test]
async fn nobody_gives_away_what_they_do_not_have() {
    let cluster = Cluster::bootstrapped();
    let all = json!([{"verbs": ["*"], "apiGroups": [GROUP], "resources": ["roles", "rolebindings",
        "clusterroles", "clusterrolebindings"]}]);
    cluster.cluster_role("owner", all).await;
    let pods = json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]});
    cluster.cluster_role("reader", json!([pods])).await;
    for name in ["owner", "reader"] {
        cluster.bind(CLUSTER_BINDINGS, "ClusterRole", name).await;
    }
    // `*` would be `bind` and `escalate`, too.
    let verbs = json!(["create", "update", "patch", "get", "delete"]);
    let patch = json!([{"op": "replace", "path": "/rules/0/verbs", "value": verbs}]);
    cluster
        .harness
        .patch(&format!("{CLUSTER_ROLES}/owner"), crate::harness::JSON_PATCH, &patch)
        .await
        .ok();
    let user = jane();
    let more =
        json!({"verbs": ["get", "delete"], "apiGroups": [""], "resources": ["pods", "nodes"]});
    let me = json!({"kind": "User", "name": "jane"});
    let ask =
        async |method: &str, uri: &str, body: &Value| cluster.ask(&user, method, uri, body).await;
    assert_eq!(ask("POST", ROLES, &role("same", json!([pods]))).await, "201");
    expect![[r#"
        403 roles.rbac.authorization.k8s.io "more" is forbidden: user "jane" (groups=["dev" "system:authenticated"]) is attempting to grant RBAC permissions not currently held:
        {APIGroups:[""], Resources:["nodes"], Verbs:["get" "delete"]}
        {APIGroups:[""], Resources:["pods"], Verbs:["delete"]}"#]].assert_eq(&ask("POST", ROLES, &role("more", json!([pods, more]))).await);
    let same = format!("{ROLES}/same");
    assert!(ask("PATCH", &same, &json!({"rules": [more]})).await.starts_with("403"));
    let applied = format!("{ROLES}/applied?fieldManager=m");
    assert!(ask("APPLY", &applied, &role("applied", json!([more]))).await.starts_with("403"));
    assert_eq!(ask("PATCH", &same, &json!({"metadata": {"labels": {"a": "b"}}})).await, "200");
    assert_eq!(
        ask("POST", BINDINGS, &binding(BINDINGS, "reader", "ClusterRole", &me)).await,
        "201"
    );
    expect![[r#"
        403 clusterrolebindings.rbac.authorization.k8s.io "cluster-admin" is forbidden: user "jane" (groups=["dev" "system:authenticated"]) is attempting to grant RBAC permissions not currently held:
        {APIGroups:["*"], Resources:["*"], Verbs:["*"]}
        {NonResourceURLs:["*"], Verbs:["*"]}"#]].assert_eq(
        &ask("POST", CLUSTER_BINDINGS, &binding("", "cluster-admin", "ClusterRole", &me)).await,
    );
    expect![[r#"404 roles.rbac.authorization.k8s.io "no" not found"#]]
        .assert_eq(&ask("POST", BINDINGS, &binding(BINDINGS, "no", "Role", &me)).await);
    let aggregated = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "mine"}, "aggregationRule": {"clusterRoleSelectors":
            [{"matchLabels": {"a": "b"}}]}});
    expect![[r#"403 clusterroles.rbac.authorization.k8s.io "mine" is forbidden: must have cluster-admin privileges to use the aggregationRule"#]].assert_eq(&ask("POST", CLUSTER_ROLES, &aggregated).await);
    // A role with more than one has becomes everybody's part by a label.
    let view = format!("{CLUSTER_ROLES}/view");
    let label =
        json!({"metadata": {"labels": {"rbac.authorization.k8s.io/aggregate-to-x": "true"}}});
    assert!(ask("PATCH", &view, &label).await.starts_with("403"));

    let bind = json!([{"verbs": ["bind"], "apiGroups": [GROUP], "resources": ["clusterroles"],
        "resourceNames": ["view"]},
        {"verbs": ["escalate"], "apiGroups": [GROUP], "resources": ["roles"]}]);
    cluster.cluster_role("binder", bind).await;
    cluster.bind(CLUSTER_BINDINGS, "ClusterRole", "binder").await;
    let other = json!({"kind": "User", "name": "other"});
    let answer = ask("POST", BINDINGS, &binding(BINDINGS, "view", "ClusterRole", &other)).await;
    assert_eq!(answer, "201");
    let answer = ask("POST", BINDINGS, &binding(BINDINGS, "edit", "ClusterRole", &other)).await;
    assert!(answer.starts_with("403"), "{answer}");
    assert_eq!(ask("POST", ROLES, &role("more", json!([more]))).await, "201");
}

#[tokio::test]
async fn speaking_for_others_has_to_be_allowed() {
    let cluster = Cluster::bootstrapped();
    cluster
        .cluster_role(
            "speaker",
            json!([
                {"verbs": ["impersonate"], "apiGroups": [""], "resources": ["users"],
                    "resourceNames": ["bob", "system:anonymous"]},
                {"verbs": ["impersonate"], "apiGroups": [""], "resources": ["groups"],
                    "resourceNames": ["dev"]},
                {"verbs": ["impersonate"], "apiGroups": [""], "resources": ["serviceaccounts"],
                    "resourceNames": ["default"]},
                {"verbs": ["impersonate"], "apiGroups": ["authentication.k8s.io"],
                    "resources": ["userextras/scopes"], "resourceNames": ["view"]},
            ]),
        )
        .await;
    cluster.bind(CLUSTER_BINDINGS, "ClusterRole", "speaker").await;
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let uri = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let mut lines = Vec::new();
    for headers in [
        &[("impersonate-user", "bob")][..],
        &[("impersonate-user", "alice")],
        &[("impersonate-user", "bob"), ("impersonate-group", "dev")],
        &[("impersonate-user", "bob"), ("impersonate-group", "system:masters")],
        &[("impersonate-user", "system:serviceaccount:default:default")],
        &[("impersonate-user", "system:serviceaccount:default:other")],
        &[("impersonate-user", "bob"), ("impersonate-extra-scopes", "view")],
        &[("impersonate-user", "bob"), ("impersonate-extra-scopes", "all")],
        &[("impersonate-user", "bob"), ("impersonate-uid", "1")],
        &[("impersonate-group", "dev")],
        &[("impersonate-user", "")],
    ] {
        let answer =
            cluster.harness.ask_as(&jane(), "POST", uri, JSON, review.to_string(), headers).await;
        let json = answer.json();
        lines.push(match answer.code {
            ..300 => json["status"]["userInfo"].to_string(),
            code => format!("{code} {}", json["message"].as_str().unwrap()),
        });
    }
    expect![[r#"
        {"groups":["system:authenticated"],"username":"bob"}
        403 users "alice" is forbidden: User "jane" cannot impersonate resource "users" in API group "" at the cluster scope
        {"groups":["dev","system:authenticated"],"username":"bob"}
        403 groups "system:masters" is forbidden: User "jane" cannot impersonate resource "groups" in API group "" at the cluster scope
        {"groups":["system:serviceaccounts","system:serviceaccounts:default","system:authenticated"],"username":"system:serviceaccount:default:default"}
        403 serviceaccounts "other" is forbidden: User "jane" cannot impersonate resource "serviceaccounts" in API group "" in the namespace "default"
        {"extra":{"scopes":["view"]},"groups":["system:authenticated"],"username":"bob"}
        403 userextras.authentication.k8s.io "all" is forbidden: User "jane" cannot impersonate resource "userextras/scopes" in API group "authentication.k8s.io" at the cluster scope
        403 uids.authentication.k8s.io "1" is forbidden: User "jane" cannot impersonate resource "uids" in API group "authentication.k8s.io" at the cluster scope
        400 impersonate-group is given without impersonate-user
        400 impersonate-user is given without a name"#]].assert_eq(&lines.join("\n"));
    // Who is taken for nobody may do what nobody may.
    let nobody = [("impersonate-user", "system:anonymous")];
    let ask = async |uri: &str| cluster.ask_with(&jane(), "GET", uri, &Value::Null, &nobody).await;
    assert_eq!(ask("/version").await, "200");
    assert!(ask("/api").await.starts_with(r#"403 forbidden: User "system:anonymous" cannot get"#));
}

#[tokio::test]
async fn decisions_are_told_with_what_allowed_them() {
    let cluster = Cluster::new();
    let list = json!([
        {"verbs": ["list", "watch"], "apiGroups": [""], "resources": ["pods"]},
        {"verbs": ["get"], "nonResourceURLs": ["/healthz"]},
    ]);
    cluster.cluster_role("lister", list).await;
    cluster.bind(CLUSTER_BINDINGS, "ClusterRole", "lister").await;
    cluster.log.clear();
    let user = jane();
    for uri in ["/api/v1/pods", "/api/v1/pods", "/healthz", "/api/v1/nodes/n"] {
        cluster.ask(&user, "GET", uri, &Value::Null).await;
    }
    let lines = |records: Vec<Record>| -> String {
        let lines = records.iter().map(|record| {
            let by = record.granted_by.as_ref();
            let by = by.map(|by| format!(" by {} {} {}", by.binding, by.role, by.rule));
            format!("{}{}", record.line(), by.unwrap_or_default())
        });
        lines.collect::<Vec<_>>().join("\n")
    };
    expect![[r#"
        get /healthz by ClusterRoleBinding "lister" ClusterRole "lister" 1
        list pods by ClusterRoleBinding "lister" ClusterRole "lister" 0"#]]
    .assert_eq(&lines(cluster.log.allowed("jane")));
    expect!["get nodes named n"].assert_eq(&lines(cluster.log.denied("jane")));
    let counts: Vec<u64> = cluster.log.records().into_iter().map(|(_, n)| n).collect();
    assert_eq!(counts, [1, 1, 2]);
    expect![[r#"ClusterRoleBinding "lister" of ClusterRole "lister": {APIGroups:[""], Resources:["pods"], Verbs:["watch"]}"#]]
        .assert_eq(&cluster.harness.server.unused_permissions(&user, &cluster.log).join("\n"));
}

#[tokio::test]
async fn a_write_that_creates_needs_to_be_allowed_to() {
    let cluster = Cluster::new();
    let rules = json!([{"verbs": ["patch", "update"], "apiGroups": ["", GROUP],
        "resources": ["configmaps", "clusterroles"]}]);
    cluster.cluster_role("changer", rules).await;
    cluster.bind(CLUSTER_BINDINGS, "ClusterRole", "changer").await;
    let uri = format!("{CONFIG_MAPS}/new?fieldManager=m");
    let answer = cluster.ask(&jane(), "APPLY", &uri, &config_map("new")).await;
    assert_eq!(
        answer,
        r#"403 configmaps "new" is forbidden: User "jane" cannot create resource "configmaps" in API group "" in the namespace "default""#
    );
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "new"}, "rules": []});
    let answer = cluster.ask(&jane(), "PUT", &format!("{CLUSTER_ROLES}/new"), &role).await;
    assert!(answer.contains("cannot create resource"), "{answer}");
    assert!(cluster.harness.server.inner.get(GROUP, "clusterroles", "", "new").is_none());
}

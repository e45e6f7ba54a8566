//! The roles that a cluster with RBAC begins with, and who has them.
//!
//! What they allow is that of the reference, v1.36, with the feature gates that
//! are on by default. Left out are roles of parts that are not here: those of
//! the single controllers, of the approvers of certificates, of DNS, of the
//! aggregator and of nodes.

use jiff::Timestamp;
use serde_json::{Value, json};

const GROUP: &str = "rbac.authorization.k8s.io";
const KUBE_SYSTEM: &str = "kube-system";

const READ: &str = "get list watch";
const WRITE: &str = "create delete deletecollection patch update";
const READ_WRITE: &str = "create delete deletecollection get list patch update watch";

/// A rule; lists are words. The core group is written `core`.
enum Rule {
    /// Verbs, groups, resources.
    Of(&'static str, &'static str, &'static str),
    /// The same for objects of these names.
    Named(&'static str, &'static str, &'static str, &'static str),
    /// `get` for paths.
    Paths(&'static str),
    /// Everything.
    All,
}

use Rule::{All, Named, Of, Paths};

/// A cluster role: its name, which aggregated roles it is part of, its rules.
type ClusterRole = (&'static str, &'static [&'static str], &'static [Rule]);

/// Roles whose rules are those of others: their names, and of which they are
/// part themselves.
const AGGREGATED: [(&str, &[&str]); 3] =
    [("admin", &[]), ("edit", &["admin"]), ("view", &["edit"])];

const CLUSTER_ROLES: &[ClusterRole] = &[
    ("cluster-admin", &[], &[All]),
    ("system:aggregate-to-admin", &["admin"], TO_ADMIN),
    ("system:aggregate-to-edit", &["edit"], TO_EDIT),
    ("system:aggregate-to-view", &["view"], TO_VIEW),
    (
        "system:auth-delegator",
        &[],
        &[
            Of("create", "authentication.k8s.io", "tokenreviews"),
            Of("create", "authorization.k8s.io", "subjectaccessreviews"),
        ],
    ),
    (
        "system:basic-user",
        &[],
        &[
            Of(
                "create",
                "authorization.k8s.io",
                "selfsubjectaccessreviews selfsubjectrulesreviews",
            ),
            Of("create", "authentication.k8s.io", "selfsubjectreviews"),
        ],
    ),
    (
        "system:discovery",
        &[],
        &[Paths(
            "/api /api/* /apis /apis/* /healthz /livez /openapi /openapi/* /readyz /version /version/",
        )],
    ),
    ("system:kube-scheduler", &[], SCHEDULER),
    (
        "system:monitoring",
        &[],
        &[
            Paths("/healthz /healthz/* /livez /livez/* /metrics /metrics/slis /readyz /readyz/*"),
            Paths("/flagz"),
            Paths("/statusz"),
        ],
    ),
    ("system:public-info-viewer", &[], &[Paths("/healthz /livez /readyz /version /version/")]),
    (
        "system:volume-scheduler",
        &[],
        &[
            Of("get list patch update watch", "core", "persistentvolumes"),
            Of(READ, "storage.k8s.io", "storageclasses"),
            Of("get list patch update watch", "core", "persistentvolumeclaims"),
        ],
    ),
];

const SCHEDULER: &[Rule] = &[
    Of("create patch update", "core events.k8s.io", "events"),
    Of("create", "coordination.k8s.io", "leases"),
    Named("get update", "coordination.k8s.io", "leases", "kube-scheduler"),
    Of(READ, "core", "nodes"),
    Of("delete get list watch", "core", "pods"),
    Of("create", "core", "bindings pods/binding"),
    Of("patch update", "core", "pods/status"),
    Of(READ, "core", "replicationcontrollers services"),
    Of(READ, "apps extensions", "replicasets"),
    Of(READ, "apps", "statefulsets"),
    Of(READ, "policy", "poddisruptionbudgets"),
    Of(READ, "core", "persistentvolumeclaims persistentvolumes"),
    Of("create", "authentication.k8s.io", "tokenreviews"),
    Of("create", "authorization.k8s.io", "subjectaccessreviews"),
    Of(READ, "storage.k8s.io", "csinodes"),
    Of(READ, "storage.k8s.io", "volumeattachments"),
    Of(READ, "core", "namespaces"),
    Of(READ, "storage.k8s.io", "csidrivers"),
    Of(READ, "storage.k8s.io", "csistoragecapacities"),
    Of(READ, "resource.k8s.io", "deviceclasses"),
    Of("create delete get list patch update watch", "resource.k8s.io", "resourceclaims"),
    Of("get list patch update watch", "resource.k8s.io", "resourceclaims/status"),
    Of("patch update", "resource.k8s.io", "resourceclaims/binding"),
    Of("get list patch update watch", "core", "pods/finalizers"),
    Of(READ, "resource.k8s.io", "resourceslices"),
];

const TO_ADMIN: &[Rule] = &[
    Of("create", "authorization.k8s.io", "localsubjectaccessreviews"),
    Of(READ_WRITE, GROUP, "rolebindings roles"),
];

const TO_EDIT: &[Rule] = &[
    Of(READ, "core", "pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy"),
    Of("impersonate", "core", "serviceaccounts"),
    Of(WRITE, "core", "pods pods/attach pods/exec pods/portforward pods/proxy"),
    Of("create", "core", "pods/eviction"),
    Of(
        WRITE,
        "core",
        "configmaps events persistentvolumeclaims replicationcontrollers \
         replicationcontrollers/scale secrets serviceaccounts services services/proxy",
    ),
    Of("create", "core", "serviceaccounts/token"),
    Of(
        WRITE,
        "apps",
        "daemonsets deployments deployments/rollback deployments/scale replicasets \
         replicasets/scale statefulsets statefulsets/scale",
    ),
    Of(WRITE, "autoscaling", "horizontalpodautoscalers"),
    Of(WRITE, "batch", "cronjobs jobs"),
    Of(
        WRITE,
        "extensions",
        "daemonsets deployments deployments/rollback deployments/scale ingresses \
         networkpolicies replicasets replicasets/scale replicationcontrollers/scale",
    ),
    Of(WRITE, "policy", "poddisruptionbudgets"),
    Of(WRITE, "networking.k8s.io", "ingresses networkpolicies"),
    Of(READ_WRITE, "coordination.k8s.io", "leases"),
    Of(WRITE, "resource.k8s.io", "resourceclaims resourceclaimtemplates"),
];

const TO_VIEW: &[Rule] = &[
    Of(
        READ,
        "core",
        "configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods \
         replicationcontrollers replicationcontrollers/scale serviceaccounts services \
         services/status",
    ),
    Of(
        READ,
        "core",
        "bindings events limitranges namespaces/status pods/log pods/status \
         replicationcontrollers/status resourcequotas resourcequotas/status",
    ),
    Of(READ, "core", "namespaces"),
    Of(READ, "discovery.k8s.io", "endpointslices"),
    Of(
        READ,
        "apps",
        "controllerrevisions daemonsets daemonsets/status deployments deployments/scale \
         deployments/status replicasets replicasets/scale replicasets/status statefulsets \
         statefulsets/scale statefulsets/status",
    ),
    Of(READ, "autoscaling", "horizontalpodautoscalers horizontalpodautoscalers/status"),
    Of(READ, "batch", "cronjobs cronjobs/status jobs jobs/status"),
    Of(
        READ,
        "extensions",
        "daemonsets daemonsets/status deployments deployments/scale deployments/status \
         ingresses ingresses/status networkpolicies replicasets replicasets/scale \
         replicasets/status replicationcontrollers/scale",
    ),
    Of(READ, "policy", "poddisruptionbudgets poddisruptionbudgets/status"),
    Of(READ, "networking.k8s.io", "ingresses ingresses/status networkpolicies"),
    Of(READ, "resource.k8s.io", "resourceclaims resourceclaims/status resourceclaimtemplates"),
];

/// Which cluster role which users (`User:`) and groups (`Group:`) have.
const CLUSTER_BINDINGS: [(&str, &[&str]); 7] = [
    ("cluster-admin", &["Group:system:masters"]),
    ("system:basic-user", &["Group:system:authenticated"]),
    ("system:discovery", &["Group:system:authenticated"]),
    ("system:kube-scheduler", &["User:system:kube-scheduler"]),
    ("system:monitoring", &["Group:system:monitoring"]),
    ("system:public-info-viewer", &["Group:system:authenticated", "Group:system:unauthenticated"]),
    ("system:volume-scheduler", &["User:system:kube-scheduler"]),
];

/// The roles of `kube-system`.
const ROLES: [(&str, &[Rule]); 2] = [
    (
        "extension-apiserver-authentication-reader",
        &[Named(READ, "core", "configmaps", "extension-apiserver-authentication")],
    ),
    (
        "system::leader-locking-kube-scheduler",
        &[
            Of("watch", "core", "configmaps"),
            Named("get update", "core", "configmaps", "kube-scheduler"),
        ],
    ),
];

/// Their bindings: name, role, subjects.
const BINDINGS: [(&str, &str, &[&str]); 2] = [
    (
        "system::extension-apiserver-authentication-reader",
        "extension-apiserver-authentication-reader",
        &["User:system:kube-controller-manager", "User:system:kube-scheduler"],
    ),
    (
        "system::leader-locking-kube-scheduler",
        "system::leader-locking-kube-scheduler",
        &["User:system:kube-scheduler", "ServiceAccount:kube-scheduler"],
    ),
];

/// The roles and bindings of a cluster with RBAC, in storage form, without
/// `uid` and `resourceVersion`.
///
/// `admin`, `edit` and `view` are aggregated: what they allow is found out when
/// somebody asks for it, and is not written into them.
pub fn rbac_policy(now: Timestamp) -> Vec<Value> {
    let mut objects = Vec::new();
    for (name, part_of) in AGGREGATED {
        let mut role = cluster_role(name, part_of, now);
        role["aggregationRule"] =
            json!({ "clusterRoleSelectors": [{ "matchLabels": { aggregates_to(name): "true" } }] });
        objects.push(role);
    }
    for (name, part_of, rules) in CLUSTER_ROLES {
        let mut role = cluster_role(name, part_of, now);
        role["rules"] = rules.iter().flat_map(Rule::to_values).collect();
        objects.push(role);
    }
    for (role, subjects) in CLUSTER_BINDINGS {
        let mut binding = object("ClusterRoleBinding", role, now);
        bind(&mut binding, "ClusterRole", role, subjects);
        objects.push(binding);
    }
    for (name, rules) in ROLES {
        let mut role = object("Role", name, now);
        role["metadata"]["namespace"] = json!(KUBE_SYSTEM);
        role["rules"] = rules.iter().flat_map(Rule::to_values).collect();
        objects.push(role);
    }
    for (name, role, subjects) in BINDINGS {
        let mut binding = object("RoleBinding", name, now);
        binding["metadata"]["namespace"] = json!(KUBE_SYSTEM);
        bind(&mut binding, "Role", role, subjects);
        objects.push(binding);
    }
    objects
}

fn object(kind: &str, name: &str, now: Timestamp) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1"),
        "kind": kind,
        "metadata": {
            "name": name,
            "creationTimestamp": now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            "labels": { "kubernetes.io/bootstrapping": "rbac-defaults" },
            "annotations": { "rbac.authorization.kubernetes.io/autoupdate": "true" },
        },
    })
}

fn cluster_role(name: &str, part_of: &[&str], now: Timestamp) -> Value {
    let mut role = object("ClusterRole", name, now);
    for aggregated in part_of {
        role["metadata"]["labels"][aggregates_to(aggregated)] = json!("true");
    }
    role
}

fn aggregates_to(role: &str) -> String {
    format!("{GROUP}/aggregate-to-{role}")
}

fn bind(binding: &mut Value, kind: &str, role: &str, subjects: &[&str]) {
    binding["roleRef"] = json!({ "apiGroup": GROUP, "kind": kind, "name": role });
    let subject = |text: &&str| {
        let (kind, name) = text.split_once(':').unwrap_or(("User", text));
        match kind {
            "ServiceAccount" => json!({ "kind": kind, "name": name, "namespace": KUBE_SYSTEM }),
            kind => json!({ "kind": kind, "name": name, "apiGroup": GROUP }),
        }
    };
    binding["subjects"] = subjects.iter().map(subject).collect();
}

impl Rule {
    fn to_values(&self) -> Vec<Value> {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let groups = |text: &str| -> Vec<String> {
            let groups = words(text).into_iter();
            groups.map(|group| if group == "core" { String::new() } else { group }).collect()
        };
        vec![match self {
            Of(verbs, of, resources) => json!({
                "verbs": words(verbs), "apiGroups": groups(of), "resources": words(resources),
            }),
            Named(verbs, of, resources, names) => json!({
                "verbs": words(verbs), "apiGroups": groups(of), "resources": words(resources),
                "resourceNames": words(names),
            }),
            Paths(paths) => json!({ "verbs": ["get"], "nonResourceURLs": words(paths) }),
            All => {
                return vec![
                    json!({ "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"] }),
                    json!({ "verbs": ["*"], "nonResourceURLs": ["*"] }),
                ];
            }
        }]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use steersman_apimachinery::rules::Part;

    use super::*;
    use crate::resources;

    #[test]
    fn all_of_it_is_valid_and_complete() {
        let mut places = BTreeSet::new();
        for object in rbac_policy(Timestamp::UNIX_EPOCH) {
            let kind = object["kind"].as_str().unwrap();
            let rules =
                resources().iter().find(|r| r.group == GROUP && r.kind == kind).unwrap().rules;
            let mut defaulted = object.clone();
            rules.default(&mut defaulted);
            assert_eq!(defaulted, object);
            assert_eq!(rules.validate(&object, None, Part::Main), [], "{object}");
            assert!(places.insert((kind.to_owned(), object["metadata"]["name"].to_string())));
        }
    }

    #[test]
    fn bindings_name_roles_that_are_there() {
        let objects = rbac_policy(Timestamp::UNIX_EPOCH);
        for binding in objects.iter().filter(|object| object.get("roleRef").is_some()) {
            let wanted = &binding["roleRef"];
            let found = objects.iter().any(|role| {
                role["kind"] == wanted["kind"] && role["metadata"]["name"] == wanted["name"]
            });
            assert!(found, "{binding}");
        }
    }
}

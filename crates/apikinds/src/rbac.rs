//! Roles and who has them. It is for the server to enforce them.

use serde_json::{Value, json};
use steersman_apimachinery::error::FieldError;
use steersman_apimachinery::rules::Column;

use crate::fields::{default, field, items, items_mut, namespace, object_at, same, text};
use crate::simple::{Simple, age_cell, name_cell};

const GROUP: &str = "rbac.authorization.k8s.io";

/// The rules of `roles` and `clusterroles`.
pub(crate) static ROLE: Simple = Simple {
    created_by_update: true,
    validate: |new, _| {
        let mut errors = Vec::new();
        for (i, rule) in items(new, "/rules").iter().enumerate() {
            let path = format!("rules[{i}]");
            if items(rule, "/verbs").is_empty() {
                let why = "verbs must contain at least one value";
                errors.push(FieldError::required(format!("{path}.verbs"), why));
            }
            if !items(rule, "/nonResourceURLs").is_empty() {
                if !namespace(new).is_empty() {
                    let why = "namespaced rules cannot apply to non-resource URLs";
                    let found = rule["nonResourceURLs"].clone();
                    errors.push(FieldError::invalid(format!("{path}.nonResourceURLs"), found, why));
                }
                continue;
            }
            if items(rule, "/apiGroups").is_empty() {
                let why = "resource rules must supply at least one api group";
                errors.push(FieldError::required(format!("{path}.apiGroups"), why));
            }
            if items(rule, "/resources").is_empty() {
                let why = "resource rules must supply at least one resource";
                errors.push(FieldError::required(format!("{path}.resources"), why));
            }
        }
        errors
    },
    ..Simple::CREATED_AT
};

/// The rules of `rolebindings` and `clusterrolebindings`.
pub(crate) static ROLE_BINDING: Simple = Simple {
    created_by_update: true,
    generation: false,
    default: |object| {
        if let Some(role) = object_at(object, "/roleRef") {
            default(role, "apiGroup", GROUP);
        }
        for subject in items_mut(object, "/subjects") {
            if matches!(field(subject, "kind"), "User" | "Group") {
                default(subject, "apiGroup", GROUP);
            }
        }
    },
    validate: |new, old| {
        let mut errors = Vec::new();
        let kind = text(new, "/roleRef/kind");
        let allowed: &[&str] =
            if namespace(new).is_empty() { &["ClusterRole"] } else { &["Role", "ClusterRole"] };
        if !allowed.contains(&kind) {
            errors.push(FieldError::not_supported("roleRef.kind", kind, allowed));
        }
        if text(new, "/roleRef/name").is_empty() {
            errors.push(FieldError::required("roleRef.name", ""));
        }
        if old.is_some_and(|old| !same(old.get("roleRef"), new.get("roleRef"))) {
            let found = new.get("roleRef").cloned().unwrap_or_default();
            errors.push(FieldError::invalid("roleRef", found, "cannot change roleRef"));
        }
        errors
    },
    columns: &[
        Column::name(),
        Column::text("Role", "The role"),
        Column::text("Age", "Time since creation"),
        Column::text("Users", "Users who have it").wide(),
        Column::text("Groups", "Groups that have it").wide(),
        Column::text("ServiceAccounts", "Service accounts that have it").wide(),
    ],
    cells: |object, now| {
        let role = format!("{}/{}", text(object, "/roleRef/kind"), text(object, "/roleRef/name"));
        vec![
            name_cell(object),
            role.into(),
            age_cell(object, now),
            subjects(object, "User"),
            subjects(object, "Group"),
            subjects(object, "ServiceAccount"),
        ]
    },
    ..Simple::NEW
};

fn subjects(binding: &Value, kind: &str) -> Value {
    let names = items(binding, "/subjects").iter().filter(|s| field(s, "kind") == kind);
    let names: Vec<String> = names
        .map(|subject| match (kind, field(subject, "namespace")) {
            ("ServiceAccount", namespace) => format!("{namespace}/{}", field(subject, "name")),
            _ => field(subject, "name").to_owned(),
        })
        .collect();
    json!(names.join(", "))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use steersman_apimachinery::rules::{Part, Rules};

    use super::*;
    use crate::cluster::{lines, now};

    #[test]
    fn rules_say_what_may_be_done_to_what() {
        let role = json!({"metadata": {"name": "r", "namespace": "ns"}, "rules": [
            {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]},
            {"resources": ["pods"]},
            {"verbs": ["get"], "nonResourceURLs": ["/x"]},
        ]});
        expect![[r#"
            rules[1].verbs: Required value: verbs must contain at least one value
            rules[1].apiGroups: Required value: resource rules must supply at least one api group
            rules[2].nonResourceURLs: Invalid value: ["/x"]: namespaced rules cannot apply to non-resource URLs"#]].assert_eq(&lines(&ROLE.validate(&role, None, Part::Main)));
    }

    #[test]
    fn bindings_name_a_role_for_good() {
        let mut binding = json!({
            "metadata": {"name": "b"},
            "roleRef": {"kind": "ClusterRole", "name": "admin"},
            "subjects": [
                {"kind": "User", "name": "u"},
                {"kind": "ServiceAccount", "name": "s", "namespace": "ns"},
            ],
        });
        ROLE_BINDING.default(&mut binding);
        expect![[r#"{"metadata":{"name":"b"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"admin"},"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"u"},{"kind":"ServiceAccount","name":"s","namespace":"ns"}]}"#]].assert_eq(&binding.to_string());
        expect![[r#"["b","ClusterRole/admin","<unknown>","u","","ns/s"]"#]]
            .assert_eq(&Value::from(ROLE_BINDING.cells(&binding, now())).to_string());
        let mut other = binding.clone();
        other["roleRef"]["kind"] = "Role".into();
        expect![[r#"
            roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"
            roleRef: Invalid value: {"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"admin"}: cannot change roleRef"#]].assert_eq(&lines(&ROLE_BINDING.validate(&other, Some(&binding), Part::Main)));
    }
}

//! Questions that are answered on the spot: who am I, may I do this.
//!
//! Roles are not enforced yet: members of `system:masters` may do everything,
//! of others nothing is known, and the answer says so.

use serde_json::{Value, json};
use steersman_apimachinery::error::ApiError;
use steersman_apimachinery::rules::{Request, Rules};

use crate::fields::{at, items, set, text};

/// The group that may do everything.
const MASTERS: &str = "system:masters";
const NOT_ENFORCED: &str = "roles are not evaluated by this server, only members of the group \
    system:masters are known to be allowed";

/// `selfsubjectreviews`.
pub(crate) struct WhoAmI;

/// `tokenreviews`.
pub(crate) struct TokenReview;

/// `selfsubjectaccessreviews`.
pub(crate) struct MayI;

/// `subjectaccessreviews` and `localsubjectaccessreviews`.
pub(crate) struct MayThey;

/// `selfsubjectrulesreviews`.
pub(crate) struct WhatMayI;

impl Rules for WhoAmI {
    fn answer(&self, mut object: Value, request: &Request<'_>) -> Result<Value, ApiError> {
        let info = json!({"username": request.user, "groups": request.groups});
        set(&mut object, "status", json!({"userInfo": info}));
        Ok(object)
    }
}

impl Rules for TokenReview {
    fn answer(&self, mut object: Value, request: &Request<'_>) -> Result<Value, ApiError> {
        if text(&object, "/spec/token").is_empty() {
            return Err(ApiError::bad_request(
                "token is required for TokenReview in authentication",
            ));
        }
        // Which tokens the server itself takes is not for kinds to know.
        let error = format!("{}: tokens cannot be reviewed by this server", request.resource.kind);
        set(&mut object, "status", json!({"authenticated": false, "user": {}, "error": error}));
        Ok(object)
    }
}

impl Rules for MayI {
    fn answer(&self, mut object: Value, request: &Request<'_>) -> Result<Value, ApiError> {
        check_attributes(&object)?;
        let allowed = request.groups.iter().any(|group| group == MASTERS);
        set(&mut object, "status", verdict(allowed));
        Ok(object)
    }
}

impl Rules for MayThey {
    fn answer(&self, mut object: Value, _: &Request<'_>) -> Result<Value, ApiError> {
        check_attributes(&object)?;
        let groups = items(&object, "/spec/groups");
        if groups.is_empty() && text(&object, "/spec/user").is_empty() {
            return Err(ApiError::bad_request("at least one of user or group must be specified"));
        }
        let allowed = groups.iter().any(|group| group == MASTERS);
        set(&mut object, "status", verdict(allowed));
        Ok(object)
    }
}

impl Rules for WhatMayI {
    fn answer(&self, mut object: Value, request: &Request<'_>) -> Result<Value, ApiError> {
        let all = request.groups.iter().any(|group| group == MASTERS);
        let status = if all {
            json!({
                "incomplete": false,
                "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
                "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            })
        } else {
            json!({
                "incomplete": true,
                "evaluationError": NOT_ENFORCED,
                "resourceRules": [],
                "nonResourceRules": [],
            })
        };
        set(&mut object, "status", status);
        Ok(object)
    }
}

fn check_attributes(object: &Value) -> Result<(), ApiError> {
    let asked = ["resourceAttributes", "nonResourceAttributes"];
    let n = asked.iter().filter(|name| at(object, &format!("/spec/{name}")).is_some()).count();
    if n == 1 {
        return Ok(());
    }
    Err(ApiError::bad_request(
        "exactly one of nonResourceAttributes or resourceAttributes must be specified",
    ))
}

fn verdict(allowed: bool) -> Value {
    if allowed {
        json!({"allowed": true, "reason": format!("members of {MASTERS} may do everything")})
    } else {
        json!({"allowed": false, "reason": NOT_ENFORCED})
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::cluster::Cluster;

    fn ask(rules: &dyn Rules, spec: Value, groups: &[&str]) -> String {
        let cluster = Cluster::default();
        let groups: Vec<String> = groups.iter().map(|group| (*group).to_owned()).collect();
        let mut request = cluster.request("authorization.k8s.io", "selfsubjectaccessreviews");
        request.groups = &groups;
        match rules.answer(json!({"spec": spec}), &request) {
            Ok(answer) => answer["status"].to_string(),
            Err(error) => error.message,
        }
    }

    #[test]
    fn masters_may_do_everything() {
        let spec = || json!({"resourceAttributes": {"verb": "get", "resource": "pods"}});
        expect![[r#"{"allowed":true,"reason":"members of system:masters may do everything"}"#]]
            .assert_eq(&ask(&MayI, spec(), &[MASTERS]));
        expect![[r#"{"allowed":false,"reason":"roles are not evaluated by this server, only members of the group system:masters are known to be allowed"}"#]].assert_eq(&ask(&MayI, spec(), &["others"]));
        expect!["exactly one of nonResourceAttributes or resourceAttributes must be specified"]
            .assert_eq(&ask(&MayI, json!({}), &[MASTERS]));
        let mut they = spec();
        expect!["at least one of user or group must be specified"].assert_eq(&ask(
            &MayThey,
            they.clone(),
            &[MASTERS],
        ));
        they["groups"] = json!([MASTERS]);
        expect![[r#"{"allowed":true,"reason":"members of system:masters may do everything"}"#]]
            .assert_eq(&ask(&MayThey, they, &[]));
        expect![[r#"{"incomplete":false,"nonResourceRules":[{"nonResourceURLs":["*"],"verbs":["*"]}],"resourceRules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]}"#]].assert_eq(&ask(&WhatMayI, json!({"namespace": "a"}), &[MASTERS]));
        expect![[r#"{"evaluationError":"roles are not evaluated by this server, only members of the group system:masters are known to be allowed","incomplete":true,"nonResourceRules":[],"resourceRules":[]}"#]].assert_eq(&ask(&WhatMayI, json!({"namespace": "a"}), &[]));
        expect![[r#"{"userInfo":{"groups":["a","b"],"username":"admin"}}"#]].assert_eq(&ask(
            &WhoAmI,
            json!({}),
            &["a", "b"],
        ));
        expect![[r#"{"authenticated":false,"error":"SelfSubjectAccessReview: tokens cannot be reviewed by this server","user":{}}"#]].assert_eq(&ask(&TokenReview, json!({"token": "x"}), &[]));
    }
}

//! Tokens of service accounts, from `serviceaccounts/token` to their end.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use expect_test::expect;
use http::HeaderMap;
use serde_json::{Value, json};

use crate::auth::{Auth, User};
use crate::harness::{Harness, PODS, pod};

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";

async fn with_account() -> Harness {
    let harness = Harness::new();
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "sa"}});
    harness.post(ACCOUNTS, &account).await.ok();
    harness
}

/// Asks for a token; the answer or the refusal.
async fn request(harness: &Harness, spec: Value) -> Result<Value, String> {
    let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
        "spec": spec});
    let answer = harness.post(&format!("{ACCOUNTS}/sa/token"), &body).await;
    if answer.code < 300 { Ok(answer.ok()) } else { Err(answer.refusal()) }
}

async fn token(harness: &Harness, spec: Value) -> String {
    let answer = request(harness, spec).await.unwrap();
    answer["status"]["token"].as_str().unwrap().to_owned()
}

/// The name of whoever a server takes for the sender of a token.
fn known(harness: &Harness, token: &str) -> Option<String> {
    let mut headers = HeaderMap::new();
    headers.insert("authorization", format!("Bearer {token}").parse().unwrap());
    let auth = Auth::tokens([("static".to_owned(), User::admin())]);
    harness.server.inner.identify(&auth, &headers, None).map(|user| user.name)
}

/// The status of a review, without what differs each time.
async fn review(harness: &Harness, token: &str, audiences: Value) -> String {
    let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
        "spec": {"token": token, "audiences": audiences}});
    let answer = harness.post(REVIEWS, &body).await.ok();
    let mut status = answer["status"].clone();
    if let Some(user) = status.get_mut("user").and_then(Value::as_object_mut) {
        user.remove("uid");
        user.remove("extra");
    }
    status.to_string()
}

#[tokio::test]
async fn tokens_say_whose_they_are_for_as_long_as_it_is_true() {
    let harness = with_account().await;
    let answer = request(&harness, json!({"expirationSeconds": 600})).await.unwrap();
    assert_eq!(answer["status"]["expirationTimestamp"], "2024-01-01T00:10:00Z");
    let token = answer["status"]["token"].as_str().unwrap();
    let claims = token.split('.').nth(1).unwrap();
    let mut claims: Value =
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).unwrap()).unwrap();
    claims["jti"] = json!("");
    claims["kubernetes.io"]["serviceaccount"]["uid"] = json!("");
    expect![[r#"{"aud":["https://kubernetes.default.svc.cluster.local"],"exp":1704067800,"iat":1704067200,"iss":"https://kubernetes.default.svc.cluster.local","jti":"","kubernetes.io":{"namespace":"default","serviceaccount":{"name":"sa","uid":""}},"nbf":1704067200,"sub":"system:serviceaccount:default:sa"}"#]].assert_eq(&claims.to_string());
    let name = Some("system:serviceaccount:default:sa".to_owned());
    assert_eq!(known(&harness, token), name);
    harness.clock.advance(599);
    assert_eq!(known(&harness, token), name);
    harness.clock.advance(1);
    assert_eq!(known(&harness, token), None);
    assert_eq!(known(&harness, "static"), Some("system:admin".to_owned()));
}

#[tokio::test]
async fn tokens_end_with_the_account_and_with_what_they_are_bound_to() {
    let harness = with_account().await;
    let mut bound = pod("p");
    bound["spec"]["serviceAccountName"] = json!("sa");
    harness.post(PODS, &bound).await.ok();
    let reference = json!({"kind": "Pod", "apiVersion": "v1", "name": "p"});
    let of_pod = token(&harness, json!({"boundObjectRef": reference})).await;
    let of_account = token(&harness, json!({})).await;
    assert!(known(&harness, &of_pod).is_some() && known(&harness, &of_account).is_some());
    harness.delete(&format!("{PODS}/p?gracePeriodSeconds=0")).await.ok();
    assert_eq!(known(&harness, &of_pod), None);
    // Another pod of that name is another one.
    harness.post(PODS, &bound).await.ok();
    assert_eq!(known(&harness, &of_pod), None);
    assert!(known(&harness, &of_account).is_some());
    let account = harness.get(&format!("{ACCOUNTS}/sa")).await.ok();
    harness.delete(&format!("{ACCOUNTS}/sa")).await.ok();
    assert_eq!(known(&harness, &of_account), None);
    let same = json!({"apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": account["metadata"]["name"]}});
    harness.post(ACCOUNTS, &same).await.ok();
    assert_eq!(known(&harness, &of_account), None);
    let invalid = review(&harness, &of_account, json!([])).await;
    expect![[r#"{"error":"service account token has been invalidated","user":{}}"#]]
        .assert_eq(&invalid);
}

#[tokio::test]
async fn tokens_that_make_no_sense_are_refused() {
    let harness = with_account().await;
    harness.post(PODS, &pod("other")).await.ok();
    let bound = |kind: &str, name: &str, uid: &str| json!({"boundObjectRef": {"kind": kind, "apiVersion": "v1", "name": name, "uid": uid}});
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}});
    harness.post("/api/v1/nodes", &node).await.ok();
    let mut lines = Vec::new();
    for spec in [
        json!({"expirationSeconds": 599}),
        json!({"expirationSeconds": 1_i64 << 33}),
        bound("Pod", "none", ""),
        bound("Pod", "other", ""),
        bound("Service", "kubernetes", ""),
        bound("Node", "n", "wrong"),
    ] {
        lines.push(request(&harness, spec).await.unwrap_err());
    }
    expect![[r#"
        422 Invalid: TokenRequest.authentication.k8s.io "sa" is invalid: spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes
        422 Invalid: TokenRequest.authentication.k8s.io "sa" is invalid: spec.expirationSeconds: Invalid value: 8589934592: may not specify a duration larger than 2^32 seconds
        404 NotFound: pods "none" not found
        400 BadRequest: cannot bind token for serviceaccount "sa" to pod running with different serviceaccount name.
        400 BadRequest: cannot bind token to object of type v1, Kind=Service
        409 Conflict: Operation cannot be fulfilled on Node "n": the UID in the bound object reference (wrong) does not match the UID in record. The object might have been deleted and then recreated"#]].assert_eq(&lines.join("\n"));
    assert!(request(&harness, bound("Node", "n", "")).await.is_ok());
    let none = harness.post(&format!("{ACCOUNTS}/none/token"), &json!({})).await;
    assert_eq!(none.refusal(), r#"404 NotFound: serviceaccounts "none" not found"#);
    assert_eq!(harness.get(&format!("{ACCOUNTS}/sa/token")).await.code, 405);
}

#[tokio::test]
async fn reviews_know_all_tokens_and_whom_they_are_for() {
    let harness = with_account().await;
    let auth = Auth::tokens([("static".to_owned(), User::new("bob", ["dev"]))]);
    let remembered = harness.server.inner.remember(&Arc::new(auth));
    let plain = token(&harness, json!({})).await;
    let theirs = token(&harness, json!({"audiences": ["them", "us"]})).await;
    let issuer = "https://kubernetes.default.svc.cluster.local";
    let mut lines = Vec::new();
    for (token, audiences) in [
        (&*plain, json!([])),
        (&*plain, json!(["them"])),
        (&*theirs, json!([])),
        (&*theirs, json!(["us", "others"])),
        ("static", json!([])),
        ("static", json!(["us"])),
        ("static", json!(["us", issuer])),
        ("nonsense", json!([])),
    ] {
        lines.push(review(&harness, token, audiences).await);
    }
    expect![[r#"
        {"audiences":["https://kubernetes.default.svc.cluster.local"],"authenticated":true,"user":{"groups":["system:serviceaccounts","system:serviceaccounts:default","system:authenticated"],"username":"system:serviceaccount:default:sa"}}
        {"error":"token audiences [\"https://kubernetes.default.svc.cluster.local\"] is invalid for the target audiences [\"them\"]","user":{}}
        {"error":"token audiences [\"them\", \"us\"] is invalid for the target audiences [\"https://kubernetes.default.svc.cluster.local\"]","user":{}}
        {"audiences":["us"],"authenticated":true,"user":{"groups":["system:serviceaccounts","system:serviceaccounts:default","system:authenticated"],"username":"system:serviceaccount:default:sa"}}
        {"audiences":["https://kubernetes.default.svc.cluster.local"],"authenticated":true,"user":{"groups":["dev","system:authenticated"],"username":"bob"}}
        {"error":"invalid bearer token","user":{}}
        {"audiences":["https://kubernetes.default.svc.cluster.local"],"authenticated":true,"user":{"groups":["dev","system:authenticated"],"username":"bob"}}
        {"error":"invalid bearer token","user":{}}"#]].assert_eq(&lines.join("\n"));
    // Such a token opens nothing here.
    assert_eq!(known(&harness, &theirs), None);
    drop(remembered);
    let gone = review(&harness, "static", json!([])).await;
    assert!(gone.contains("invalid bearer token"), "{gone}");
    let empty = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
        "spec": {"token": ""}});
    let refusal = harness.post(REVIEWS, &empty).await.refusal();
    assert!(refusal.starts_with("400 BadRequest: token is required"), "{refusal}");
}

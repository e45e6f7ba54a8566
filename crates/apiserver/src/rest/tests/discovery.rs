use serde_json::{Value, json};

use crate::harness::{Harness, JSON};

#[tokio::test]
async fn groups_versions_and_resources_are_found() {
    let harness = Harness::new();
    let core = harness.get("/api").await.ok();
    assert_eq!(core["versions"], json!(["v1"]));
    let groups = harness.get("/apis").await.ok();
    let apps = groups["groups"].as_array().unwrap().iter().find(|group| group["name"] == "apps");
    assert_eq!(apps.unwrap()["preferredVersion"]["groupVersion"], "apps/v1");
    assert_eq!(harness.get("/apis/apps").await.ok()["kind"], "APIGroup");
    assert_eq!(harness.get("/apis/nothing").await.code, 404);
    let resources = harness.get("/api/v1").await.ok();
    assert_eq!(resources["groupVersion"], "v1");
    let find = |name: &str| -> Value {
        let rows = resources["resources"].as_array().unwrap();
        rows.iter().find(|row| row["name"] == name).cloned().unwrap_or_default()
    };
    assert_eq!(find("pods")["shortNames"], json!(["po"]));
    assert_eq!(find("pods")["namespaced"], true);
    assert_eq!(find("nodes")["namespaced"], false);
    assert_eq!(find("pods/status")["verbs"], json!(["get", "patch", "update"]));
    assert_eq!(find("pods/binding")["verbs"], json!(["create"]));
    assert_eq!(find("pods/eviction")["group"], "policy");
}

#[tokio::test]
async fn everything_is_found_at_once() {
    let harness = Harness::new();
    for version in ["v2", "v2beta1"] {
        let accept = format!(
            "application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList,application/json"
        );
        let core = harness.get_as("/api", &accept).await;
        assert!(core.content_type.contains(&format!("v={version}")), "{}", core.content_type);
        let core = core.ok();
        assert_eq!(core["items"].as_array().unwrap().len(), 1);
        let resources = core["items"][0]["versions"][0]["resources"].as_array().unwrap();
        let pods = resources.iter().find(|found| found["resource"] == "pods").unwrap();
        assert_eq!(pods["responseKind"], json!({ "group": "", "version": "v1", "kind": "Pod" }));
        assert_eq!(pods["scope"], "Namespaced");
        let rest = harness.get_as("/apis", &accept).await.ok();
        assert_eq!(rest["kind"], "APIGroupDiscoveryList");
        assert!(rest["items"].as_array().unwrap().len() > 5);
    }
}

#[tokio::test]
async fn version_health_and_paths() {
    let harness = Harness::new();
    assert_eq!(harness.get("/version").await.ok()["gitVersion"], "v1.36.0+steersman");
    for path in ["/healthz", "/livez", "/readyz"] {
        assert_eq!(harness.get(path).await.body, "ok");
    }
    let verbose = harness.get("/readyz?verbose").await;
    assert_eq!(verbose.body, "[+]ping ok\nreadyz check passed\n");
    let paths = harness.get("/").await.ok();
    assert!(paths["paths"].as_array().unwrap().contains(&json!("/apis/apps/v1")));
    let none = harness.get("/none").await.refusal();
    assert_eq!(none, "404 NotFound: the server could not find the requested resource");
    let wrong = harness.ask("PUT", "/api/v1/nodes", JSON, "{}", &[]).await.refusal();
    assert!(wrong.starts_with("405 MethodNotAllowed: the server does not allow"), "{wrong}");
}

#[tokio::test]
async fn openapi_documents_are_found_and_tagged() {
    let harness = Harness::new();
    let index = harness.get("/openapi/v3").await.ok();
    let url = index["paths"]["apis/apps/v1"]["serverRelativeURL"].as_str().unwrap().to_owned();
    let group = harness.get(&url).await.ok();
    assert!(group["components"]["schemas"]["io.k8s.api.apps.v1.Deployment"].is_object());
    assert_eq!(harness.get("/openapi/v3/apis/none/v1").await.code, 404);
    let v2 = harness.get("/openapi/v2").await.ok();
    assert_eq!(v2["swagger"], "2.0");
    let accept = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    let protobuf = harness.get_as("/openapi/v2", accept).await;
    assert!(protobuf.content_type.ends_with("protobuf") && protobuf.body.len() > 10_000);
}

#[tokio::test]
async fn only_masters_speak_for_others() {
    let harness = Harness::new();
    let review = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview",
    });
    let uri = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let as_jane = [("impersonate-user", "jane"), ("impersonate-group", "dev")];
    let answer = harness.ask("POST", uri, JSON, review.to_string(), &as_jane).await.ok();
    assert_eq!(answer["status"]["userInfo"]["username"], "jane");
}

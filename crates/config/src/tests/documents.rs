//! Documents that people write, right and wrong.

use std::time::Duration;

use serde_json::json;

use super::{check_problems, load_body, problems_of, registry};
use crate::Config;

#[test]
fn default_is_what_an_empty_document_gives() {
    let loaded = load_body("").expect("nothing is wrong");
    let default = Config::default_for(&registry()).expect("the default profile runs");
    assert_eq!(loaded.config, default);
    assert_eq!(default.parallelism, 16);
    assert_eq!(default.percentage_of_nodes_to_score, 0);
    assert_eq!(default.pod_initial_backoff, Duration::from_secs(1));
    assert_eq!(default.pod_max_backoff, Duration::from_secs(10));
    assert_eq!(default.leader_election.renew_deadline, Duration::from_secs(10));
    assert_eq!(default.client_connection.burst, 100);
    let [profile] = default.profiles.as_slice() else { panic!("one profile") };
    assert_eq!(profile.scheduler_name, "default-scheduler");
    assert_eq!(profile.args["NodeName"], json!({}));
    assert_eq!(
        profile.args["InterPodAffinity"],
        json!({"hardPodAffinityWeight": 1, "ignorePreferredTermsOfExistingPods": false})
    );
}

#[test]
fn json_is_read_like_yaml() {
    let text = "{\n\t\"apiVersion\": \"kubescheduler.config.k8s.io/v1\",\n\t\"kind\": \
                \"KubeSchedulerConfiguration\",\n\t\"parallelism\": 4\n}\n";
    let loaded = crate::load(text, &registry()).expect("nothing is wrong");
    assert_eq!(loaded.config.parallelism, 4);
    let twice = text.replace("\"kind\"", "\"parallelism\": 3, \"kind\"");
    let errors = crate::load(&twice, &registry()).expect_err("a duplicate key");
    assert_eq!(
        errors.to_string(),
        "line 4, column 2: the key \"parallelism\" stands twice in one object; each may be set once"
    );
}

#[test]
fn null_means_not_set() {
    let written = load_body(
        "parallelism: null\nprofiles: null\nextenders:\nleaderElection: ~\nclientConnection: \
         {qps: null}\n",
    );
    assert_eq!(written, load_body(""));
    let written = load_body(
        "profiles:\n- plugins: {score: {enabled: null}, multiPoint: null}\n  pluginConfig: null\n",
    );
    assert_eq!(written, load_body(""));
}

#[test]
fn documents_are_read_back_after_defaulting() {
    let body = "profiles:\n- plugins: {score: {enabled: [{name: ImageLocality, weight: 9}]}}\n\
                extenders:\n- urlPrefix: http://a/\n  httpTimeout: 90s\n  enableHTTPS: true\n  \
                tlsConfig: {serverName: a, caData: YWJj}\n\
                clientConnection: {qps: 0.1}\ndelayCacheUntilActive: true\n";
    let first = load_body(body).expect("nothing is wrong");
    assert_eq!(first.document["extenders"][0]["httpTimeout"], "1m30s");
    assert_eq!(first.document["extenders"][0]["tlsConfig"]["caData"], "YWJj");
    assert_eq!(first.document["clientConnection"]["qps"], 0.1);
    assert_eq!(first.document["delayCacheUntilActive"], true);
    let tls = first.config.extenders[0].tls.as_ref().expect("it was written");
    assert_eq!(tls.ca_data, b"abc");

    let again = crate::load(&first.document.to_string(), &registry()).expect("still right");
    assert_eq!(again.document, first.document);
    assert_eq!(again.config, first.config);
}

#[test]
fn extender_without_timeout_gets_five_seconds() {
    let loaded = load_body("extenders:\n- urlPrefix: http://a/\n").expect("nothing is wrong");
    assert_eq!(loaded.config.extenders[0].http_timeout, Duration::from_secs(5));
    assert_eq!(
        loaded.document["extenders"],
        json!([{"urlPrefix": "http://a/", "httpTimeout": "0s"}])
    );
}

#[test]
fn contention_profiling_follows_profiling() {
    let config = load_body("enableProfiling: false\n").expect("nothing is wrong").config;
    assert_eq!((config.enable_profiling, config.enable_contention_profiling), (false, false));
}

#[test]
fn every_problem_is_reported_at_once() {
    let body = "
Parallelism: 3
percentageOfNodesToScore: '70'
podInitialBackoffSeconds: -1
leaderElection: {leaseDuration: 1s, renewDeadline: soon, retryPeriod: 15}
profiles:
- schedulerName: a
  percentOfNodes: 5
  plugins:
    score:
      enable: []
      enabled:
      - {name: ImageLocality, weight: heavy}
      - {name: NodeName}
      - {name: EBSLimits}
  pluginConfig:
  - name: InterPodAffinity
    args: {hardPodAffinityWeight: 200, hardWeight: 1}
  - name: NodeResourcesFit
    args:
      scoringStrategy:
        type: Best
        requestedToCapacityRatio: {shape: [{utilisation: 1}]}
- schedulerName: a
extenders:
- {urlPrefix: 'ftp://a', prioritizeVerb: p, tlsConfig: {caData: '%'}}
";
    let mut problems = problems_of(body);
    problems.sort();
    expect_test::expect![[r#"
        Parallelism: unknown field, allowed: apiVersion, kind, parallelism, leaderElection, clientConnection, enableProfiling, enableContentionProfiling, percentageOfNodesToScore, podInitialBackoffSeconds, podMaxBackoffSeconds, profiles, extenders, delayCacheUntilActive
        extenders[0].tlsConfig.caData: found other text, allowed: base64 of a PEM file
        extenders[0].urlPrefix: found "ftp://a", allowed: http:// or https://, a host, and a path if need be; no user or password
        extenders[0].weight: found 0, allowed: 1 or more, as there is a prioritizeVerb
        leaderElection.leaseDuration: found 1s, allowed: at least the renewDeadline, 10s
        leaderElection.renewDeadline: found "soon", allowed: a duration such as "1m30s"
        leaderElection.retryPeriod: found 15, allowed: a string
        percentageOfNodesToScore: found "70", allowed: a whole number from -2147483648 to 2147483647
        podInitialBackoffSeconds: found -1, allowed: 1 or more
        profiles[0].percentOfNodes: unknown field, allowed: schedulerName, percentageOfNodesToScore, plugins, pluginConfig
        profiles[0].pluginConfig[0].args.hardPodAffinityWeight: found 200, allowed: 0 to 100
        profiles[0].pluginConfig[0].args.hardWeight: unknown field, allowed: hardPodAffinityWeight, ignorePreferredTermsOfExistingPods
        profiles[0].pluginConfig[1].args.scoringStrategy.requestedToCapacityRatio.shape[0].utilisation: unknown field, allowed: utilization, score
        profiles[0].pluginConfig[1].args.scoringStrategy.requestedToCapacityRatio: found a function, allowed: only with type RequestedToCapacityRatio
        profiles[0].pluginConfig[1].args.scoringStrategy.type: found "Best", allowed: LeastAllocated, MostAllocated, RequestedToCapacityRatio
        profiles[0].plugins.score.enable: unknown field, allowed: enabled, disabled
        profiles[0].plugins.score.enabled[0].weight: found "heavy", allowed: a whole number from -2147483648 to 2147483647
        profiles[0].plugins.score.enabled[1]: plugin "NodeName" serves filter only
        profiles[0].plugins.score.enabled[2]: plugin "EBSLimits" does not exist: NodeVolumeLimits counts those volumes now
        profiles[1].schedulerName: duplicate of "a" at profiles[0].schedulerName; each may be listed once
    "#]]
    .assert_eq(&(problems.join("\n") + "\n"));
}

#[test]
fn wrong_type_is_reported_alone() {
    let text = "kind: Deployment\nspec: {}\n";
    let errors = crate::load(text, &registry()).expect_err("another type");
    assert_eq!(
        errors.to_string(),
        "apiVersion: required: \"kubescheduler.config.k8s.io/v1\"\nkind: found \"Deployment\", \
         allowed: \"KubeSchedulerConfiguration\""
    );
}

#[test]
fn disabled_leader_election_is_not_checked() {
    check_problems("leaderElection: {leaderElect: false, leaseDuration: -1s}\n", &[]);
    check_problems(
        "leaderElection: {leaseDuration: -1s, resourceLock: endpoints}\n",
        &[
            "leaderElection.leaseDuration: found -1s, allowed: more than 0s",
            "leaderElection.leaseDuration: found -1s, allowed: at least the renewDeadline, 10s",
            "leaderElection.resourceLock: found \"endpoints\", allowed: \"leases\"",
        ],
    );
}

#[test]
fn extenders_are_checked() {
    check_problems(
        "clientConnection: {burst: -1}\nextenders:\n- {urlPrefix: 'http://me:secret@a/', \
         prioritizeVerb: p, httpTimeout: -1s}\n\
         - {urlPrefix: 'https://a', tlsConfig: {insecure: true, caFile: f}}\n\
         - {urlPrefix: 'http://a/b', managedResources: [{name: a/b}, {name: a/b}, {name: ' '}]}\n",
        &[
            "clientConnection.burst: found -1, allowed: 0 or more",
            "extenders[0].urlPrefix: found a URL with a user or a password, allowed: http:// or \
             https://, a host, and a path if need be; no user or password",
            "extenders[0].weight: found 0, allowed: 1 or more, as there is a prioritizeVerb",
            "extenders[0].httpTimeout: found -1s, allowed: 0s or more",
            "extenders[1].tlsConfig.insecure: found true, allowed: false, as caFile or caData says \
             whom to trust",
            "extenders[2].managedResources[1].name: duplicate of \"a/b\"; each may be listed once",
            "extenders[2].managedResources[2].name: found \" \", allowed: an optional DNS domain \
             and '/', then 1 to 63 letters, digits, '-', '_' or '.', with a letter or digit at \
             both ends",
        ],
    );
}

#[test]
fn arguments_must_be_of_the_plugins_kind() {
    let args = |args: &str| {
        format!("profiles:\n- pluginConfig:\n  - name: VolumeBinding\n    args: {args}\n")
    };
    check_problems(&args("{kind: VolumeBindingArgs}"), &[]);
    check_problems(&args("null"), &[]);
    check_problems(
        &args("{apiVersion: kubescheduler.config.k8s.io/v1beta3, kind: VolumeBindingArgs}"),
        &["profiles[0].pluginConfig[0].args.apiVersion: found \
           \"kubescheduler.config.k8s.io/v1beta3\", allowed: \"kubescheduler.config.k8s.io/v1\""],
    );
    check_problems(
        &args("[1]"),
        &["profiles[0].pluginConfig[0].args: found [1], allowed: an object of kind \
           VolumeBindingArgs"],
    );
    check_problems(
        &args("{shape: [], bindTimeoutSeconds: -1}"),
        &[
            "profiles[0].pluginConfig[0].args.bindTimeoutSeconds: found -1, allowed: 0 or more",
            "profiles[0].pluginConfig[0].args.shape: found a shape, allowed: none, as the feature \
             StorageCapacityScoring is off",
        ],
    );
}

#[test]
fn arguments_of_unknown_plugins_are_kept_with_a_notice() {
    let loaded = load_body("profiles:\n- pluginConfig:\n  - name: Other\n    args: {a: [1]}\n")
        .expect("nothing is wrong");
    assert_eq!(
        loaded.document["profiles"][0]["pluginConfig"][0],
        json!({"name": "Other", "args": {"a": [1]}})
    );
    assert_eq!(
        loaded.notices[0].to_string(),
        "profiles[0].pluginConfig[0]: no effect, as plugin \"Other\" is not enabled"
    );
}

#[test]
fn keys_are_not_shown() {
    // "secret key", "certificate" and "authority".
    let (key, bytes) = ("c2VjcmV0IGtleQ==", "[115, 101, 99, 114, 101, 116");
    let body = format!(
        "extenders:\n- urlPrefix: https://a/\n  tlsConfig: {{keyData: {key}, certData: \
         Y2VydGlmaWNhdGU=, caData: YXV0aG9yaXR5}}\n- urlPrefix: http://b/\n- urlPrefix: \
         https://c/\n  tlsConfig: {{insecure: true}}\n"
    );
    let is_hidden = |shown: &str| ![key, bytes, "secret key"].iter().any(|it| shown.contains(it));
    let loaded = load_body(&body).expect("nothing is wrong");
    let head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";
    let migrated = crate::migrate(&format!("{head}{body}"), &registry()).expect("it loads");
    for shown in [format!("{loaded:?}"), format!("{loaded:#?}"), format!("{migrated:?}")] {
        assert!(is_hidden(&shown) && shown.contains("https://a/"), "{shown}");
    }
    let tls: crate::wire::TlsConfig =
        serde_json::from_value(json!({"keyData": key, "caFile": "/ca"})).expect("it is one");
    let shown = format!("{tls:?}");
    assert!(is_hidden(&shown) && shown.contains("/ca"), "{shown}");

    // Written out they are whole.
    for document in [&loaded.document, &migrated.document] {
        assert!(crate::to_yaml(document).contains(key));
        let shown = crate::redacted(document);
        let mut expected = document.clone();
        expected["extenders"][0]["tlsConfig"]["keyData"] = "<redacted>".into();
        assert_eq!(shown, expected, "only the key is hidden");
    }
}

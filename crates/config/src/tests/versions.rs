//! Documents of old versions.

use std::fs;
use std::path::{Path, PathBuf};

use expect_test::expect_file;
use steersman_api::problem::Problem;

use super::registry;
use crate::{ConfigErrors, Loaded};

fn cases() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/versions");
    let entries = fs::read_dir(directory).expect("the directory exists");
    let mut cases: Vec<_> = entries.map(|entry| entry.expect("readable").path()).collect();
    cases.sort();
    cases
}

fn text(case: &Path, file: &str) -> String {
    fs::read_to_string(case.join(file)).unwrap_or_else(|error| panic!("{case:?} {file}: {error}"))
}

#[track_caller]
fn loaded(case: &Path, text: &str) -> Loaded {
    match crate::load(text, &registry()) {
        Ok(loaded) => loaded,
        Err(errors) => panic!("{}: {errors}\n{text}", case.display()),
    }
}

fn lines(notices: &[Problem]) -> String {
    notices.iter().map(|notice| format!("{notice}\n")).collect()
}

#[test]
fn old_documents_mean_the_same_as_their_hand_written_successors() {
    let cases = cases();
    assert_eq!(cases.len(), 9);
    for case in cases {
        let old = loaded(&case, &text(&case, "input.yaml"));
        let new = loaded(&case, &text(&case, "v1.yaml"));
        assert_eq!(crate::changes(&new.config, &old.config), [""; 0], "{}", case.display());
        assert_eq!(old.config, new.config, "{}", case.display());
        assert_eq!(lines(&new.notices), "", "{}", case.display());
        expect_file![case.join("notices.txt")].assert_eq(&lines(&old.notices));
    }
}

#[test]
fn migrated_documents_mean_the_same_and_say_no_more() {
    for case in cases() {
        let input = text(&case, "input.yaml");
        let migrated = crate::migrate(&input, &registry()).expect("it loads");
        let old = loaded(&case, &input);
        assert_eq!(migrated.notices, old.notices, "{}", case.display());
        let written = crate::to_yaml(&migrated.document);
        assert_eq!(loaded(&case, &written).config, old.config, "{}", case.display());
        // It is its own migration.
        let again = crate::migrate(&written, &registry()).expect("it loads");
        assert_eq!((again.document, again.notices), (migrated.document, Vec::new()));
        assert!(written.len() < 2 * input.len() + 400, "{written}");
    }
}

#[test]
fn migrating_keeps_what_is_written() {
    let document = "apiVersion: kubescheduler.config.k8s.io/v1\nextenders:\n- bindVerb: b\n  \
                    httpTimeout: 3s\n  urlPrefix: http://a/\nkind: KubeSchedulerConfiguration\n\
                    leaderElection:\n  leaderElect: false\n  leaseDuration: 30s\n\
                    percentageOfNodesToScore: 0\nprofiles:\n- pluginConfig:\n  - args:\n      \
                    ignoredResources: []\n    name: NodeResourcesFit\n  plugins:\n    score:\n      \
                    disabled:\n      - name: '*'\n      enabled:\n      - name: ImageLocality\n        \
                    weight: 3\n  schedulerName: a\n";
    let migrated = crate::migrate(document, &registry()).expect("it loads");
    let reread: serde_json::Value = serde_saphyr::from_str(document).expect("it is YAML");
    assert_eq!(migrated.document, reread);
}

fn load_as(version: &str, body: &str) -> Result<Loaded, ConfigErrors> {
    let head = "kind: KubeSchedulerConfiguration\napiVersion: kubescheduler.config.k8s.io/";
    crate::load(&format!("{head}{version}\n{body}"), &registry())
}

#[track_caller]
fn check_refused(version: &str, body: &str, expected: &[&str]) {
    match load_as(version, body) {
        Ok(_) => panic!("{version} was accepted:\n{body}"),
        Err(errors) => {
            let found: Vec<String> = errors.problems().iter().map(ToString::to_string).collect();
            assert_eq!(found, expected, "{version}:\n{body}");
        }
    }
}

#[test]
fn fields_of_later_versions_are_refused() {
    check_refused(
        "v1beta3",
        "delayCacheUntilActive: true\nprofiles: [{percentageOfNodesToScore: 5, plugins: \
         {placementScore: {}}}]\nhealthzBindAddress: a\n",
        &[
            "delayCacheUntilActive: unknown field in v1beta3; v1 has it",
            "profiles[0].percentageOfNodesToScore: unknown field in v1beta3; v1 has it",
            "profiles[0].plugins.placementScore: unknown field in v1beta3; v1 has it",
            "healthzBindAddress: unknown field, allowed: apiVersion, kind, parallelism, \
             leaderElection, clientConnection, enableProfiling, enableContentionProfiling, \
             percentageOfNodesToScore, podInitialBackoffSeconds, podMaxBackoffSeconds, profiles, \
             extenders",
        ],
    );
    check_refused(
        "v1beta1",
        "profiles: [{plugins: {multiPoint: {}, unreserve: {enable: []}}}]\n",
        &[
            "profiles[0].plugins.multiPoint: unknown field in v1beta1; v1beta3 has it",
            "profiles[0].plugins.unreserve.enable: unknown field, allowed: enabled, disabled",
        ],
    );
    check_refused(
        "v1beta2",
        "profiles: [{plugins: {unreserve: {}}}]\nmetricsBindAddress: 5\n",
        &[
            "metricsBindAddress: found 5, allowed: a string",
            "profiles[0].plugins.unreserve: unknown field, allowed: preEnqueue, queueSort, \
             preFilter, filter, postFilter, preScore, score, reserve, permit, preBind, bind, \
             postBind, multiPoint",
        ],
    );
}

#[test]
fn unknown_fields_are_told_which_ones_their_version_has() {
    let body = "parallelisms: 1\nprofiles: [{name: a, plugins: {scores: {}}}]\n\
                leaderElection: {elect: true}\n";
    let root = |addresses: &str| {
        format!(
            "parallelisms: unknown field, allowed: apiVersion, kind, parallelism, leaderElection, \
             clientConnection, {addresses}enableProfiling, enableContentionProfiling, \
             percentageOfNodesToScore, podInitialBackoffSeconds, podMaxBackoffSeconds, profiles, \
             extenders"
        )
    };
    let plugins = |first: &str, unreserve: &str, last: &str| {
        format!(
            "profiles[0].plugins.scores: unknown field, allowed: {first}queueSort, preFilter, \
             filter, postFilter, preScore, score, reserve, {unreserve}permit, preBind, bind, \
             postBind{last}"
        )
    };
    let addresses = "healthzBindAddress, metricsBindAddress, ";
    for (version, root, plugins) in [
        ("v1beta3", root(""), plugins("preEnqueue, ", "", ", multiPoint")),
        ("v1beta2", root(addresses), plugins("preEnqueue, ", "", ", multiPoint")),
        ("v1beta1", root(addresses), plugins("", "unreserve, ", "")),
    ] {
        let Err(errors) = load_as(version, body) else { panic!("{version} was accepted") };
        let mut found: Vec<String> = errors.problems().iter().map(ToString::to_string).collect();
        found.sort();
        let election = "leaderElection.elect: unknown field, allowed: leaderElect, leaseDuration, \
                        renewDeadline, retryPeriod, resourceLock, resourceName, resourceNamespace";
        let profile =
            "profiles[0].name: unknown field, allowed: schedulerName, plugins, pluginConfig";
        assert_eq!(found, [election, &root, profile, &plugins], "{version}");
    }
}

#[test]
fn complaints_name_places_of_the_file() {
    // The first entries of both lists are converted away.
    check_refused(
        "v1beta1",
        "profiles:\n- plugins:\n    filter: {enabled: [{name: EBSLimits}, {name: Nope}]}\n    \
         score: {disabled: [{name: NodeResourcesLeastAllocated}], enabled: [{name: \
         NodeResourcesMostAllocated}, {name: NodeName}]}\n  \
         pluginConfig:\n  - name: NodeLabel\n    args: {}\n  - name: InterPodAffinity\n    \
         args: {hardPodAffinityWeight: 101}\n  - name: NodeResourcesMostAllocated\n    args: \
         {kind: OtherArgs, shapes: [], resources: [{name: cpu, weight: 101}]}\n",
        &[
            "profiles[0].pluginConfig[2].args.kind: found \"OtherArgs\", allowed: \
             \"NodeResourcesMostAllocatedArgs\"",
            "profiles[0].pluginConfig[2].args.shapes: unknown field, allowed: resources, shape",
            "profiles[0].pluginConfig[1].args.hardPodAffinityWeight: found 101, allowed: 0 to 100",
            "profiles[0].pluginConfig[2].args.scoringStrategy.resources[0].weight: found 101, \
             allowed: 1 to 100",
            "profiles[0].plugins.filter.enabled[1]: plugin \"Nope\" does not exist",
            "profiles[0].plugins.score.enabled[1]: plugin \"NodeName\" serves filter only",
        ],
    );
}

#[test]
fn two_strategies_cannot_be_one() {
    check_refused(
        "v1beta1",
        "profiles: [{plugins: {score: {enabled: [{name: NodeResourcesMostAllocated}]}}}]\n",
        &["profiles[0].plugins.score: found NodeResourcesLeastAllocated and \
           NodeResourcesMostAllocated, allowed: one of them, the other disabled: both are done by \
           NodeResourcesFit, which has one scoringStrategy"],
    );
}

#[track_caller]
fn check_same(version: &str, plugins: &str, other_version: &str, other_plugins: &str) {
    let config = |version: &str, plugins: &str| match load_as(
        version,
        &format!("profiles: [{{plugins: {{{plugins}}}}}]\n"),
    ) {
        Ok(loaded) => loaded.config,
        Err(errors) => panic!("{version}: {plugins}: {errors}"),
    };
    let changes = crate::changes(&config(other_version, other_plugins), &config(version, plugins));
    assert_eq!(changes, [""; 0], "{plugins}");
}

#[test]
fn what_was_without_effect_stays_so() {
    check_same("v1beta1", "", "v1beta2", "");
    check_same("v1beta1", "score: {disabled: [{name: NodeResourcesFit}]}", "v1beta2", "");
    check_same("v1beta1", "score: {disabled: [{name: RequestedToCapacityRatio}]}", "v1beta2", "");
    check_same("v1beta2", "multiPoint: {}", "v1beta2", "");
    check_same(
        "v1beta1",
        "score: {disabled: [{name: NodeResourcesFit}, {name: NodeResourcesLeastAllocated}]}",
        "v1beta2",
        "score: {disabled: [{name: NodeResourcesFit}]}",
    );
    check_same(
        "v1beta3",
        "filter: {disabled: [{name: '*'}], enabled: [{name: EBSLimits}, {name: NodeVolumeLimits}]}",
        "v1",
        "filter: {disabled: [{name: '*'}], enabled: [{name: NodeVolumeLimits}]}",
    );
}

#[test]
fn odd_shapes_are_refused() {
    for body in [
        "profiles: 5\n",
        "profiles: [5]\n",
        "profiles: [{plugins: []}]\n",
        "profiles: [{plugins: {score: [], filter: {enabled: {}}}}]\n",
        "profiles: [{pluginConfig: {}}]\n",
        "profiles: [{pluginConfig: [{name: NodeResourcesFit, args: 5}]}]\n",
        "profiles: [{pluginConfig: [{name: NodeAffinity, args: {addedAffinity: 5}}]}]\n",
        "leaderElection: []\n",
    ] {
        for version in ["v1beta1", "v1beta2", "v1beta3"] {
            assert!(load_as(version, body).is_err(), "{version}: {body}");
        }
    }
    for (name, args) in [("NodeLabel", "5"), ("NodeResourcesLeastAllocated", "[1]")] {
        let body = format!(
            "profiles: [{{plugins: {{filter: {{enabled: [{{name: NodeLabel}}]}}}}, pluginConfig: \
             [{{name: {name}, args: {args}}}, {{name: NodeAffinity, args: {{addedAffinity: 5}}}}]}}]\n"
        );
        assert!(load_as("v1beta1", &body).is_err(), "{body}");
    }
}

#[test]
fn a_plugin_of_ones_own_may_have_an_old_name() {
    use steersman_framework::point::PointSet;
    use steersman_framework::registry::Descriptor;
    let mut registry = registry();
    let own = Descriptor::planned("EBSLimits", PointSet::FILTER, None);
    registry.register(own).expect("the name is free");
    let text = "apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\n\
                profiles: [{plugins: {filter: {enabled: [{name: EBSLimits}]}}}]\n";
    let loaded = crate::load(text, &registry).expect("nothing is wrong");
    assert_eq!(loaded.config.profiles[0].plugins.points_of("EBSLimits"), PointSet::FILTER);
}

#[test]
fn old_documents_of_another_kind_are_refused() {
    let text = "apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: Polity\n";
    let errors = crate::load(text, &registry()).expect_err("another kind");
    assert_eq!(
        errors.to_string(),
        "kind: found \"Polity\", allowed: \"KubeSchedulerConfiguration\""
    );
}

#[test]
fn documents_of_the_policy_api_are_told_what_came_after_it() {
    for text in [
        "apiVersion: v1\nkind: Policy\npredicates: [{name: PodFitsPorts}]\n",
        "{\"kind\": \"Policy\", \"extenders\": []}",
        "apiVersion: kubescheduler.config.k8s.io/v1beta1\nkind: Policy\n",
    ] {
        let errors = crate::load(text, &registry()).expect_err("another kind");
        assert_eq!(
            errors.to_string(),
            "kind: found \"Policy\", allowed: \"KubeSchedulerConfiguration\" of \
             kubescheduler.config.k8s.io/v1: the Policy API was removed in v1.23; predicates and \
             priorities became plugins, which profiles[].plugins enables and weighs, and \
             extenders stand in extenders[]"
        );
    }
}

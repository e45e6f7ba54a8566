//! What differs between configurations.

use super::{load_body, registry};
use crate::gates::{FeatureGates, Gate};
use crate::{Config, Options, load_default, load_with};

fn config(body: &str) -> Config {
    match load_body(body) {
        Ok(loaded) => loaded.config,
        Err(errors) => panic!("{body}: {errors}"),
    }
}

#[track_caller]
fn check(old: &str, new: &str, expected: &[&str]) {
    assert_eq!(crate::changes(&config(old), &config(new)), expected);
}

#[test]
fn what_means_the_same_does_not_differ() {
    check("", "parallelism: 16\nprofiles: [{schedulerName: default-scheduler}]\n", &[]);
    check(
        "profiles: [{plugins: {score: {enabled: [{name: ImageLocality}]}}}]\n",
        "profiles: [{plugins: {score: {enabled: [{name: ImageLocality, weight: 1}]}}}]\n",
        &[],
    );
}

#[test]
fn fields_are_compared_one_by_one() {
    check(
        "clientConnection: {qps: 20, kubeconfig: a}\nleaderElection: {retryPeriod: 3s}\n",
        "parallelism: 8\npodMaxBackoffSeconds: 60\nclientConnection: {kubeconfig: b}\n\
         enableProfiling: false\ndelayCacheUntilActive: true\npercentageOfNodesToScore: 10\n\
         leaderElection: {resourceName: x, leaderElect: false}\n",
        &[
            "parallelism: 16 -> 8",
            "percentageOfNodesToScore: 0 -> 10",
            "podMaxBackoffSeconds: 10 -> 60",
            "enableProfiling: true -> false",
            "enableContentionProfiling: true -> false",
            "delayCacheUntilActive: false -> true",
            "leaderElection.leaderElect: true -> false",
            "leaderElection.retryPeriod: 3s -> 2s",
            "leaderElection.resourceName: \"kube-scheduler\" -> \"x\"",
            "clientConnection.kubeconfig: \"a\" -> \"b\"",
            "clientConnection.qps: 20.0 -> 50.0",
        ],
    );
}

#[test]
fn profiles_are_compared_by_name_and_plugins_by_point() {
    check(
        "profiles:\n- schedulerName: a\n- schedulerName: b\n  percentageOfNodesToScore: 5\n",
        "profiles:\n- schedulerName: b\n  plugins:\n    filter: {enabled: [{name: NodePorts}], \
         disabled: [{name: NodeName}]}\n    score: {enabled: [{name: NodeAffinity, weight: 9}]}\n  \
         pluginConfig:\n  - name: NodeResourcesFit\n    args: {ignoredResources: [example.com/a], \
         scoringStrategy: {type: MostAllocated}}\n- schedulerName: c\n",
        &[
            "profiles[\"a\"]: profile removed",
            "profiles[\"b\"].percentageOfNodesToScore: 5 removed",
            "profiles[\"b\"].plugins.filter: NodeName removed",
            "profiles[\"b\"].plugins.filter in order: NodeUnschedulable, TaintToleration, \
             NodeAffinity, NodePorts, NodeResourcesFit, VolumeRestrictions, NodeVolumeLimits, \
             VolumeBinding, VolumeZone, PodTopologySpread, InterPodAffinity, DynamicResources, \
             NodeDeclaredFeatures -> NodePorts, NodeUnschedulable, TaintToleration, NodeAffinity, \
             NodeResourcesFit, VolumeRestrictions, NodeVolumeLimits, VolumeBinding, VolumeZone, \
             PodTopologySpread, InterPodAffinity, DynamicResources, NodeDeclaredFeatures",
            "profiles[\"b\"].plugins.score[\"NodeAffinity\"].weight: 2 -> 9",
            "profiles[\"b\"].pluginConfig[\"NodeResourcesFit\"].ignoredResources: \
             [\"example.com/a\"] added",
            "profiles[\"b\"].pluginConfig[\"NodeResourcesFit\"].scoringStrategy.type: \
             \"LeastAllocated\" -> \"MostAllocated\"",
            "profiles[\"c\"]: profile added",
        ],
    );
}

#[test]
fn secrets_of_extenders_are_not_shown() {
    check(
        "extenders:\n- {urlPrefix: 'http://secret/', tlsConfig: {keyData: c2VjcmV0}}\n",
        "extenders:\n- {urlPrefix: 'http://a/', filterVerb: f, managedResources: [{name: \
         example.com/a, ignoredByScheduler: true}]}\n- {urlPrefix: 'http://b/'}\n",
        &[
            "extenders[0].urlPrefix: differs",
            "extenders[0].filterVerb: \"f\" added",
            "extenders[0].tlsConfig: differs",
            "extenders[0].managedResources: [] -> [\"example.com/a (ignoredByScheduler)\"]",
            "extenders[1]: extender added",
        ],
    );
}

fn with_gates(text: &str) -> FeatureGates {
    FeatureGates::parse(text).expect("good gates").0
}

const WITHOUT_DECLARED_FEATURES: &str = "NodeDeclaredFeatures=false,\
    ExtendWebSocketsToKubelet=false,InPlacePodLevelResourcesVerticalScaling=false,\
    InPlacePodVerticalScalingInitContainers=false,RestartAllContainersOnContainerExits=false";

#[test]
fn gates_are_part_of_the_configuration() {
    let default = Config::default_for(&registry()).expect("good defaults");
    let gates = with_gates("SchedulerPopFromBackoffQ=false");
    let changed = load_default(&registry(), &gates).expect("good defaults").config;
    assert!(!changed.gates.enabled(Gate::SchedulerPopFromBackoffQ));
    assert_eq!(
        crate::changes(&default, &changed),
        ["featureGates.SchedulerPopFromBackoffQ: true -> false"]
    );
}

#[test]
fn plugins_of_features_that_are_off_do_not_run() {
    let gates = with_gates(WITHOUT_DECLARED_FEATURES);
    let loaded = load_default(&registry(), &gates).expect("good defaults");
    assert!(!loaded.config.profiles[0].plugins.names().contains(&"NodeDeclaredFeatures"));
    assert!(!loaded.document.to_string().contains("NodeDeclaredFeatures"));

    let text = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n\
                profiles: [{plugins: {filter: {enabled: [{name: NodeDeclaredFeatures}]}}}]\n";
    let options = Options { gates, ..Options::default() };
    let loaded = load_with(text, &registry(), &options).expect("good configuration");
    assert!(!loaded.config.profiles[0].plugins.names().contains(&"NodeDeclaredFeatures"));
    assert_eq!(
        loaded.notices[0].to_string(),
        "profiles[0].plugins.filter.enabled[0]: no effect, as the feature NodeDeclaredFeatures is \
         off"
    );
}

#[test]
fn documents_are_written_as_yaml_and_read_back() {
    let loaded = load_body("clientConnection: {kubeconfig: 'yes', qps: 0.1}\n").expect("good");
    let text = crate::to_yaml(&loaded.document);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "apiVersion: kubescheduler.config.k8s.io/v1");
    let top: Vec<&str> =
        lines.iter().filter(|line| !line.starts_with([' ', '-'])).copied().collect();
    assert!(top.is_sorted(), "{top:?}");
    let again = crate::load(&text, &registry()).expect("it is good");
    assert_eq!((again.document, again.config), (loaded.document, loaded.config));
}

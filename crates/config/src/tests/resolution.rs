//! Which plugins run where.

use steersman_framework::args::{ArgsKind, PluginArgs};
use steersman_framework::point::{ExtensionPoint, PointSet};
use steersman_framework::registry::{Descriptor, Registry};

use serde::{Deserialize, Serialize};
use steersman_api::problem::{FieldPath, Problem};

use super::{check_problems, load_body};
use crate::{ConfigErrors, Loaded};

/// Loads one profile of the default registry with these `plugins`.
fn one_profile(plugins: &str) -> Result<Loaded, ConfigErrors> {
    load_body(&format!("profiles:\n- plugins: {plugins}\n"))
}

#[track_caller]
fn scores(plugins: &str) -> Vec<(&'static str, i64)> {
    match one_profile(plugins) {
        Ok(loaded) => loaded.config.profiles[0].plugins.scoring().collect(),
        Err(errors) => panic!("{plugins}: {errors}"),
    }
}

#[track_caller]
fn at(plugins: &str, point: ExtensionPoint) -> Vec<&'static str> {
    match one_profile(plugins) {
        Ok(loaded) => loaded.config.profiles[0].plugins.at(point).to_vec(),
        Err(errors) => panic!("{plugins}: {errors}"),
    }
}

const DEFAULT_SCORES: [(&str, i64); 9] = [
    ("TaintToleration", 3),
    ("NodeAffinity", 2),
    ("NodeResourcesFit", 1),
    ("VolumeBinding", 1),
    ("PodTopologySpread", 2),
    ("InterPodAffinity", 2),
    ("DynamicResources", 2),
    ("NodeResourcesBalancedAllocation", 1),
    ("ImageLocality", 1),
];

#[test]
fn default_profile_runs_in_the_registrys_order() {
    assert_eq!(scores("{}"), DEFAULT_SCORES);
    assert_eq!(at("{}", ExtensionPoint::QueueSort), ["PrioritySort"]);
    assert_eq!(at("{}", ExtensionPoint::Bind), ["DefaultBinder"]);
    assert_eq!(
        at("{}", ExtensionPoint::PreEnqueue),
        ["SchedulingGates", "DynamicResources", "DefaultPreemption"]
    );
    assert_eq!(at("{}", ExtensionPoint::PostFilter), ["DynamicResources", "DefaultPreemption"]);
    assert_eq!(
        at("{}", ExtensionPoint::Filter),
        [
            "NodeUnschedulable",
            "NodeName",
            "TaintToleration",
            "NodeAffinity",
            "NodePorts",
            "NodeResourcesFit",
            "VolumeRestrictions",
            "NodeVolumeLimits",
            "VolumeBinding",
            "VolumeZone",
            "PodTopologySpread",
            "InterPodAffinity",
            "DynamicResources",
            "NodeDeclaredFeatures",
        ]
    );
}

#[test]
fn a_points_own_list_comes_first_when_it_overrides() {
    let found =
        scores("{score: {enabled: [{name: ImageLocality, weight: 9}, {name: NodeAffinity}]}}");
    assert_eq!(found[..3], [("ImageLocality", 9), ("NodeAffinity", 1), ("TaintToleration", 3)]);
    assert_eq!(found.len(), DEFAULT_SCORES.len());
}

#[test]
fn disabling_and_enabling_again_moves_a_plugin_to_the_end() {
    let found = scores(
        "{score: {disabled: [{name: TaintToleration}], enabled: [{name: TaintToleration, weight: 5}]}}",
    );
    assert_eq!(found[0], ("NodeAffinity", 2));
    assert_eq!(found.last(), Some(&("TaintToleration", 5)));
}

#[test]
fn a_star_leaves_the_points_own_list() {
    let own = "{score: {disabled: [{name: '*'}], enabled: [{name: NodeAffinity}, {name: ImageLocality}]}}";
    // The weight of a plugin whose own entry has none is 1, not the default's.
    assert_eq!(scores(own), [("NodeAffinity", 1), ("ImageLocality", 1)]);
    assert_eq!(at("{filter: {disabled: [{name: '*'}]}}", ExtensionPoint::Filter), [""; 0]);
    assert_eq!(
        at("{filter: {disabled: [{name: '*'}]}}", ExtensionPoint::PreFilter).len(),
        at("{}", ExtensionPoint::PreFilter).len()
    );
}

#[test]
fn multi_point_keeps_the_place_and_takes_the_weight() {
    let found = scores("{multiPoint: {enabled: [{name: NodeAffinity, weight: 7}]}}");
    assert_eq!(found[1], ("NodeAffinity", 7));
    let found = scores("{multiPoint: {enabled: [{name: NodeAffinity}]}}");
    assert_eq!(found[1], ("NodeAffinity", 1));
}

#[test]
fn multi_point_disables_everywhere() {
    let plugins = "{multiPoint: {disabled: [{name: DynamicResources}, {name: ImageLocality}]}}";
    assert_eq!(at(plugins, ExtensionPoint::PostFilter), ["DefaultPreemption"]);
    assert_eq!(scores(plugins).len(), DEFAULT_SCORES.len() - 2);
    let plugins = "{multiPoint: {disabled: [{name: '*'}], enabled: [{name: PrioritySort}, \
                   {name: DefaultBinder}, {name: NodeName}]}}";
    let resolved = &one_profile(plugins).expect("nothing is wrong").config.profiles[0].plugins;
    assert_eq!(resolved.names(), ["PrioritySort", "NodeName", "DefaultBinder"]);
    assert_eq!(resolved.points_of("NodeName"), PointSet::FILTER);
    assert_eq!(resolved.points_of("NodePorts"), PointSet::empty());
}

#[test]
fn specific_weight_beats_multi_point() {
    let found = scores(
        "{multiPoint: {enabled: [{name: NodeAffinity, weight: 7}]}, score: {enabled: \
         [{name: NodeAffinity, weight: 4}]}}",
    );
    assert_eq!(found[0], ("NodeAffinity", 4));
}

#[test]
fn args_belong_to_enabled_plugins() {
    let loaded = one_profile("{multiPoint: {disabled: [{name: VolumeBinding}]}}");
    let config = loaded.expect("nothing is wrong").config;
    assert!(!config.profiles[0].args.contains_key("VolumeBinding"));
    assert!(config.profiles[0].args.contains_key("NodeResourcesFit"));
}

#[test]
fn entries_that_make_no_sense_are_refused() {
    check_problems(
        "profiles:\n- plugins:\n    filter: {enabled: [{name: ImageLocality}, {name: Nope}, {name: NodeName}, {name: NodeName}, {name: nodeafinity}]}\n    \
         score: {enabled: [{name: SelectorSpread}]}\n    multiPoint: {enabled: [{name: NodePorts}, {name: Other}, {name: NodePorts}]}\n",
        &[
            "profiles[0].plugins.multiPoint.enabled[0]: duplicate of \"NodePorts\"; each may be \
             listed once",
            "profiles[0].plugins.multiPoint.enabled[1]: plugin \"Other\" does not exist",
            "profiles[0].plugins.filter.enabled[1]: plugin \"Nope\" does not exist",
            "profiles[0].plugins.filter.enabled[3]: duplicate of \"NodeName\"; each may be listed \
             once",
            "profiles[0].plugins.filter.enabled[4]: plugin \"nodeafinity\" does not exist; did you \
             mean \"NodeAffinity\"?",
            "profiles[0].plugins.filter.enabled[0]: plugin \"ImageLocality\" serves score only",
            "profiles[0].plugins.score.enabled[0]: plugin \"SelectorSpread\" does not exist: \
             PodTopologySpread's default constraints do its job now",
        ],
    );
}

#[test]
fn queue_sort_and_bind_must_be_there() {
    check_problems(
        "profiles:\n- plugins: {queueSort: {disabled: [{name: '*'}]}, bind: {disabled: [{name: DefaultBinder}]}}\n",
        &[
            "profiles[0].plugins.queueSort: found no plugin, allowed: exactly one plugin",
            "profiles[0].plugins.bind: found no plugin, allowed: at least one plugin",
        ],
    );
}

#[test]
fn removed_plugins_take_no_arguments() {
    check_problems(
        "profiles:\n- pluginConfig: [{name: EBSLimits}]\n",
        &["profiles[0].pluginConfig[0]: plugin \"EBSLimits\" does not exist: NodeVolumeLimits \
           counts those volumes now"],
    );
}

#[test]
fn notices_tell_what_has_no_effect() {
    let loaded = one_profile(
        "{score: {enabled: [{name: ImageLocality, weight: -2}], disabled: [{name: Nope}]}, \
         placementScore: {enabled: [{name: Any}]}}",
    )
    .expect("nothing is wrong");
    let notices: Vec<String> = loaded.notices.iter().map(ToString::to_string).collect();
    assert_eq!(
        notices[..3],
        [
            "profiles[0].plugins.score.enabled[0].weight: a negative weight prefers nodes with low \
             scores",
            "profiles[0].plugins.score.disabled[0]: no effect, as plugin \"Nope\" does not exist",
            "profiles[0].plugins.placementScore: no effect, as the feature \
             TopologyAwareWorkloadScheduling is off",
        ]
    );
}

#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct FairArgs {
    share: i32,
}

impl PluginArgs for FairArgs {
    const KIND: &'static str = "FairArgs";
    fn validate(&self, _at: &FieldPath, _problems: &mut Vec<Problem>) {}
}

/// A registry in which a plugin from outside can order the queue.
fn with_fair_sort() -> Registry {
    let mut registry = super::registry();
    let args = ArgsKind::of::<FairArgs>();
    registry
        .register(Descriptor::planned("FairSort", PointSet::QUEUE_SORT, Some(args)))
        .expect("the name is free");
    registry
}

#[track_caller]
fn check_queue_sort(profiles: &str, expected: &str) {
    let text = format!(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n\
         profiles: {profiles}\n"
    );
    let found = crate::load(&text, &with_fair_sort()).map_err(|e| e.to_string());
    assert_eq!(found.err().unwrap_or_default(), expected);
}

#[test]
fn profiles_must_order_the_queue_alike() {
    let fair = "plugins: {queueSort: {disabled: [{name: '*'}], enabled: [{name: FairSort}]}}";
    let args =
        |share: &str| format!("pluginConfig: [{{name: FairSort, args: {{share: {share}}}}}]");
    check_queue_sort(&format!("[{{schedulerName: a, {fair}}}, {{schedulerName: b, {fair}}}]"), "");
    check_queue_sort(
        &format!("[{{schedulerName: a}}, {{schedulerName: b, {fair}}}]"),
        "profiles[1].plugins.queueSort: differs from profiles[0], allowed: the same in all profiles",
    );
    // Given and default arguments are the same when they say the same.
    check_queue_sort(
        &format!("[{{schedulerName: a, {fair}}}, {{schedulerName: b, {fair}, {}}}]", args("0")),
        "",
    );
    check_queue_sort(
        &format!("[{{schedulerName: a, {fair}}}, {{schedulerName: b, {fair}, {}}}]", args("2")),
        "profiles[1].pluginConfig[0].args: arguments of \"FairSort\" differ from profiles[0], \
         allowed: the same in all profiles, as it orders their common queue",
    );
    check_queue_sort(
        "[{plugins: {queueSort: {enabled: [{name: FairSort}]}}}]",
        "profiles[0].plugins.queueSort: found PrioritySort, FairSort, allowed: exactly one plugin",
    );
}

//! Configurations of old versions decide as their hand-written successors.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use steersman_config::Config;
use steersman_framework::registry::Registry;
use steersman_sim::input::{Input, InputFile};
use steersman_sim::report::ReportData;
use steersman_sim::run::{Options, Preemption, simulate};

/// Nodes between which weights, strategies and labels decide.
const NODES: &str = "
{apiVersion: v1, kind: Node, metadata: {name: full, labels: {pool: a, os: linux}},
 spec: {taints: [{key: busy, effect: PreferNoSchedule}]},
 status: {allocatable: {cpu: '8', memory: 16Gi, pods: '99'}}}
---
{apiVersion: v1, kind: Node, metadata: {name: empty, labels: {pool: b, os: linux}},
 status: {allocatable: {cpu: '8', memory: 16Gi, pods: '99'}}}
---
{apiVersion: v1, kind: Node, metadata: {name: old, labels: {retiring: 'yes'}},
 status: {allocatable: {cpu: '64', memory: 4Gi, pods: '99'}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: there}, spec: {nodeName: full,
 containers: [{name: c, image: i, resources: {requests: {cpu: '5', memory: 3Gi}}}]}}
";

/// Pods for a profile: one that likes the tainted node, and one without wishes.
fn pods(scheduler: &str) -> String {
    let mut text = String::new();
    for (i, affinity) in ["{}", LIKES_FULL].into_iter().enumerate() {
        write!(
            text,
            "---\n{{apiVersion: v1, kind: Pod, metadata: {{name: {scheduler}-{i}}}, spec: \
             {{schedulerName: {scheduler}, affinity: {affinity}, containers: [{{name: c, image: i, \
             resources: {{requests: {{cpu: '1', memory: 1Gi}}}}}}]}}}}\n"
        )
        .expect("a string takes any text");
    }
    text
}

const LIKES_FULL: &str = "{nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: \
    [{weight: 1, preference: {matchExpressions: [{key: pool, operator: In, values: [a]}]}}]}}";

/// What becomes of the pods, with the scores.
fn decisions(config: &Config, registry: &Registry) -> String {
    let names = config.profiles.iter().map(|profile| pods(&profile.scheduler_name));
    let manifests = NODES.to_owned() + &names.collect::<String>();
    let input = Input::from_files([InputFile::new("input.yaml", manifests.as_str())]);
    assert_eq!(input.problems, []);
    let options =
        Options { config, registry, seed: 0, explain: true, preemption: Preemption::Report };
    let simulated = simulate(input.objects, options, &mut |_, _| ()).expect("a simulation");
    serde_json::to_string(&ReportData::new(&simulated, Vec::new(), Vec::new())).expect("JSON")
}

#[test]
fn old_versions_decide_as_their_successors() {
    let registry = steersman_plugins::table::in_tree();
    let default = Config::default_for(&registry).expect("the default configuration");
    let mut different = BTreeSet::from([decisions(&default, &registry)]);
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../config/testdata/versions");
    let mut cases: Vec<_> = fs::read_dir(cases)
        .expect("the cases")
        .map(|entry| entry.expect("a case").path())
        .collect();
    cases.sort();
    for case in &cases {
        let of = |file: &str| {
            let text = fs::read_to_string(case.join(file)).expect("a configuration");
            let loaded = steersman_config::load(&text, &registry).expect("a good configuration");
            decisions(&loaded.config, &registry)
        };
        let old = of("input.yaml");
        assert_eq!(old, of("v1.yaml"), "{}", case.display());
        different.insert(old);
    }
    // They are not all as if there were no configuration.
    assert_eq!(different.len(), cases.len() + 1);
}

//! The table of in-tree plugins: which exist, what they serve, and the default
//! profile.
//!
//! Source: the default configuration of kube-scheduler v1.36 and the extension
//! points that its plugins implement.

use steersman_framework::registry::{Descriptor, Registry};

use crate::{
    default_binder, default_preemption, dynamic_resources, image_locality, inter_pod_affinity,
    node_affinity, node_declared_features, node_name, node_ports,
    node_resources_balanced_allocation, node_resources_fit, node_unschedulable, node_volume_limits,
    pod_topology_spread, priority_sort, scheduling_gates, taint_toleration, volume_binding,
    volume_restrictions, volume_zone,
};

/// All in-tree plugins, in the order of the default profile.
pub fn in_tree() -> Registry {
    let mut registry = Registry::new();
    for descriptor in descriptors() {
        registry.register(descriptor).expect("the table names each plugin once");
    }
    registry
}

fn descriptors() -> Vec<Descriptor> {
    vec![
        scheduling_gates::descriptor().by_default(0),
        priority_sort::descriptor().by_default(0),
        node_unschedulable::descriptor().by_default(0),
        node_name::descriptor().by_default(0),
        taint_toleration::descriptor().by_default(3),
        node_affinity::descriptor().by_default(2),
        node_ports::descriptor().by_default(0),
        node_resources_fit::descriptor().by_default(1),
        volume_restrictions::descriptor().by_default(0),
        node_volume_limits::descriptor().by_default(0),
        volume_binding::descriptor().by_default(0),
        volume_zone::descriptor().by_default(0),
        pod_topology_spread::descriptor().by_default(2),
        inter_pod_affinity::descriptor().by_default(2),
        dynamic_resources::descriptor().by_default(2),
        default_preemption::descriptor().by_default(0),
        node_resources_balanced_allocation::descriptor().by_default(1),
        image_locality::descriptor().by_default(1),
        default_binder::descriptor().by_default(0),
        node_declared_features::descriptor().by_default(0),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use steersman_framework::point::PointSet;

    use super::*;

    #[test]
    fn every_default_plugin_that_scores_has_a_weight() {
        for plugin in in_tree().iter() {
            let scores = plugin.points.contains(PointSet::SCORE);
            let weight = plugin.default_weight.expect("all of the table are default plugins");
            // VolumeBinding scores with a feature that is off.
            assert_eq!(scores && plugin.name != "VolumeBinding", weight > 0, "{}", plugin.name);
        }
    }

    /// Completes arguments of `plugin`: the problems and the completed object.
    fn complete(plugin: &str, args: Value) -> (Vec<String>, Option<Value>) {
        let registry = in_tree();
        let kind = registry.get(plugin).and_then(|p| p.args).expect("it takes arguments");
        let mut problems = Vec::new();
        let completed = (kind.complete)(args, &"args".into(), &mut problems);
        (problems.iter().map(ToString::to_string).collect(), completed)
    }

    #[track_caller]
    fn check_default(plugin: &str, args: Value, expected: Value) {
        assert_eq!(complete(plugin, args), (Vec::new(), Some(expected)));
    }

    #[track_caller]
    fn check_problems(plugin: &str, args: Value, expected: &[&str]) {
        assert_eq!(complete(plugin, args).0, expected);
    }

    #[test]
    fn what_is_not_set_is_defaulted() {
        let cpu = json!({"name": "cpu", "weight": 1});
        let least = |resources: Value| json!({"scoringStrategy": {"type": "LeastAllocated", "resources": resources}});
        check_default(
            "NodeResourcesFit",
            json!({"scoringStrategy": null, "ignoredResources": []}),
            least(json!([cpu, {"name": "memory", "weight": 1}])),
        );
        check_default("NodeResourcesFit", least(json!([{"name": "cpu"}])), least(json!([cpu])));
        check_default(
            "NodeResourcesBalancedAllocation",
            json!({"resources": [{"name": "cpu", "weight": 0}]}),
            json!({"resources": [cpu]}),
        );
        check_default(
            "PodTopologySpread",
            json!({"defaultingType": ""}),
            json!({"defaultingType": "System"}),
        );
        check_default(
            "DynamicResources",
            json!({"filterTimeout": "0s"}),
            json!({"filterTimeout": "0s", "bindingTimeout": "10m0s"}),
        );
        let none = json!({"minCandidateNodesAbsolute": 0});
        let expected = json!({"minCandidateNodesAbsolute": 0, "minCandidateNodesPercentage": 10});
        check_default("DefaultPreemption", none, expected);
        check_default("VolumeBinding", json!({}), json!({"bindTimeoutSeconds": 600}));
        check_default("NodeAffinity", json!({"addedAffinity": null}), json!({}));
    }

    #[test]
    fn what_is_not_allowed_is_refused() {
        check_problems(
            "NodeResourcesFit",
            json!({"scoringStrategy": {"resources": [{"name": "cpu", "weight": 101}],
                "requestedToCapacityRatio": {}}}),
            &[
                "args.scoringStrategy.type: required: LeastAllocated, MostAllocated or \
                 RequestedToCapacityRatio",
                "args.scoringStrategy.resources[0].weight: found 101, allowed: 1 to 100",
                "args.scoringStrategy.requestedToCapacityRatio: found a function, allowed: only \
                 with type RequestedToCapacityRatio",
            ],
        );
        let shape = |shape: Value| {
            json!({"scoringStrategy": {"type": "RequestedToCapacityRatio",
                "requestedToCapacityRatio": {"shape": shape}}})
        };
        check_problems(
            "NodeResourcesFit",
            shape(json!([{"utilization": 101, "score": 11}, {"utilization": 101}])),
            &[
                "args.scoringStrategy.requestedToCapacityRatio.shape[0].utilization: found 101, \
                 allowed: 0 to 100",
                "args.scoringStrategy.requestedToCapacityRatio.shape[0].score: found 11, allowed: \
                 0 to 10",
                "args.scoringStrategy.requestedToCapacityRatio.shape[1].utilization: found 101, \
                 allowed: 0 to 100",
                "args.scoringStrategy.requestedToCapacityRatio.shape[1].utilization: found 101, \
                 allowed: more than 101, as points are sorted by utilization",
            ],
        );
        check_problems(
            "NodeResourcesFit",
            shape(json!([])),
            &["args.scoringStrategy.requestedToCapacityRatio.shape: required: at least one point"],
        );
        check_problems(
            "DynamicResources",
            json!({"filterTimeout": "-1s", "bindingTimeout": "999ms"}),
            &[
                "args.filterTimeout: found -1s, allowed: 0s or more",
                "args.bindingTimeout: found 999ms, allowed: 1s or more",
            ],
        );
        check_problems(
            "NodeResourcesBalancedAllocation",
            json!({"resources": [{"name": "cpu", "weight": 2}]}),
            &["args.resources[0].weight: found 2, allowed: 1"],
        );
        check_problems(
            "PodTopologySpread",
            json!({"defaultingType": "List", "defaultConstraints": [{"minDomain": 1}]}),
            &[
                "args.defaultConstraints[0].minDomain: unknown field, allowed: labelSelector, \
                 matchLabelKeys, maxSkew, minDomains, nodeAffinityPolicy, nodeTaintsPolicy, \
                 topologyKey, whenUnsatisfiable",
                "args.defaultConstraints[0].maxSkew: found 0, allowed: 1 or more",
                "args.defaultConstraints[0].topologyKey: required: the key of a node label",
                "args.defaultConstraints[0].whenUnsatisfiable: found \"\", allowed: DoNotSchedule, \
                 ScheduleAnyway",
            ],
        );
    }

    #[test]
    fn added_affinity_is_checked_like_a_pods() {
        let preferred = "args.addedAffinity.preferredDuringSchedulingIgnoredDuringExecution";
        let term = json!({"matchExpressions": [{"key": "a b", "operator": "Exists"}]});
        check_problems(
            "NodeAffinity",
            json!({"addedAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 0, "preference": term},
                {"weight": 1, "preference": term},
                {"weight": 1, "preference": {"matchFields": [{"key": "metadata.name",
                    "operator": "Gt", "values": ["1"]}]}}]}}),
            &[
                &format!(
                    "{preferred}[1].preference.matchExpressions[0].key: found \"a b\", allowed: \
                     an optional DNS domain and '/', then 1 to 63 letters, digits, '-', '_' or \
                     '.', with a letter or digit at both ends"
                ),
                &format!(
                    "{preferred}[2].preference.matchFields[0].operator: found \"Gt\", allowed: In, \
                     NotIn"
                ),
            ],
        );
    }
}

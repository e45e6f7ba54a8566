//! Which features of a node a pod's spec needs.
//!
//! Source: KEP-5328 (node declared features) and what kube-scheduler v1.36
//! infers. Its other declared features matter to updates of running pods only,
//! and none of those here is bounded by a version.

use k8s_openapi::api::core::v1 as core_v1;

use super::convert::all_containers;
use crate::name::Name;

const RESTART_ALL_CONTAINERS: &str = "RestartAllContainersOnContainerExits";
const HOST_NETWORK_WITH_OWN_USERS: &str = "UserNamespacesHostNetworkSupport";

/// The features, sorted.
pub(super) fn required_features(spec: &core_v1::PodSpec) -> Box<[Name]> {
    let needed = [
        (restarts_all_containers(spec), RESTART_ALL_CONTAINERS),
        (shares_network_but_not_users(spec), HOST_NETWORK_WITH_OWN_USERS),
    ];
    needed.into_iter().filter(|(needed, _)| *needed).map(|(_, name)| name.into()).collect()
}

fn restarts_all_containers(spec: &core_v1::PodSpec) -> bool {
    let mut rules = all_containers(spec).flat_map(|c| c.restart_policy_rules.iter().flatten());
    rules.any(|rule| rule.action == "RestartAllContainers")
}

fn shares_network_but_not_users(spec: &core_v1::PodSpec) -> bool {
    spec.host_network == Some(true) && spec.host_users == Some(false)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[track_caller]
    fn check(spec: Value, expected: &[&str]) {
        let text = spec.to_string();
        let spec = serde_json::from_value(spec).expect("a pod's spec");
        assert_eq!(*required_features(&spec), *expected, "{text}");
    }

    fn container(action: &str) -> Value {
        json!([{"name": "c", "restartPolicyRules": [{"action": "Restart"}, {"action": action}]}])
    }

    #[test]
    fn restart_rule_for_all_containers_needs_a_feature() {
        let all = container("RestartAllContainers");
        check(json!({"containers": container("Restart")}), &[]);
        check(json!({"containers": all}), &[RESTART_ALL_CONTAINERS]);
        let init = json!({"containers": [{"name": "d"}], "initContainers": all});
        check(init, &[RESTART_ALL_CONTAINERS]);
    }

    #[test]
    fn host_network_with_users_of_its_own_needs_a_feature() {
        let pod = |host_network: Value, host_users: Value| {
            json!({"containers": [{"name": "c"}],
            "hostNetwork": host_network, "hostUsers": host_users})
        };
        check(pod(true.into(), false.into()), &[HOST_NETWORK_WITH_OWN_USERS]);
        check(pod(true.into(), true.into()), &[]);
        check(pod(true.into(), Value::Null), &[]);
        check(pod(false.into(), false.into()), &[]);
    }

    #[test]
    fn features_are_sorted() {
        let both = json!({"containers": container("RestartAllContainers"),
            "hostNetwork": true, "hostUsers": false});
        check(both, &[RESTART_ALL_CONTAINERS, HOST_NETWORK_WITH_OWN_USERS]);
    }
}

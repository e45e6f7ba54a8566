//! What is there before anybody creates anything.

use jiff::Timestamp;
use serde_json::{Value, json};
use steersman_apimachinery::rules::Rules;

use crate::namespace::NAMESPACE;
use crate::scheduling::SYSTEM_CLASSES;
use crate::service::KUBERNETES_IP;

const NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];
/// The port at which the API is served to pods, and the one behind it.
const API_PORTS: (i64, i64) = (443, 6443);

/// The objects that every cluster begins with, in storage form, without `uid`
/// and `resourceVersion`: namespaces, their default service accounts, the
/// system's priority classes and the service `kubernetes`.
pub fn bootstrap(now: Timestamp) -> Vec<Value> {
    let created = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let mut objects = Vec::new();
    for name in NAMESPACES {
        let mut namespace = json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": name, "creationTimestamp": created},
            "spec": {"finalizers": ["kubernetes"]},
            "status": {"phase": "Active"},
        });
        NAMESPACE.default(&mut namespace);
        objects.push(namespace);
    }
    for namespace in NAMESPACES {
        objects.push(json!({
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {
                "name": "default", "namespace": namespace, "creationTimestamp": created,
            },
        }));
    }
    for (name, value, description) in SYSTEM_CLASSES {
        objects.push(json!({
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name, "generation": 1, "creationTimestamp": created},
            "value": value,
            "description": description,
            "preemptionPolicy": "PreemptLowerPriority",
        }));
    }
    objects.push(json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "creationTimestamp": created,
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "type": "ClusterIP",
            "clusterIP": KUBERNETES_IP,
            "clusterIPs": [KUBERNETES_IP],
            "internalTrafficPolicy": "Cluster",
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
            "sessionAffinity": "None",
            "ports": [{
                "name": "https",
                "protocol": "TCP",
                "port": API_PORTS.0,
                "targetPort": API_PORTS.1,
            }],
        },
        "status": {"loadBalancer": {}},
    }));
    objects
}

#[cfg(test)]
mod tests {
    use steersman_apimachinery::resource::Resource;
    use steersman_apimachinery::rules::Part;

    use super::*;
    use crate::resources;

    fn resource(object: &Value) -> &'static Resource {
        let found = resources().iter().find(|resource| {
            object["apiVersion"] == resource.api_version() && object["kind"] == resource.kind
        });
        found.expect("a resource of the table")
    }

    #[test]
    fn all_of_it_is_valid_and_complete() {
        for object in bootstrap(Timestamp::UNIX_EPOCH) {
            let rules = resource(&object).rules;
            let mut defaulted = object.clone();
            rules.default(&mut defaulted);
            assert_eq!(defaulted, object);
            assert_eq!(rules.validate(&object, None, Part::Main), []);
        }
    }
}

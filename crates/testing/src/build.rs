//! Builders of objects. They write JSON, so that tests read objects the way
//! drivers do.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use steersman_api::decode::{Decoded, decode};
use steersman_api::node::Node;
use steersman_api::object::ClusterObject;
use steersman_api::pod::PodInfo;

/// Reads an object that a test wrote; what cannot be read fails the test.
#[track_caller]
pub fn decoded(json: Value) -> ClusterObject {
    let text = json.to_string();
    match decode(json) {
        Ok(Decoded { object, problems }) if problems.is_empty() => object,
        Ok(Decoded { problems, .. }) => panic!("{text}: {problems:?}"),
        Err(error) => panic!("{text}: {error}"),
    }
}

/// A pod of that name in the namespace `default`, or `namespace/name`, with one
/// container that requests nothing.
pub fn pod(name: &str) -> PodBuilder {
    let (namespace, name) = name.split_once('/').unwrap_or(("default", name));
    PodBuilder(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"namespace": namespace, "name": name, "uid": format!("uid-{namespace}-{name}")},
        "spec": {"containers": [{"name": "c", "image": "app"}]},
    }))
}

/// A node of that name that takes 110 pods, 4 cores and 8Gi of memory, with its
/// hostname as a label.
pub fn node(name: &str) -> NodeBuilder {
    NodeBuilder(json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": {},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
    }))
}

/// See [`pod()`].
#[derive(Clone, Debug)]
pub struct PodBuilder(Value);

/// See [`node()`].
#[derive(Clone, Debug)]
pub struct NodeBuilder(Value);

macro_rules! common_setters {
    ($builder:ty) => {
        impl $builder {
            /// Adds a label.
            #[must_use]
            pub fn label(mut self, key: &str, value: &str) -> Self {
                self.0["metadata"]["labels"][key] = value.into();
                self
            }

            /// Merges `more` into the spec.
            #[must_use]
            pub fn spec(mut self, more: Value) -> Self {
                merge(&mut self.0["spec"], more);
                self
            }

            /// Merges `more` into the status.
            #[must_use]
            pub fn status(mut self, more: Value) -> Self {
                merge(&mut self.0["status"], more);
                self
            }

            /// Merges `more` into the metadata.
            #[must_use]
            pub fn metadata(mut self, more: Value) -> Self {
                merge(&mut self.0["metadata"], more);
                self
            }

            /// The object as JSON.
            pub fn json(self) -> Value {
                self.0
            }
        }
    };
}

common_setters!(PodBuilder);
common_setters!(NodeBuilder);

impl PodBuilder {
    /// Requests an amount of a resource in the first container.
    #[must_use]
    pub fn request(mut self, resource: &str, amount: &str) -> Self {
        self.0["spec"]["containers"][0]["resources"]["requests"][resource] = amount.into();
        self
    }

    /// Requests CPU.
    #[must_use]
    pub fn cpu(self, amount: &str) -> Self {
        self.request("cpu", amount)
    }

    /// Requests memory.
    #[must_use]
    pub fn memory(self, amount: &str) -> Self {
        self.request("memory", amount)
    }

    /// Binds the pod to a node.
    #[must_use]
    pub fn on(mut self, node: &str) -> Self {
        self.0["spec"]["nodeName"] = node.into();
        self
    }

    /// Sets the priority.
    #[must_use]
    pub fn priority(mut self, priority: i32) -> Self {
        self.0["spec"]["priority"] = priority.into();
        self
    }

    /// The pod.
    #[track_caller]
    pub fn build(self) -> Arc<PodInfo> {
        match decoded(self.0) {
            ClusterObject::Pod(pod) => pod,
            other => panic!("not a pod: {other:?}"),
        }
    }
}

impl NodeBuilder {
    /// Offers an amount of a resource.
    #[must_use]
    pub fn allocatable(mut self, resource: &str, amount: &str) -> Self {
        self.0["status"]["allocatable"][resource] = amount.into();
        self
    }

    /// Adds a taint.
    #[must_use]
    pub fn taint(mut self, key: &str, value: &str, effect: &str) -> Self {
        let taint = json!({"key": key, "value": value, "effect": effect});
        match &mut self.0["spec"]["taints"] {
            Value::Array(taints) => taints.push(taint),
            absent => *absent = json!([taint]),
        }
        self
    }

    /// Puts the node into a zone.
    #[must_use]
    pub fn zone(self, zone: &str) -> Self {
        self.label(steersman_api::node::ZONE_LABEL, zone)
    }

    /// The node.
    #[track_caller]
    pub fn build(self) -> Arc<Node> {
        match decoded(self.0) {
            ClusterObject::Node(node) => node,
            other => panic!("not a node: {other:?}"),
        }
    }
}

/// Merges objects; anything else is replaced.
fn merge(into: &mut Value, more: Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            for (key, value) in more {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into @ Value::Null, more @ Value::Object(_)) => {
            *into = Value::Object(Map::new());
            merge(into, more);
        }
        (into, more) => *into = more,
    }
}

//! Events about nodes and about objects that plugins read.

use std::sync::Arc;

use steersman_api::key::ObjectKey;
use steersman_api::name::Name;
use steersman_api::node::Node;
use steersman_api::object::{AnyObject, ClusterObject};
use steersman_api::time::Time;
use steersman_framework::events::Change;

use super::Scheduler;

impl Scheduler {
    pub(super) fn upsert(&mut self, object: ClusterObject, now: Time) {
        match object {
            ClusterObject::Pod(pod) => self.pod_seen(pod, now),
            ClusterObject::Node(node) => self.node_seen(node, now),
            ClusterObject::Other(object) => self.object_seen(object, now),
        }
    }

    fn node_seen(&mut self, node: Arc<Node>, now: Time) {
        let old = self.cluster.set_node(node.clone());
        self.happened(Change::Node { old, new: Some(node) }, now);
    }

    pub(super) fn node_deleted(&mut self, name: &Name, now: Time) {
        let Some(old) = self.cluster.remove_node(name) else { return };
        self.happened(Change::Node { old: Some(old), new: None }, now);
    }

    fn object_seen(&mut self, object: AnyObject, now: Time) {
        let old = self.cluster.stores.set(object.clone());
        self.happened(Change::Object { old, new: Some(object) }, now);
    }

    pub(super) fn object_deleted(&mut self, resource: &'static str, key: &ObjectKey, now: Time) {
        let Some(old) = self.cluster.stores.remove(resource, key) else { return };
        self.happened(Change::Object { old: Some(old), new: None }, now);
    }
}

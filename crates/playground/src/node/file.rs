//! Nodes as a real cluster shows them.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, NodeStatus};

use super::status::report;
use crate::cluster::read;
use crate::manifests::{Manifest, ManifestError};

/// Takes the nodes among manifests as new ones: with their labels, taints and
/// sizes, without what their cluster kept books of, and in good health. What
/// else there is, is left out. Each comes with its place among the manifests.
///
/// # Errors
/// When a node is not of a node's form; the message names the field.
pub(crate) fn nodes(
    manifests: Vec<Manifest>,
    now: Timestamp,
) -> Result<Vec<(String, Node)>, ManifestError> {
    let is_node = |m: &Manifest| m.object["kind"] == "Node" && m.object["apiVersion"] == "v1";
    let manifests = manifests.into_iter().filter(is_node);
    manifests
        .map(|Manifest { origin, object }| match read(&object) {
            Ok(node) => Ok((origin, refreshed(node, now))),
            Err(error) => Err(ManifestError::NoObject { origin, message: error.to_string() }),
        })
        .collect()
}

fn refreshed(mut node: Node, now: Timestamp) -> Node {
    let metadata = &mut node.metadata;
    metadata.uid = None;
    metadata.resource_version = None;
    metadata.generation = None;
    metadata.creation_timestamp = None;
    metadata.managed_fields = None;
    metadata.owner_references = None;
    metadata.finalizers = None;
    metadata.deletion_timestamp = None;
    let old = node.status.take().unwrap_or_default();
    let mut status = NodeStatus {
        addresses: old.addresses,
        allocatable: old.allocatable,
        capacity: old.capacity,
        daemon_endpoints: old.daemon_endpoints,
        declared_features: old.declared_features,
        features: old.features,
        images: old.images,
        node_info: old.node_info,
        runtime_handlers: old.runtime_handlers,
        ..Default::default()
    };
    report(&mut status, true, now);
    node.status = Some(status);
    node
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifests::parse;

    #[test]
    fn nodes_of_a_real_cluster_come_in_good_health() {
        let text = "
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Node
  metadata: {name: a, uid: u, resourceVersion: '7', labels: {zone: z}}
  spec: {taints: [{key: k, effect: NoSchedule}]}
  status:
    capacity: {cpu: '8'}
    conditions: [{type: Ready, status: Unknown}]
- {apiVersion: v1, kind: Pod, metadata: {name: p}}
";
        let nodes = nodes(parse("f", text).unwrap(), Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(nodes.len(), 1);
        let (origin, node) = &nodes[0];
        assert_eq!(origin, "f: document 1: items[0]");
        assert_eq!((&node.metadata.uid, &node.metadata.resource_version), (&None, &None));
        assert_eq!(node.metadata.labels.as_ref().unwrap()["zone"], "z");
        assert_eq!(node.spec.as_ref().unwrap().taints.as_ref().unwrap()[0].key, "k");
        assert_eq!(crate::node::condition_status(node, "Ready"), "True");
        assert_eq!(node.status.as_ref().unwrap().capacity.as_ref().unwrap()["cpu"].0, "8");
    }

    #[test]
    fn malformed_node_is_an_error_with_its_place() {
        let manifests = parse("f", "{apiVersion: v1, kind: Node, spec: 3}").unwrap();
        let error = nodes(manifests, Timestamp::UNIX_EPOCH).unwrap_err().to_string();
        assert!(error.starts_with("f: document 1: "), "{error}");
    }
}

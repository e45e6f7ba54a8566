//! How many pods a constraint counts on each node.

use std::rc::Rc;

use steersman_api::name::Name;
use steersman_api::pod::SpreadConstraint;
use steersman_framework::cluster::Cluster;

use super::constraints::counts_labels;

/// Pods on each node, by place in the node table.
pub(super) type PerNode = Rc<[u32]>;

/// For each constraint, the pods of `namespace` that it counts on each node.
/// Constraints of one selector, the usual case, share one table.
pub(super) fn pods_per_node(
    cluster: &Cluster,
    namespace: &Name,
    constraints: &[SpreadConstraint],
) -> Vec<PerNode> {
    let mut tables: Vec<PerNode> = Vec::with_capacity(constraints.len());
    for (i, constraint) in constraints.iter().enumerate() {
        let same = constraints[..i].iter().position(|c| c.selector == constraint.selector);
        let table = match same {
            Some(earlier) => tables[earlier].clone(),
            None => count(cluster, namespace, constraint),
        };
        tables.push(table);
    }
    tables
}

fn count(cluster: &Cluster, namespace: &Name, constraint: &SpreadConstraint) -> PerNode {
    let mut pods = vec![0; cluster.nodes().slot_count()];
    for group in cluster.population().in_namespace(namespace) {
        if !counts_labels(constraint, &group.labels) {
            continue;
        }
        for (node, count) in group.nodes() {
            pods[node.get()] += count.total - count.terminating;
        }
    }
    pods.into()
}

//! Which pods go first when there are too many.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;

use crate::cluster::Watched;
use crate::workload::{is_ready, phase, pod_cost, ready_since};

/// `n` of the pods: those that do least, cost least and are missed least.
pub(super) fn choose(
    pods: &[Arc<Pod>],
    siblings: &[Arc<Pod>],
    n: usize,
    now: Timestamp,
) -> Vec<Arc<Pod>> {
    let mut per_node: BTreeMap<&str, usize> = BTreeMap::new();
    for node in siblings.iter().filter_map(|pod| pod.node()) {
        *per_node.entry(node).or_default() += 1;
    }
    let together = |pod: &Pod| pod.node().and_then(|node| per_node.get(node).copied());
    let mut pods = pods.to_vec();
    pods.sort_by(|a, b| compare(a, b, together(a), together(b), now));
    pods.truncate(n);
    pods
}

fn compare(
    a: &Pod,
    b: &Pod,
    together_a: Option<usize>,
    together_b: Option<usize>,
    now: Timestamp,
) -> Ordering {
    let stage = |pod: &Pod| match phase(pod) {
        "Pending" => 0,
        "Unknown" => 1,
        _ => 2,
    };
    let restarts = |pod: &Pod| {
        let statuses = pod.status.iter().flat_map(|s| s.container_statuses.iter().flatten());
        statuses.map(|status| status.restart_count).max().unwrap_or_default()
    };
    let created = |pod: &Pod| pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
    let by_state = |pod: &Pod| (pod.node().is_some(), stage(pod), is_ready(pod), pod_cost(pod));
    by_state(a)
        .cmp(&by_state(b))
        .then_with(|| together_b.cmp(&together_a))
        .then_with(|| age(ready_since(a), now).cmp(&age(ready_since(b), now)))
        .then_with(|| restarts(b).cmp(&restarts(a)))
        .then_with(|| age(created(a), now).cmp(&age(created(b), now)))
        // What is equal by all that counts needs an order too.
        .then_with(|| Reverse(&a.metadata.uid).cmp(&Reverse(&b.metadata.uid)))
}

/// Ages count in powers of two: a pod that is a little older is not better
/// than one that is a little younger.
fn age(since: Option<Timestamp>, now: Timestamp) -> u32 {
    let nanos = since.map_or(0, |since| now.duration_since(since).as_nanos().max(0));
    i128::BITS - nanos.leading_zeros()
}

//! Watches nodes: silent ones become Unknown, and taints tell others about it.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Taint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;

use crate::cluster::{Key, Seen, World};
use crate::engine::plan::{Call, Note, Part, Plan, View};
use crate::node::heartbeat::{LEASES, renewal};
use crate::node::kubelet::mark_not_ready;
use crate::node::{condition_status, status};
use crate::workload::{later_by, status_patch};

const REPORTER: &str = "node-controller";
const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";
/// The conditions that keep pods away while they are true, and their taints.
const TROUBLES: [(&str, &str); 4] = [
    ("MemoryPressure", "node.kubernetes.io/memory-pressure"),
    ("DiskPressure", "node.kubernetes.io/disk-pressure"),
    ("PIDPressure", "node.kubernetes.io/pid-pressure"),
    ("NetworkUnavailable", "node.kubernetes.io/network-unavailable"),
];
/// What becomes unknown when the node falls silent.
const POSTED: [&str; 4] = ["MemoryPressure", "DiskPressure", "PIDPressure", "Ready"];
const NO_SCHEDULE: &str = "NoSchedule";
const NO_EXECUTE: &str = "NoExecute";

pub(crate) fn wake(_: &World, seen: &Seen, wake: &mut dyn FnMut(Key)) {
    match seen {
        Seen::Node(change) => wake(Key::of(&change.object().metadata)),
        // A renewal needs no look: the lease is read when it would be too old.
        Seen::Lease(change) if change.new.is_none() => {
            let lease = &change.object().metadata;
            if lease.namespace.as_deref() == Some(LEASES) {
                wake(Key::new("", lease.name.clone().unwrap_or_default()));
            }
        }
        _ => {}
    }
}

/// Brings a node's conditions, taints and pods in line with what is known.
pub(crate) fn plan(view: View<'_>, key: &Key) -> Plan {
    let mut plan = Plan { ordered: true, ..Plan::default() };
    let Some(node) = view.world.nodes.get(key) else { return plan };
    let ready = condition_status(node, "Ready");
    let last_sign = last_sign(view.world, node).max(view.since);
    let deadline = later_by(last_sign, view.settings.node_grace);
    if ready != "Unknown" {
        if deadline > view.now {
            plan.wake_at(deadline);
        } else {
            declare_unknown(&mut plan, node, view.now);
            return plan;
        }
    }
    let known = node.spec.as_ref().and_then(|spec| spec.taints.clone()).unwrap_or_default();
    let taints = taints(node, known.clone(), view.now);
    if taints != known {
        let patch = json!({
            "metadata": { "resourceVersion": node.metadata.resource_version },
            "spec": { "taints": taints },
        });
        plan.call(Call::patch(&**node, Part::Main, patch));
    }
    if ready != "True" {
        for pod in view.world.pods.on_node(&key.name) {
            if let Some(call) = mark_not_ready(pod, view.now) {
                let note = Note::warning(&**pod, REPORTER, "NodeNotReady", "Node is not ready");
                plan.call_noting(call, note);
            }
        }
    }
    plan
}

fn declare_unknown(plan: &mut Plan, node: &Node, now: Timestamp) {
    let mut new = node.clone();
    let status = new.status.get_or_insert_default();
    for kind in POSTED {
        let heard = status.conditions.iter().flatten().find(|c| c.type_ == kind);
        let heard = heard.and_then(|c| c.last_heartbeat_time.clone());
        let (reason, message) = ("NodeStatusUnknown", "Kubelet stopped posting node status.");
        status::put(status, kind, "Unknown", reason, message, now);
        let put = status.conditions.iter_mut().flatten().find(|c| c.type_ == kind);
        if let Some(condition) = put {
            condition.last_heartbeat_time = heard;
        }
    }
    if let Some(call) = status_patch(node, &new, true) {
        let name = node.metadata.name.as_deref().unwrap_or_default();
        let message = format!("Node {name} status is now: NodeNotReady");
        plan.call_noting(call, Note::normal(node, REPORTER, "NodeNotReady", message));
    }
}

/// When the node last gave a sign of life. The creation counts: a new node has
/// time to give the first.
fn last_sign(world: &World, node: &Node) -> Timestamp {
    let name = node.metadata.name.clone().unwrap_or_default();
    let lease = world.leases.get(&Key::new(LEASES, name)).and_then(|lease| renewal(lease));
    let created = node.metadata.creation_timestamp.as_ref().map(|time| time.0);
    let posted = status::reported(node);
    [lease, created, posted].into_iter().flatten().max().unwrap_or(Timestamp::UNIX_EPOCH)
}

/// The taints that the node should have: those that are not ours stay. Taints
/// that evict get the time at which they were first seen, from which pods count
/// how long they may stay.
fn taints(node: &Node, known: Vec<Taint>, now: Timestamp) -> Vec<Taint> {
    let mut wanted: Vec<(&str, &str)> = Vec::new();
    match condition_status(node, "Ready") {
        "True" => {}
        "Unknown" => wanted.extend([(UNREACHABLE, NO_SCHEDULE), (UNREACHABLE, NO_EXECUTE)]),
        _ => wanted.extend([(NOT_READY, NO_SCHEDULE), (NOT_READY, NO_EXECUTE)]),
    }
    let troubles = TROUBLES.iter().filter(|(kind, _)| condition_status(node, kind) == "True");
    wanted.extend(troubles.map(|(_, key)| (*key, NO_SCHEDULE)));
    if node.spec.as_ref().is_some_and(|spec| spec.unschedulable == Some(true)) {
        wanted.push((UNSCHEDULABLE, NO_SCHEDULE));
    }
    let ours = |taint: &Taint| {
        let key = taint.key.as_str();
        let on_condition = [NOT_READY, UNREACHABLE, UNSCHEDULABLE].contains(&key)
            || TROUBLES.iter().any(|(_, trouble)| *trouble == key);
        on_condition && [NO_SCHEDULE, NO_EXECUTE].contains(&taint.effect.as_str())
    };
    let is_wanted = |taint: &Taint| wanted.contains(&(taint.key.as_str(), taint.effect.as_str()));
    let mut taints = known;
    taints.retain(|taint| !ours(taint) || is_wanted(taint));
    for (key, effect) in &wanted {
        if !taints.iter().any(|taint| taint.key == *key && taint.effect == *effect) {
            taints.push(Taint {
                key: (*key).to_owned(),
                effect: (*effect).to_owned(),
                time_added: Some(Time(now)),
                value: None,
            });
        }
    }
    for taint in taints.iter_mut().filter(|taint| taint.effect == NO_EXECUTE) {
        taint.time_added.get_or_insert(Time(now));
    }
    taints
}

#[cfg(test)]
mod tests;

//! What a node says of itself.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Node, NodeAddress, NodeCondition, NodeStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{Health, KUBELET, health, shape};
use crate::cluster::{Key, Seen, World};
use crate::engine::plan::{Note, Plan, View};
use crate::workload::{later_by, set_condition, status_patch};

/// A kubelet repeats its status after this time even if it is the same.
const REPORT: SignedDuration = SignedDuration::from_mins(5);
/// Type, reason and message of what is well on a node.
const PRESSURES: [(&str, &str, &str); 3] = [
    ("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
];

pub(crate) fn wake(_: &World, seen: &Seen, wake: &mut dyn FnMut(Key)) {
    if let Seen::Node(change) = seen {
        wake(Key::of(&change.object().metadata));
    }
}

/// Posts the status of a node when it is not as it should be, or old.
pub(crate) fn plan(view: View<'_>, key: &Key) -> Plan {
    let mut plan = Plan::default();
    let Some(node) = view.world.nodes.get(key) else { return plan };
    let health = health(node);
    if health == Health::Silent {
        return plan;
    }
    let ready = (health == Health::Well, key.name.as_str());
    let due = reported(node).map(|at| later_by(at, REPORT));
    if says(node, ready.0) && due.is_some_and(|due| due > view.now) && is_complete(node) {
        plan.again_at = due;
        return plan;
    }
    let mut new = Node::clone(node);
    let status = new.status.get_or_insert_default();
    report(status, ready.0, view.now);
    let address = view.world.addresses.of_node(&key.name);
    shape::complete(status, &key.name, address);
    if let Some(call) = status_patch(&**node, &new, true) {
        let (reason, message) = if ready.0 {
            ("NodeReady", format!("Node {} status is now: NodeReady", ready.1))
        } else {
            ("NodeNotReady", format!("Node {} status is now: NodeNotReady", ready.1))
        };
        if says(node, ready.0) {
            plan.call(call);
        } else {
            let note = Note::normal(&**node, KUBELET, reason, message).from_host(&key.name);
            plan.call_noting(call, note);
        }
    }
    plan.wake_at(view.now + REPORT);
    plan
}

/// Sets the conditions of a node that works.
pub(crate) fn report(status: &mut NodeStatus, ready: bool, now: Timestamp) {
    for (kind, reason, message) in PRESSURES {
        put(status, kind, "False", reason, message, now);
    }
    if ready {
        put(status, "Ready", "True", "KubeletReady", "kubelet is posting ready status", now);
    } else {
        let message = "the annotation playground.steersman.dev/ready says so";
        put(status, "Ready", "False", "KubeletNotReady", message, now);
    }
}

/// Sets a condition; its transition time moves with its status only.
pub(crate) fn put(
    status: &mut NodeStatus,
    kind: &str,
    value: &str,
    reason: &str,
    message: &str,
    now: Timestamp,
) {
    let known = status.conditions.iter().flatten().find(|c| c.type_ == kind);
    let since = known.filter(|c| c.status == value).and_then(|c| c.last_transition_time.clone());
    let condition = NodeCondition {
        type_: kind.to_owned(),
        status: value.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_heartbeat_time: Some(Time(now)),
        last_transition_time: Some(since.unwrap_or(Time(now))),
    };
    set_condition(&mut status.conditions, condition, |c| c.type_ == kind);
}

/// When the node last told how it is.
pub(crate) fn reported(node: &Node) -> Option<Timestamp> {
    let conditions = node.status.as_ref()?.conditions.as_ref()?;
    let ready = conditions.iter().find(|c| c.type_ == "Ready")?;
    ready.last_heartbeat_time.as_ref().map(|time| time.0)
}

fn says(node: &Node, ready: bool) -> bool {
    super::condition_status(node, "Ready") == if ready { "True" } else { "False" }
}

fn is_complete(node: &Node) -> bool {
    let Some(status) = &node.status else { return false };
    let internal = |address: &NodeAddress| address.type_ == "InternalIP";
    status.addresses.iter().flatten().any(internal)
        && status.capacity.is_some()
        && status.allocatable.is_some()
        && shape::unoffered(status).is_empty()
        && status.node_info.is_some()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cluster::Kind;
    use crate::controller::bench::Bench;

    #[test]
    fn an_extended_resource_added_to_the_capacity_can_be_allocated() {
        let cases = [
            (json!({"capacity": {"example.com/gpu": "4"}}), Some("4"), "15872Mi"),
            // What the node keeps for itself, or what is broken, stays so.
            (
                json!({
                    "capacity": {"example.com/gpu": "4"},
                    "allocatable": {"example.com/gpu": "3", "memory": "1Gi"},
                }),
                Some("3"),
                "1Gi",
            ),
            (json!({"capacity": {"memory": "20Gi"}}), None, "15872Mi"),
        ];
        for (status, gpus, memory) in cases {
            let mut bench = Bench::new(1);
            bench.patch(Kind::Node, "node-1", json!({ "status": status.clone() }));
            let node: Node = bench.get("node-1");
            let allocatable = node.status.and_then(|status| status.allocatable).unwrap();
            let amount = |name: &str| allocatable.get(name).map(|quantity| quantity.0.as_str());
            assert_eq!(amount("example.com/gpu"), gpus, "{status}");
            assert_eq!(amount("memory"), Some(memory), "{status}");
        }
    }
}

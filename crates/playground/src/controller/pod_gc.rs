//! Removes pods whose node is gone: nobody else would ever end them.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;

use crate::cluster::{Change, Key, Seen, Watched, World};
use crate::engine::plan::{Call, Plan, View};
use crate::node::kubelet::mark_disrupted;
use crate::workload::{condition, has_ended, later_by};

/// Pods and nodes come by different watches: how long after a pod was bound its
/// node may be unknown merely because it was not told yet.
const QUARANTINE: SignedDuration = SignedDuration::from_secs(10);

pub(crate) fn wake(world: &World, seen: &Seen, wake: &mut dyn FnMut(Key)) {
    match seen {
        Seen::Node(Change { old: Some(node), new: None }) => {
            let name = node.metadata.name.as_deref().unwrap_or_default();
            world.pods.on_node(name).for_each(|pod| wake(Key::of(&pod.metadata)));
        }
        Seen::Pod(Change { new: Some(pod), .. }) => {
            let lost = |name: &str| world.nodes.get(&Key::new("", name)).is_none();
            if pod.node().is_some_and(lost) {
                wake(Key::of(&pod.metadata));
            }
        }
        _ => {}
    }
}

/// Deletes the pod if its node does not exist.
pub(crate) fn plan(view: View<'_>, key: &Key) -> Plan {
    let mut plan = Plan { ordered: true, ..Plan::default() };
    let Some(pod) = view.world.pods.get(key) else { return plan };
    let Some(node) = pod.node() else { return plan };
    if view.world.nodes.get(&Key::new("", node)).is_some() {
        return plan;
    }
    let released = pod.metadata.deletion_timestamp.is_some()
        && pod.metadata.deletion_grace_period_seconds == Some(0);
    if released {
        return plan;
    }
    let until = bound_at(pod).map(|at| later_by(at, QUARANTINE));
    if let Some(until) = until.filter(|until| view.now < *until) {
        plan.wake_at(until);
        return plan;
    }
    if !has_ended(pod) {
        let why = "PodGC: node no longer exists";
        if let Some(call) = mark_disrupted(pod, "DeletionByPodGC", why, view.now) {
            plan.call(call);
        }
    }
    plan.call(Call::delete(&**pod, Some(0)));
    plan
}

/// When the pod got its node, as far as it tells.
fn bound_at(pod: &Pod) -> Option<Timestamp> {
    let bound = condition(pod, "PodScheduled").filter(|condition| condition.status == "True");
    let since = bound.and_then(|condition| condition.last_transition_time.as_ref());
    since.or(pod.metadata.creation_timestamp.as_ref()).map(|time| time.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::bench::Bench;

    const POD: &str = "{apiVersion: v1, kind: Pod, metadata: {name: p}, \
                       spec: {nodeName: late, containers: [{name: c, image: i}]}}";

    fn pods(bench: &Bench) -> Vec<String> {
        bench.list(|pod: &Pod| pod.metadata.name.clone().unwrap_or_default())
    }

    #[test]
    fn pod_stays_whose_node_is_told_of_after_its_binding() {
        let mut bench = Bench::new(1);
        bench.apply(POD);
        bench.pass(5);
        assert_eq!(pods(&bench), ["p"]);
        bench.apply("{apiVersion: v1, kind: Node, metadata: {name: late}}");
        bench.pass(20);
        assert_eq!(pods(&bench), ["p"]);
    }

    #[test]
    fn pod_of_a_node_that_does_not_exist_is_deleted() {
        let mut bench = Bench::new(1);
        bench.apply(POD);
        bench.pass(20);
        assert!(pods(&bench).is_empty());
    }
}

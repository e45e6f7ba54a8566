//! Removes pods whose node is gone: nobody else would ever end them.

use crate::cluster::{Change, Key, Seen, Watched, World};
use crate::engine::plan::{Call, Plan, View};
use crate::node::kubelet::mark_disrupted;
use crate::workload::has_ended;

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

/// Deletes the pod at once if its node does not exist.
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
    if !has_ended(pod) {
        let why = "PodGC: node no longer exists";
        if let Some(call) = mark_disrupted(pod, "DeletionByPodGC", why, view.now) {
            plan.call(call);
        }
    }
    plan.call(Call::delete(&**pod, Some(0)));
    plan
}

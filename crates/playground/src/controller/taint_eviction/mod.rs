//! Deletes pods from nodes with taints that they do not tolerate, or not any
//! longer.

use std::collections::BTreeSet;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod, Taint, Toleration};

use crate::cluster::{Change, Key, Seen, Watched, World};
use crate::engine::plan::{Action, Call, Note, Plan, View};
use crate::node::kubelet::{bound_at, mark_disrupted};
use crate::workload::{has_ended, is_terminating, later};

const REPORTER: &str = "taint-eviction-controller";

pub(crate) fn wake(world: &World, seen: &Seen, wake: &mut dyn FnMut(Key)) {
    match seen {
        Seen::Pod(Change { old, new: Some(pod) }) if pod.node().is_some() => {
            let decisive = |pod: &Pod| {
                let tolerations = pod.spec.as_ref().and_then(|spec| spec.tolerations.clone());
                (pod.node().map(str::to_owned), tolerations)
            };
            let same = old.as_deref().is_some_and(|old| decisive(old) == decisive(pod));
            if !same {
                wake(Key::of(&pod.metadata));
            }
        }
        Seen::Node(change) => {
            let before = change.old.as_deref().map(evicting).unwrap_or_default();
            let now = change.new.as_deref().map(evicting).unwrap_or_default();
            if before != now {
                let name = change.object().metadata.name.as_deref().unwrap_or_default();
                world.pods.on_node(name).for_each(|pod| wake(Key::of(&pod.metadata)));
            }
        }
        _ => {}
    }
}

/// Evicts the pod when its time on the tainted node is over.
pub(crate) fn plan(view: View<'_>, key: &Key) -> Plan {
    let mut plan = Plan { ordered: true, ..Plan::default() };
    let Some(pod) = view.world.pods.get(key) else { return plan };
    if is_terminating(pod) || has_ended(pod) {
        return plan;
    }
    let Some(node) = pod.node().and_then(|name| view.world.nodes.get(&Key::new("", name))) else {
        return plan;
    };
    let Some(at) = eviction_time(pod, &evicting(node)) else { return plan };
    if at > view.now {
        plan.wake_at(at);
        return plan;
    }
    let why = "Taint manager: deleting due to NoExecute taint";
    if let Some(call) = mark_disrupted(pod, "DeletionByTaintManager", why, view.now) {
        plan.call(call);
    }
    let message = format!("Marking for deletion Pod {key}");
    plan.actions.push(Action {
        call: Call::delete(&**pod, None),
        on_success: Some(Note::normal(&**pod, REPORTER, "TaintManagerEviction", message)),
        on_failure: None,
    });
    plan
}

fn evicting(node: &Node) -> Vec<Taint> {
    let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    taints.filter(|taint| taint.effect == "NoExecute").cloned().collect()
}

/// When the pod has to go; `None` if it may stay. Of the tolerations that serve
/// the taints, the one with the shortest time decides, as the reference has it.
fn eviction_time(pod: &Pod, taints: &[Taint]) -> Option<Timestamp> {
    if taints.is_empty() {
        return None;
    }
    let tolerations = pod.spec.as_ref().and_then(|spec| spec.tolerations.as_deref());
    let tolerations = tolerations.unwrap_or_default();
    let mut used = BTreeSet::new();
    let mut since = bound_at(pod);
    for taint in taints {
        // A pod that came to a tainted node counts from its coming.
        since = since.max(taint.time_added.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0));
        let mut serves = tolerations.iter().enumerate().filter(|(_, t)| tolerates(t, taint));
        let Some((index, _)) = serves.next() else { return Some(Timestamp::UNIX_EPOCH) };
        used.insert(index);
    }
    let seconds = used.iter().filter_map(|index| tolerations[*index].toleration_seconds).min()?;
    Some(later(since, seconds.max(0)))
}

/// Whether a toleration serves a taint.
pub(super) fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let any = |text: &Option<String>| text.as_deref().is_none_or(str::is_empty);
    if !any(&toleration.effect) && toleration.effect.as_deref() != Some(&taint.effect) {
        return false;
    }
    if !any(&toleration.key) && toleration.key.as_deref() != Some(&taint.key) {
        return false;
    }
    match toleration.operator.as_deref() {
        Some("Exists") => true,
        None | Some("" | "Equal") => {
            toleration.value.as_deref().unwrap_or_default()
                == taint.value.as_deref().unwrap_or_default()
        }
        Some(_) => false,
    }
}

#[cfg(test)]
mod tests;

//! SchedulingGates keeps pods out of the queue until their gates are removed.
//!
//! # What it does
//! A pod that lists `spec.schedulingGates` is not tried. Whoever added a gate
//! removes it when the pod may be scheduled.
//!
//! # Rejects or scores when
//! Any gate is left. The pod is gated with `waiting for scheduling gates:` and
//! their names: `waiting for scheduling gates: [example.com/a example.com/b]`.
//!
//! # Args
//! None.
//!
//! # Requeue events
//! An update of the pod itself that takes its last gate away.
//!
//! # Parity
//! As kube-scheduler v1.36.

use std::sync::Arc;

use steersman_api::name::Name;
use steersman_api::pod::PodInfo;
use steersman_framework::cluster::Cluster;
use steersman_framework::events::{ActionType, ClusterEvent, EnqueueExtensions, EventResource};
use steersman_framework::extensions::{Extensions, PreEnqueue};
use steersman_framework::point::PointSet;
use steersman_framework::registry::Descriptor;
use steersman_framework::verdict::{PluginError, PreEnqueueVerdict};

/// The plugin's name.
pub const NAME: &str = "SchedulingGates";

/// The plugin's entry in the registry.
pub fn descriptor() -> Descriptor {
    Descriptor::plain(NAME, PointSet::PRE_ENQUEUE, |_| {
        let plugin = Arc::new(SchedulingGates);
        Ok(Extensions {
            pre_enqueue: Some(plugin.clone()),
            events: Some(plugin),
            ..Extensions::default()
        })
    })
}

fn reason(gates: &[Name]) -> String {
    let names: Vec<&str> = gates.iter().map(Name::as_str).collect();
    format!("waiting for scheduling gates: [{}]", names.join(" "))
}

struct SchedulingGates;

impl PreEnqueue for SchedulingGates {
    fn pre_enqueue(&self, pod: &PodInfo, _: &Cluster) -> Result<PreEnqueueVerdict, PluginError> {
        let gates = &pod.spec.scheduling_gates;
        Ok(match gates.is_empty() {
            true => PreEnqueueVerdict::Admit,
            false => PreEnqueueVerdict::Gate(reason(gates).into()),
        })
    }
}

impl EnqueueExtensions for SchedulingGates {
    fn events(&self) -> Vec<ClusterEvent> {
        let gates_gone = ActionType::UPDATE_POD_SCHEDULING_GATES_ELIMINATED;
        vec![ClusterEvent::new(EventResource::TARGET_POD, gates_gone)]
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use steersman_framework::events::{Change, Hint};
    use steersman_testing::bench::Bench;
    use steersman_testing::pod;

    use super::*;

    fn gated(gates: &[&str]) -> Arc<PodInfo> {
        let gates: Vec<_> = gates.iter().map(|name| json!({"name": name})).collect();
        pod("a").spec(json!({"schedulingGates": gates})).build()
    }

    #[track_caller]
    fn check_verdict(gates: &[&str], expected: PreEnqueueVerdict) {
        let bench = Bench::new(&descriptor());
        let plugin = bench.plugin.pre_enqueue.expect("PreEnqueue");
        assert_eq!(plugin.pre_enqueue(&gated(gates), &bench.cluster), Ok(expected));
    }

    #[track_caller]
    fn check_hint(old: &[&str], new: &[&str], expected: Option<Hint>) {
        let change = Change::TargetPod { old: gated(old), new: gated(new) };
        assert_eq!(Bench::new(&descriptor()).hint(&gated(new), &change), expected);
    }

    #[test]
    fn holds_pod_back_while_a_gate_is_left() {
        check_verdict(&[], PreEnqueueVerdict::Admit);
        let gate = |reason: &'static str| PreEnqueueVerdict::Gate(reason.into());
        check_verdict(&["a"], gate("waiting for scheduling gates: [a]"));
        check_verdict(&["b", "a"], gate("waiting for scheduling gates: [b a]"));
    }

    #[test]
    fn removal_of_the_last_gate_brings_the_pod_back() {
        check_hint(&["a", "b"], &[], Some(Hint::Queue));
        check_hint(&["a", "b"], &["a"], None);
    }
}

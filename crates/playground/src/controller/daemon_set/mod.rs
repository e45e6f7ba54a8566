//! Keeps one pod of a template on each node that accepts it.

mod eligible;
mod rollout;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{DaemonSet, DaemonSetSpec, DaemonSetStatus};
use k8s_openapi::api::core::v1::{Node, Pod, PodTemplateSpec};

use super::history::{self, Subject};
use super::{is_orphan, pod_owners};
use crate::cluster::{Key, Seen, Watched, World};
use crate::engine::plan::{Action, Call, Note, Plan, View};
use crate::workload::{
    Availability, REVISION_LABEL, availability, claim, is_ready, is_terminating, labelled, phase,
    pod_of, selects, status_patch,
};
use eligible::{Verdict, verdict};

const REPORTER: &str = "daemonset-controller";
/// No more pods than this are made in one go.
const BURST: usize = 100;

pub(crate) fn wake(world: &World, seen: &Seen, wake: &mut dyn FnMut(Key)) {
    match seen {
        Seen::DaemonSet(change) => wake(Key::of(&change.object().metadata)),
        Seen::Pod(change) => {
            pod_owners(change, "DaemonSet").for_each(&mut *wake);
            if is_orphan(change) {
                let pod = &change.object().metadata;
                let namespace = pod.namespace.as_deref().unwrap_or_default();
                for set in world.daemon_sets.in_namespace(namespace) {
                    if set.spec.as_ref().is_some_and(|spec| selects(&spec.selector, pod)) {
                        wake(Key::of(&set.metadata));
                    }
                }
            }
        }
        Seen::Revision(change) => {
            let owner = crate::cluster::controller_of(&change.object().metadata);
            if let Some(owner) = owner.filter(|owner| owner.kind == "DaemonSet") {
                let namespace = change.object().metadata.namespace.clone().unwrap_or_default();
                wake(Key::new(namespace, owner.name.clone()));
            }
        }
        Seen::Node(change) => {
            let decisive = |node: &Node| {
                let taints = node.spec.as_ref().and_then(|spec| spec.taints.clone());
                (node.metadata.labels.clone(), taints)
            };
            let before = change.old.as_deref().map(decisive);
            if change.new.as_deref().map(decisive) != before {
                world.daemon_sets.iter().for_each(|set| wake(Key::of(&set.metadata)));
            }
        }
        _ => {}
    }
}

/// Makes missing pods, deletes those that are not wanted, rolls out, counts.
pub(crate) fn plan(view: View<'_>, key: &Key) -> Plan {
    let mut plan = Plan::default();
    let Some(set) = view.world.daemon_sets.get(key) else { return plan };
    let Some(spec) = &set.spec else { return plan };
    let subject = Subject {
        owner: &**set,
        selector: &spec.selector,
        template: &spec.template,
        collisions: set.status.as_ref().and_then(|status| status.collision_count),
        label: REVISION_LABEL,
    };
    let deleted = set.metadata.deletion_timestamp.is_some();
    if deleted {
        return plan;
    }
    let Some(history) = history::of(&mut plan, view.world, &subject) else { return plan };
    let pods = claim(&mut plan, &view.world.pods, &**set, &spec.selector);
    if pods.adopting {
        return plan;
    }
    let hash = label(&history.current.metadata.labels);
    let daemons = Daemons::new(view, set, spec, &hash, pods.owned);
    daemons.place(&mut plan);
    if daemons.rolls() {
        daemons.roll(&mut plan);
    }
    let live: BTreeSet<String> = daemons.pods().map(|pod| label(&pod.metadata.labels)).collect();
    history::forget(&mut plan, &history, spec.revision_history_limit, &live, |revision| {
        label(&revision.metadata.labels)
    });
    let new = DaemonSet { status: Some(daemons.status(&mut plan)), ..DaemonSet::clone(set) };
    if let Some(call) = status_patch(&**set, &new, false) {
        plan.call(call);
    }
    plan
}

struct Daemons<'a> {
    view: View<'a>,
    set: &'a DaemonSet,
    spec: &'a DaemonSetSpec,
    hash: &'a str,
    template: PodTemplateSpec,
    /// The verdict about each node, and the set's pods on it, oldest first.
    nodes: BTreeMap<String, (Verdict, Vec<Arc<Pod>>)>,
}

impl<'a> Daemons<'a> {
    fn new(
        view: View<'a>,
        set: &'a DaemonSet,
        spec: &'a DaemonSetSpec,
        hash: &'a str,
        pods: Vec<Arc<Pod>>,
    ) -> Self {
        let mut template = labelled(&spec.template, REVISION_LABEL, hash);
        if let Some(spec) = &mut template.spec {
            eligible::tolerate_node_problems(spec);
        }
        let mut nodes: BTreeMap<String, (Verdict, Vec<Arc<Pod>>)> = BTreeMap::new();
        for node in view.world.nodes.iter() {
            let name = node.metadata.name.clone().unwrap_or_default();
            let verdict = template.spec.as_ref().map(|spec| verdict(spec, node));
            nodes.insert(name, (verdict.unwrap_or(Verdict::Refused), Vec::new()));
        }
        for pod in pods {
            // A pod for a node that is gone is of no use.
            let node = target(&pod).unwrap_or_default().to_owned();
            nodes.entry(node).or_insert_with(|| (Verdict::Refused, Vec::new())).1.push(pod);
        }
        for (_, pods) in nodes.values_mut() {
            pods.sort_by_key(|pod| {
                let created = pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
                (pod.node().is_none(), created, pod.metadata.name.clone())
            });
        }
        Self { view, set, spec, hash, template, nodes }
    }

    fn pods(&self) -> impl Iterator<Item = &Arc<Pod>> {
        self.nodes.values().flat_map(|(_, pods)| pods)
    }

    fn place(&self, plan: &mut Plan) {
        let mut n_made = 0;
        for (node, (verdict, pods)) in &self.nodes {
            if *verdict == Verdict::Refused {
                pods.iter().filter(|pod| !is_terminating(pod)).for_each(|p| self.delete(plan, p));
                continue;
            }
            let (failed, others): (Vec<_>, Vec<_>) =
                pods.iter().partition(|pod| matches!(phase(pod), "Failed" | "Succeeded"));
            for pod in failed.iter().filter(|pod| !is_terminating(pod)) {
                self.delete(plan, pod);
            }
            let staying: Vec<&Arc<Pod>> =
                others.into_iter().filter(|pod| !is_terminating(pod)).collect();
            self.surplus(&staying).into_iter().for_each(|pod| self.delete(plan, pod));
            // A pod that is still ending holds its place.
            if pods.is_empty() && *verdict == Verdict::Wanted && n_made < BURST {
                self.make(plan, node);
                n_made += 1;
            }
        }
    }

    fn status(&self, plan: &mut Plan) -> DaemonSetStatus {
        let before = self.set.status.clone().unwrap_or_default();
        let mut status = DaemonSetStatus {
            observed_generation: self.set.metadata.generation,
            collision_count: before.collision_count,
            conditions: before.conditions,
            ..Default::default()
        };
        let (mut updated, mut available) = (0, 0);
        for (verdict, pods) in self.nodes.values() {
            if *verdict != Verdict::Wanted {
                status.number_misscheduled += i32::from(!pods.is_empty());
                continue;
            }
            status.desired_number_scheduled += 1;
            let Some(pod) = pods.first() else { continue };
            status.current_number_scheduled += 1;
            updated += i32::from(self.is_current(pod));
            status.number_ready += i32::from(is_ready(pod));
            match self.availability(pod) {
                Availability::Available => available += 1,
                Availability::At(at) => plan.wake_at(at),
                Availability::No => {}
            }
        }
        status.updated_number_scheduled = Some(updated);
        status.number_available = Some(available);
        status.number_unavailable = Some(status.desired_number_scheduled - available);
        status
    }

    fn availability(&self, pod: &Pod) -> Availability {
        availability(pod, self.spec.min_ready_seconds.unwrap_or_default(), self.view.now)
    }

    fn is_current(&self, pod: &Pod) -> bool {
        label(&pod.metadata.labels) == self.hash
    }

    fn make(&self, plan: &mut Plan, node: &str) {
        let mut pod = pod_of(&self.template, self.set);
        if let Some(spec) = &mut pod.spec {
            eligible::pin(spec, node);
        }
        plan.actions.push(Action {
            call: Call::create(&pod),
            on_success: Some(
                Note::normal(self.set, REPORTER, "SuccessfulCreate", "Created pod: ").with_name(),
            ),
            on_failure: Some(Note::warning(self.set, REPORTER, "FailedCreate", "Error creating: ")),
        });
    }

    fn delete(&self, plan: &mut Plan, pod: &Pod) {
        let call = Call::delete(pod, None);
        // Placing and rolling may both want it gone.
        if plan.actions.iter().any(|action| action.call == call) {
            return;
        }
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        let message = format!("Deleted pod: {name}");
        plan.call_noting(call, Note::normal(self.set, REPORTER, "SuccessfulDelete", message));
    }
}

fn label(labels: &Option<BTreeMap<String, String>>) -> String {
    labels.as_ref().and_then(|labels| labels.get(REVISION_LABEL)).cloned().unwrap_or_default()
}

/// The node that a daemon's pod is on, or is tied to.
fn target(pod: &Pod) -> Option<&str> {
    pod.node().or_else(|| eligible::pinned(pod.spec.as_ref()?))
}

#[cfg(test)]
mod tests;

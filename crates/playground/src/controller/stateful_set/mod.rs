//! Keeps numbered pods, each with a name and claims of its own.

mod claims;
mod identity;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetSpec, StatefulSetStatus};
use k8s_openapi::api::core::v1::Pod;

use super::history::{self, History, Subject};
use super::{is_orphan, pod_owners};
use crate::cluster::{Key, Seen, World, controller_of};
use crate::engine::plan::{Action, Call, Note, Plan, View};
use crate::workload::{
    Availability, REVISION_LABEL, availability, claim, has_ended, is_ready, is_terminating, phase,
    selects, status_patch,
};
use claims::Place;

const REPORTER: &str = "statefulset-controller";
/// The label under which revisions of stateful sets carry their hash.
const HASH_LABEL: &str = "controller.kubernetes.io/hash";

pub(crate) fn wake(world: &World, seen: &Seen, wake: &mut dyn FnMut(Key)) {
    match seen {
        Seen::StatefulSet(change) => wake(Key::of(&change.object().metadata)),
        Seen::Pod(change) => {
            pod_owners(change, "StatefulSet").for_each(&mut *wake);
            if is_orphan(change) {
                let pod = &change.object().metadata;
                let namespace = pod.namespace.as_deref().unwrap_or_default();
                for set in world.stateful_sets.in_namespace(namespace) {
                    if set.spec.as_ref().is_some_and(|spec| selects(&spec.selector, pod)) {
                        wake(Key::of(&set.metadata));
                    }
                }
            }
        }
        Seen::Revision(change) => {
            let metadata = &change.object().metadata;
            if let Some(owner) = controller_of(metadata).filter(|o| o.kind == "StatefulSet") {
                let namespace = metadata.namespace.clone().unwrap_or_default();
                wake(Key::new(namespace, owner.name.clone()));
            }
        }
        // A pod may wait for a claim of its name to be gone.
        Seen::Claim(change) if change.new.is_none() => {
            let claim = change.object();
            let namespace = claim.metadata.namespace.as_deref().unwrap_or_default();
            let sets = world.stateful_sets.in_namespace(namespace);
            sets.filter(|set| claims::is_of(set, claim))
                .for_each(|set| wake(Key::of(&set.metadata)));
        }
        _ => {}
    }
}

/// Takes the next step with a set's pods.
pub(crate) fn plan(view: View<'_>, key: &Key) -> Plan {
    let mut plan = Plan { ordered: true, ..Plan::default() };
    let Some(set) = view.world.stateful_sets.get(key) else { return plan };
    let Some(spec) = &set.spec else { return plan };
    if set.metadata.deletion_timestamp.is_some() {
        return plan;
    }
    let subject = Subject {
        owner: &**set,
        selector: &spec.selector,
        template: &spec.template,
        collisions: set.status.as_ref().and_then(|status| status.collision_count),
        label: HASH_LABEL,
    };
    let Some(history) = history::of(&mut plan, view.world, &subject) else { return plan };
    let pods = claim(&mut plan, &view.world.pods, &**set, &spec.selector);
    if pods.adopting {
        return plan;
    }
    let replicas = Replicas::new(view, set, spec, history, pods.owned);
    replicas.step(&mut plan);
    let new = StatefulSet { status: Some(replicas.status(&mut plan)), ..StatefulSet::clone(set) };
    if let Some(call) = status_patch(&**set, &new, false) {
        plan.call(call);
    }
    replicas.forget_history(&mut plan);
    plan
}

struct Replicas<'a> {
    view: View<'a>,
    set: &'a StatefulSet,
    spec: &'a StatefulSetSpec,
    history: History,
    /// By number.
    pods: BTreeMap<i32, Arc<Pod>>,
    first: i32,
    n_wanted: i32,
}

impl<'a> Replicas<'a> {
    fn new(
        view: View<'a>,
        set: &'a StatefulSet,
        spec: &'a StatefulSetSpec,
        history: History,
        pods: Vec<Arc<Pod>>,
    ) -> Self {
        let name = set.metadata.name.as_deref().unwrap_or_default();
        let number = |pod: &Pod| identity::number(name, pod.metadata.name.as_deref()?);
        let pods = pods.into_iter().filter_map(|pod| Some((number(&pod)?, pod))).collect();
        let first = spec.ordinals.as_ref().and_then(|o| o.start).unwrap_or_default();
        let n_wanted = spec.replicas.unwrap_or(1).max(0);
        Self { view, set, spec, history, pods, first, n_wanted }
    }

    fn wanted(&self) -> std::ops::Range<i32> {
        self.first..self.first.saturating_add(self.n_wanted)
    }

    fn one_by_one(&self) -> bool {
        self.spec.pod_management_policy.as_deref() != Some("Parallel")
    }

    fn step(&self, plan: &mut Plan) {
        for number in self.wanted() {
            let Some(pod) = self.pods.get(&number) else {
                if !claims::are_leaving(self.view.world, self.set, self.spec, number) {
                    self.make(plan, number);
                }
                if self.one_by_one() {
                    return;
                }
                continue;
            };
            if is_terminating(pod) {
                // Its name is taken until it is gone.
                if self.one_by_one() {
                    return;
                }
                continue;
            }
            if has_ended(pod) {
                self.delete(plan, pod);
                if self.one_by_one() {
                    return;
                }
                continue;
            }
            claims::missing(self.view.world, self.set, self.spec, number)
                .iter()
                .for_each(|claim| plan.call(Call::create(claim)));
            self.assign_claims(plan, pod, Place::Wanted);
            if self.one_by_one() && !self.is_available(pod) {
                return;
            }
        }
        let wanted = self.wanted();
        for (_, pod) in self.pods.iter().rev().filter(|(number, _)| !wanted.contains(number)) {
            if !is_terminating(pod) {
                self.assign_claims(plan, pod, Place::Surplus);
                self.delete(plan, pod);
            }
            if self.one_by_one() {
                return;
            }
        }
        self.roll(plan);
    }

    /// Replaces pods of older templates, from the last one down to the
    /// partition, one at a time.
    fn roll(&self, plan: &mut Plan) {
        let strategy = self.spec.update_strategy.as_ref();
        if strategy.and_then(|s| s.type_.as_deref()) == Some("OnDelete") {
            return;
        }
        let from = self.first.saturating_add(self.partition());
        for number in self.wanted().rev().take_while(|number| *number >= from) {
            let Some(pod) = self.pods.get(&number) else { return };
            if is_terminating(pod) {
                return;
            }
            if revision_of(pod) != self.update_revision() {
                self.delete(plan, pod);
                return;
            }
            if !self.is_available(pod) {
                return;
            }
        }
    }

    fn partition(&self) -> i32 {
        let strategy = self.spec.update_strategy.as_ref();
        let rolling = strategy.and_then(|s| s.rolling_update.as_ref());
        rolling.and_then(|r| r.partition).unwrap_or_default()
    }

    fn update_revision(&self) -> &str {
        self.history.current.metadata.name.as_deref().unwrap_or_default()
    }

    /// The revision from which a rollout comes; that to which it goes when
    /// there is none under way.
    fn current_revision(&self) -> &str {
        let status = self.set.status.as_ref();
        let known = status.and_then(|s| s.current_revision.as_deref()).unwrap_or_default();
        let exists = self.history.old.iter().any(|r| r.metadata.name.as_deref() == Some(known));
        if exists { known } else { self.update_revision() }
    }

    fn make(&self, plan: &mut Plan, number: i32) {
        let below = self.first.saturating_add(self.partition());
        let old = (number < below).then(|| self.current_revision());
        let revision = old
            .and_then(|name| {
                let named = |r: &&Arc<_>| is_named(r, name);
                self.history.old.iter().find(named)
            })
            .unwrap_or(&self.history.current);
        let Some(template) = history::template_of(revision) else { return };
        let name = revision.metadata.name.as_deref().unwrap_or_default();
        for claim in claims::missing(self.view.world, self.set, self.spec, number) {
            let message = format!(
                "create Claim {} Pod {}-{number} in StatefulSet {} success",
                claim.metadata.name.as_deref().unwrap_or_default(),
                self.name(),
                self.name()
            );
            plan.call_noting(Call::create(&claim), self.note("SuccessfulCreate", message));
        }
        let pod = identity::pod(self.set, self.spec, &template, name, number);
        let own = format!("Pod {}-{number} in StatefulSet {}", self.name(), self.name());
        plan.actions.push(Action {
            call: Call::create(&pod),
            on_success: Some(self.note("SuccessfulCreate", format!("create {own} successful"))),
            on_failure: Some(Note::warning(
                self.set,
                REPORTER,
                "FailedCreate",
                format!("create {own} failed error: "),
            )),
        });
    }

    fn assign_claims(&self, plan: &mut Plan, pod: &Pod, place: Place) {
        claims::assign(plan, self.view.world, self.set, self.spec, pod, place);
    }

    fn delete(&self, plan: &mut Plan, pod: &Pod) {
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        let message = format!("delete Pod {name} in StatefulSet {} successful", self.name());
        plan.call_noting(Call::delete(pod, None), self.note("SuccessfulDelete", message));
    }

    fn status(&self, plan: &mut Plan) -> StatefulSetStatus {
        let before = self.set.status.clone().unwrap_or_default();
        let mut current = self.current_revision().to_owned();
        let (mut replicas, mut ready, mut available) = (0, 0, 0);
        let (mut n_current, mut n_updated) = (0, 0);
        for pod in self.pods.values() {
            replicas += 1;
            ready += i32::from(phase(pod) == "Running" && is_ready(pod));
            match self.availability(pod) {
                Availability::Available => available += 1,
                Availability::At(at) => plan.wake_at(at),
                Availability::No => {}
            }
            if !is_terminating(pod) {
                n_current += i32::from(revision_of(pod) == current);
                n_updated += i32::from(revision_of(pod) == self.update_revision());
            }
        }
        let all = |n: i32| n == self.n_wanted;
        if all(n_updated) && all(ready) && all(replicas) {
            self.update_revision().clone_into(&mut current);
            n_current = n_updated;
        }
        StatefulSetStatus {
            observed_generation: self.set.metadata.generation,
            replicas,
            ready_replicas: Some(ready),
            available_replicas: Some(available),
            current_replicas: Some(n_current),
            updated_replicas: Some(n_updated),
            current_revision: Some(current),
            update_revision: Some(self.update_revision().to_owned()),
            collision_count: before.collision_count,
            conditions: before.conditions,
        }
    }

    fn forget_history(&self, plan: &mut Plan) {
        let mut live: BTreeSet<String> =
            self.pods.values().map(|pod| revision_of(pod).to_owned()).collect();
        live.insert(self.current_revision().to_owned());
        let limit = self.spec.revision_history_limit;
        history::forget(plan, &self.history, limit, &live, |revision| {
            revision.metadata.name.clone().unwrap_or_default()
        });
    }

    fn is_available(&self, pod: &Pod) -> bool {
        self.availability(pod) == Availability::Available && phase(pod) == "Running"
    }

    fn availability(&self, pod: &Pod) -> Availability {
        availability(pod, self.spec.min_ready_seconds.unwrap_or_default(), self.view.now)
    }

    fn name(&self) -> &str {
        self.set.metadata.name.as_deref().unwrap_or_default()
    }

    fn note(&self, reason: &'static str, message: String) -> Note {
        Note::normal(self.set, REPORTER, reason, message)
    }
}

fn is_named(revision: &k8s_openapi::api::apps::v1::ControllerRevision, name: &str) -> bool {
    revision.metadata.name.as_deref() == Some(name)
}

fn revision_of(pod: &Pod) -> &str {
    let labels = pod.metadata.labels.as_ref();
    labels.and_then(|l| l.get(REVISION_LABEL)).map(String::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests;

//! Rolls out deployments: a replica set for each template, and the pods moved
//! from the old ones to the new one as the strategy allows.

mod annotations;
mod progress;
mod rollout;
mod scale;

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec, ReplicaSet, ReplicaSetSpec};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::json;

use crate::cluster::{Key, Seen, Watched, World, controller_of, uid};
use crate::engine::plan::{Action, Call, Note, Part, Plan, View};
use crate::workload::{
    HASH_LABEL, Round, claim, labelled, merge_diff, owner_reference, resolve, selects,
    template_hash,
};

const REPORTER: &str = "deployment-controller";

pub(crate) fn wake(world: &World, seen: &Seen, wake: &mut dyn FnMut(Key)) {
    match seen {
        Seen::Deployment(change) => wake(Key::of(&change.object().metadata)),
        Seen::ReplicaSet(change) => {
            for set in change.both() {
                let namespace = set.metadata.namespace.clone().unwrap_or_default();
                match controller_of(&set.metadata) {
                    Some(owner) if owner.kind == "Deployment" => {
                        wake(Key::new(namespace, owner.name.clone()));
                    }
                    Some(_) => {}
                    None => {
                        for deployment in world.deployments.in_namespace(&namespace) {
                            let spec = deployment.spec.as_ref();
                            if spec.is_some_and(|spec| selects(&spec.selector, &set.metadata)) {
                                wake(Key::of(&deployment.metadata));
                            }
                        }
                    }
                }
            }
        }
        // Recreate waits until the old pods are gone.
        Seen::Pod(change) => {
            let Some(pod) = change.old.as_ref().filter(|_| change.new.is_none()) else { return };
            let namespace = pod.metadata.namespace.clone().unwrap_or_default();
            let owner = controller_of(&pod.metadata).filter(|owner| owner.kind == "ReplicaSet");
            let set = owner
                .and_then(|o| world.replica_sets.get(&Key::new(namespace.clone(), o.name.clone())));
            if let Some(owner) = set.and_then(|set| controller_of(&set.metadata)) {
                wake(Key::new(namespace, owner.name.clone()));
            }
        }
        _ => {}
    }
}

/// A deployment and its replica sets.
pub(super) struct Rollout<'a> {
    pub(super) view: View<'a>,
    pub(super) deployment: &'a Deployment,
    pub(super) spec: &'a DeploymentSpec,
    /// The set with the deployment's template.
    pub(super) current: Option<Arc<ReplicaSet>>,
    /// The others, oldest first.
    pub(super) old: Vec<Arc<ReplicaSet>>,
}

/// Takes the next step of a rollout and tells how far it is.
pub(crate) fn plan(view: View<'_>, key: &Key) -> Plan {
    let mut plan = Plan { ordered: true, ..Plan::default() };
    let Some(deployment) = view.world.deployments.get(key) else { return plan };
    let Some(spec) = &deployment.spec else { return plan };
    let sets = claim(&mut plan, &view.world.replica_sets, &**deployment, &spec.selector);
    if sets.adopting {
        return plan;
    }
    let rollout = Rollout::new(view, deployment, spec, sets.owned);
    if deployment.metadata.deletion_timestamp.is_none() {
        rollout.step(&mut plan);
    }
    progress::tell(&rollout, &mut plan);
    plan
}

impl<'a> Rollout<'a> {
    fn new(
        view: View<'a>,
        deployment: &'a Deployment,
        spec: &'a DeploymentSpec,
        mut sets: Vec<Arc<ReplicaSet>>,
    ) -> Self {
        sets.sort_by_key(|set| created(&**set));
        // Should there be two with the template, the older one is kept.
        let current = sets.iter().find(|set| same_template(set, &spec.template)).map(Arc::clone);
        let current_uid = current.as_ref().map(|set| uid(&set.metadata).to_owned());
        sets.retain(|set| Some(uid(&set.metadata)) != current_uid.as_deref());
        Self { view, deployment, spec, current, old: sets }
    }

    fn step(&self, plan: &mut Plan) {
        if let Some(set) = &self.current {
            self.annotate(plan, set);
        }
        if self.spec.paused == Some(true) {
            scale::proportionally(self, plan);
            self.forget_history(plan);
        } else if self.sizes_are_outdated() {
            scale::proportionally(self, plan);
        } else if self.recreates() {
            rollout::recreate(self, plan);
        } else {
            rollout::roll(self, plan);
        }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<ReplicaSet>> {
        self.old.iter().chain(&self.current)
    }

    pub(super) fn replicas(&self) -> i32 {
        self.spec.replicas.unwrap_or(1)
    }

    pub(super) fn recreates(&self) -> bool {
        self.spec.strategy.as_ref().and_then(|s| s.type_.as_deref()) == Some("Recreate")
    }

    /// How many pods more than asked for there may be.
    pub(super) fn max_surge(&self) -> i32 {
        self.limits().0
    }

    /// How many pods there may be at most.
    pub(super) fn most(&self) -> i32 {
        self.replicas().saturating_add(self.max_surge())
    }

    /// How many pods may be missing.
    pub(super) fn max_unavailable(&self) -> i32 {
        self.limits().1.min(self.replicas())
    }

    fn limits(&self) -> (i32, i32) {
        if self.recreates() {
            return (0, 0);
        }
        let rolling = self.spec.strategy.as_ref().and_then(|s| s.rolling_update.as_ref());
        let surge = rolling.and_then(|r| r.max_surge.as_ref());
        let unavailable = rolling.and_then(|r| r.max_unavailable.as_ref());
        let surge = resolve(surge, self.replicas(), Round::Up).unwrap_or_default();
        let unavailable = resolve(unavailable, self.replicas(), Round::Down).unwrap_or_default();
        // With neither nothing could ever move.
        if surge == 0 && unavailable == 0 { (0, 1) } else { (surge, unavailable) }
    }

    /// Whether the deployment has been scaled since its sets were sized.
    fn sizes_are_outdated(&self) -> bool {
        let replicas = self.replicas();
        self.all()
            .filter(|set| size(set) > 0)
            .any(|set| annotations::desired(set).is_some_and(|desired| desired != replicas))
    }

    /// The revision that the set with the deployment's template has, or gets.
    fn revision(&self) -> i64 {
        self.old.iter().map(|set| annotations::revision(&set.metadata)).max().unwrap_or(0) + 1
    }

    /// Brings the annotations of the current set and the revision of the
    /// deployment up to date.
    fn annotate(&self, plan: &mut Plan, set: &ReplicaSet) {
        let revision = self.revision().max(annotations::revision(&set.metadata));
        let mut wanted = set.metadata.annotations.clone().unwrap_or_default();
        annotations::copy(&mut wanted, self.deployment, revision, self.max_surge());
        let known = json!(set.metadata.annotations.clone().unwrap_or_default());
        let mut patch = json!({});
        if let Some(difference) = merge_diff(&known, &json!(wanted)) {
            patch["metadata"] = json!({ "annotations": difference });
        }
        let min_ready = self.spec.min_ready_seconds.unwrap_or_default();
        let has = set.spec.as_ref().and_then(|spec| spec.min_ready_seconds).unwrap_or_default();
        if min_ready != has {
            patch["spec"] = json!({ "minReadySeconds": min_ready });
        }
        if patch != json!({}) {
            plan.call(Call::patch(set, Part::Main, patch));
        }
        self.set_revision(plan, revision);
    }

    fn set_revision(&self, plan: &mut Plan, revision: i64) {
        if annotations::revision(&self.deployment.metadata) != revision {
            let annotations = json!({ annotations::REVISION: revision.to_string() });
            let patch = json!({ "metadata": { "annotations": annotations } });
            plan.call(Call::patch(self.deployment, Part::Main, patch));
        }
    }

    /// Makes the set for the deployment's template.
    pub(super) fn make_current(&self, plan: &mut Plan, size: i32) {
        let mut collisions = self.deployment.status.as_ref().and_then(|s| s.collision_count);
        let namespace = self.deployment.metadata.namespace.clone().unwrap_or_default();
        let base = self.deployment.metadata.name.clone().unwrap_or_default();
        let (hash, name) = loop {
            let hash = template_hash(&self.spec.template, collisions);
            let name = format!("{base}-{hash}");
            let key = Key::new(namespace.clone(), name.clone());
            if self.view.world.replica_sets.get(&key).is_none() {
                break (hash, name);
            }
            // Another template has the name by chance.
            collisions = Some(collisions.unwrap_or_default() + 1);
        };
        let template = labelled(&self.spec.template, HASH_LABEL, &hash);
        let mut selector = self.spec.selector.clone();
        let labels = selector.match_labels.get_or_insert_default();
        labels.insert(HASH_LABEL.to_owned(), hash);
        let revision = self.revision();
        let mut annotated = std::collections::BTreeMap::new();
        annotations::copy(&mut annotated, self.deployment, revision, self.max_surge());
        let set = ReplicaSet {
            metadata: ObjectMeta {
                name: Some(name.clone()),
                namespace: Some(namespace),
                labels: template.metadata.as_ref().and_then(|m| m.labels.clone()),
                annotations: Some(annotated),
                owner_references: Some(vec![owner_reference(self.deployment)]),
                ..Default::default()
            },
            spec: Some(ReplicaSetSpec {
                replicas: Some(size),
                min_ready_seconds: self.spec.min_ready_seconds,
                selector,
                template: Some(template),
            }),
            status: None,
        };
        let failure = format!("Failed to create new replica set \"{name}\": ");
        let success = format!("Scaled up replica set {name} from 0 to {size}");
        let reason = "ReplicaSetCreateError";
        plan.actions.push(Action {
            call: Call::create(&set),
            on_success: (size > 0).then(|| self.note("ScalingReplicaSet", success)),
            on_failure: Some(Note::warning(self.deployment, REPORTER, reason, failure)),
        });
        self.set_revision(plan, revision);
    }

    /// Sets a replica set's size, if it is another.
    pub(super) fn resize(&self, plan: &mut Plan, set: &ReplicaSet, to: i32) {
        let from = size(set);
        let mut wanted = set.metadata.annotations.clone().unwrap_or_default();
        annotations::sizes(&mut wanted, self.replicas(), self.max_surge());
        let known = json!(set.metadata.annotations.clone().unwrap_or_default());
        let difference = merge_diff(&known, &json!(wanted));
        if from == to && difference.is_none() {
            return;
        }
        let patch = json!({
            "metadata": { "annotations": difference.unwrap_or_else(|| json!({})) },
            "spec": { "replicas": to },
        });
        let call = Call::patch(set, Part::Main, patch);
        if from == to {
            plan.call(call);
            return;
        }
        let direction = if to > from { "up" } else { "down" };
        let name = set.metadata.name.as_deref().unwrap_or_default();
        let message = format!("Scaled {direction} replica set {name} from {from} to {to}");
        plan.call_noting(call, self.note("ScalingReplicaSet", message));
    }

    /// Deletes the oldest of the empty sets beyond the history's length.
    pub(super) fn forget_history(&self, plan: &mut Plan) {
        let limit = self.spec.revision_history_limit.unwrap_or(10);
        let limit = usize::try_from(limit).unwrap_or_default();
        let mut idle: Vec<&Arc<ReplicaSet>> =
            self.old.iter().filter(|set| set.metadata.deletion_timestamp.is_none()).collect();
        let Some(n_surplus) = idle.len().checked_sub(limit) else { return };
        idle.sort_by_key(|set| annotations::revision(&set.metadata));
        for set in idle.into_iter().take(n_surplus) {
            let status = set.status.as_ref();
            let observed = status.and_then(|s| s.observed_generation).unwrap_or_default();
            let empty = size(set) == 0
                && status.is_none_or(|status| status.replicas == 0)
                && set.metadata.generation.unwrap_or_default() <= observed;
            if empty {
                plan.call(Call::delete(&**set, None));
            }
        }
    }

    fn note(&self, reason: &'static str, message: String) -> Note {
        Note::normal(self.deployment, REPORTER, reason, message)
    }
}

/// How many pods a set is to have.
pub(super) fn size(set: &ReplicaSet) -> i32 {
    set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1)
}

/// The sum, or the largest number if it is larger still.
pub(super) fn sum(numbers: impl Iterator<Item = i32>) -> i32 {
    numbers.fold(0, i32::saturating_add)
}

/// How many pods of a set are available.
pub(super) fn n_available(set: &ReplicaSet) -> i32 {
    set.status.as_ref().and_then(|status| status.available_replicas).unwrap_or_default()
}

/// Whether a set has the template, but for the label that tells sets apart.
fn same_template(set: &ReplicaSet, template: &PodTemplateSpec) -> bool {
    let Some(own) = set.spec.as_ref().and_then(|spec| spec.template.as_ref()) else {
        return false;
    };
    plain(own) == plain(template)
}

fn plain(template: &PodTemplateSpec) -> PodTemplateSpec {
    let mut template = template.clone();
    let metadata = template.metadata.get_or_insert_default();
    let labels = metadata.labels.get_or_insert_default();
    labels.remove(HASH_LABEL);
    metadata.annotations.get_or_insert_default();
    template
}

fn created<K: Watched>(object: &K) -> (Option<jiff::Timestamp>, Option<String>) {
    let metadata = object.metadata();
    (metadata.creation_timestamp.as_ref().map(|time| time.0), metadata.name.clone())
}

#[cfg(test)]
mod tests;

//! Deployments, replica sets and replication controllers.

use k8s_openapi::api::{apps::v1 as apps_v1, core::v1 as core_v1};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use steersman_api::labels::Labels;
use steersman_api::problem::{FieldPath, Problem};
use steersman_api::selector::Selector;

use super::template::{self, Owner, TEMPLATE_HASH_LABEL};
use super::{Expander, existing, key, origin_of, shown, workload_of};
use crate::manifest::Sourced;

impl Expander<'_, '_, '_> {
    /// A deployment whose replica sets are in the input leaves pods to them.
    pub(super) fn deployment(&mut self, deployment: &Sourced<apps_v1::Deployment>) {
        let metadata = &deployment.object.metadata;
        let origin = origin_of("Deployment", deployment, metadata);
        let Some(spec) = &deployment.object.spec else {
            return self.intake.report_object(&origin, no_spec());
        };
        let Some(selector) = self.own_selector(&spec.selector, &spec.template, &origin) else {
            return;
        };
        let Some(wanted) = self.count(spec.replicas, "spec.replicas", &origin) else { return };
        let namespace = key(metadata).0;
        let has_sets = self.manifests.replica_sets.iter().any(|set| {
            key(&set.object.metadata).0 == namespace
                && existing::controller(&set.object.metadata)
                    .is_some_and(|owner| existing::refers_to(owner, "Deployment", metadata))
        });
        if has_sets {
            return;
        }
        if spec.paused == Some(true) {
            let name = shown(metadata);
            let notice =
                format!("Deployment {name} is paused and has no ReplicaSet: it makes no pods");
            return self.made.notices.push(notice);
        }
        let existing = self.existing.of_deployment(metadata, &selector);
        // Pods of a template that nobody has any more are on their way out, but
        // which those are, the input does not say.
        let hash = match existing.last() {
            Some((hash, _)) => (*hash).to_owned(),
            None => template::hash(&spec.template),
        };
        let set = replica_set(deployment, spec, &hash);
        let owner = Owner::new("apps/v1", "ReplicaSet", &set.metadata);
        let template = set.spec.as_ref().and_then(|s| s.template.as_ref());
        let template = template.unwrap_or(&spec.template);
        let workload = workload_of("Deployment", metadata);
        self.replicas(template, &owner, &workload, &origin, existing.len()..wanted);
        self.made.replica_sets.push(set);
    }

    pub(super) fn replica_set(&mut self, set: &Sourced<apps_v1::ReplicaSet>) {
        let metadata = &set.object.metadata;
        let origin = origin_of("ReplicaSet", set, metadata);
        let Some(spec) = &set.object.spec else {
            return self.intake.report_object(&origin, no_spec());
        };
        let template = spec.template.clone().unwrap_or_default();
        let Some(selector) = self.own_selector(&spec.selector, &template, &origin) else { return };
        let Some(wanted) = self.count(spec.replicas, "spec.replicas", &origin) else { return };
        let set = workload_of("ReplicaSet", metadata);
        let existing = self.existing.owned_or_adopted(&set, metadata, &selector).len();
        let workload = match existing::controller(metadata) {
            Some(outer) => {
                let outer_meta = ObjectMeta { name: Some(outer.name.clone()), ..metadata.clone() };
                workload_of(&outer.kind, &outer_meta)
            }
            None => set,
        };
        let owner = Owner::new("apps/v1", "ReplicaSet", metadata);
        self.replicas(&template, &owner, &workload, &origin, existing..wanted);
    }

    pub(super) fn replication_controller(
        &mut self,
        controller: &Sourced<core_v1::ReplicationController>,
    ) {
        let metadata = &controller.object.metadata;
        let origin = origin_of("ReplicationController", controller, metadata);
        let Some(spec) = &controller.object.spec else {
            return self.intake.report_object(&origin, no_spec());
        };
        let template = spec.template.clone().unwrap_or_default();
        let own_labels = || template.metadata.as_ref().and_then(|m| m.labels.clone());
        let match_labels = spec.selector.clone().filter(|s| !s.is_empty()).or_else(own_labels);
        let selector = LabelSelector { match_labels, ..Default::default() };
        if self.own_selector(&selector, &template, &origin).is_none() {
            return;
        }
        let Some(wanted) = self.count(spec.replicas, "spec.replicas", &origin) else { return };
        let selector = Selector::from_labels(&Labels::from(selector.match_labels.as_ref()));
        let workload = workload_of("ReplicationController", metadata);
        let existing = self.existing.owned_or_adopted(&workload, metadata, &selector).len();
        let owner = Owner::new("v1", "ReplicationController", metadata);
        self.replicas(&template, &owner, &workload, &origin, existing..wanted);
    }
}

pub(super) fn no_spec() -> Problem {
    Problem::required(&FieldPath::from("spec"), "a workload's spec")
}

/// The replica set that a deployment makes of its template.
fn replica_set(
    deployment: &Sourced<apps_v1::Deployment>,
    spec: &apps_v1::DeploymentSpec,
    hash: &str,
) -> apps_v1::ReplicaSet {
    let metadata = &deployment.object.metadata;
    let label = || [(TEMPLATE_HASH_LABEL, hash.to_owned())];
    let template = template::labelled(&spec.template, label());
    let mut selector = spec.selector.clone();
    template::add_labels(&mut selector.match_labels, label());
    apps_v1::ReplicaSet {
        metadata: ObjectMeta {
            name: Some(format!("{}-{hash}", key(metadata).1)),
            namespace: metadata.namespace.clone(),
            labels: template.metadata.as_ref().and_then(|m| m.labels.clone()),
            owner_references: Some(vec![Owner::new("apps/v1", "Deployment", metadata).reference()]),
            ..Default::default()
        },
        spec: Some(apps_v1::ReplicaSetSpec {
            replicas: spec.replicas,
            selector,
            template: Some(template),
            ..Default::default()
        }),
        status: None,
    }
}

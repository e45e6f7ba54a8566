//! The pods that are in the input, by owner.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1 as core_v1;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use steersman_api::labels::Labels;
use steersman_api::selector::Selector;

use super::template::TEMPLATE_HASH_LABEL;
use super::{Workload, key};
use crate::manifest::Manifests;

/// The pods of the input that have not ended.
#[derive(Debug, Default)]
pub(crate) struct Existing<'m> {
    /// By namespace, kind and name of the controller.
    owned: BTreeMap<(&'m str, &'m str, &'m str), Vec<&'m core_v1::Pod>>,
    /// Pods without a controller, by namespace.
    orphans: BTreeMap<&'m str, Vec<&'m core_v1::Pod>>,
    /// Workloads of orphans that a controller takes for its own, by namespace
    /// and name of the pod.
    adopted: BTreeMap<(&'m str, &'m str), Arc<Workload>>,
    /// Outer controllers of replica sets and jobs.
    outer: BTreeMap<(&'m str, &'static str, &'m str), &'m OwnerReference>,
}

/// Whether a pod has ended, and no controller or scheduler looks at it.
pub(crate) fn has_ended(pod: &core_v1::Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|s| s.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

pub(super) fn controller(metadata: &ObjectMeta) -> Option<&OwnerReference> {
    metadata.owner_references.iter().flatten().find(|owner| owner.controller == Some(true))
}

/// Whether the reference is to an object of that kind and metadata. Objects
/// written by hand have no UID to compare.
pub(super) fn refers_to(reference: &OwnerReference, kind: &str, metadata: &ObjectMeta) -> bool {
    let uid = metadata.uid.as_deref().unwrap_or_default();
    reference.kind == kind
        && Some(reference.name.as_str()) == metadata.name.as_deref()
        && (uid.is_empty() || reference.uid.is_empty() || reference.uid == uid)
}

impl<'m> Existing<'m> {
    pub(crate) fn new(manifests: &'m Manifests) -> Self {
        let mut existing = Self::default();
        for pod in manifests.pods.iter().map(|pod| &pod.object).filter(|pod| !has_ended(pod)) {
            let (namespace, _) = key(&pod.metadata);
            match controller(&pod.metadata) {
                Some(owner) => {
                    let owner = (namespace, owner.kind.as_str(), owner.name.as_str());
                    existing.owned.entry(owner).or_default().push(pod);
                }
                None => existing.orphans.entry(namespace).or_default().push(pod),
            }
        }
        let sets = manifests.replica_sets.iter().map(|set| ("ReplicaSet", &set.object.metadata));
        let jobs = manifests.jobs.iter().map(|job| ("Job", &job.object.metadata));
        for (kind, metadata) in sets.chain(jobs) {
            let (namespace, name) = key(metadata);
            if let Some(owner) = controller(metadata) {
                existing.outer.insert((namespace, kind, name), owner);
            }
        }
        existing
    }

    /// The pods that the object controls and that are not on their way out.
    pub(super) fn owned_by(&self, kind: &str, metadata: &ObjectMeta) -> Vec<&'m core_v1::Pod> {
        let (namespace, name) = key(metadata);
        let pods = self.owned.get(&(namespace, kind, name)).map(Vec::as_slice).unwrap_or_default();
        let counts = |pod: &core_v1::Pod| {
            controller(&pod.metadata).is_some_and(|owner| refers_to(owner, kind, metadata))
                && pod.metadata.deletion_timestamp.is_none()
        };
        pods.iter().copied().filter(|pod| counts(pod)).collect()
    }

    /// Those, and the ones without a controller that the selector matches: the
    /// object adopts them.
    pub(super) fn owned_or_adopted(
        &mut self,
        workload: &Arc<Workload>,
        metadata: &ObjectMeta,
        selector: &Selector,
    ) -> Vec<&'m core_v1::Pod> {
        let mut pods = self.owned_by(&workload.kind, metadata);
        let namespace = workload.namespace.as_str();
        for pod in self.orphans.get(namespace).map(Vec::as_slice).unwrap_or_default() {
            let key = key(&pod.metadata);
            let adoptable = pod.metadata.deletion_timestamp.is_none()
                && !self.adopted.contains_key(&key)
                && selector.matches(&Labels::from(pod.metadata.labels.as_ref()));
            if adoptable {
                self.adopted.insert(key, workload.clone());
                pods.push(pod);
            }
        }
        pods
    }

    /// The pods whose replica set belongs to the deployment by its name, though
    /// it is not in the input; with the hash of their template.
    pub(super) fn of_deployment(
        &self,
        metadata: &ObjectMeta,
        selector: &Selector,
    ) -> Vec<(&'m str, &'m core_v1::Pod)> {
        let (namespace, name) = key(metadata);
        let first = (namespace, "ReplicaSet", name);
        let of_namesakes = self.owned.range(first..).take_while(|((ns, kind, set), _)| {
            (*ns, *kind) == (namespace, "ReplicaSet") && set.starts_with(name)
        });
        let mut found = Vec::new();
        for ((_, _, set), pods) in of_namesakes {
            for pod in pods.iter().copied().filter(|pod| pod.metadata.deletion_timestamp.is_none())
            {
                let labels = pod.metadata.labels.as_ref();
                match template_hash(pod) {
                    Some(hash)
                        if deployment_name(set, hash) == Some(name)
                            && selector.matches(&Labels::from(labels)) =>
                    {
                        found.push((hash, pod));
                    }
                    _ => {}
                }
            }
        }
        found
    }

    /// The workload of a pod of the input.
    pub(crate) fn workload_of(&self, pod: &'m core_v1::Pod) -> Option<Arc<Workload>> {
        let key = key(&pod.metadata);
        if let Some(workload) = self.adopted.get(&key) {
            return Some(workload.clone());
        }
        let owner = controller(&pod.metadata)?;
        let (kind, name) = self.outermost(owner, key.0, pod);
        let (kind, name) = (kind.to_owned(), name.to_owned());
        Some(Arc::new(Workload { kind, namespace: key.0.to_owned(), name }))
    }

    fn outermost<'o>(
        &self,
        owner: &'o OwnerReference,
        namespace: &str,
        pod: &core_v1::Pod,
    ) -> (&'o str, &'o str)
    where
        'm: 'o,
    {
        let kind = match owner.kind.as_str() {
            "ReplicaSet" => "ReplicaSet",
            "Job" => "Job",
            other => return (other, &owner.name),
        };
        if let Some(outer) = self.outer.get(&(namespace, kind, owner.name.as_str())) {
            return (&outer.kind, &outer.name);
        }
        let hash = template_hash(pod).filter(|_| kind == "ReplicaSet");
        match hash.and_then(|hash| deployment_name(&owner.name, hash)) {
            Some(deployment) => ("Deployment", deployment),
            None => (kind, &owner.name),
        }
    }
}

fn template_hash(pod: &core_v1::Pod) -> Option<&str> {
    pod.metadata.labels.as_ref()?.get(TEMPLATE_HASH_LABEL).map(String::as_str)
}

/// The deployment whose replica set is called so.
fn deployment_name<'s>(replica_set: &'s str, hash: &str) -> Option<&'s str> {
    replica_set.strip_suffix(hash)?.strip_suffix('-')
}

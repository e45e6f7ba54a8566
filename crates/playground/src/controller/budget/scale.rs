//! How many pods there should be for a budget.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudgetSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::cluster::{Key, World, controller_of};
use crate::workload::{Round, resolve};

/// What a budget is measured against.
pub(super) struct Scale {
    /// How many pods there should be.
    pub(super) expected: i32,
    /// How many of them should be healthy.
    pub(super) desired: i32,
    /// Whether some pods have no controller, so that they are not expected.
    pub(super) has_unmanaged: bool,
}

/// How many pods there should be, and how many of them healthy. The error says
/// why nobody knows.
pub(super) fn scale(
    world: &World,
    spec: &PodDisruptionBudgetSpec,
    pods: &[Arc<Pod>],
) -> Result<Scale, String> {
    if let Some(most) = &spec.max_unavailable {
        let (expected, has_unmanaged) = expected(world, pods)?;
        let most = resolve(Some(most), expected, Round::Up).unwrap_or_default();
        return Ok(Scale { expected, desired: (expected - most).max(0), has_unmanaged });
    }
    match &spec.min_available {
        Some(IntOrString::Int(least)) => {
            Ok(Scale { expected: super::count(pods.len()), desired: *least, has_unmanaged: false })
        }
        Some(least) => {
            let (expected, has_unmanaged) = expected(world, pods)?;
            let desired = resolve(Some(least), expected, Round::Up).unwrap_or_default();
            Ok(Scale { expected, desired, has_unmanaged })
        }
        // A budget without a number allows nothing.
        None => Ok(Scale { expected: 0, desired: 0, has_unmanaged: false }),
    }
}

/// How many pods the controllers of these pods are to have together, and
/// whether there are pods without one.
fn expected(world: &World, pods: &[Arc<Pod>]) -> Result<(i32, bool), String> {
    let mut sizes: BTreeMap<String, i32> = BTreeMap::new();
    let mut has_unmanaged = false;
    for pod in pods {
        let Some(owner) = controller_of(&pod.metadata) else {
            has_unmanaged = true;
            continue;
        };
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        let (uid, size) = size_of(world, namespace, owner).ok_or_else(|| {
            let resource = match owner.kind.as_str() {
                "DaemonSet" => "daemonsets.apps",
                "Job" => "jobs.batch",
                _ => {
                    let name = pod.metadata.name.as_deref().unwrap_or_default();
                    return format!("found no controllers for pod \"{name}\"");
                }
            };
            format!("{resource} does not implement the scale subresource")
        })?;
        sizes.insert(uid, size);
    }
    Ok((sizes.values().sum(), has_unmanaged))
}

/// The size of a controller that has one; of its deployment if it is part of
/// one.
fn size_of(world: &World, namespace: &str, owner: &OwnerReference) -> Option<(String, i32)> {
    let key = |name: &str| Key::new(namespace, name);
    match owner.kind.as_str() {
        "ReplicaSet" => {
            let set = world.replica_sets.get(&key(&owner.name))?;
            let outer = controller_of(&set.metadata).filter(|outer| outer.kind == "Deployment");
            let deployment =
                outer.and_then(|outer| Some((outer, world.deployments.get(&key(&outer.name))?)));
            Some(match deployment {
                Some((outer, deployment)) => {
                    let size = deployment.spec.as_ref().and_then(|spec| spec.replicas);
                    (outer.uid.clone(), size.unwrap_or(1))
                }
                None => {
                    let size = set.spec.as_ref().and_then(|spec| spec.replicas);
                    (owner.uid.clone(), size.unwrap_or(1))
                }
            })
        }
        "StatefulSet" => {
            let set = world.stateful_sets.get(&key(&owner.name))?;
            let size = set.spec.as_ref().and_then(|spec| spec.replicas);
            Some((owner.uid.clone(), size.unwrap_or(1)))
        }
        _ => None,
    }
}

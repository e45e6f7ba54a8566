//! Makes the claims of generic ephemeral volumes, which live as long as their
//! pod.

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, Volume};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::cluster::{Change, Key, Seen, World, controller_of, uid};
use crate::engine::plan::{Action, Call, Note, Plan, View};
use crate::workload::{is_terminating, owner_reference};

const REPORTER: &str = "ephemeral_volume";

pub(in super::super) fn wake(world: &World, seen: &Seen, wake: &mut dyn FnMut(Key)) {
    match seen {
        Seen::Pod(Change { old: None, new: Some(pod) }) if volumes(pod).next().is_some() => {
            wake(Key::of(&pod.metadata));
        }
        Seen::Claim(Change { old: Some(claim), new: None }) => {
            let namespace = claim.metadata.namespace.as_deref().unwrap_or_default();
            let name = claim.metadata.name.as_deref().unwrap_or_default();
            for pod in world.pods.in_namespace(namespace) {
                if volumes(pod).any(|volume| claim_name(pod, &volume.name) == name) {
                    wake(Key::of(&pod.metadata));
                }
            }
        }
        _ => {}
    }
}

/// Makes the claims of a pod that are missing.
pub(in super::super) fn plan(view: View<'_>, key: &Key) -> Plan {
    let mut plan = Plan::default();
    let Some(pod) = view.world.pods.get(key).filter(|pod| !is_terminating(pod)) else {
        return plan;
    };
    for volume in volumes(pod) {
        let name = claim_name(pod, &volume.name);
        let known = view.world.claims.get(&Key::new(key.namespace.clone(), name.clone()));
        let failed = |message: String| Note::warning(&**pod, REPORTER, "FailedBinding", message);
        match known {
            None => plan.actions.push(Action {
                call: Call::create(&claim(pod, volume, name.clone())),
                on_success: None,
                on_failure: Some(failed(format!(
                    "ephemeral volume {}: create PVC {name}: ",
                    volume.name
                ))),
            }),
            Some(claim) if !is_owned(claim, pod) => plan.note(failed(format!(
                "ephemeral volume {}: PVC {}/{name} was not created for pod {key} (pod is not owner)",
                volume.name, key.namespace
            ))),
            Some(_) => {}
        }
    }
    plan
}

/// The name of the claim of a pod's ephemeral volume.
pub(super) fn claim_name(pod: &Pod, volume: &str) -> String {
    format!("{}-{volume}", pod.metadata.name.as_deref().unwrap_or_default())
}

fn volumes(pod: &Pod) -> impl Iterator<Item = &Volume> {
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    volumes.filter(|volume| volume.ephemeral.is_some())
}

fn is_owned(claim: &PersistentVolumeClaim, pod: &Pod) -> bool {
    controller_of(&claim.metadata).is_some_and(|owner| owner.uid == uid(&pod.metadata))
}

fn claim(pod: &Pod, volume: &Volume, name: String) -> PersistentVolumeClaim {
    let template = volume.ephemeral.as_ref().and_then(|e| e.volume_claim_template.as_ref());
    let metadata = template.and_then(|template| template.metadata.as_ref());
    PersistentVolumeClaim {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: pod.metadata.namespace.clone(),
            labels: metadata.and_then(|m| m.labels.clone()),
            annotations: metadata.and_then(|m| m.annotations.clone()),
            owner_references: Some(vec![owner_reference(pod)]),
            ..Default::default()
        },
        spec: template.map(|template| template.spec.clone()),
        status: None,
    }
}

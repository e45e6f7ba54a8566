//! Ephemeral volumes: a claim for each, which belongs to the pod.

use k8s_openapi::api::core::v1 as core_v1;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use steersman_api::pod::PodInfo;

use super::key;

/// The claims of a pod's ephemeral volumes.
pub(crate) fn claims(pod: &core_v1::Pod, info: &PodInfo) -> Vec<core_v1::PersistentVolumeClaim> {
    let (namespace, name) = key(&pod.metadata);
    let owner = OwnerReference {
        api_version: "v1".to_owned(),
        kind: "Pod".to_owned(),
        name: name.to_owned(),
        uid: info.uid.to_string(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    };
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    let claim = |volume: &core_v1::Volume| {
        let template = volume.ephemeral.as_ref()?.volume_claim_template.as_ref()?;
        let written = template.metadata.as_ref();
        let metadata = ObjectMeta {
            name: Some(format!("{name}-{}", volume.name)),
            namespace: Some(namespace.to_owned()),
            labels: written.and_then(|m| m.labels.clone()),
            annotations: written.and_then(|m| m.annotations.clone()),
            owner_references: Some(vec![owner.clone()]),
            ..Default::default()
        };
        let spec = Some(template.spec.clone());
        Some(core_v1::PersistentVolumeClaim { metadata, spec, ..Default::default() })
    };
    volumes.filter_map(claim).collect()
}

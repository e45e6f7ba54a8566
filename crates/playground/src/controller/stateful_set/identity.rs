//! The pod of one number of a stateful set.

use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetSpec};
use k8s_openapi::api::core::v1::{PersistentVolumeClaimVolumeSource, Pod, PodTemplateSpec, Volume};

use super::claims::claim_name;
use crate::workload::{REVISION_LABEL, labelled, pod_of};

const POD_NAME_LABEL: &str = "statefulset.kubernetes.io/pod-name";
const INDEX_LABEL: &str = "apps.kubernetes.io/pod-index";

/// The number of a pod of the set.
pub(super) fn number(set: &str, pod: &str) -> Option<i32> {
    let digits = pod.strip_prefix(set)?.strip_prefix('-')?;
    let number: i32 = digits.parse().ok()?;
    // `web-01` and `web-+1` are not ours.
    (number.to_string() == digits).then_some(number)
}

/// The pod of a number, of the template of a revision.
pub(super) fn pod(
    set: &StatefulSet,
    spec: &StatefulSetSpec,
    template: &PodTemplateSpec,
    revision: &str,
    number: i32,
) -> Pod {
    let name = format!("{}-{number}", set.metadata.name.as_deref().unwrap_or_default());
    let mut pod = pod_of(&labelled(template, REVISION_LABEL, revision), set);
    pod.metadata.generate_name = None;
    pod.metadata.name = Some(name.clone());
    let labels = pod.metadata.labels.get_or_insert_default();
    labels.insert(POD_NAME_LABEL.to_owned(), name.clone());
    labels.insert(INDEX_LABEL.to_owned(), number.to_string());
    let claims = spec.volume_claim_templates.as_deref().unwrap_or_default();
    if let Some(pod) = &mut pod.spec {
        pod.hostname = Some(name.clone());
        pod.subdomain = spec.service_name.clone().filter(|service| !service.is_empty());
        let volumes = pod.volumes.get_or_insert_default();
        for template in claims {
            let volume = template.metadata.name.clone().unwrap_or_default();
            volumes.retain(|known| known.name != volume);
            let source = PersistentVolumeClaimVolumeSource {
                claim_name: claim_name(&volume, &name),
                read_only: Some(false),
            };
            volumes.push(Volume {
                name: volume,
                persistent_volume_claim: Some(source),
                ..Default::default()
            });
        }
    }
    pod
}

//! Stateful sets: numbered pods, each with claims of its own.

use std::collections::BTreeSet;

use k8s_openapi::api::{apps::v1 as apps_v1, core::v1 as core_v1};
use steersman_api::problem::{FieldPath, Problem};

use super::deployment::no_spec;
use super::template::{self, Owner, REVISION_LABEL};
use super::{Expander, key, origin_of, workload_of};
use crate::manifest::Sourced;

/// The label with the pod's name.
const POD_NAME_LABEL: &str = "statefulset.kubernetes.io/pod-name";
/// The label with the pod's number.
const POD_INDEX_LABEL: &str = "apps.kubernetes.io/pod-index";

impl Expander<'_, '_, '_> {
    pub(super) fn stateful_set(&mut self, set: &Sourced<apps_v1::StatefulSet>) {
        let metadata = &set.object.metadata;
        let origin = origin_of("StatefulSet", set, metadata);
        let Some(spec) = &set.object.spec else {
            return self.intake.report_object(&origin, no_spec());
        };
        let Some(selector) = self.own_selector(&spec.selector, &spec.template, &origin) else {
            return;
        };
        let Some(wanted) = self.count(spec.replicas, "spec.replicas", &origin) else { return };
        let start = spec.ordinals.as_ref().and_then(|o| o.start).unwrap_or(0);
        let Ok(start) = usize::try_from(start) else {
            let at = FieldPath::from("spec.ordinals.start");
            return self.intake.report_object(&origin, Problem::invalid(&at, start, "0 or more"));
        };
        let workload = workload_of("StatefulSet", metadata);
        let existing: BTreeSet<String> = self
            .existing
            .owned_or_adopted(&workload, metadata, &selector)
            .into_iter()
            .map(|pod| key(&pod.metadata).1.to_owned())
            .collect();
        let owner = Owner::new("apps/v1", "StatefulSet", metadata);
        let revision = format!("{}-{}", owner.name, template::hash(&spec.template));
        let claims = spec.volume_claim_templates.as_deref().unwrap_or_default();
        for ordinal in start..start + wanted {
            let name = format!("{}-{ordinal}", owner.name);
            if existing.contains(&name) {
                continue;
            }
            if !self.names.take(owner.namespace, &name) {
                let message = format!("a pod {name} that is not the set's own is in its way");
                let problem = Problem::new(&FieldPath::root(), message);
                self.intake.report_object(&origin, problem);
                continue;
            }
            let mut pod = template::pod(&spec.template, &owner, name.clone());
            template::add_labels(
                &mut pod.metadata.labels,
                [
                    (REVISION_LABEL, revision.clone()),
                    (POD_NAME_LABEL, name.clone()),
                    (POD_INDEX_LABEL, ordinal.to_string()),
                ],
            );
            Self::mount_claims(&mut pod, claims);
            for template in claims {
                let mut object = template.clone();
                object.metadata.name = Some(claim_name(template, &name));
                object.metadata.namespace = Some(owner.namespace.to_owned());
                let (source, order) = (set.source.clone(), set.order);
                self.made.claims.push(Sourced { object, source, order });
            }
            self.intake.take(pod, &origin, Some(workload.clone()));
        }
    }

    /// Mounts the pod's own claims. A volume of the template that has the name
    /// of a claim gives way to it.
    fn mount_claims(pod: &mut core_v1::Pod, templates: &[core_v1::PersistentVolumeClaim]) {
        let pod_name = key(&pod.metadata).1.to_owned();
        let Some(spec) = pod.spec.as_mut().filter(|_| !templates.is_empty()) else { return };
        let volumes = spec.volumes.get_or_insert_default();
        for claim in templates {
            let volume = key(&claim.metadata).1.to_owned();
            let claim_name = claim_name(claim, &pod_name);
            volumes.retain(|other| other.name != volume);
            volumes.push(core_v1::Volume {
                name: volume,
                persistent_volume_claim: Some(core_v1::PersistentVolumeClaimVolumeSource {
                    claim_name,
                    read_only: None,
                }),
                ..Default::default()
            });
        }
    }
}

/// The name of a pod's own claim.
fn claim_name(template: &core_v1::PersistentVolumeClaim, pod: &str) -> String {
    format!("{}-{pod}", key(&template.metadata).1)
}

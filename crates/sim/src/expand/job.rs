//! Jobs: the pods that run at once.

use std::collections::BTreeSet;

use k8s_openapi::api::{batch::v1 as batch_v1, core::v1 as core_v1};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use steersman_api::problem::{FieldPath, Problem};

use super::deployment::no_spec;
use super::existing::{self, has_ended};
use super::template::{self, Owner};
use super::{Expander, key, origin_of, shown, workload_of};
use crate::manifest::Sourced;

/// The label and the annotation with the number of an indexed job's pod.
const INDEX_KEY: &str = "batch.kubernetes.io/job-completion-index";

impl Expander<'_, '_, '_> {
    pub(super) fn job(&mut self, job: &Sourced<batch_v1::Job>) {
        let metadata = &job.object.metadata;
        let origin = origin_of("Job", job, metadata);
        let Some(spec) = &job.object.spec else {
            return self.intake.report_object(&origin, no_spec());
        };
        let indexed = match spec.completion_mode.as_deref() {
            None | Some("NonIndexed") => false,
            Some("Indexed") => true,
            Some(other) => {
                let at = FieldPath::from("spec.completionMode");
                let found = format!("{other:?}");
                let problem = Problem::invalid(&at, found, "NonIndexed, Indexed");
                return self.intake.report_object(&origin, problem);
            }
        };
        if indexed && spec.completions.is_none() {
            let at = FieldPath::from("spec.completions");
            let problem = Problem::required(&at, "an Indexed job's number of pods");
            return self.intake.report_object(&origin, problem);
        }
        let Some(at_once) = self.count(spec.parallelism, "spec.parallelism", &origin) else {
            return;
        };
        // A job without either runs one pod; one with parallelism alone is a
        // queue that its pods work off together.
        let completions = match (spec.completions, spec.parallelism) {
            (None, Some(_)) => Some(at_once),
            (completions, _) => self.count(completions, "spec.completions", &origin),
        };
        let Some(completions) = completions else { return };
        if spec.suspend == Some(true) {
            let notice = format!("Job {} is suspended: it makes no pods", shown(metadata));
            return self.made.notices.push(notice);
        }
        if is_finished(&job.object) {
            return;
        }
        let progress = self.progress(metadata, job.object.status.as_ref());
        let remaining = completions.saturating_sub(progress.succeeded);
        let missing = at_once.min(remaining).saturating_sub(progress.active);
        let free = (0..completions).filter(|index| !progress.indexes.contains(&index.to_string()));
        let indexes: Vec<usize> = free.take(missing).collect();

        let owner = Owner::new("batch/v1", "Job", metadata);
        let workload = match existing::controller(metadata) {
            Some(outer) => {
                let named = ObjectMeta { name: Some(outer.name.clone()), ..metadata.clone() };
                workload_of(&outer.kind, &named)
            }
            None => workload_of("Job", metadata),
        };
        let template = labelled(&spec.template, &owner);
        for index in indexes {
            let base = if indexed {
                format!("{}-{index}-", owner.name)
            } else {
                format!("{}-", owner.name)
            };
            let name = self.names.generate(owner.namespace, &base, index);
            let mut pod = template::pod(&template, &owner, name);
            if indexed {
                let number = || [(INDEX_KEY, index.to_string())];
                template::add_labels(&mut pod.metadata.labels, number());
                template::add_labels(&mut pod.metadata.annotations, number());
            }
            self.intake.take(pod, &origin, Some(workload.clone()));
        }
    }

    /// How far the job is, by its status and by its pods in the input.
    fn progress(&self, metadata: &ObjectMeta, status: Option<&batch_v1::JobStatus>) -> Progress {
        let active = self.existing.owned_by("Job", metadata);
        let namespace = key(metadata).0;
        let succeeded: Vec<&core_v1::Pod> = self
            .manifests
            .pods
            .iter()
            .map(|pod| &pod.object)
            .filter(|pod| {
                let phase = pod.status.as_ref().and_then(|s| s.phase.as_deref());
                has_ended(pod)
                    && phase == Some("Succeeded")
                    && key(&pod.metadata).0 == namespace
                    && existing::controller(&pod.metadata)
                        .is_some_and(|owner| existing::refers_to(owner, "Job", metadata))
            })
            .collect();
        let reported = status.and_then(|s| s.succeeded).unwrap_or(0);
        let number = |pod: &&core_v1::Pod| {
            pod.metadata.annotations.as_ref().and_then(|a| a.get(INDEX_KEY)).cloned()
        };
        Progress {
            active: active.len(),
            succeeded: succeeded.len().max(usize::try_from(reported).unwrap_or(0)),
            indexes: active.iter().chain(&succeeded).filter_map(number).collect(),
        }
    }
}

struct Progress {
    active: usize,
    succeeded: usize,
    /// The numbers that active and succeeded pods have.
    indexes: BTreeSet<String>,
}

fn is_finished(job: &batch_v1::Job) -> bool {
    let conditions = job.status.as_ref().and_then(|s| s.conditions.as_deref()).unwrap_or_default();
    conditions
        .iter()
        .any(|c| matches!(c.type_.as_str(), "Complete" | "Failed") && c.status == "True")
}

/// The template with the labels that tell a job's pods from those of others.
fn labelled(template: &core_v1::PodTemplateSpec, owner: &Owner<'_>) -> core_v1::PodTemplateSpec {
    template::labelled(
        template,
        [
            ("batch.kubernetes.io/job-name", owner.name.to_owned()),
            ("batch.kubernetes.io/controller-uid", owner.uid.clone()),
            ("job-name", owner.name.to_owned()),
            ("controller-uid", owner.uid.clone()),
        ],
    )
}

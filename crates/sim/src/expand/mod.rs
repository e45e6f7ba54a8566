//! From workloads to pods, as the workload controllers make them: how many,
//! with which labels, owners and constraints. Pods that are in the input
//! already count, so that a dump of a cluster does not double.
//!
//! Names and owners' UIDs come from a stable hash. Pods of one workload keep
//! its place in the input, and so in the queue.
//!
//! Source: the documentation of the workload kinds, and what their controllers
//! do.

mod daemon_set;
mod deployment;
pub(crate) mod ephemeral;
mod existing;
mod job;
pub(crate) mod names;
mod stateful_set;
mod template;

use std::fmt;
use std::sync::Arc;

use k8s_openapi::api::{apps::v1 as apps_v1, core::v1 as core_v1};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use steersman_api::labels::Labels;
use steersman_api::node::Node;
use steersman_api::problem::{FieldPath, Problem};
use steersman_api::selector::Selector;

pub(crate) use existing::{Existing, has_ended};
use names::Names;
use template::Owner;

use crate::manifest::{Manifests, Sourced};
use crate::pods::{Intake, MAX_PODS, Origin};

/// What users call the owner of a pod: the outermost controller that is known.
///
/// Displays as `Deployment/web`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Workload {
    /// `Deployment` and the like.
    pub kind: String,
    /// The namespace of the workload and its pods.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}/{}", self.kind, self.name))
    }
}

/// Objects other than pods that controllers make.
#[derive(Debug, Default)]
pub(crate) struct Made {
    /// The replica sets of deployments.
    pub(crate) replica_sets: Vec<apps_v1::ReplicaSet>,
    /// The claims of stateful sets' pods.
    pub(crate) claims: Vec<Sourced<core_v1::PersistentVolumeClaim>>,
    /// What the user should know.
    pub(crate) notices: Vec<String>,
}

/// Makes the pods that the workloads of `manifests` lack, and hands them to
/// `intake`.
pub(crate) fn expand<'m>(
    manifests: &'m Manifests,
    existing: &mut Existing<'m>,
    nodes: &[Arc<Node>],
    intake: &mut Intake<'_>,
) -> Made {
    let mut names = Names::default();
    for pod in manifests.pods.iter().filter(|pod| !has_ended(&pod.object)) {
        let (namespace, name) = key(&pod.object.metadata);
        names.take(namespace, name);
    }
    let made = Made::default();
    let mut expander = Expander { manifests, existing, names, intake, made };
    for set in &manifests.replication_controllers {
        expander.replication_controller(set);
    }
    for set in &manifests.replica_sets {
        expander.replica_set(set);
    }
    for deployment in &manifests.deployments {
        expander.deployment(deployment);
    }
    for set in &manifests.stateful_sets {
        expander.stateful_set(set);
    }
    for set in &manifests.daemon_sets {
        expander.daemon_set(set, nodes);
    }
    for job in &manifests.jobs {
        expander.job(job);
    }
    expander.cron_jobs();
    expander.made
}

struct Expander<'e, 'm, 'i> {
    manifests: &'m Manifests,
    existing: &'e mut Existing<'m>,
    names: Names,
    intake: &'e mut Intake<'i>,
    made: Made,
}

impl Expander<'_, '_, '_> {
    /// Pods for schedules nobody knows: when they start is not in the input.
    fn cron_jobs(&mut self) {
        let jobs = &self.manifests.cron_jobs;
        if jobs.is_empty() {
            return;
        }
        let keys: Vec<String> = jobs.iter().map(|job| shown(&job.object.metadata)).collect();
        self.made.notices.push(format!(
            "skipped {} of kind CronJob, which makes pods at times of its own: {}",
            keys.len(),
            keys.join(", ")
        ));
    }

    /// Takes in a pod for each index: `owner`'s template under a new name.
    fn replicas(
        &mut self,
        template: &core_v1::PodTemplateSpec,
        owner: &Owner<'_>,
        workload: &Arc<Workload>,
        origin: &Origin,
        indexes: std::ops::Range<usize>,
    ) {
        let base = format!("{}-", owner.name);
        for index in indexes {
            let name = self.names.generate(owner.namespace, &base, index);
            let pod = template::pod(template, owner, name);
            self.intake.take(pod, origin, Some(workload.clone()));
        }
    }

    /// The selector of a workload, when its own pods meet it.
    fn own_selector(
        &mut self,
        selector: &LabelSelector,
        template: &core_v1::PodTemplateSpec,
        origin: &Origin,
    ) -> Option<Selector> {
        let at = FieldPath::from("spec.selector");
        let mut problems = Vec::new();
        let read = Selector::from_k8s(Some(selector), &at, &mut problems);
        let labels = template.metadata.as_ref().and_then(|m| m.labels.as_ref());
        if problems.is_empty() {
            if read.is_everything() {
                problems.push(Problem::required(&at, "the labels of the workload's pods"));
            } else if !read.matches(&Labels::from(labels)) {
                let at = FieldPath::from("spec.template.metadata.labels");
                let shown: Vec<String> = labels
                    .into_iter()
                    .flatten()
                    .take(10)
                    .map(|(k, v)| format!("{k}={v}"))
                    .collect();
                let found = format!("{{{}}}", shown.join(", "));
                problems.push(Problem::invalid(&at, found, "labels that spec.selector matches"));
            }
        }
        let good = problems.is_empty();
        for problem in problems {
            self.intake.report_object(origin, problem);
        }
        good.then_some(read)
    }

    /// A number of pods; 1 when it is not set.
    fn count(&mut self, number: Option<i32>, field: &str, origin: &Origin) -> Option<usize> {
        let number = number.unwrap_or(1);
        match usize::try_from(number).ok().filter(|count| *count <= MAX_PODS) {
            Some(count) => Some(count),
            None => {
                let at = FieldPath::from(field);
                let problem = Problem::invalid(&at, number, format_args!("0 to {MAX_PODS}"));
                self.intake.report_object(origin, problem);
                None
            }
        }
    }
}

/// Namespace and name of an object that has been read.
fn key(metadata: &ObjectMeta) -> (&str, &str) {
    (
        metadata.namespace.as_deref().unwrap_or_default(),
        metadata.name.as_deref().unwrap_or_default(),
    )
}

fn shown(metadata: &ObjectMeta) -> String {
    let (namespace, name) = key(metadata);
    format!("{namespace}/{name}")
}

/// The origin of pods that an object of that kind makes.
fn origin_of<T>(kind: &str, object: &Sourced<T>, metadata: &ObjectMeta) -> Origin {
    Origin {
        source: object.source.clone(),
        order: object.order,
        object: format!("{kind} {}", shown(metadata)),
        from_template: true,
    }
}

fn workload_of(kind: &str, metadata: &ObjectMeta) -> Arc<Workload> {
    let (namespace, name) = key(metadata);
    Arc::new(Workload {
        kind: kind.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    })
}

//! Takes pods in one by one: admits each and makes the scheduling view of it.

use std::sync::Arc;

use k8s_openapi::api::core::v1 as core_v1;
use steersman_api::pod::PodInfo;
use steersman_api::problem::{FieldPath, Problem};
use steersman_api::strict::append_independent;

use crate::admission::{self, PriorityClasses};
use crate::expand::{Workload, ephemeral};
use crate::manifest::{InputProblem, Source, Sourced};

/// More pods than the largest clusters run: a slip of the pen, rather.
pub(crate) const MAX_PODS: usize = 500_000;

/// Where a pod comes from.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    /// The pod's document, or that of the workload which made it.
    pub(crate) source: Source,
    /// The place of that object among all.
    pub(crate) order: usize,
    /// `Kind namespace/name` of that object.
    pub(crate) object: String,
    /// Whether the pod was made from a template in that object.
    pub(crate) from_template: bool,
}

/// A pod that was taken in.
#[derive(Debug)]
pub(crate) struct Admitted {
    pub(crate) pod: Arc<PodInfo>,
    pub(crate) workload: Option<Arc<Workload>>,
    /// The place of its origin, then its place among the pods of that origin.
    pub(crate) order: (usize, usize),
}

/// The pods taken in so far.
pub(crate) struct Intake<'a> {
    classes: &'a PriorityClasses,
    pub(crate) pods: Vec<Admitted>,
    /// The claims of their ephemeral volumes.
    pub(crate) claims: Vec<Sourced<core_v1::PersistentVolumeClaim>>,
    pub(crate) problems: Vec<InputProblem>,
    /// The last object with a pod that was refused: its other pods, alike but
    /// for their names, would be refused for the same reasons.
    refused: Option<usize>,
}

impl<'a> Intake<'a> {
    pub(crate) fn new(classes: &'a PriorityClasses) -> Self {
        Self { classes, pods: Vec::new(), claims: Vec::new(), problems: Vec::new(), refused: None }
    }

    /// Admits `pod`, or reports what is wrong with it.
    pub(crate) fn take(
        &mut self,
        mut pod: core_v1::Pod,
        origin: &Origin,
        workload: Option<Arc<Workload>>,
    ) {
        if self.refused == Some(origin.order) {
            return;
        }
        let mut problems = Vec::new();
        admission::admit_pod(&mut pod, self.classes, &mut problems);
        let mut unreadable = Vec::new();
        let info = PodInfo::from_k8s(&pod, &mut unreadable);
        append_independent(&mut problems, unreadable);
        if problems.is_empty() && self.pods.len() >= MAX_PODS {
            let message = format!("the input has more than {MAX_PODS} pods");
            problems.push(Problem::new(&FieldPath::root(), message));
        }
        if problems.is_empty() {
            if !info.is_bound() {
                let made = ephemeral::claims(&pod, &info).into_iter().map(|object| Sourced {
                    object,
                    source: origin.source.clone(),
                    order: origin.order,
                });
                self.claims.extend(made);
            }
            let order = (origin.order, self.pods.len());
            self.pods.push(Admitted { pod: Arc::new(info), workload, order });
        } else {
            self.refused = Some(origin.order);
            for problem in problems {
                self.report(origin, problem);
            }
        }
    }

    /// Reports a problem of a pod; inside a workload it is one of the template.
    fn report(&mut self, origin: &Origin, mut problem: Problem) {
        if origin.from_template && !problem.path.is_root() {
            let path = format!("spec.template.{}", problem.path);
            problem.path = FieldPath::from(path.as_str());
        }
        self.report_object(origin, problem);
    }

    /// Reports a problem of the object that pods come from.
    pub(crate) fn report_object(&mut self, origin: &Origin, problem: Problem) {
        let object = Some(origin.object.clone());
        self.problems.push(InputProblem { source: origin.source.clone(), object, problem });
    }
}

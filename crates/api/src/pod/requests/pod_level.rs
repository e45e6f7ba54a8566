//! Resources that are set for a pod as a whole.

use k8s_openapi::api::core::v1 as core_v1;

use super::amounts::{Amounts, raise, read_list, without};
use crate::problem::{FieldPath, Problem};

/// `spec.resources` and what the status says of the whole pod.
pub(super) struct PodLevel<'a> {
    /// `spec.resources.requests`, of the resources that can be set here.
    requests: Amounts<'a>,
    /// `status.allocatedResources`: what the kubelet set aside.
    allocated: Option<Amounts<'a>>,
    /// `status.resources.requests`: what runs now.
    actuated: Option<Amounts<'a>>,
    /// Whether the status has any of the two fields.
    has_status: bool,
}

impl<'a> PodLevel<'a> {
    pub(super) fn read(
        spec: &'a core_v1::PodSpec,
        status: Option<&'a core_v1::PodStatus>,
        problems: &mut Vec<Problem>,
    ) -> Self {
        let requests = spec.resources.as_ref().and_then(|r| r.requests.as_ref());
        let mut requests = read_list(requests, problems, || "spec.resources.requests".into());
        requests.retain(|name, _| is_pod_level_resource(name));
        let allocated = status.and_then(|s| s.allocated_resources.as_ref());
        let resources = status.and_then(|s| s.resources.as_ref());
        let actuated = resources.and_then(|r| r.requests.as_ref());
        let mut read = |list, at: &str| read_list(Some(list), problems, || FieldPath::from(at));
        Self {
            requests,
            allocated: allocated.map(|list| read(list, "status.allocatedResources")),
            actuated: actuated.map(|list| read(list, "status.resources.requests")),
            has_status: allocated.is_some() || resources.is_some(),
        }
    }

    /// Whether the spec requests anything for the pod as a whole.
    pub(super) fn is_set(&self) -> bool {
        !self.requests.is_empty()
    }

    /// The kubelet's sums over the pod, set aside and running, when it reports
    /// both.
    pub(super) fn reported(&self) -> Option<(&Amounts<'a>, &Amounts<'a>)> {
        self.allocated.as_ref().zip(self.actuated.as_ref())
    }

    /// The pod-level requests that take the place of the containers' sums. The
    /// status counts the overhead in, the spec does not.
    pub(super) fn effective(&self, resize_infeasible: bool, overhead: &Amounts<'a>) -> Amounts<'a> {
        if !self.is_set() || !self.has_status {
            return self.requests.clone();
        }
        let mut largest = if resize_infeasible { Amounts::new() } else { self.requests.clone() };
        for reported in [&self.actuated, &self.allocated].into_iter().flatten() {
            raise(&mut largest, &without(reported, overhead));
        }
        largest.retain(|name, _| is_pod_level_resource(name));
        largest
    }
}

/// Whether a resource can be set for a pod as a whole.
pub(super) fn is_pod_level_resource(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || name.starts_with("hugepages-")
}

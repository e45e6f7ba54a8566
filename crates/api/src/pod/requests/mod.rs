//! What a pod asks for and may use: containers, init containers, sidecars,
//! pod-level resources, overhead, and resizes under way.
//!
//! Sources: KEP-753 (sidecars), KEP-2837 (pod-level resources), KEP-1287 and
//! KEP-5419 (in-place resizes), and kube-scheduler v1.36 where they leave
//! something open.

mod amounts;
mod containers;
mod limits;
mod pod_level;
#[cfg(test)]
mod tests;

use amounts::{Amounts, add, read_list};
use containers::Containers;
use k8s_openapi::api::core::v1 as core_v1;
pub(crate) use limits::pod_limits;
use pod_level::PodLevel;

use crate::node_info::CpuAndMemory;
use crate::problem::Problem;
use crate::quantity::Quantity;
use crate::resources::{ResourceKind, Resources};

/// What a container without a CPU request counts as when nodes are scored.
pub const DEFAULT_MILLI_CPU_REQUEST: i64 = 100;
/// What a container without a memory request counts as when nodes are scored,
/// in bytes.
pub const DEFAULT_MEMORY_REQUEST: i64 = 200 * 1024 * 1024;

/// What a pod asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PodResources {
    /// The requests that a node must have room for.
    pub requests: Resources,
    /// CPU and memory that the pod counts as on its node when containers
    /// without a request count as small ones.
    pub non_zero: CpuAndMemory,
    /// What the pod counts as while nodes are ranked for it by how full they
    /// would be: containers without a request count as small ones, pod-level
    /// resources and resizes do not count.
    pub ranked: Resources,
}

/// Computes what `pod` asks for.
pub fn pod_resources(pod: &core_v1::Pod, problems: &mut Vec<Problem>) -> PodResources {
    let Some(spec) = pod.spec.as_ref() else { return PodResources::default() };
    let pod = Pod::read(spec, pod.status.as_ref(), problems);
    let small = Amounts::from([
        ("cpu", Quantity::millis(DEFAULT_MILLI_CPU_REQUEST)),
        ("memory", Quantity::units(DEFAULT_MEMORY_REQUEST)),
    ]);
    let requests = pod.total(&Amounts::new());
    let mut missing = small.clone();
    if pod.pod_level.is_set() {
        // The pod as a whole has its say: only what nothing states is missing.
        missing.retain(|name, _| !requests.contains_key(name));
    }
    let non_zero = if missing.is_empty() { requests.clone() } else { pod.total(&missing) };
    let mut ranked = pod.containers.asked(&small);
    add(&mut ranked, &pod.overhead);

    let amount = |name: &str| non_zero.get(name).copied().unwrap_or_default();
    PodResources {
        non_zero: CpuAndMemory {
            milli_cpu: amount("cpu").milli_value(),
            memory: amount("memory").value(),
        },
        requests: to_resources(&requests),
        ranked: to_resources(&ranked),
    }
}

/// All that a pod says of resources.
struct Pod<'a> {
    containers: Containers<'a>,
    pod_level: PodLevel<'a>,
    overhead: Amounts<'a>,
    /// Whether the kubelet has said that it cannot do the resize that the spec
    /// asks for, so that the spec does not tell what the pod uses.
    resize_infeasible: bool,
}

impl<'a> Pod<'a> {
    fn read(
        spec: &'a core_v1::PodSpec,
        status: Option<&'a core_v1::PodStatus>,
        problems: &mut Vec<Problem>,
    ) -> Self {
        Self {
            containers: Containers::read(spec, status, problems),
            pod_level: PodLevel::read(spec, status, problems),
            overhead: read_list(spec.overhead.as_ref(), problems, || "spec.overhead".into()),
            resize_infeasible: resize_infeasible(status),
        }
    }

    /// What a node must have room for, `defaults` standing in for what
    /// containers leave out.
    fn total(&self, defaults: &Amounts<'a>) -> Amounts<'a> {
        let infeasible = self.resize_infeasible;
        let mut amounts = self.containers.total(self.pod_level.reported(), infeasible, defaults);
        amounts.extend(self.pod_level.effective(infeasible, &self.overhead));
        add(&mut amounts, &self.overhead);
        amounts
    }
}

fn to_resources(amounts: &Amounts<'_>) -> Resources {
    let mut resources = Resources::default();
    for (name, amount) in amounts {
        resources.set(ResourceKind::of(name), *amount);
    }
    resources
}

/// Whether the first condition on a pending resize says that it cannot be done.
fn resize_infeasible(status: Option<&core_v1::PodStatus>) -> bool {
    let mut conditions = status.and_then(|s| s.conditions.as_deref()).unwrap_or_default().iter();
    conditions
        .find(|c| c.type_ == "PodResizePending")
        .is_some_and(|c| c.reason.as_deref() == Some("Infeasible"))
}

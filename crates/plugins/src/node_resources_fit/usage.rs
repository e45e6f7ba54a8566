//! How much of a node's resource is used, as rankings count it.

use steersman_api::node_info::{CpuAndMemory, NodeInfo};
use steersman_api::resources::ResourceKind;

/// How much of one resource of a node is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Usage {
    /// What the node offers; more than 0.
    pub(crate) offered: i64,
    /// What the pods on the node count as.
    pub(crate) before: i64,
    /// What they count as with the pod that is scheduled.
    pub(crate) after: i64,
}

impl Usage {
    /// The usage of `kind` on `node` by its pods and one more that counts as
    /// `asked`; `taken` is what the pods use of CPU and memory. `None` when the
    /// resource does not matter: the node does not offer it, it is not counted,
    /// or it is none of the basic ones and the pod does not ask for it.
    pub(crate) fn of(
        kind: &ResourceKind,
        asked: i64,
        node: &NodeInfo,
        taken: CpuAndMemory,
    ) -> Option<Self> {
        let allocatable = &node.node().allocatable;
        let (offered, before) = match kind {
            ResourceKind::Cpu => (allocatable.milli_cpu, taken.milli_cpu),
            ResourceKind::Memory => (allocatable.memory, taken.memory),
            ResourceKind::EphemeralStorage => {
                (allocatable.ephemeral_storage, node.requested().ephemeral_storage)
            }
            ResourceKind::Scalar(name) if asked != 0 => {
                (allocatable.scalar(name), node.requested().scalar(name))
            }
            ResourceKind::Scalar(_) | ResourceKind::Pods | ResourceKind::Uncounted => return None,
        };
        (offered > 0).then(|| Self { offered, before, after: before.saturating_add(asked) })
    }
}

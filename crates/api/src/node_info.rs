//! A node together with the pods on it.

use std::sync::Arc;

use crate::name::Name;
use crate::node::Node;
use crate::pod::PodInfo;
use crate::ports::HostPorts;
use crate::resources::Resources;

/// A node's place in the dense tables of the core. Stays the same while the
/// node exists; may be given to another node later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeIdx(pub u32);

impl NodeIdx {
    /// The place in a table.
    pub const fn get(self) -> usize {
        self.0 as usize
    }
}

/// A node and what the pods on it (running, bound or assumed) use.
///
/// Owned by the core's node table, which changes it when pods come and go;
/// plugins read it. Dry runs change a copy.
#[derive(Clone, Debug)]
pub struct NodeInfo {
    idx: NodeIdx,
    node: Arc<Node>,
    generation: u64,
    pods: Vec<Arc<PodInfo>>,
    requested: Resources,
    non_zero_requested: CpuAndMemory,
    used_ports: HostPorts,
}

/// Milli-CPU and bytes of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CpuAndMemory {
    /// CPU, in thousandths of a core.
    pub milli_cpu: i64,
    /// Memory, in bytes.
    pub memory: i64,
}

impl NodeInfo {
    /// A node without pods.
    pub fn new(idx: NodeIdx, node: Arc<Node>) -> Self {
        Self {
            idx,
            node,
            generation: 0,
            pods: Vec::new(),
            requested: Resources::default(),
            non_zero_requested: CpuAndMemory::default(),
            used_ports: HostPorts::default(),
        }
    }

    /// The node's place in the core's tables.
    pub fn idx(&self) -> NodeIdx {
        self.idx
    }

    /// The node object.
    pub fn node(&self) -> &Arc<Node> {
        &self.node
    }

    /// The node's name.
    pub fn name(&self) -> &Name {
        &self.node.name
    }

    /// Grows with every change of the node or its pods.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The pods on the node, assumed ones included; in no order that means
    /// anything.
    pub fn pods(&self) -> &[Arc<PodInfo>] {
        &self.pods
    }

    /// What the pods request together.
    pub fn requested(&self) -> &Resources {
        &self.requested
    }

    /// What the pods request together, when a container without a request
    /// counts as a small one. For scoring only.
    pub fn non_zero_requested(&self) -> CpuAndMemory {
        self.non_zero_requested
    }

    /// The host ports in use.
    pub fn used_ports(&self) -> &HostPorts {
        &self.used_ports
    }

    /// Puts a newer version of the node object in place.
    pub fn set_node(&mut self, node: Arc<Node>) {
        self.node = node;
        self.generation += 1;
    }

    /// Counts `pod` in.
    pub fn add_pod(&mut self, pod: Arc<PodInfo>) {
        self.generation += 1;
        self.requested.add(&pod.resources.requests);
        let milli_cpu = &mut self.non_zero_requested.milli_cpu;
        *milli_cpu = milli_cpu.saturating_add(pod.resources.non_zero.milli_cpu);
        let memory = &mut self.non_zero_requested.memory;
        *memory = memory.saturating_add(pod.resources.non_zero.memory);
        self.used_ports.add(&pod.spec.host_ports);
        self.pods.push(pod);
    }

    /// Takes the pod of that UID out again; `None` when it is not here.
    pub fn remove_pod(&mut self, uid: &crate::key::PodUid) -> Option<Arc<PodInfo>> {
        let at = self.pods.iter().position(|p| p.uid == *uid)?;
        let pod = self.pods.swap_remove(at);
        self.generation += 1;
        self.requested.subtract(&pod.resources.requests);
        let milli_cpu = &mut self.non_zero_requested.milli_cpu;
        *milli_cpu = milli_cpu.saturating_sub(pod.resources.non_zero.milli_cpu);
        let memory = &mut self.non_zero_requested.memory;
        *memory = memory.saturating_sub(pod.resources.non_zero.memory);
        self.used_ports.remove(&pod.spec.host_ports);
        Some(pod)
    }
}

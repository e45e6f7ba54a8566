//! What simulated nodes are made of.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    DaemonEndpoint, Node, NodeAddress, NodeDaemonEndpoints, NodeSpec, NodeStatus, NodeSystemInfo,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::status::report;

/// The version that nodes say they run.
const VERSION: &str = "v1.36.0";
const REGION: &str = "playground";
const ZONES: [&str; 3] = ["a", "b", "c"];

/// A node's instance type, cores, memory and pods.
const SIZE: Size = Size { instance_type: "sim.xlarge", cores: 4, memory_gib: 16, pods: 110 };

#[derive(Clone, Copy)]
struct Size {
    instance_type: &'static str,
    cores: u32,
    memory_gib: u32,
    pods: u32,
}

/// `n` nodes, spread over three zones.
pub(crate) fn nodes(n: usize, now: Timestamp) -> Vec<Node> {
    let width = n.to_string().len();
    (1..=n).map(|number| node(&format!("node-{number:0width$}"), number - 1, now)).collect()
}

/// Fills in what a node's status must have and does not have.
pub(crate) fn complete(status: &mut NodeStatus, name: &str, address: Option<&str>) {
    let addresses = status.addresses.get_or_insert_default();
    let mut add = |kind: &str, value: &str, at: usize| {
        if !addresses.iter().any(|a| a.type_ == kind) {
            let (type_, address) = (kind.to_owned(), value.to_owned());
            addresses.insert(at, NodeAddress { type_, address });
        }
    };
    add("Hostname", name, 0);
    if let Some(address) = address {
        add("InternalIP", address, 0);
    }
    status.capacity.get_or_insert_with(|| capacity(SIZE, SIZE.memory_gib * 1024));
    if status.allocatable.is_none() {
        status.allocatable.clone_from(&status.capacity);
    }
    // Somebody wrote an extended resource into the capacity: as a kubelet does,
    // the node offers all of it.
    let new = unoffered(status);
    status.allocatable.get_or_insert_default().extend(new);
    status.node_info.get_or_insert_with(|| system_info(name));
    status.daemon_endpoints.get_or_insert(NodeDaemonEndpoints {
        kubelet_endpoint: Some(DaemonEndpoint { port: 10250 }),
    });
}

/// What the node has and says nothing about to those who look for room.
pub(crate) fn unoffered(status: &NodeStatus) -> Vec<(String, Quantity)> {
    let offered = |name: &String| {
        status.allocatable.as_ref().is_some_and(|allocatable| allocatable.contains_key(name))
    };
    let has = status.capacity.iter().flatten().filter(|(name, _)| !offered(name));
    has.map(|(name, amount)| (name.clone(), amount.clone())).collect()
}

fn node(name: &str, number: usize, now: Timestamp) -> Node {
    let zone = ZONES[number % ZONES.len()];
    let labels = [
        ("kubernetes.io/hostname", name.to_owned()),
        ("kubernetes.io/os", "linux".to_owned()),
        ("kubernetes.io/arch", "amd64".to_owned()),
        ("node.kubernetes.io/instance-type", SIZE.instance_type.to_owned()),
        ("topology.kubernetes.io/region", REGION.to_owned()),
        ("topology.kubernetes.io/zone", format!("{REGION}-{zone}")),
    ];
    let mut status = NodeStatus {
        capacity: Some(capacity(SIZE, SIZE.memory_gib * 1024)),
        // What the system keeps for itself is not for pods.
        allocatable: Some(capacity(SIZE, SIZE.memory_gib * 1024 - 512)),
        ..Default::default()
    };
    report(&mut status, true, now);
    complete(&mut status, name, None);
    Node {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some(labels.map(|(key, value)| (key.to_owned(), value)).into()),
            ..Default::default()
        },
        spec: Some(NodeSpec {
            provider_id: Some(format!("steersman://{name}")),
            ..Default::default()
        }),
        status: Some(status),
    }
}

fn capacity(size: Size, memory_mib: u32) -> BTreeMap<String, Quantity> {
    [
        ("cpu", size.cores.to_string()),
        ("memory", format!("{memory_mib}Mi")),
        ("ephemeral-storage", "100Gi".to_owned()),
        ("pods", size.pods.to_string()),
    ]
    .map(|(name, amount)| (name.to_owned(), Quantity(amount)))
    .into()
}

fn system_info(name: &str) -> NodeSystemInfo {
    NodeSystemInfo {
        architecture: "amd64".to_owned(),
        boot_id: name.to_owned(),
        container_runtime_version: "steersman://0.1.0".to_owned(),
        kernel_version: "6.12.0-simulated".to_owned(),
        kube_proxy_version: String::new(),
        kubelet_version: VERSION.to_owned(),
        machine_id: name.to_owned(),
        operating_system: "linux".to_owned(),
        os_image: "Simulated Linux".to_owned(),
        swap: None,
        system_uuid: name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_have_names_in_order_and_go_round_the_zones() {
        let nodes = nodes(10, Timestamp::UNIX_EPOCH);
        let shown = |node: &Node| {
            let labels = node.metadata.labels.as_ref().expect("nodes have labels");
            let name = node.metadata.name.as_deref().unwrap_or_default();
            format!("{name} {}", labels["topology.kubernetes.io/zone"])
        };
        let shown: Vec<String> = nodes.iter().map(shown).collect();
        assert_eq!(shown[0], "node-01 playground-a");
        assert_eq!(shown[1], "node-02 playground-b");
        assert_eq!(shown[2], "node-03 playground-c");
        assert_eq!(shown[9], "node-10 playground-a");
    }
}

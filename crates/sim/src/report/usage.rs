//! How full nodes are.

use steersman_api::name::Name;
use steersman_api::node::ZONE_LABEL;
use steersman_api::resources::Resources;
use steersman_framework::cluster::Cluster;

/// A node before and after the simulation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeUsage {
    /// The node.
    pub node: Name,
    /// Its zone; empty when it names none.
    pub zone: Name,
    /// What it offers.
    pub allocatable: Resources,
    /// How many pods it takes.
    pub allowed_pods: i64,
    /// What was requested before.
    pub before: Use,
    /// What is requested after.
    pub after: Use,
}

/// What pods take of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Use {
    /// How many pods there are.
    pub pods: usize,
    /// What they request.
    pub requested: Resources,
}

impl NodeUsage {
    /// The nodes as they are now.
    pub(crate) fn snapshot(cluster: &Cluster, order: &[Name]) -> Vec<Self> {
        let nodes = order.iter().filter_map(|name| cluster.nodes().by_name(name));
        nodes
            .map(|info| {
                let node = info.node();
                Self {
                    node: node.name.clone(),
                    zone: node.labels.get(&ZONE_LABEL.into()).cloned().unwrap_or_default(),
                    allocatable: node.allocatable.clone(),
                    allowed_pods: node.allowed_pods,
                    before: Use { pods: info.pods().len(), requested: info.requested().clone() },
                    after: Use::default(),
                }
            })
            .collect()
    }

    /// Puts two snapshots of the same nodes together.
    pub(crate) fn merge(before: Vec<Self>, after: Vec<Self>) -> Vec<Self> {
        let pairs = before.into_iter().zip(after);
        pairs.map(|(before, after)| Self { after: after.before, ..before }).collect()
    }
}

/// `used` as a percentage of `of`, rounded down; `None` when nothing is
/// offered.
pub(crate) fn percent(used: i64, of: i64) -> Option<i64> {
    (of > 0).then(|| i64::try_from(i128::from(used) * 100 / i128::from(of)).unwrap_or(i64::MAX))
}

//! Which persistent volume claims pods on nodes use.

use std::collections::HashMap;

use steersman_api::key::ObjectKey;
use steersman_api::pod::PodInfo;

/// The claims that pods on nodes name, with the number of volumes that name
/// each. Claims of ephemeral volumes are left out: only their own pod uses them.
#[derive(Clone, Debug, Default)]
pub struct ClaimIndex {
    uses: HashMap<ObjectKey, usize>,
}

impl ClaimIndex {
    /// How many volumes of pods on nodes name the claim.
    pub fn uses(&self, claim: &ObjectKey) -> usize {
        self.uses.get(claim).copied().unwrap_or(0)
    }

    pub(super) fn add(&mut self, pod: &PodInfo) {
        for used in pod.claims().filter(|used| !used.ephemeral) {
            *self.uses.entry(used.key).or_default() += 1;
        }
    }

    pub(super) fn remove(&mut self, pod: &PodInfo) {
        for used in pod.claims().filter(|used| !used.ephemeral) {
            if let Some(count) = self.uses.get_mut(&used.key) {
                *count -= 1;
                if *count == 0 {
                    self.uses.remove(&used.key);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;
    use steersman_api::decode::decode;
    use steersman_api::node::Node;
    use steersman_api::object::ClusterObject;

    use super::*;
    use crate::cluster::Cluster;

    fn pod(name: &str, claims: &[&str]) -> Arc<PodInfo> {
        let volumes: Vec<_> = claims
            .iter()
            .map(|claim| json!({"name": claim, "persistentVolumeClaim": {"claimName": claim}}))
            .chain([json!({"name": "e", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}})])
            .collect();
        let json = json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"namespace": "ns", "name": name},
            "spec": {"containers": [{"name": "c"}], "volumes": volumes}});
        match decode(json).expect("a pod").object {
            ClusterObject::Pod(pod) => pod,
            other => panic!("not a pod: {other:?}"),
        }
    }

    #[test]
    fn uses_follow_pods_and_nodes() {
        let mut cluster = Cluster::new();
        let uses = |cluster: &Cluster, claim: &str| {
            cluster.claims().uses(&ObjectKey::namespaced("ns", claim))
        };
        let node = || Arc::new(Node { name: "n".into(), ..Node::default() });
        cluster.add_pod(pod("early", &["a"]), &"n".into());
        assert_eq!(uses(&cluster, "a"), 0, "its node is not known");
        cluster.set_node(node());
        cluster.add_pod(pod("p", &["a", "b"]), &"n".into());
        assert_eq!([uses(&cluster, "a"), uses(&cluster, "b"), uses(&cluster, "p-e")], [2, 1, 0]);
        cluster.remove_pod(&pod("early", &[]).uid, &"n".into());
        assert_eq!([uses(&cluster, "a"), uses(&cluster, "b")], [1, 1]);
        cluster.remove_node(&"n".into());
        assert_eq!(uses(&cluster, "a"), 0);
        cluster.set_node(node());
        assert_eq!(uses(&cluster, "a"), 1);
    }
}

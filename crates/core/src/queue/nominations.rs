//! Nominated pods: pods without a node that room is kept for on one.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use steersman_api::key::PodUid;
use steersman_api::name::Name;
use steersman_api::pod::PodInfo;

/// A pod and the node that room is kept for it on.
#[derive(Clone, Debug)]
pub(crate) struct Nomination {
    pub(crate) pod: Arc<PodInfo>,
    pub(crate) node: Name,
}

impl Nomination {
    /// The pod as if it were on the node already: what it is to pods that do
    /// not outrank it.
    pub(crate) fn as_placed(&self) -> Arc<PodInfo> {
        Arc::new(PodInfo { node_name: Some(self.node.clone()), ..(*self.pod).clone() })
    }
}

/// Which pods hope for which node.
#[derive(Debug, Default)]
pub(crate) struct Nominations {
    by_node: HashMap<Name, BTreeMap<PodUid, Arc<PodInfo>>>,
    node_of: HashMap<PodUid, Name>,
}

impl Nominations {
    /// Pods that are nominated to `node` and come before `pod` there: those of
    /// at least its priority.
    pub(crate) fn outranking(&self, node: &Name, pod: &PodInfo) -> Vec<Arc<PodInfo>> {
        if self.by_node.is_empty() {
            return Vec::new();
        }
        let nominated = self.by_node.get(node).into_iter().flatten();
        nominated
            .filter(|(uid, other)| **uid != pod.uid && other.spec.priority >= pod.spec.priority)
            .map(|(_, other)| other.clone())
            .collect()
    }

    /// Pods of lower priority than `priority` that are nominated to `node`.
    pub(crate) fn below(&self, node: &Name, priority: i32) -> Vec<Arc<PodInfo>> {
        let nominated = self.by_node.get(node).into_iter().flatten().map(|(_, pod)| pod);
        nominated.filter(|pod| pod.spec.priority < priority).cloned().collect()
    }

    /// Nominates `pod` to `node`, instead of an earlier node.
    pub(crate) fn set(&mut self, pod: Arc<PodInfo>, node: Name) {
        self.remove(&pod.uid);
        self.node_of.insert(pod.uid.clone(), node.clone());
        self.by_node.entry(node).or_default().insert(pod.uid.clone(), pod);
    }

    /// Takes a newer version of a pod in. A node that the status named and
    /// names no more is given up; a nomination that was made here, and that no
    /// status has shown yet, stays.
    pub(crate) fn update(&mut self, old: &PodInfo, new: &Arc<PodInfo>) {
        let given_up = old.nominated_node.is_some() && new.nominated_node.is_none();
        if given_up {
            self.remove(&new.uid);
        }
        let made_here = || self.node_of.get(&new.uid).cloned();
        if let Some(node) = new.nominated_node.clone().or_else(made_here) {
            self.set(new.clone(), node);
        }
    }

    /// Nominates a pod to where its status says, unless it is nominated
    /// already.
    pub(crate) fn adopt_status(&mut self, pod: &Arc<PodInfo>) {
        let made_here = self.node_of.get(&pod.uid).cloned();
        if let Some(node) = made_here.or_else(|| pod.nominated_node.clone()) {
            self.set(pod.clone(), node);
        }
    }

    /// A pod's nomination.
    pub(crate) fn get(&self, uid: &PodUid) -> Option<Nomination> {
        let node = self.node_of.get(uid)?;
        let pod = self.by_node.get(node)?.get(uid)?;
        Some(Nomination { pod: pod.clone(), node: node.clone() })
    }

    /// All of them: node and pod, sorted by node, then UID.
    pub(crate) fn all(&self) -> Vec<(&Name, &Arc<PodInfo>)> {
        let mut nodes: Vec<_> = self.by_node.iter().collect();
        nodes.sort_by_key(|(node, _)| *node);
        let pairs =
            nodes.into_iter().flat_map(|(node, pods)| pods.values().map(move |p| (node, p)));
        pairs.collect()
    }

    /// Where a pod is nominated to.
    pub(crate) fn node_of(&self, uid: &PodUid) -> Option<&Name> {
        self.node_of.get(uid)
    }

    /// Ends a nomination.
    pub(crate) fn remove(&mut self, uid: &PodUid) {
        let Some(node) = self.node_of.remove(uid) else { return };
        if let Some(pods) = self.by_node.get_mut(&node) {
            pods.remove(uid);
            if pods.is_empty() {
                self.by_node.remove(&node);
            }
        }
    }
}

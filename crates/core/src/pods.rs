//! Which pods are on which node, assumed ones included.
//!
//! ```text
//!            assume              binding done           watch confirms
//!   (queue) ───────► assumed ──────────────► assumed ──────────────────► bound
//!      ▲               │ forget             (may expire)                   │
//!      └───────────────┘                                                   ▼
//!                                                                       removed
//! ```

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use steersman_api::key::{ObjectKey, PodUid};
use steersman_api::name::Name;
use steersman_api::pod::PodInfo;
use steersman_api::time::Time;
use steersman_framework::cluster::Cluster;

/// A pod that takes room on a node.
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    pub(crate) pod: Arc<PodInfo>,
    pub(crate) node: Name,
    pub(crate) state: PlacedState,
    /// A later version without a node, in case the pod has to be tried again.
    /// Never set for a pod that was seen bound.
    pub(crate) latest: Option<Arc<PodInfo>>,
}

/// How sure the placement is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlacedState {
    /// Decided here, not confirmed by the API server.
    Assumed,
    /// The binding was accepted; the watch has not shown it yet. Given up at
    /// the time named, if one is.
    Accepted { expires: Option<Time> },
    /// Seen through the watch.
    Bound,
}

impl Placed {
    /// Whether the watch has not shown it on its node yet.
    fn is_assumed(&self) -> bool {
        self.state != PlacedState::Bound
    }
}

/// All pods that take room, and the names of all pods that are known.
#[derive(Debug, Default)]
pub(crate) struct PodTable {
    placed: HashMap<PodUid, Placed>,
    /// How many of them the watch has not shown on their node.
    n_assumed: usize,
    uids: HashMap<ObjectKey, PodUid>,
    /// Pods in [`PlacedState::Accepted`] that may expire.
    expiring: BTreeSet<(Time, PodUid)>,
}

impl PodTable {
    pub(crate) fn get(&self, uid: &PodUid) -> Option<&Placed> {
        self.placed.get(uid)
    }

    pub(crate) fn len(&self) -> usize {
        self.placed.len()
    }

    /// How many of them the watch has not shown on their node yet.
    pub(crate) fn assumed_count(&self) -> usize {
        self.n_assumed
    }

    /// Those, by UID. Looks at all pods: for people who look on.
    pub(crate) fn assumed(&self) -> impl Iterator<Item = &Placed> {
        let mut assumed: Vec<&Placed> = self.iter().filter(|placed| placed.is_assumed()).collect();
        assumed.sort_by_key(|placed| &placed.pod.uid);
        assumed.into_iter()
    }

    /// Every pod that takes room, in no order that means anything.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Placed> {
        self.placed.values()
    }

    /// The UID that a name stood for the last time.
    pub(crate) fn uid_of(&self, key: &ObjectKey) -> Option<&PodUid> {
        self.uids.get(key)
    }

    pub(crate) fn remember_name(&mut self, pod: &PodInfo) {
        // Called for every update: the name hardly ever changes hands.
        if self.uids.get(&pod.key) != Some(&pod.uid) {
            self.uids.insert(pod.key.clone(), pod.uid.clone());
        }
    }

    pub(crate) fn forget_name(&mut self, key: &ObjectKey, uid: &PodUid) {
        if self.uids.get(key) == Some(uid) {
            self.uids.remove(key);
        }
    }

    /// Puts a pod on a node, or a newer version in place of an older one.
    /// Returns the older one.
    pub(crate) fn place(
        &mut self,
        cluster: &mut Cluster,
        pod: Arc<PodInfo>,
        node: Name,
        state: PlacedState,
    ) -> Option<Placed> {
        let old = self.remove(cluster, &pod.uid);
        cluster.add_pod(pod.clone(), &node);
        let placed = Placed { pod, node, state, latest: None };
        self.n_assumed += usize::from(placed.is_assumed());
        self.placed.insert(placed.pod.uid.clone(), placed);
        old
    }

    /// The API server accepted the binding of an assumed pod, of which `latest`
    /// was seen meanwhile.
    pub(crate) fn accept(
        &mut self,
        uid: &PodUid,
        latest: Option<Arc<PodInfo>>,
        expires: Option<Time>,
    ) {
        let Some(placed) = self.placed.get_mut(uid) else { return };
        if placed.state != PlacedState::Assumed {
            return;
        }
        placed.latest = latest;
        placed.state = PlacedState::Accepted { expires };
        if let Some(expires) = expires {
            self.expiring.insert((expires, uid.clone()));
        }
    }

    /// A pod whose binding was accepted was seen without a node: the news are
    /// old, or late.
    pub(crate) fn remember_latest(&mut self, pod: &Arc<PodInfo>) {
        if let Some(placed) = self.placed.get_mut(&pod.uid) {
            placed.latest = Some(pod.clone());
        }
    }

    /// Takes a pod off its node.
    pub(crate) fn remove(&mut self, cluster: &mut Cluster, uid: &PodUid) -> Option<Placed> {
        let placed = self.placed.remove(uid)?;
        self.n_assumed -= usize::from(placed.is_assumed());
        if let PlacedState::Accepted { expires: Some(expires) } = placed.state {
            self.expiring.remove(&(expires, uid.clone()));
        }
        cluster.remove_pod(uid, &placed.node);
        Some(placed)
    }

    /// Pods whose confirmation is overdue.
    pub(crate) fn overdue(&self, now: Time) -> Vec<PodUid> {
        let due = self.expiring.iter().take_while(|(expires, _)| *expires <= now);
        due.map(|(_, uid)| uid.clone()).collect()
    }

    /// When the next confirmation becomes overdue.
    pub(crate) fn next_expiry(&self) -> Option<Time> {
        self.expiring.first().map(|(expires, _)| *expires)
    }
}

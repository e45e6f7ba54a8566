//! The objects as the reflectors know them, for binding cycles that wait until
//! something has happened to one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use steersman_api::key::{ObjectKey, PodUid};
use steersman_api::name::Name;
use steersman_api::node::Node;
use steersman_api::object::{AnyObject, ClusterObject};
use steersman_framework::condition::{Condition, Objects, Progress, WaitError};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout_at};

/// See the module documentation.
pub(crate) struct View {
    known: RwLock<Known>,
    /// Moves on with every change that somebody may wait for.
    changes: watch::Sender<u64>,
}

#[derive(Default)]
struct Known {
    objects: BTreeMap<&'static str, BTreeMap<ObjectKey, AnyObject>>,
    nodes: BTreeMap<Name, Arc<Node>>,
    /// Those that exist and have not ended.
    pods: BTreeSet<PodUid>,
}

/// A condition is asked again after so long even if nothing was heard: its
/// binding may have been called off.
const ASK_AGAIN: Duration = Duration::from_secs(1);
/// Changes that come closer together than this are looked at together.
const TOGETHER: Duration = Duration::from_millis(20);

impl Default for View {
    fn default() -> Self {
        Self { known: RwLock::default(), changes: watch::Sender::new(0) }
    }
}

impl View {
    /// An object as it is now.
    pub(crate) fn upsert(&self, object: &ClusterObject) {
        let mut known = self.known.write();
        match object {
            // Of pods only their end matters here.
            ClusterObject::Pod(pod) => {
                known.pods.insert(pod.uid.clone());
                return;
            }
            ClusterObject::Node(node) => {
                known.nodes.insert(node.name.clone(), node.clone());
            }
            ClusterObject::Other(object) => {
                let of_kind = known.objects.entry(object.resource()).or_default();
                of_kind.insert(object.key().clone(), object.clone());
            }
        }
        drop(known);
        self.changed();
    }

    pub(crate) fn pod_gone(&self, uid: &PodUid) {
        self.known.write().pods.remove(uid);
        self.changed();
    }

    pub(crate) fn node_gone(&self, name: &Name) {
        self.known.write().nodes.remove(name);
        self.changed();
    }

    pub(crate) fn object_gone(&self, resource: &'static str, key: &ObjectKey) {
        if let Some(of_kind) = self.known.write().objects.get_mut(resource) {
            of_kind.remove(key);
        }
        self.changed();
    }

    /// Waits until the condition is settled.
    pub(crate) async fn wait(
        &self,
        condition: &dyn Condition,
        patience: Duration,
    ) -> Result<(), WaitError> {
        let deadline = Instant::now() + patience;
        let mut changes = self.changes.subscribe();
        loop {
            changes.mark_unchanged();
            let progress = condition.check(&*self.known.read());
            match progress {
                Progress::Done => return Ok(()),
                Progress::Failed(why) => return Err(WaitError::Failed(why)),
                Progress::Waiting if Instant::now() >= deadline => return Err(WaitError::TimedOut),
                Progress::Waiting => {}
            }
            let again = (Instant::now() + ASK_AGAIN).min(deadline);
            if let Ok(Ok(())) = timeout_at(again, changes.changed()).await {
                sleep_until((Instant::now() + TOGETHER).min(deadline)).await;
            }
        }
    }

    fn changed(&self) {
        self.changes.send_modify(|n| *n = n.wrapping_add(1));
    }
}

impl Objects for Known {
    fn object(&self, resource: &'static str, key: &ObjectKey) -> Option<AnyObject> {
        self.objects.get(resource)?.get(key).cloned()
    }

    fn node(&self, name: &Name) -> Option<Arc<Node>> {
        self.nodes.get(name).cloned()
    }

    fn is_gone(&self, pod: &PodUid) -> bool {
        !self.pods.contains(pod)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Waits for a node, and not for one that is named `bad`.
    struct NodeExists(&'static str);

    impl Condition for NodeExists {
        fn check(&self, objects: &dyn Objects) -> Progress {
            match (objects.node(&"bad".into()), objects.node(&self.0.into())) {
                (Some(_), _) => Progress::Failed("bad".into()),
                (None, Some(_)) => Progress::Done,
                (None, None) => Progress::Waiting,
            }
        }
    }

    fn node(name: &str) -> ClusterObject {
        ClusterObject::Node(Arc::new(Node { name: name.into(), ..Node::default() }))
    }

    /// Waits for node `a` while another node comes after three seconds.
    async fn outcome(other: &str) -> (Result<(), WaitError>, u64) {
        let view = View::default();
        let start = Instant::now();
        let waiting = async {
            let outcome = view.wait(&NodeExists("a"), Duration::from_secs(10)).await;
            (outcome, start.elapsed().as_secs())
        };
        let coming = async {
            sleep_until(start + Duration::from_secs(3)).await;
            view.upsert(&node(other));
        };
        tokio::join!(waiting, coming).0
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_ends_with_the_change_or_with_the_time() {
        assert_eq!(outcome("a").await, (Ok(()), 3));
        assert_eq!(outcome("bad").await, (Err(WaitError::Failed("bad".into())), 3));
        assert_eq!(outcome("b").await, (Err(WaitError::TimedOut), 10));
    }
}

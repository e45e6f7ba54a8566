//! Everything at once for the log, and a comparison with what the API server
//! has: what the reference does on SIGUSR2.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use serde::Serialize;
use steersman_core::Place;

use super::{AskError, BindingsView, ClusterView, Limit, NominationsView, QueueView};
use crate::inspect::{Inspector, Moment};

/// What the API server has, as listed by the caller. The list must be newer
/// than the events the scheduler has taken in, or differences show that heal by
/// themselves: compare twice before you worry.
#[derive(Clone, Debug, Default)]
pub struct Listed {
    /// The names of the nodes.
    pub nodes: BTreeSet<String>,
    /// The pods that have not ended, by UID: `namespace/name` and node. Of pods
    /// without a node only those that this scheduler serves.
    pub pods: BTreeMap<String, (String, Option<String>)>,
}

/// Where scheduler and API server disagree.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Difference {
    /// Nodes that the scheduler does not know.
    pub missing_nodes: Vec<String>,
    /// Nodes that only the scheduler knows.
    pub extra_nodes: Vec<String>,
    /// Pods that the scheduler does not know, or not on their node.
    pub missing_pods: Vec<String>,
    /// Pods that only the scheduler knows on a node.
    pub extra_pods: Vec<String>,
}

impl Difference {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        let Self { missing_nodes, extra_nodes, missing_pods, extra_pods } = self;
        [missing_nodes, extra_nodes, missing_pods, extra_pods].iter().all(|part| part.is_empty())
    }
}

impl Difference {
    /// What differs here and in `later` too: the rest were events on their way.
    #[must_use]
    pub fn lasting(&self, later: &Self) -> Self {
        let both = |now: &[String], later: &[String]| {
            now.iter().filter(|name| later.contains(name)).cloned().collect()
        };
        Self {
            missing_nodes: both(&self.missing_nodes, &later.missing_nodes),
            extra_nodes: both(&self.extra_nodes, &later.extra_nodes),
            missing_pods: both(&self.missing_pods, &later.missing_pods),
            extra_pods: both(&self.extra_pods, &later.extra_pods),
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("the scheduler and the API server agree on nodes and pods");
        }
        let parts = [
            ("nodes that the scheduler does not know", &self.missing_nodes),
            ("nodes that only the scheduler knows", &self.extra_nodes),
            ("pods that the scheduler does not know, or not there", &self.missing_pods),
            ("pods that only the scheduler knows on a node", &self.extra_pods),
        ];
        let parts = parts.iter().filter(|(_, names)| !names.is_empty());
        let parts = parts.map(|(what, names)| format!("{what}: {}", names.join(", ")));
        f.write_str(&parts.collect::<Vec<_>>().join("; "))
    }
}

/// Compares the scheduler's nodes and pods with what was listed. A pod whose
/// binding is under way may be without a node in the list.
pub fn compare(moment: Moment<'_>, listed: &Listed) -> Difference {
    let Moment { scheduler, .. } = moment;
    let nodes = scheduler.cluster().nodes();
    let known: BTreeSet<&str> = nodes.iter().map(|node| node.name().as_str()).collect();
    let listed_nodes: BTreeSet<&str> = listed.nodes.iter().map(String::as_str).collect();
    let names = |names: Vec<&&str>| names.into_iter().map(|name| (*name).to_owned()).collect();

    let mut placed = BTreeMap::new();
    for node in nodes.iter() {
        let pods = node.pods().iter();
        placed.extend(pods.map(|pod| (pod.uid.to_string(), (node.name(), &pod.key))));
    }
    let mut queued = BTreeSet::new();
    for place in
        [Place::Active, Place::Backoff, Place::Unschedulable, Place::Gated, Place::InFlight]
    {
        queued.extend(scheduler.queued(place).map(|state| state.pod.uid.to_string()));
    }
    let is_known = |uid: &String, node: &Option<String>| match node {
        // On a node that is not known pods are kept aside.
        Some(node) if !known.contains(node.as_str()) => true,
        Some(node) => placed.get(uid).is_some_and(|(at, _)| at.as_str() == node),
        None => queued.contains(uid) || placed.contains_key(uid),
    };
    let missing = listed.pods.iter().filter(|(uid, (_, node))| !is_known(uid, node));
    let extra = placed.iter().filter(|(uid, _)| !listed.pods.contains_key(*uid));
    Difference {
        missing_nodes: names(listed_nodes.difference(&known).collect()),
        extra_nodes: names(known.difference(&listed_nodes).collect()),
        missing_pods: missing.map(|(_, (pod, _))| pod.clone()).collect(),
        extra_pods: extra.map(|(_, (_, key))| key.to_string()).collect(),
    }
}

impl Inspector {
    /// All views as one text, up to `limit` entries of each kind.
    ///
    /// # Errors
    /// When no scheduler runs, or it does not come to answer in time.
    pub async fn dump(&self, patience: Duration, limit: Limit) -> Result<String, AskError> {
        let views = move |moment: Moment<'_>| {
            let queue = QueueView::of(moment, limit);
            let nominations = NominationsView::of(moment, limit);
            let bindings = BindingsView::of(moment, limit);
            (queue, nominations, bindings, ClusterView::of(moment, limit))
        };
        let (mut queue, nominations, bindings, cluster) = self.answer(patience, views).await?;
        if let Some(board) = self.board() {
            queue.explain(&board);
        }
        // Writing it takes longer than gathering it, and nobody waits here.
        let unsynced = match self.unsynced() {
            Some(kinds) if kinds.is_empty() => "everything that is watched is known".to_owned(),
            Some(kinds) => format!("not known completely yet: {}", kinds.join(", ")),
            None => "the scheduler does not watch anything yet".to_owned(),
        };
        let parts = [queue.text(), nominations.text(), bindings.text(), cluster.text()];
        Ok(format!("{unsynced}\n{}", parts.concat()))
    }

    /// Compares with what the API server has.
    ///
    /// # Errors
    /// When no scheduler runs, or it does not come to answer in time.
    pub async fn compare(
        &self,
        patience: Duration,
        listed: Listed,
    ) -> Result<Difference, AskError> {
        self.answer(patience, move |moment| compare(moment, &listed)).await
    }
}

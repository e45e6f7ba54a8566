//! Watching the scheduler at work: for demonstrations, explanations, metrics.

use std::collections::BTreeMap;

use steersman_api::name::Name;
use steersman_api::node_info::NodeIdx;
use steersman_api::pod::PodInfo;
use steersman_core::{Attempt, FailureReason, Outcome};
use steersman_framework::cluster::Cluster;
use steersman_framework::extensions::NodeScore;
use steersman_framework::observer::Observer;
use tokio::sync::mpsc;

/// Is told what the scheduler does, on the scheduler's own thread: answers must
/// be quick. All methods have bodies, so a listener implements what it wants to
/// know.
pub trait Listener: Send {
    /// Who watches the plugins during the next attempt.
    fn observer(&mut self) -> Option<&mut dyn Observer> {
        None
    }

    /// An attempt was made.
    fn attempted(&mut self, attempt: &Attempt, cluster: &Cluster) {
        let _ = (attempt, cluster);
    }

    /// A pod was bound.
    fn bound(&mut self, pod: &PodInfo, node: &Name) {
        let _ = (pod, node);
    }

    /// An attempt failed, or a binding.
    fn failed(&mut self, pod: &PodInfo, reason: FailureReason, message: &str) {
        let _ = (pod, reason, message);
    }
}

/// Does not listen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Deaf;

impl Listener for Deaf {}

/// A decision, and what spoke for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The pod, as namespace/name.
    pub pod: String,
    /// Where it goes.
    pub node: Name,
    /// How many nodes were looked at.
    pub n_evaluated: usize,
    /// How many of them could run the pod.
    pub n_feasible: usize,
    /// What each plugin gave the node, normalised and weighted, in the order of
    /// scoring. Empty when there was no other node to compare with.
    pub scores: Vec<(&'static str, i64)>,
}

impl Placement {
    /// The sum of the scores.
    pub fn total(&self) -> i64 {
        self.scores.iter().map(|(_, score)| score).sum()
    }
}

/// A listener that sends every placement through a channel.
#[derive(Debug)]
pub struct Placements {
    sender: mpsc::UnboundedSender<Placement>,
    scores: Scores,
}

#[derive(Debug, Default)]
struct Scores(Vec<(&'static str, BTreeMap<NodeIdx, i64>)>);

impl Placements {
    /// The listener and the channel's other end. The channel has no bound:
    /// whoever asks for placements has to take them.
    pub fn new() -> (Self, mpsc::UnboundedReceiver<Placement>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Self { sender, scores: Scores::default() }, receiver)
    }
}

impl Observer for Scores {
    fn scored(&mut self, plugin: &'static str, scores: &[NodeScore]) {
        self.0.push((plugin, scores.iter().map(|score| (score.node, score.score)).collect()));
    }
}

impl Listener for Placements {
    fn observer(&mut self) -> Option<&mut dyn Observer> {
        self.scores.0.clear();
        Some(&mut self.scores)
    }

    fn attempted(&mut self, attempt: &Attempt, cluster: &Cluster) {
        let (Outcome::Assumed(node) | Outcome::Waiting(node)) = &attempt.outcome else { return };
        let idx = cluster.nodes().by_name(node).map(|info| info.idx());
        let score = |(plugin, scores): &(&'static str, BTreeMap<NodeIdx, i64>)| {
            Some((*plugin, *scores.get(&idx?)?))
        };
        let placement = Placement {
            pod: attempt.pod.key.to_string(),
            node: node.clone(),
            n_evaluated: attempt.n_evaluated,
            n_feasible: attempt.n_feasible,
            scores: self.scores.0.iter().filter_map(score).collect(),
        };
        // Nobody may be interested any more.
        let _ = self.sender.send(placement);
    }
}

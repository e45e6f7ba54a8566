//! Watching the scheduler at work: for demonstrations, explanations, metrics.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use steersman_api::name::Name;
use steersman_api::node_info::NodeIdx;
use steersman_api::pod::PodInfo;
use steersman_api::time::Time;
use steersman_core::{Attempt, EventLabel, FailureReason, Outcome, Record, Stats};
use steersman_framework::cluster::Cluster;
use steersman_framework::extensions::NodeScore;
use steersman_framework::observer::{Observer, QueueObserver};
use tokio::sync::mpsc;
use tracing::Span;

use crate::trace::Spans;

/// Is told what the scheduler does, on the scheduler's own thread: answers must
/// be quick. All methods have bodies, so a listener implements what it wants to
/// know. [`Several`] makes one of many.
pub trait Listener: Send {
    /// Who watches the plugins during the next attempt. Asked once an attempt.
    fn observer(&mut self) -> Option<&mut dyn Observer> {
        None
    }

    /// Everyone who watches the plugins during the next attempt. Asked once an
    /// attempt, instead of [`Listener::observer`].
    fn observers(&mut self) -> Vec<&mut dyn Observer> {
        self.observer().into_iter().collect()
    }

    /// Who watches the plugins of the pod's binding cycle, which is about to
    /// begin: it runs beside others on another thread.
    fn binding_observer(&mut self, pod: &PodInfo, node: &Name) -> Option<Box<dyn Observer + Send>> {
        let _ = (pod, node);
        None
    }

    /// Everyone who does, instead of [`Listener::binding_observer`].
    fn binding_observers(&mut self, pod: &PodInfo, node: &Name) -> Vec<Box<dyn Observer + Send>> {
        self.binding_observer(pod, node).into_iter().collect()
    }

    /// The span to run the binding cycle in for which observers were asked just
    /// now.
    fn binding_span(&mut self) -> Span {
        Span::none()
    }

    /// Who watches the plugins that the queue asks. Asked once, before anything
    /// happens.
    fn queue_observers(&mut self) -> Vec<Arc<dyn QueueObserver>> {
        Vec::new()
    }

    /// Whether [`Listener::recorded`], [`Listener::handled`] and
    /// [`Listener::ended`] are of interest. Asked once, before anything happens.
    fn wants_records(&self) -> bool {
        false
    }

    /// Something ended, `now` on the driver's clock.
    fn recorded(&mut self, record: &Record, now: Time) {
        let _ = (record, now);
    }

    /// The scheduler took in an event of the cluster.
    fn handled(&mut self, label: EventLabel, took: Duration) {
        let _ = (label, took);
    }

    /// The evictions of one preemption were requested, or one of them could
    /// not be.
    fn evicted(&mut self, succeeded: bool, took: Duration) {
        let _ = (succeeded, took);
    }

    /// The scheduler has ended; its last numbers. Only for those who want
    /// records.
    fn ended(&mut self, stats: &Stats) {
        let _ = stats;
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

/// Several listeners as one: each is told everything, in order.
#[derive(Default)]
pub struct Several(pub Vec<Box<dyn Listener>>);

impl Listener for Several {
    fn observers(&mut self) -> Vec<&mut dyn Observer> {
        self.0.iter_mut().flat_map(|listener| listener.observers()).collect()
    }

    fn binding_observers(&mut self, pod: &PodInfo, node: &Name) -> Vec<Box<dyn Observer + Send>> {
        self.0.iter_mut().flat_map(|listener| listener.binding_observers(pod, node)).collect()
    }

    fn binding_span(&mut self) -> Span {
        let spans = self.0.iter_mut().map(|listener| listener.binding_span());
        spans.into_iter().find(|span| !span.is_none()).unwrap_or_else(Span::none)
    }

    fn queue_observers(&mut self) -> Vec<Arc<dyn QueueObserver>> {
        self.0.iter_mut().flat_map(|listener| listener.queue_observers()).collect()
    }

    fn wants_records(&self) -> bool {
        self.0.iter().any(|listener| listener.wants_records())
    }

    fn recorded(&mut self, record: &Record, now: Time) {
        self.0.iter_mut().for_each(|listener| listener.recorded(record, now));
    }

    fn handled(&mut self, label: EventLabel, took: Duration) {
        self.0.iter_mut().for_each(|listener| listener.handled(label, took));
    }

    fn evicted(&mut self, succeeded: bool, took: Duration) {
        self.0.iter_mut().for_each(|listener| listener.evicted(succeeded, took));
    }

    fn ended(&mut self, stats: &Stats) {
        self.0.iter_mut().for_each(|listener| listener.ended(stats));
    }

    fn attempted(&mut self, attempt: &Attempt, cluster: &Cluster) {
        self.0.iter_mut().for_each(|listener| listener.attempted(attempt, cluster));
    }

    fn bound(&mut self, pod: &PodInfo, node: &Name) {
        self.0.iter_mut().for_each(|listener| listener.bound(pod, node));
    }

    fn failed(&mut self, pod: &PodInfo, reason: FailureReason, message: &str) {
        self.0.iter_mut().for_each(|listener| listener.failed(pod, reason, message));
    }
}

/// A listener that opens spans: see [`Spans`].
#[derive(Debug)]
pub struct Traced {
    spans: Spans,
    /// Of the binding cycle that was asked about last.
    binding: Span,
}

impl Traced {
    /// Opens those of `spans`.
    pub fn new(spans: Spans) -> Self {
        Self { spans, binding: Span::none() }
    }
}

impl Listener for Traced {
    fn observer(&mut self) -> Option<&mut dyn Observer> {
        if self.spans.enabled() { Some(&mut self.spans) } else { None }
    }

    fn binding_observer(&mut self, pod: &PodInfo, _: &Name) -> Option<Box<dyn Observer + Send>> {
        if !self.spans.enabled() {
            return None;
        }
        let spans = self.spans.binding(&pod.uid);
        self.binding = spans.span().clone();
        Some(Box::new(spans))
    }

    fn binding_span(&mut self) -> Span {
        std::mem::replace(&mut self.binding, Span::none())
    }

    fn attempted(&mut self, attempt: &Attempt, _: &Cluster) {
        self.spans.finish(attempt);
    }

    fn failed(&mut self, pod: &PodInfo, _: FailureReason, _: &str) {
        self.spans.forget(&pod.uid);
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

//! Watching plugins at work: metrics, traces and explanations are observers of
//! the one runner that calls plugins.

use std::ops::DerefMut;

use steersman_api::name::Name;
use steersman_api::pod::PodInfo;

use crate::events::{ClusterEvent, Hint};
use crate::extensions::NodeScore;
use crate::point::ExtensionPoint;
use crate::verdict::Rejection;

/// One call of one plugin.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// Where.
    pub point: ExtensionPoint,
    /// The plugin's name.
    pub plugin: &'static str,
    /// For which pod.
    pub pod: &'a PodInfo,
    /// About which node, at points that look at one.
    pub node: Option<&'a Name>,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome<'a> {
    /// The plugin has nothing against the pod.
    Success,
    /// The plugin is not needed for this pod.
    Skip,
    /// The plugin rejected it.
    Rejected(&'a Rejection),
    /// The pod has to wait.
    Wait,
    /// The plugin failed or panicked.
    Error(&'a str),
}

impl Outcome<'_> {
    /// The reference's name of the status code, for metrics.
    pub fn status(&self) -> &'static str {
        match self {
            Self::Success => "Success",
            Self::Skip => "Skip",
            Self::Rejected(rejection) => rejection.kind.name(),
            Self::Wait => "Wait",
            Self::Error(_) => "Error",
        }
    }
}

/// All plugins of one extension point, asked about one pod: Filter on every
/// node that is looked at is one phase.
#[derive(Clone, Copy, Debug)]
pub struct Phase<'a> {
    /// Which.
    pub point: ExtensionPoint,
    /// For which pod.
    pub pod: &'a PodInfo,
}

/// Is told what plugins do. All methods have empty bodies, so an observer
/// implements what it wants to know.
///
/// In the order of a cycle: `cycle_begins`; for each extension point
/// `phase_begins`, then `before` and `after` for each call, `asked`, and
/// `phase_ends`; `judged` before a node is taken; `cycle_ends`. A binding cycle
/// has an observer of its own, which is told of the phases PreBind, Bind and
/// PostBind. Scheduling a pod may end after any of them.
///
/// Observers measure time themselves: the core has no clock.
pub trait Observer {
    /// A pod's cycle begins; it is the `attempt`th, counted from 1.
    fn cycle_begins(&mut self, pod: &PodInfo, attempt: u32) {
        let _ = (pod, attempt);
    }

    /// It is known which node the pod gets, or that none fits and what can be
    /// done about it. Reserve comes next, if there is a node.
    fn judged(&mut self, pod: &PodInfo) {
        let _ = pod;
    }

    /// The pod's cycle is over.
    fn cycle_ends(&mut self, pod: &PodInfo) {
        let _ = pod;
    }

    /// The plugins of an extension point are about to be asked. Not told when
    /// the profile has none there.
    fn phase_begins(&mut self, phase: Phase<'_>) {
        let _ = phase;
    }

    /// They have answered. Filter that finds no node is a success of the phase.
    fn phase_ends(&mut self, phase: Phase<'_>, outcome: Outcome<'_>) {
        let _ = (phase, outcome);
    }

    /// How many nodes a plugin was asked about in a phase that is about to end
    /// (Filter, Score). Told of every plugin that was asked.
    fn asked(&mut self, phase: Phase<'_>, plugin: &'static str, n_nodes: usize) {
        let _ = (phase, plugin, n_nodes);
    }

    /// A plugin is about to be called.
    fn before(&mut self, call: Call<'_>) {
        let _ = call;
    }

    /// A plugin has answered.
    fn after(&mut self, call: Call<'_>, outcome: Outcome<'_>) {
        let _ = (call, outcome);
    }

    /// A plugin's scores of all feasible nodes, normalised and weighted.
    fn scored(&mut self, plugin: &'static str, scores: &[NodeScore]) {
        let _ = (plugin, scores);
    }

    /// Whether calls about single nodes (Filter, Score) are worth reporting.
    /// They are many; saying `false` keeps the reports off the hot path. Asked
    /// anew for every node in Filter, for every plugin in Score.
    fn wants_nodes(&self) -> bool {
        false
    }
}

/// Does not look.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl Observer for Unobserved {}

/// Several observers as one: each is told everything, in order. Of references
/// or boxes.
#[derive(Default)]
pub struct Observers<T>(pub Vec<T>);

impl<T: DerefMut<Target: Observer>> Observer for Observers<T> {
    fn cycle_begins(&mut self, pod: &PodInfo, attempt: u32) {
        self.0.iter_mut().for_each(|observer| observer.cycle_begins(pod, attempt));
    }

    fn judged(&mut self, pod: &PodInfo) {
        self.0.iter_mut().for_each(|observer| observer.judged(pod));
    }

    fn cycle_ends(&mut self, pod: &PodInfo) {
        self.0.iter_mut().for_each(|observer| observer.cycle_ends(pod));
    }

    fn phase_begins(&mut self, phase: Phase<'_>) {
        self.0.iter_mut().for_each(|observer| observer.phase_begins(phase));
    }

    fn phase_ends(&mut self, phase: Phase<'_>, outcome: Outcome<'_>) {
        self.0.iter_mut().for_each(|observer| observer.phase_ends(phase, outcome));
    }

    fn asked(&mut self, phase: Phase<'_>, plugin: &'static str, n_nodes: usize) {
        self.0.iter_mut().for_each(|observer| observer.asked(phase, plugin, n_nodes));
    }

    fn before(&mut self, call: Call<'_>) {
        self.0.iter_mut().for_each(|observer| observer.before(call));
    }

    fn after(&mut self, call: Call<'_>, outcome: Outcome<'_>) {
        self.0.iter_mut().for_each(|observer| observer.after(call, outcome));
    }

    fn scored(&mut self, plugin: &'static str, scores: &[NodeScore]) {
        self.0.iter_mut().for_each(|observer| observer.scored(plugin, scores));
    }

    fn wants_nodes(&self) -> bool {
        self.0.iter().any(|observer| observer.wants_nodes())
    }
}

/// Watches the plugins that the queue asks, outside of any cycle: PreEnqueue
/// and the queueing hints. Called on the scheduler's thread, one call after
/// the other; shared, since the queue only reads itself while it asks.
pub trait QueueObserver: Send + Sync {
    /// A pod's PreEnqueue plugins are about to be asked.
    fn gate_begins(&self) {}

    /// The PreEnqueue plugins have answered: the one that keeps the pod out,
    /// if one does.
    fn gated(&self, pod: &PodInfo, by: Option<&'static str>) {
        let _ = (pod, by);
    }

    /// A plugin's hint is about to be asked.
    fn hint_begins(&self) {}

    /// A plugin's hint has answered; `None` when it failed.
    fn hinted(&self, plugin: &'static str, event: &ClusterEvent, hint: Option<Hint>) {
        let _ = (plugin, event, hint);
    }
}

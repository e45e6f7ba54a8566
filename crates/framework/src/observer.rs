//! Watching plugins at work: metrics, traces and explanations are observers of
//! the one runner that calls plugins.

use steersman_api::name::Name;
use steersman_api::pod::PodInfo;

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

/// Is told what plugins do. All methods have empty bodies, so an observer
/// implements what it wants to know.
///
/// Observers measure time themselves: the core has no clock.
pub trait Observer {
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
    /// They are many; saying `false` keeps the reports off the hot path.
    fn wants_nodes(&self) -> bool {
        false
    }
}

/// Does not look.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl Observer for Unobserved {}

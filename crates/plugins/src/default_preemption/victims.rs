//! Whom to evict from one node.

use std::sync::Arc;

use steersman_api::node_info::NodeInfo;
use steersman_api::pod::PodInfo;
use steersman_framework::extensions::PostFilterCtx;
use steersman_framework::state::CycleState;
use steersman_framework::verdict::{FilterVerdict, PluginError, Preemption, Rejection};

use super::budgets::Budgets;
use super::choice::importance;
use super::is_below;

const NO_VICTIMS: &str = "No preemption victims found for incoming pod";

/// The fewest and least important pods whose eviction from `node` lets the pod
/// fit, or why none does.
pub(super) fn victims(
    ctx: &PostFilterCtx<'_>,
    node: &NodeInfo,
    budgets: &Budgets<'_>,
) -> Result<Result<Preemption, Rejection>, PluginError> {
    let is_below = |pod: &&Arc<PodInfo>| is_below(pod, ctx.cycle.pod);
    let lower: Vec<Arc<PodInfo>> = node.pods().iter().filter(is_below).cloned().collect();
    if lower.is_empty() {
        return Ok(Err(Rejection::unresolvable(NO_VICTIMS)));
    }
    let trial = Trial { ctx, state: ctx.cycle.state.clone(), node: node.clone() };
    trial.victims(lower, budgets)
}

/// A node as it might be: copies of what the cycle knows, to be changed.
struct Trial<'a> {
    ctx: &'a PostFilterCtx<'a>,
    state: CycleState,
    node: NodeInfo,
}

impl Trial<'_> {
    fn victims(
        mut self,
        mut lower: Vec<Arc<PodInfo>>,
        budgets: &Budgets<'_>,
    ) -> Result<Result<Preemption, Rejection>, PluginError> {
        for pod in &lower {
            self.remove(pod)?;
        }
        if let FilterVerdict::Reject(rejection) = self.ask()? {
            return Ok(Err(rejection));
        }
        lower.sort_by_cached_key(importance);
        let by_budget = budgets.split(&lower);
        let mut victims = Vec::new();
        for pod in by_budget.violating {
            self.give_back(pod, &mut victims)?;
        }
        let budgets_violated = victims.len();
        for pod in by_budget.allowed {
            self.give_back(pod, &mut victims)?;
        }
        if victims.is_empty() {
            let node = self.node.name();
            return Err(PluginError(format!("expected at least one victim pod on node {node:?}")));
        }
        victims.sort_by_cached_key(importance);
        Ok(Ok(Preemption { node: self.node.name().clone(), victims, budgets_violated }))
    }

    /// Puts `pod` back unless that takes the room away again: then it is a
    /// victim.
    fn give_back(
        &mut self,
        pod: Arc<PodInfo>,
        victims: &mut Vec<Arc<PodInfo>>,
    ) -> Result<(), PluginError> {
        self.ctx.what_if.add_pod(&mut self.state, pod.clone(), &mut self.node)?;
        if self.ask()? != FilterVerdict::Fit {
            self.remove(&pod)?;
            victims.push(pod);
        }
        Ok(())
    }

    fn remove(&mut self, pod: &PodInfo) -> Result<(), PluginError> {
        self.ctx.what_if.remove_pod(&mut self.state, pod, &mut self.node)
    }

    fn ask(&self) -> Result<FilterVerdict, PluginError> {
        self.ctx.what_if.filter(&self.state, &self.node)
    }
}

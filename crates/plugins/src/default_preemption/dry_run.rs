//! The search for nodes on which evictions would help.

use std::collections::BTreeMap;

use steersman_api::node_info::{NodeIdx, NodeInfo};
use steersman_framework::diagnosis::{Diagnosis, NodeRejection, OthersRejection};
use steersman_framework::extensions::PostFilterCtx;
use steersman_framework::verdict::{PluginError, Preemption, RejectKind, Rejection};

use super::NAME;
use super::args::DefaultPreemptionArgs;
use super::budgets::Budgets;
use super::victims::victims;

const NOT_HELPFUL: &str = "Preemption is not helpful for scheduling";

/// See the module documentation.
pub(super) struct DryRun<'a> {
    ctx: &'a PostFilterCtx<'a>,
    /// The nodes that evictions may help, from the drawn start on.
    nodes: Vec<&'a NodeInfo>,
    /// So many candidates are enough, if one of them violates no budget.
    wanted: usize,
    budgets: Budgets<'a>,
}

/// What the search came to.
pub(super) enum Found {
    /// At least one; those that violate no budget first.
    Candidates(Vec<Preemption>),
    /// Why no node does.
    Nothing(String),
}

impl<'a> DryRun<'a> {
    pub(super) fn new(ctx: &'a PostFilterCtx<'a>, args: &DefaultPreemptionArgs) -> Self {
        let mut nodes = resolvable_nodes(ctx);
        if let Ok(n_nodes @ 1..) = u64::try_from(nodes.len()) {
            let start = usize::try_from(ctx.lot % n_nodes).unwrap_or_default();
            nodes.rotate_left(start);
        }
        let wanted = wanted(args, nodes.len());
        Self { ctx, nodes, wanted, budgets: Budgets::of(ctx.cycle.cluster) }
    }

    /// Tries the nodes out. An error of one node counts only when no other
    /// one does.
    pub(super) fn run(self) -> Result<Found, PluginError> {
        let (mut clean, mut violating) = (Vec::new(), Vec::new());
        let mut rejected = BTreeMap::new();
        let mut failed = None;
        for node in &self.nodes {
            match victims(self.ctx, node, &self.budgets) {
                Ok(Ok(candidate)) if candidate.budgets_violated == 0 => clean.push(candidate),
                Ok(Ok(candidate)) => violating.push(candidate),
                Ok(Err(rejection)) => {
                    rejected.insert(node.idx(), NodeRejection { plugin: NAME, rejection });
                }
                Err(error) => failed = failed.or(Some(error)),
            }
            if !clean.is_empty() && clean.len() + violating.len() >= self.wanted {
                break;
            }
        }
        // Those that violate budgets are kept no longer than others would be.
        violating.truncate(self.wanted);
        clean.append(&mut violating);
        match failed {
            _ if !clean.is_empty() => Ok(Found::Candidates(clean)),
            Some(error) => Err(error),
            None => Ok(Found::Nothing(self.message(rejected))),
        }
    }

    fn message(&self, rejected: BTreeMap<NodeIdx, NodeRejection>) -> String {
        let others =
            OthersRejection { plugin: Some(NAME), rejection: Rejection::unresolvable(NOT_HELPFUL) };
        let n_nodes = self.ctx.cycle.cluster.nodes().len();
        Diagnosis { n_nodes, rejected, others: Some(others), ..Diagnosis::default() }.message()
    }
}

/// The nodes whose rejection evictions may lift.
fn resolvable_nodes<'a>(ctx: &PostFilterCtx<'a>) -> Vec<&'a NodeInfo> {
    let Diagnosis { rejected, others, .. } = ctx.diagnosis;
    let others = others.as_ref().map(|others| others.rejection.kind);
    let is_resolvable = |node: &&NodeInfo| {
        let kind = rejected.get(&node.idx()).map(|by| by.rejection.kind).or(others);
        kind == Some(RejectKind::Unschedulable)
    };
    ctx.cycle.cluster.nodes().iter().filter(is_resolvable).collect()
}

/// How many candidates are enough among `n_nodes`.
fn wanted(args: &DefaultPreemptionArgs, n_nodes: usize) -> usize {
    let number = |arg: i32| usize::try_from(arg).unwrap_or_default();
    let share = n_nodes * number(args.min_candidate_nodes_percentage) / 100;
    share.max(number(args.min_candidate_nodes_absolute)).min(n_nodes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn larger_of_share_and_number_is_wanted_up_to_all_nodes() {
        let args = |percentage, absolute| DefaultPreemptionArgs {
            min_candidate_nodes_percentage: percentage,
            min_candidate_nodes_absolute: absolute,
        };
        for (percentage, absolute, n_nodes, expected) in
            [(10, 100, 50, 50), (10, 100, 500, 100), (10, 100, 5000, 500), (40, 0, 10, 4)]
        {
            assert_eq!(wanted(&args(percentage, absolute), n_nodes), expected);
        }
    }
}

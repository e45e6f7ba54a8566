//! Scoring by the `ScheduleAnyway` constraints.

use std::collections::HashMap;
use std::sync::Arc;

use steersman_api::name::Name;
use steersman_api::node::HOSTNAME_LABEL;
use steersman_api::node_info::{NodeIdx, NodeInfo};
use steersman_api::pod::{PodInfo, SpreadConstraint, WhenUnsatisfiable};
use steersman_framework::cluster::Cluster;
use steersman_framework::extensions::{CycleCtx, NodeScore, PreScore, PrepareCtx, ScorePlugin};
use steersman_framework::verdict::{MAX_NODE_SCORE, PluginError, PreScoreVerdict, Score};

use super::PodTopologySpread;
use super::constraints::{has_all_keys, includes};
use super::counts::{PerNode, pods_per_node};

/// What PreScore found.
#[derive(Clone)]
struct ScoreData(Arc<Inner>);

struct Inner {
    /// Feasible nodes that lack a label that they need to be scored, sorted.
    ignored: Vec<NodeIdx>,
    terms: Vec<Term>,
}

/// What one constraint contributes.
struct Term {
    /// By place in the node table: the pods in the node's domain; `None` for
    /// nodes without one and for nodes that are not scored.
    pods: Vec<Option<u64>>,
    /// What a pod counts.
    weight: f64,
    /// Added for each node that has a domain.
    slack: f64,
}

impl Inner {
    fn is_ignored(&self, node: NodeIdx) -> bool {
        self.ignored.binary_search(&node).is_ok()
    }

    /// The pods in the node's domains, weighted: the more, the worse.
    fn load(&self, node: NodeIdx) -> Score {
        if self.is_ignored(node) {
            return 0;
        }
        let mut load = 0.0;
        for term in &self.terms {
            if let Some(Some(pods)) = term.pods.get(node.get()) {
                load += as_float(*pods) * term.weight + term.slack;
            }
        }
        round(load)
    }

    /// Turns loads into scores: the least loaded node gets the most.
    fn normalize(&self, scores: &mut [NodeScore]) {
        let counted = |s: &&NodeScore| !self.is_ignored(s.node);
        let loads = scores.iter().filter(counted).map(|s| s.score);
        let least = loads.clone().min().unwrap_or(0);
        let most = loads.max().unwrap_or(0).max(0);
        for score in scores {
            score.score = if self.is_ignored(score.node) {
                0
            } else if most == 0 {
                MAX_NODE_SCORE
            } else {
                MAX_NODE_SCORE * (most + least - score.score) / most
            };
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of pods and nodes are far below 2^52")]
fn as_float(count: u64) -> f64 {
    count as f64
}

#[expect(clippy::cast_possible_truncation, reason = "a load is far below 2^63")]
fn round(load: f64) -> Score {
    load.round() as Score
}

/// The weight of a pod in one of `n_domains` domains. With few domains, each
/// holds many pods; the logarithm evens that out.
fn domain_weight(n_domains: usize) -> f64 {
    as_float(n_domains as u64 + 2).ln()
}

/// How constraints see one pod's nodes.
struct Survey<'a> {
    cluster: &'a Cluster,
    pod: &'a PodInfo,
    constraints: &'a [SpreadConstraint],
    /// Whether a node that lacks one of the labels is left out altogether.
    needs_all_keys: bool,
}

impl Survey<'_> {
    fn run(&self, feasible: &[NodeIdx]) -> Inner {
        let nodes = || feasible.iter().filter_map(|idx| self.cluster.nodes().get(*idx));
        let (scored, left_out): (Vec<&NodeInfo>, Vec<&NodeInfo>) =
            nodes().partition(|info| self.may_count(info));
        let mut ignored: Vec<NodeIdx> = left_out.iter().map(|info| info.idx()).collect();
        ignored.sort_unstable();

        let pods = pods_per_node(self.cluster, &self.pod.key.namespace, self.constraints);
        let terms = self.constraints.iter().zip(&pods).map(|(constraint, pods)| {
            if constraint.topology_key == HOSTNAME_LABEL {
                self.by_node(constraint, &scored, pods)
            } else {
                self.by_domain(constraint, &scored, pods)
            }
        });
        Inner { terms: terms.collect(), ignored }
    }

    fn may_count(&self, info: &NodeInfo) -> bool {
        !self.needs_all_keys || has_all_keys(&info.node().labels, self.constraints)
    }

    /// Each node is a domain: its own pods count, whatever its label says.
    fn by_node(&self, constraint: &SpreadConstraint, scored: &[&NodeInfo], pods: &PerNode) -> Term {
        let mut by_node = self.no_pods();
        for info in scored {
            if info.node().labels.contains_key(&constraint.topology_key) {
                by_node[info.idx().get()] = Some(u64::from(pods[info.idx().get()]));
            }
        }
        term(constraint, by_node, scored.len())
    }

    /// Only domains that have a node to score matter; all their nodes that the
    /// constraint includes count.
    fn by_domain(
        &self,
        constraint: &SpreadConstraint,
        scored: &[&NodeInfo],
        pods: &PerNode,
    ) -> Term {
        let key = &constraint.topology_key;
        // Nodes without the label are one domain, the one with an empty name.
        let unnamed = Name::default();
        let mut domains: HashMap<&Name, u64> = HashMap::new();
        for info in scored {
            domains.entry(info.node().labels.get(key).unwrap_or(&unnamed)).or_default();
        }
        for info in self.cluster.nodes().iter().filter(|info| pods[info.idx().get()] > 0) {
            let value = info.node().labels.get(key).unwrap_or(&unnamed);
            if let Some(domain) = domains.get_mut(value)
                && self.may_count(info)
                && includes(constraint, &self.pod.spec, info.node())
            {
                *domain += u64::from(pods[info.idx().get()]);
            }
        }
        let mut by_node = self.no_pods();
        for info in scored {
            let value = info.node().labels.get(key);
            by_node[info.idx().get()] = value.and_then(|value| domains.get(value)).copied();
        }
        let n_domains = domains.len();
        term(constraint, by_node, n_domains)
    }

    fn no_pods(&self) -> Vec<Option<u64>> {
        vec![None; self.cluster.nodes().slot_count()]
    }
}

fn term(constraint: &SpreadConstraint, pods: Vec<Option<u64>>, n_domains: usize) -> Term {
    Term { pods, weight: domain_weight(n_domains), slack: f64::from(constraint.max_skew - 1) }
}

impl PreScore for PodTopologySpread {
    fn pre_score(
        &self,
        ctx: &mut PrepareCtx<'_>,
        nodes: &[NodeIdx],
    ) -> Result<PreScoreVerdict, PluginError> {
        let constraints = self.defaults.constraints_of(
            ctx.pod,
            &ctx.cluster.stores,
            WhenUnsatisfiable::ScheduleAnyway,
        );
        if constraints.is_empty() {
            return Ok(PreScoreVerdict::Skip);
        }
        let survey = Survey {
            cluster: ctx.cluster,
            pod: ctx.pod,
            constraints: &constraints,
            // The built-in defaults spread over hosts where there are no zones.
            needs_all_keys: !ctx.pod.spec.spread_constraints.is_empty() || !self.defaults.built_in,
        };
        let data = ScoreData(Arc::new(survey.run(nodes)));
        ctx.state.put(data);
        Ok(PreScoreVerdict::Proceed)
    }
}

impl ScorePlugin for PodTopologySpread {
    fn score(&self, ctx: &CycleCtx<'_>, node: &NodeInfo) -> Result<Score, PluginError> {
        Ok(data(ctx)?.load(node.idx()))
    }

    fn normalize(&self, ctx: &CycleCtx<'_>, scores: &mut [NodeScore]) -> Result<(), PluginError> {
        data(ctx)?.normalize(scores);
        Ok(())
    }
}

fn data<'a>(ctx: &CycleCtx<'a>) -> Result<&'a Inner, PluginError> {
    let missing = || PluginError("PodTopologySpread: PreScore did not run".to_owned());
    Ok(&ctx.state.get::<ScoreData>().ok_or_else(missing)?.0)
}

//! Filtering by the `DoNotSchedule` constraints.

use std::sync::Arc;

use steersman_api::name::Name;
use steersman_api::node_info::{NodeIdx, NodeInfo};
use steersman_api::pod::{PodInfo, SpreadConstraint, WhenUnsatisfiable};
use steersman_framework::cluster::Cluster;
use steersman_framework::extensions::{
    CycleCtx, Filter, PreFilter, PreFilterExtensions, PrepareCtx,
};
use steersman_framework::verdict::{FilterVerdict, PluginError, PreFilterVerdict, Rejection};

use super::PodTopologySpread;
use super::constraints::{has_all_keys, includes};
use super::counts::pods_per_node;
use super::domains::{Domains, DomainsBuilder, Place};

const REASON_SKEW: &str = "node(s) didn't match pod topology spread constraints";
const REASON_NO_LABEL: &str =
    "node(s) didn't match pod topology spread constraints (missing required label)";

/// What PreFilter found about the pod's constraints.
#[derive(Clone)]
struct FilterData {
    /// The pod's namespace: no others are counted.
    namespace: Name,
    constraints: Arc<[SpreadConstraint]>,
    /// By constraint.
    states: Vec<ConstraintState>,
}

#[derive(Clone)]
struct ConstraintState {
    domains: Domains,
    max_skew: i64,
    min_domains: usize,
    /// 1 when the pod itself will be counted, else 0.
    own: i64,
}

impl FilterData {
    fn new(cluster: &Cluster, pod: &PodInfo, constraints: &[SpreadConstraint]) -> Self {
        let domains = find_domains(cluster, pod, constraints);
        let states = constraints.iter().zip(domains).map(|(c, domains)| ConstraintState {
            domains,
            max_skew: c.max_skew.into(),
            min_domains: usize::try_from(c.min_domains.unwrap_or(1)).unwrap_or(0),
            own: c.selector.matches(&pod.labels).into(),
        });
        Self {
            namespace: pod.key.namespace.clone(),
            states: states.collect(),
            constraints: constraints.into(),
        }
    }

    /// Counts `by` pods like `pod` more on the node.
    fn change(&mut self, pod: &PodInfo, node: NodeIdx, by: i64) {
        if pod.key.namespace != self.namespace {
            return;
        }
        for (constraint, state) in self.constraints.iter().zip(&mut self.states) {
            if constraint.selector.matches(&pod.labels) {
                state.domains.change(node, by);
            }
        }
    }

    fn judge(&self, node: NodeIdx) -> Result<FilterVerdict, PluginError> {
        for state in &self.states {
            let domain = match state.domains.place(node) {
                Some(Place::Counted(domain) | Place::Uncounted(domain)) => domain,
                Some(Place::NoDomain) => {
                    return Ok(FilterVerdict::Reject(Rejection::unresolvable(REASON_NO_LABEL)));
                }
                None => return Err(PluginError("PreFilter did not see the node".to_owned())),
            };
            let fewest = state.domains.fewest(state.min_domains);
            if state.domains.pods_in(domain) + state.own - fewest > state.max_skew {
                return Ok(FilterVerdict::Reject(Rejection::unschedulable(REASON_SKEW)));
            }
        }
        Ok(FilterVerdict::Fit)
    }
}

/// The domains of each constraint with the pods they hold.
fn find_domains(
    cluster: &Cluster,
    pod: &PodInfo,
    constraints: &[SpreadConstraint],
) -> Vec<Domains> {
    let n_slots = cluster.nodes().slot_count();
    let pods = pods_per_node(cluster, &pod.key.namespace, constraints);
    let mut builders: Vec<DomainsBuilder<'_>> =
        constraints.iter().map(|_| DomainsBuilder::new(n_slots)).collect();
    for info in cluster.nodes().iter() {
        let (idx, node) = (info.idx(), info.node());
        let has_all = has_all_keys(&node.labels, constraints);
        for ((constraint, builder), pods) in constraints.iter().zip(&mut builders).zip(&pods) {
            let Some(value) = node.labels.get(&constraint.topology_key) else { continue };
            if has_all && includes(constraint, &pod.spec, node) {
                builder.add_counted(idx, value, pods[idx.get()]);
            } else {
                builder.add_uncounted(idx, value);
            }
        }
    }
    builders.into_iter().map(DomainsBuilder::finish).collect()
}

impl PreFilter for PodTopologySpread {
    fn pre_filter(&self, ctx: &mut PrepareCtx<'_>) -> Result<PreFilterVerdict, PluginError> {
        let constraints = self.defaults.constraints_of(
            ctx.pod,
            &ctx.cluster.stores,
            WhenUnsatisfiable::DoNotSchedule,
        );
        if constraints.is_empty() {
            return Ok(PreFilterVerdict::Skip);
        }
        ctx.state.put(FilterData::new(ctx.cluster, ctx.pod, &constraints));
        Ok(PreFilterVerdict::Proceed)
    }

    fn extensions(&self) -> Option<&dyn PreFilterExtensions> {
        Some(self)
    }
}

impl PreFilterExtensions for PodTopologySpread {
    fn add_pod(
        &self,
        ctx: &mut PrepareCtx<'_>,
        added: &PodInfo,
        node: &NodeInfo,
    ) -> Result<(), PluginError> {
        what_if(ctx, added, node, 1)
    }

    fn remove_pod(
        &self,
        ctx: &mut PrepareCtx<'_>,
        removed: &PodInfo,
        node: &NodeInfo,
    ) -> Result<(), PluginError> {
        what_if(ctx, removed, node, -1)
    }
}

fn what_if(
    ctx: &mut PrepareCtx<'_>,
    pod: &PodInfo,
    node: &NodeInfo,
    by: i64,
) -> Result<(), PluginError> {
    let data = ctx.state.get_mut::<FilterData>().ok_or_else(no_data)?;
    data.change(pod, node.idx(), by);
    Ok(())
}

impl Filter for PodTopologySpread {
    fn filter(&self, ctx: &CycleCtx<'_>, node: &NodeInfo) -> Result<FilterVerdict, PluginError> {
        ctx.state.get::<FilterData>().ok_or_else(no_data)?.judge(node.idx())
    }
}

fn no_data() -> PluginError {
    PluginError("PodTopologySpread: PreFilter did not run".to_owned())
}
